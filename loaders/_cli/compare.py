"""``compare``: all strategies of some questions, in shuffled rounds of trials."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from loaders import _registry
from loaders._cli import options
from loaders._cli.output import print_json, say, this_python

if TYPE_CHECKING:
    from loaders._rows import Comparison


@click.command("compare")
@click.argument("questions", nargs=-1)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    envvar="LOADERS_ROUNDS",
    help="Times each strategy runs (LOADERS_ROUNDS); of a question that chooses a loader, only what is still open runs "
    "after the 8th. With --minutes at least 4, except at full size. [default: by size]",
)
@click.option(
    "--minutes",
    type=options.above_zero,
    help="Stop after this time: quick strategies in 3 rounds (not at full size), or in one if there are 15 minutes or "
    "more, then every strategy, then what is still open.",
)
@click.option(
    "--until",
    type=options.share,
    metavar="5%",
    help="Go on, up to 24 rounds, until ratios that first answers rest on are known within this. [default without "
    "--rounds: 5%, with --minutes or at full size]",
)
@click.option(
    "--all-cases/--default-case",
    default=None,
    help="Every value of the question's axes, or only the default one. [default: by size]",
)
@options.case("Only the cases with this value.")
@click.option("--quick", is_flag=True, help="Only the main strategies of each question.")
@click.option("--fresh", is_flag=True, help="Start every trial in a fresh process, never as a fork of a server.")
@options.trials
@options.as_json
def command(
    questions: Sequence[str],
    rounds: int | None,
    minutes: float | None,
    until: float | None,
    given: Sequence[str],
    how: options.Trials,
    *,
    all_cases: bool | None,
    quick: bool,
    fresh: bool,
    as_json: bool,
) -> None:
    """Compare all strategies of QUESTIONS (default: every question), in shuffled rounds of trials.

    The same command resumes an interrupted comparison, and goes on after `--minutes`. With `--minutes`, `known_issues`
    and `service` run only if they are named: no first answer rests on them, and they take minutes of their own.
    """
    asked = [_registry.find_question(name) for name in dict.fromkeys(questions)]
    asked = asked or every_question(budgeted=minutes is not None)
    corpus = how.open()

    from loaders import _compare, _resolution, _rows, _terminal
    from loaders._trial import log, machine
    from loaders._trial.record import SCHEMA

    # All plans come before the first trial: an error in the last one must not show up only after hours.
    plans = [
        _compare.plan(
            each.name,
            corpus,
            rounds=rounds,
            all_cases=all_cases,
            only=options.values(each, given),
            quick=quick,
            memory_limit=how.memory_limit,
            deadline=how.deadline,
            outside=how.outside,
            epochs=how.epochs,
            fresh=fresh,
            minutes=minutes,
            until=until,
        )
        for each in asked
    ]
    seconds = minutes and 60 * minutes
    with _terminal.progress(sum(each.trials for each in plans), seconds) as bar:
        order = _compare.weightiest_first(plans)
        every = _compare.run_together(order, seconds=seconds, done=bar.done, begin=bar.begin, say=say)
    logged = log.read(log.log_path(machine.machine_name()))
    calibration = _resolution.newest(each for each in logged if each.schema == SCHEMA)
    found: list[Comparison] = []
    for question, planned in zip(asked, plans, strict=True):
        records = every[planned.question]
        if not records:
            continue  # the time was up before
        if question.calibrates:
            calibration = _resolution.calibration(records)
        found.append(_rows.comparison(records, calibration))
        if not as_json:
            _terminal.show_comparison(found[-1])
            if planned.until:
                _terminal.show_open(question.name, _compare.open_ratios(planned, records))
            if calibration and question.calibrates:
                _terminal.show_calibration(calibration)
    if as_json:
        documents = [_rows.document(each) for each in found]
        print_json(documents[0] if len(asked) == len(documents) == 1 else documents)
    if minutes:
        again = f"{this_python()} -m loaders {shlex.join(sys.argv[1:])}"
        is_left = _compare.is_left(plans, every)
        names = {(plan.question, name) for plan in plans for case in plan.cases for name in plan.strategies_in(case)}
        without = names - {(name, each.strategy) for name, own in every.items() for each in own}
        lack = f", and {len(without)} of {len(names)} strategies have not had their turn" if without else ""
        said = f"the {minutes:g} minutes are up{lack}; to go on: {again}"
        say(said if is_left else f"all is measured; anew: {again}")
    sys.exit(1 if any(each.went_wrong for records in every.values() for each in records) else 0)


def every_question(*, budgeted: bool = False) -> list[_registry.Question]:
    """Return all questions, calibration first: the others need the resolution that it measures.

    If there is a time budget, those are left out that must be asked for by name.
    """
    found = [each for each in _registry.questions().values() if not (budgeted and each.apart)]
    return sorted(found, key=lambda question: not question.calibrates)
