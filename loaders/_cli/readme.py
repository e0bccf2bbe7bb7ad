"""``readme``: the generated parts of the README."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command("readme")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if the README is stale.")
def command(*, check: bool) -> None:
    """Update the README's findings and picture, docs/results.md and probe's cures from the published results."""
    from loaders._report import readme as made

    stale = made.renew(Path.cwd(), write=not check)
    for name in stale:
        click.echo(f"{'stale' if check else 'updated'}: {name}")
    sys.exit(1 if stale and check else 0)
