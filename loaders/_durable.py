"""Write files completely or not at all, even if the process or the machine stops."""

from __future__ import annotations

import contextlib
import errno
import functools
import glob
import hashlib
import os
import platform
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
    """Sync a file to disk, or a directory's entries, without which a file that was just created may be lost.

    Some network file systems refuse to sync a directory (``EINVAL``), and keep its entries by themselves.
    """
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno != errno.EINVAL or not path.is_dir():
                raise
        finally:
            os.close(handle)


@contextlib.contextmanager
def temporary_beside(place: Path) -> Iterator[Path]:
    """Give a directory beside a place, to be filled and then renamed to it; it is removed if it was not.

    What killed processes left there is removed first.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(place.parent, BUILDING)
    temporary = Path(tempfile.mkdtemp(prefix=owned(BUILDING), dir=place.parent))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@functools.cache
def _where() -> str:
    """Return what tells process ids of this machine, or container, from those of others that see the same files.

    It begins with a letter: versions before this had the process id in its place.
    """
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"h{hashlib.sha256(f'{platform.node()} {namespace}'.encode()).hexdigest()[:8]}"


def owned(prefix: str) -> str:
    """Return a prefix for a directory of this process, by which ``remove_abandoned`` will know it."""
    return f"{prefix}{_where()}-{os.getpid()}-"


def remove_abandoned(directory: Path, prefix: str) -> None:
    """Remove what killed processes left behind: directories ``owned`` by an ended process of this machine.

    Machines and containers that share a directory have process ids of their own, and their directories are left alone.
    """
    import psutil

    ours = f"{prefix}{_where()}-"
    for path in directory.glob(f"{glob.escape(ours)}*"):
        pid, *ending = path.name.removeprefix(ours).split("-")
        if ending and pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(path, ignore_errors=True)
