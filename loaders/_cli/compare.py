"""``compare``: all strategies of some questions, in shuffled rounds of trials."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from loaders import _registry
from loaders._cli import options
from loaders._cli.output import print_json, say

if TYPE_CHECKING:
    from loaders._rows import Comparison


@click.command("compare")
@click.argument("questions", nargs=-1)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    envvar="LOADERS_ROUNDS",
    help="Times each strategy runs (LOADERS_ROUNDS). [default: by size]",
)
@click.option(
    "--all-cases/--default-case",
    default=None,
    help="Every value of the question's axes, or only the default one. [default: by size]",
)
@options.case("Only the cases with this value.")
@click.option("--quick", is_flag=True, help="Only the main strategies of each question.")
@options.trials
@options.as_json
def command(
    questions: Sequence[str],
    rounds: int | None,
    given: Sequence[str],
    how: options.Trials,
    *,
    all_cases: bool | None,
    quick: bool,
    as_json: bool,
) -> None:
    """Compare all strategies of QUESTIONS (default: every question), in shuffled rounds of trials.

    The same command resumes an interrupted comparison.
    """
    asked = [_registry.find_question(name) for name in questions] or every_question()
    corpus = how.open()

    from loaders import _compare, _resolution, _rows, _terminal
    from loaders._trial import log, machine

    found: list[Comparison] = []
    bad = False
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
        )
        for each in asked
    ]
    calibration = _resolution.newest(log.read(log.log_path(machine.machine_name())))
    for question, planned in zip(asked, plans, strict=True):
        with _terminal.progress(planned.question, planned.trials_a_round * planned.rounds) as bar:
            records = _compare.run(planned, done=bar.done, begin=bar.begin, say=say)
        if question.calibrates:
            calibration = _resolution.calibration(records)
        result = _rows.comparison(records, calibration)
        bad = bad or any(record.status not in ("ok", "skipped") for record in records)
        found.append(result)
        if not as_json:
            _terminal.show_comparison(result)
            if calibration and question.calibrates:
                _terminal.show_calibration(calibration)
    if as_json:
        documents = [_rows.document(each) for each in found]
        print_json(documents[0] if len(questions) == 1 else documents)
    sys.exit(1 if bad else 0)


def every_question() -> list[_registry.Question]:
    """Return all questions, calibration first: the others need the resolution that it measures."""
    return sorted(_registry.questions().values(), key=lambda question: not question.calibrates)
