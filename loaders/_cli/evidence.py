"""``evidence``: how often the judge, the check, the recommendations and the law of memory are wrong."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from loaders._cli import options
from loaders._cli.output import print_json, say
from loaders._errors import InputError


@click.command("evidence")
@click.argument(
    "names",
    nargs=-1,
    type=click.Choice(("simulation", "rounds", "checks", "replay", "law", "pairing", "start", "copies")),
)
@click.option(
    "--repetitions", type=click.IntRange(min=2), default=1000, show_default=True, help="Repetitions of each kind."
)
@click.option(
    "--noise",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The trial log to take noise or answers from. [default: that of the published results]",
)
@options.as_json
def command(names: Sequence[str], repetitions: int, noise: Path | None, *, as_json: bool) -> None:
    """Count how often the judge, the check, the recommendations and the law of memory are wrong.

    `simulation`, `rounds` and `checks` add the noise of real trials to known truths: to comparisons of fixed rounds, of
    rounds that go to what is open, and to checks. `replay` checks recommendations against an independent second reading
    of the raw trials. `law` compares predictions with trials of four times the data; both read the logs of all the
    project's machines by default. `pairing` shows how the times of a strategy and its baseline vary together from
    round to round. `start` counts what `selftest --start` has measured, and `copies` how often memory that workers copy
    is found to grow; both read this machine's own trials.

    Each experiment is saved when it ends. The exit code is 1 if a count misses its target by more than chance explains,
    else 2 if an experiment lacks its trials, which keeps none of the others from running.
    """
    from loaders import _evidence, _terminal
    from loaders._advise.coverage import OURS
    from loaders._trial import log, machine

    root, own = log.results_root(), log.log_path(machine.machine_name())
    every = sorted(root.glob(f"{OURS}*/{log.NAME}"))
    found, is_lacking = [], False
    for name in names or _evidence.EXPERIMENTS:
        usual = [own] if name in _evidence.OWN else [root / log.PUBLISHED / log.NAME]
        sources = [noise] if noise else every if name in _evidence.OF_ALL else usual
        try:
            found.append(_evidence.experiment(name, sources, repetitions))
        except InputError as error:
            say(f"error: {name}: {error}")
            is_lacking = True
            continue
        log.append(own.with_name(_evidence.NAME), found[-1])
        if not as_json:
            _terminal.show_evidence(found[-1])
    if as_json:
        print_json(found)
    is_missed = not all(count.is_reached for each in found for count in each.counts)
    sys.exit(1 if is_missed else 2 if is_lacking else 0)
