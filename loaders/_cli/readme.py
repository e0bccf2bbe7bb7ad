"""``readme``: the generated parts of the README."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("readme")
def command() -> None:
    """Update the README's findings and picture, docs/results.md and probe's cures from the published results."""
    from loaders._report import readme as made

    for name in made.renew(Path.cwd(), write=True):
        click.echo(f"updated: {name}")
