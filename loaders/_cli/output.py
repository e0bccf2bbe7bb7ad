"""What commands print and write."""

from __future__ import annotations

from pathlib import Path

import click

from loaders import _durable
from loaders._errors import InputError


def say(message: str) -> None:
    """Print a message that is not part of the result, on standard error."""
    click.echo(message, err=True)


def print_json(document: object) -> None:
    """Print one JSON document."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(document)).decode())


def write(path: Path, text: str) -> None:
    """Write a file completely or not at all."""
    try:
        _durable.write(path, text)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
