"""``selftest``: how often ``check`` is wrong on this machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from loaders import _registry
from loaders._cli import options
from loaders._cli.output import print_json

if TYPE_CHECKING:
    from loaders._trial import Record


@click.command("selftest")
@click.option("--checks", type=click.IntRange(min=1), default=40, show_default=True, help="Checks of each kind.")
@options.minutes("Minutes for each check.")
@click.option(
    "--subject",
    type=click.Choice(("python", "tensorflow")),
    default="python",
    show_default=True,
    help="The strategy in which differences are planted.",
)
@options.as_json
def command(checks: int, minutes: float, subject: str, *, as_json: bool) -> None:
    """Measure the error of `check` with identical sides and with planted differences of time and memory.

    Each check is saved when it ends, and the same command resumes. The page shows the result.
    """
    from loaders import _compare, _terminal
    from loaders._check import selftest as own
    from loaders._check.serve import Forks
    from loaders._check.trials import CHECKED
    from loaders._trial import log, machine, run_trial

    corpus = options.open_corpus("tiny", strict=True)
    _registry.load_files([own.FILE])
    planned = _compare.plan(own.QUESTIONS_OF[subject], corpus, outside=(str(own.FILE),))
    kinds = own.KINDS_OF[subject]

    def trial(strategy: str, seed: int) -> Record:
        asked = planned.trial(strategy, planned.cases[0], seed)
        asked = msgspec.structs.replace(asked, slow=False, checked=seed % CHECKED == 1)  # as in a check
        return forks.run(asked, corpus) if planned.forks else run_trial(asked, corpus)

    with log.exclusive(machine.machine_name()), Forks(planned.modules) as forks:
        begin = forks.begin if planned.forks else None
        path = log.log_path(machine.machine_name()).with_name(own.NAME)
        tallies = own.selftest(checks, minutes * 60, trial, path, kinds, begin=begin, told=_terminal.told_of_selftest)
    if as_json:
        print_json(tallies)
    else:
        _terminal.show_selftest(tallies)
    wrong = sum(each.alarms for each in tallies if each.kind == kinds[0].name)
    sys.exit(1 if wrong else 0)
