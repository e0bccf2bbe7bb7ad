"""``report``: the comparison page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from loaders._cli import options
from loaders._cli.output import say, write
from loaders._errors import InputError


@click.command("report")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(".asv/comparison.html"),
    show_default=True,
    help="The page; figures, trials and their schema are written beside it.",
)
@click.option("--each-machine", is_flag=True, help="Write a page for each machine as well, with more of its charts.")
@options.outside
def command(out: Path, outside: Sequence[str], *, each_machine: bool) -> None:
    """Write the comparison page, with figures and trials beside it; `asv publish` adds them to its site."""
    from loaders._report import asv_files, export, page, sets
    from loaders._trial import log

    options.register(outside)
    comparisons = sets.collect(log.results_root(), say)
    if not comparisons:
        raise InputError(f"no finished comparison under {log.results_root()}; run `python -m loaders compare` first")
    try:
        files = export.write_beside(out, comparisons, log.results_root())
    except OSError as error:
        raise InputError(f"cannot write beside {out}: {error.strerror or error}") from error
    held = asv_files.read(log.results_root())
    if each_machine:
        for name, text in page.rendered(comparisons, held, out.name, home=None, files=files).items():
            write(out.with_name(name), text)
    else:
        write(out, page.render(comparisons, held, files=files))
    click.echo(f"comparison page: {out.absolute().as_uri()}")
