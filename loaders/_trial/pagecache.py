"""How much of some files is in the system's page cache: whether a strategy reads from memory or from disk.

The kernel is asked; nothing is assumed. ``mincore`` tells for each page of a mapped file whether it is resident
(https://man7.org/linux/man-pages/man2/mincore.2.html). ``posix_fadvise`` is a request, which an in-memory file system
ignores (https://man7.org/linux/man-pages/man2/posix_fadvise.2.html), so its effect is checked too.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import psutil

from loaders._registry import Skip

COLD, WARM = 0.02, 0.98
"""Files count as cold below the first share of resident pages, and as warm above the second."""


def read(paths: Iterable[str | Path]) -> None:
    """Read files into the page cache, as far as they fit."""
    for file in _opened(paths):
        with contextlib.suppress(OSError):
            while file.read(2**20):
                pass


def _opened(paths: Iterable[str | Path]) -> Iterator[BinaryIO]:
    """Open files one after the other; what cannot be opened is left to the strategy."""
    for path in paths:
        with contextlib.suppress(OSError), Path(path).open("rb") as file:
            yield file


def epochs(asked: int, state: str) -> int:
    """Return how often files can be read in a state of the page cache: a second epoch would not be cold."""
    return 1 if state == "cold" else asked


def bring(paths: Sequence[str], state: str) -> None:
    """Bring files into the page cache (``warm``) or drop them from it (``cold``), and verify that it worked.

    Without a state they are read into it as far as they fit.

    Raises
    ------
    Skip
        If it did not work; the message says why.
    """
    if state != "cold":
        read(paths)
    if not state:
        return
    for file in _opened(paths) if state == "cold" and hasattr(os, "posix_fadvise") else ():
        os.fsync(file.fileno())  # pages not yet written to disk stay in the cache
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    share = resident_share(paths)
    if share is None and sys.platform == "linux":
        return  # the files are empty, or not there
    if share is None:
        raise Skip("this system does not tell what is in its page cache")
    if state == "cold" and share > COLD:
        raise Skip(
            f"{share:.0%} of the files stayed in the page cache, so they cannot be read cold; "
            f"if their directory lies in memory (tmpfs), name another in TMPDIR"
        )
    if state == "warm" and share < WARM:
        raise Skip(
            f"only {share:.0%} of the files stay in the page cache: there is too little memory to read them warm"
        )


def resident_share(paths: Iterable[str | Path]) -> float | None:
    """Return the share of the files' pages in the page cache, 0 to 1; ``None`` if the system cannot tell."""
    if sys.platform != "linux":
        return None
    resident = total = 0
    for file in _opened(paths):
        size = os.fstat(file.fileno()).st_size
        if not size:
            continue
        with mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as mapped:
            states = _states(mapped, size)
        resident += sum(state & 1 for state in states)
        total += len(states)
    return resident / total if total else None


def _states(mapped: mmap.mmap, size: int) -> bytes:
    """Return one byte for each page; its lowest bit is set if the page is resident."""
    import numpy as np

    pages = -(-size // mmap.PAGESIZE)
    states = (ctypes.c_ubyte * pages)()
    view = np.frombuffer(mapped, np.uint8)  # the only way to get a read-only mapping's address
    try:
        failed = ctypes.CDLL(None, use_errno=True).mincore(
            ctypes.c_void_p(view.ctypes.data), ctypes.c_size_t(size), states
        )
    finally:
        del view  # otherwise the mapping could not be closed
    if failed:
        raise OSError(ctypes.get_errno(), "mincore")
    return bytes(states)


def is_in_memory(directory: str | Path) -> bool:
    """Whether the files of a directory lie in memory, as the system tells."""
    there = os.path.realpath(directory)
    mounted = [each for each in psutil.disk_partitions(all=True) if _is_below(there, each.mountpoint)]
    nearest = max(map(len, (each.mountpoint for each in mounted)), default=0)
    kinds = [each.fstype for each in mounted if len(each.mountpoint) == nearest]
    return kinds[-1:] in (["tmpfs"], ["ramfs"])  # of two at one place, the later one hides the other


def _is_below(path: str, mountpoint: str) -> bool:
    return path == mountpoint or path.startswith(mountpoint.rstrip(os.sep) + os.sep)
