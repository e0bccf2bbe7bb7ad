"""``advise``: which strategy to use, from results or for a person's own folder."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loaders import _registry
from loaders._cli import options
from loaders._cli.output import print_json, say, write

if TYPE_CHECKING:
    from loaders._folder.race import Wanted

MOST_PIXELS = 8192
"""Of a side."""


@click.command("advise")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
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
@click.option(
    "--size", "pixels", default="224x224", show_default=True, metavar="HxW", help="FOLDER: pixels of an image."
)
@options.minutes("FOLDER: how long to measure.", default=3.0)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("loader.py"),
    show_default=True,
    help="FOLDER: where the loader is written.",
)
@click.option("--force", is_flag=True, help="FOLDER: write over an existing file.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="FOLDER: write one page to be sent on.")
@options.as_json
@click.pass_context
def command(
    context: click.Context,
    folder: Path | None,
    question: str,
    memory: int,
    step: str,
    batch: int,
    samples: int,
    epochs: int,
    given: Sequence[str],
    pixels: str,
    minutes: float,
    out: Path,
    report: Path | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Say which strategy to use: for the images in FOLDER by measuring them, else from existing results.

    With FOLDER, the loaders are measured on its images for some minutes, and the best that fits is written to a file
    that needs nothing of this package; nothing is written into FOLDER. Its subfolders are the labels. Ctrl-C gives the
    best answer so far; the same command goes on.

    Without, results of this machine are used once they hold a whole round at every amount of data, even of few
    strategies; until then the published ones.

    The exit code is 0 even if nothing can be recommended: the answer then says why, and what to measure.
    """
    from loaders._advise.command import seconds

    for_folder = ("pixels", "minutes", "out", "force", "report")
    others = ("question", "samples", "given")
    typed = options.typed(context)
    out_of_place = [
        option
        for parameter in context.command.params
        for option in parameter.opts
        if parameter.name in typed.intersection(for_folder if folder is None else others)
    ]
    if out_of_place:
        raise click.UsageError(f"{', '.join(out_of_place)}: only {'with' if folder is None else 'without'} a folder")
    if folder is None:
        _from_results(question, given, memory, seconds(step), batch, samples, epochs, as_json=as_json)
        return
    from loaders._folder.race import Wanted

    height, width = _size(pixels)
    wanted = Wanted(str(folder.absolute()), memory, seconds(step), batch, height, width, epochs)
    _measured(wanted, minutes, out, report, force=force, as_json=as_json)


def _size(text: str) -> tuple[int, int]:
    sides = text.lower().split("x")
    if len(sides) != 2 or not all(each.isdecimal() and 0 < int(each) <= MOST_PIXELS for each in sides):
        raise click.BadParameter(f"{text!r} is not a size; write height and width in pixels: 224x224")
    return int(sides[0]), int(sides[1])


def _from_results(
    question: str,
    given: Sequence[str],
    memory: int,
    step: float,
    batch: int,
    samples: int,
    epochs: int,
    *,
    as_json: bool,
) -> None:
    from loaders import _terminal
    from loaders._advise import command as advice
    from loaders._advise.choose import Settings
    from loaders._trial import log, machine

    settings = Settings(memory, step, batch, samples, epochs)
    options.register(())  # those of one's own that were compared can be chosen, as on the page
    values = options.values(_registry.find_question(question), given)
    advice.asked(question, values)
    records = log.read_all(log.results_root(), say)
    answer = advice.advise(records, question, values, settings, machine.machine_name())
    if as_json:
        print_json(answer)
    else:
        _terminal.show_answer(answer)


def _measured(wanted: Wanted, minutes: float, out: Path, report: Path | None, *, force: bool, as_json: bool) -> None:
    from loaders import _terminal
    from loaders._folder import command as own

    if report:  # what it needs may be missing: that is said before anything is measured
        from loaders._report import folder

    line = f"python -m loaders {shlex.join(sys.argv[1:])}"
    asked = own.Asked(wanted, out, minutes * 60, line, report, force)
    with _terminal.progress(0, minutes * 60) as bar:
        found = own.run(asked, bar.done, bar.describe, say)
    if as_json:  # shown even where it cannot be written
        print_json(found)
    else:
        _terminal.show_advice(found, out)
    if report:
        write(report, folder.render(found, line))
