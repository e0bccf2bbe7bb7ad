"""``advise``: which strategy to use."""

from __future__ import annotations

from collections.abc import Sequence

import click

from loaders import _registry
from loaders._cli import options
from loaders._cli.output import print_json, say
from loaders._errors import InputError


@click.command("advise")
@click.argument("folder", required=False)
@click.option("--question", default="batching", show_default=True, help="The question to choose for.")
@click.option(
    "--memory",
    type=options.amount_of_memory,
    default="1GiB",
    show_default=True,
    help="Memory for loading, besides your program.",
)
@click.option("--step", default="50ms", show_default=True, metavar="50ms|none", help="Duration of a training step.")
@click.option("--batch", type=click.IntRange(1, 10**6), default=32, show_default=True, help="Samples per step.")
@click.option(
    "--samples", type=click.IntRange(1, 10**12), default=10_000, show_default=True, help="Samples in your data set."
)
@click.option(
    "--epochs", type=click.IntRange(1, 10**6), default=20, show_default=True, help="Epochs that you train for."
)
@options.case("A value of one of the question's axes.")
@options.as_json
def command(
    folder: str | None,
    question: str,
    memory: int,
    step: str,
    batch: int,
    samples: int,
    epochs: int,
    given: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Say which strategy to use, from existing results: this machine's if there are any, else the published ones.

    The exit code is 0 even if nothing can be recommended: the answer then says what to measure.
    """
    from loaders._advise import command as advice
    from loaders._advise.choose import Settings
    from loaders._trial import log, machine

    if folder is not None:
        raise InputError(f"{folder}: advice on your own folder is not supported yet; leave it out")
    settings = Settings(memory, advice.seconds(step), batch, samples, epochs)
    values = options.values(_registry.find_question(question), given)
    advice.asked(question, values)
    records = log.read_all(log.results_root(), say)
    answer = advice.advise(records, question, values, settings, machine.machine_name())
    if as_json:
        print_json(answer)
    else:
        advice.show(answer)
