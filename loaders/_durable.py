"""Write files completely or not at all, even if the process or the machine stops."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

BUILDING = ".loaders-building-"
"""Whoever names a directory for LOADERS_CACHE may have put something else there: nothing of theirs is called this."""


def write(path: Path, text: str) -> None:
    """Write a file completely or not at all: the old file stays until all of the new one is on disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        sync(temporary)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync_tree(root: Path) -> None:
    """Sync everything below a directory to disk."""
    for path in root.rglob("*"):
        sync(path)
    sync(root)


def sync(path: Path) -> None:
    """Sync a file to disk, or a directory's entries, without which a file that was just created may be lost."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def temporary_beside(place: Path) -> Iterator[Path]:
    """Give a directory beside a place, to be filled and then renamed to it; it is removed if it was not.

    What killed processes left there is removed first.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(place.parent, BUILDING)
    temporary = Path(tempfile.mkdtemp(prefix=f"{BUILDING}{os.getpid()}-", dir=place.parent))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_abandoned(directory: Path, prefix: str) -> None:
    """Remove what killed processes left behind: directories named with the prefix and the id of an ended process."""
    import psutil

    for path in directory.glob(f"{prefix}*"):
        pid, *ending = path.name.removeprefix(prefix).split("-")
        if ending and pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(path, ignore_errors=True)
