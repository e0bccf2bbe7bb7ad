"""Files that are whole or not there, whatever ends the process or the machine."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all: what was there stays until all of it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_text(text, encoding="utf-8")
        sync(temporary)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync_tree(root: Path) -> None:
    """See everything below a directory on the disk."""
    for path in root.rglob("*"):
        sync(path)
    sync(root)


def sync(path: Path) -> None:
    """See a file on the disk; of a directory its entries, without which a file that was just made may be gone."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_abandoned(directory: Path, prefix: str) -> None:
    """Remove what processes that were killed have left: directories whose names go on with a process's number."""
    import psutil

    for path in directory.glob(f"{prefix}*"):
        pid = path.name.removeprefix(prefix).partition("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(path, ignore_errors=True)
