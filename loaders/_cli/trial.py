"""``trial``: one strategy, once, with everything that was measured."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from loaders import _registry
from loaders._cli import options
from loaders._cli.output import print_json
from loaders._errors import InputError

if TYPE_CHECKING:
    from loaders._check.serve import Serving
    from loaders._trial import Record


def _serve(context: click.Context, _: click.Parameter, parent: int | None) -> None:
    """Run the trials that a check orders; see ``loaders._check.serve``."""
    if parent is None:
        return
    from loaders._check import serve

    def ordered(arguments: list[str], serving: Serving) -> Record:
        try:
            record: Record = command.main(arguments, standalone_mode=False, obj=serving)
        except click.UsageError as error:
            raise InputError(error.format_message()) from error
        return record

    options.register(())
    serve.serve(parent, lambda size: options.open_corpus(size, strict=False), ordered)
    context.exit()


@click.command("trial")
@click.argument("question")
@click.argument("strategy")
@options.case("A value of one of the question's axes.")
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=1, show_default=True, help="Seed of the order of samples."
)
@options.trials
@options.as_json
@click.option("--serve", type=int, metavar="PARENT", hidden=True, is_eager=True, expose_value=False, callback=_serve)
@click.pass_obj
def command(
    serving: Serving | None,
    question: str,
    strategy: str,
    given: Sequence[str],
    seed: int,
    how: options.Trials,
    *,
    as_json: bool,
) -> Record | None:
    """Run one strategy once, in a fresh process, and show everything that was measured."""
    asked = _registry.find_question(question)
    _registry.find_variant(question, strategy)
    case = {**asked.default_case, **options.values(asked, given)}
    corpus = serving.corpus if serving else how.open()

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
    trial = planned.trial(strategy, case, seed)
    if serving:
        return serving.run(trial)
    path = log.log_path(machine.machine_name())
    log.refuse_other_processor(path, machine.processor())
    record = run_trial(trial, corpus)
    try:
        log.append(path, record)
    finally:  # shown even where it cannot be kept
        if as_json:
            print_json(record)
        else:
            _terminal.show_trial(record)
    sys.exit(1 if record.went_wrong else 0)
