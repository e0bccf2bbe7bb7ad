"""What commands print and write."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from loaders import _durable
from loaders._errors import InputError

if TYPE_CHECKING:
    from loaders._check.run import Outcome


def say(message: str) -> None:
    """Print a message that is not part of the result, on standard error."""
    click.echo(message, err=True)


def this_python() -> str:
    """Return how to call the Python that runs this: ``python`` only where that is the one."""
    if os.path.normcase(shutil.which("python") or "") == os.path.normcase(sys.executable):
        return "python"
    path = Path(sys.executable)
    said = str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    return subprocess.list2cmdline([said]) if os.name == "nt" else shlex.quote(said)


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


Stopped = KeyboardInterrupt | InputError | None
"""What ended a measurement before its time."""


def checked(
    seconds: float, run: Callable[[Callable[[list[Outcome]], None]], list[Outcome]]
) -> tuple[list[Outcome], Stopped]:
    """Show the progress of a check, and return its outcomes and what has stopped it.

    ``run`` is given what it must call with the outcomes so far; these are what an interruption or an error leaves.
    """
    from loaders import _terminal

    outcomes: list[Outcome] = []
    with _terminal.checking(seconds) as show_progress:

        def told(so_far: list[Outcome]) -> None:
            outcomes[:] = so_far
            show_progress(so_far)

        try:
            return run(told), None
        except (KeyboardInterrupt, InputError) as stopped:
            return outcomes, stopped


def finish(code: int, stopped: Stopped = None) -> NoReturn:
    """End with an exit code: after an interruption with 130, and with 2 after an error, which is raised."""
    if stopped:
        how = "ended" if isinstance(stopped, InputError) else "interrupted"
        say(f"{how}; only what was measured until then is judged")
    if isinstance(stopped, InputError):
        raise stopped
    sys.exit(130 if stopped else code)
