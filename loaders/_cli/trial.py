"""``trial``: one strategy, once, with everything that was measured."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from loaders import _registry
from loaders._cli import options
from loaders._cli.output import print_json


@click.command("trial")
@click.argument("question")
@click.argument("strategy")
@options.case("A value of one of the question's axes.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the order of samples.")
@options.trials
@options.as_json
def command(
    question: str, strategy: str, given: Sequence[str], seed: int, how: options.Trials, *, as_json: bool
) -> None:
    """Run one strategy once, in a fresh process, and show everything that was measured."""
    asked = _registry.find_question(question)
    _registry.find_variant(question, strategy)
    case = {**asked.default_case, **options.values(asked, given)}
    corpus = how.open()

    from loaders import _compare, _terminal
    from loaders._trial import log, machine, run_trial

    planned = _compare.plan(
        question,
        corpus,
        memory_limit=how.memory_limit,
        deadline=how.deadline,
        outside=how.outside,
        epochs=how.epochs,
    )
    path = log.log_path(machine.machine_name())
    log.refuse_other_processor(path, machine.processor())
    record = run_trial(planned.trial(strategy, case, seed), corpus)
    try:
        log.append(path, record)
    finally:  # shown even where it cannot be kept
        if as_json:
            print_json(record)
        else:
            _terminal.show_trial(record)
    sys.exit(0 if record.status in ("ok", "skipped") else 1)
