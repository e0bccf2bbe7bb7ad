"""The pages of a process that forks: a fork has them too, and shares none of them.

A fork differs from a new process in what the kernel has mapped. Pages of files are not mapped in a fork until they are
touched, and pages that hold data are shared with the parent until they are written to. What is measured first would pay
for both, and memory would seem to grow that was there before. So a fork begins by populating what is present in its
parent: 65 ms with TensorFlow.

What it shares with its parent all the same is divided among all that share it (``memory.proportional``). A trial's
workers, which share it as well, would then seem to need memory for it: with two of them, a quarter of it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from loaders._trial.memory import MADV_POPULATE_READ, MADV_POPULATE_WRITE, OWN, Mapped, Range, mapped

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def _is_available() -> bool:
    """Try to populate one page."""
    if sys.platform != "linux":
        return False
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        try:
            page.madvise(MADV_POPULATE_WRITE)
        except OSError:
            return False
    return True


AVAILABLE = _is_available()
"""Whether the kernel can populate pages."""

PRESENT, OF_FILE = 1 << 63, 1 << 61
"""Set in an entry of ``/proc/PID/pagemap`` if the page is in memory, and if it is a file's or shared memory's
(https://docs.kernel.org/admin-guide/mm/pagemap.html)."""


def threads() -> int:
    """Return the number of this process's threads, on Linux.

    A process with several must not be forked (https://docs.python.org/3/library/os.html#os.fork).
    """
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208


def present() -> list[Range]:
    """Return the ranges of addresses whose pages are in memory here, each with the advice that maps it in a fork.

    What holds data is populated by writing, so that a fork has pages of its own and pays for none later. Libraries'
    code is left out: every trial maps all of it (``memory.map_code``).
    """
    found = []
    for each, entries in _pages():
        there, of_file = _set(entries, PRESENT), _set(entries, OF_FILE)
        if each.allowed[1] == "w":
            found += _ranges(each, there, MADV_POPULATE_WRITE)
            continue
        if each.allowed[:3] == "r--":
            found += _ranges(each, there & ~of_file, OWN)
        if not each.is_code:
            found += _ranges(each, there & of_file, MADV_POPULATE_READ)
    return found


def unmap_code() -> None:
    """Unmap the libraries' code and constants. Of these, what is used again is mapped again."""
    madvise = ctypes.CDLL(None).madvise
    for each, entries in _pages():
        if each.is_code:
            for low, high, advice in _ranges(each, _set(entries, PRESENT) & _set(entries, OF_FILE), mmap.MADV_DONTNEED):
                madvise(ctypes.c_void_p(low), ctypes.c_size_t(high - low), advice)


def _pages() -> Iterator[tuple[Mapped, NDArray[np.uint64]]]:
    """Yield what is mapped here, private and readable, with its entries of the pagemap."""
    import numpy as np

    page = mmap.PAGESIZE
    with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:  # noqa: PTH123
        for each in mapped():
            begin, end, allowed, name = each
            if allowed[0] != "r" or allowed[3] != "p" or name in ("[vvar]", "[vsyscall]", "[vvar_vclock]", "[vdso]"):
                continue
            entries = os.pread(pagemap.fileno(), (end - begin) // page * 8, begin // page * 8)
            yield each, np.frombuffer(entries, np.uint64)


def _set(entries: NDArray[np.uint64], bit: int) -> NDArray[np.bool]:
    import numpy as np

    return (entries & np.uint64(bit)) != 0


def _ranges(of: Mapped, chosen: NDArray[np.bool], advice: int) -> list[Range]:
    """Return the ranges of the chosen pages."""
    import numpy as np

    edges = np.flatnonzero(np.diff(chosen, prepend=False, append=False)) * mmap.PAGESIZE + of.begin
    return [(int(low), int(high), advice) for low, high in zip(edges[::2], edges[1::2], strict=True)]
