"""``selftest``: how often ``check`` is wrong on this machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from loaders import _registry
from loaders._cli import options
from loaders._cli.output import print_json

if TYPE_CHECKING:
    from loaders._trial import Record


@click.command("selftest")
@click.option("--checks", type=click.IntRange(min=1), default=40, show_default=True, help="Of each kind.")
@options.minutes("Of each.")
@click.option(
    "--subject",
    type=click.Choice(("python", "tensorflow")),
    default="python",
    show_default=True,
    help="What the differences are planted in.",
)
@options.as_json
def command(checks: int, minutes: float, subject: str, *, as_json: bool) -> None:
    """Measure the error of `check`: identical sides, and planted differences of time and memory.

    Each check is kept as soon as it has ended, and the same command continues; the page shows the result.
    """
    from loaders import _compare, _terminal
    from loaders._check import selftest as own
    from loaders._trial import log, machine, run_trial

    corpus = options.open_corpus("tiny", strict=True)
    _registry.load_files([own.FILE])
    planned = _compare.plan(own.QUESTIONS_OF[subject], corpus, outside=(str(own.FILE),))
    kinds = own.KINDS_OF[subject]

    def trial(strategy: str, seed: int) -> Record:
        return run_trial(planned.trial(strategy, planned.cases[0], seed), corpus)

    with log.exclusive(machine.machine_name()):
        path = log.log_path(machine.machine_name()).with_name(own.NAME)
        tallies = own.selftest(checks, minutes * 60, trial, path, kinds, told=_terminal.told_of_selftest)
    if as_json:
        print_json(tallies)
    else:
        _terminal.show_selftest(tallies)
    wrong = sum(each.alarms for each in tallies if each.kind == kinds[0].name)
    sys.exit(1 if wrong else 0)
