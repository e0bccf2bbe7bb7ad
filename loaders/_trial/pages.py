"""The pages of a process that forks, so that a fork has them too.

A fork differs from a new process in what the kernel has mapped. Pages of files are not mapped in a fork until they are
touched, and pages that hold data are shared with the parent until they are written to. What is measured first would pay
for both, and memory would seem to grow that was there before. So a fork begins by populating what is present in its
parent: 65 ms with TensorFlow.
"""

from __future__ import annotations

import mmap
import os
import sys

from loaders._trial.memory import MADV_POPULATE_READ, Range, mapped

MADV_POPULATE_WRITE = 23
"""Available since Linux 5.14 (https://man7.org/linux/man-pages/man2/madvise.2.html)."""


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

PRESENT = 1 << 63
"""Set in an entry of ``/proc/PID/pagemap`` if the page is in memory
(https://docs.kernel.org/admin-guide/mm/pagemap.html)."""


def present() -> list[Range]:
    """Return the ranges of addresses whose pages are in memory here, each with the advice that maps it in a fork.

    What can be written to is populated by writing, so that a fork has pages of its own and pays for none later.
    Libraries' code is left out: every trial maps all of it (``memory.map_code``).
    """
    import numpy as np

    page, found = os.sysconf("SC_PAGE_SIZE"), []
    with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:  # noqa: PTH123
        for each in mapped():
            begin, end, allowed, name = each
            if allowed[0] != "r" or allowed[3] != "p" or each.is_code:
                continue
            if name in ("[vvar]", "[vsyscall]", "[vvar_vclock]", "[vdso]"):
                continue
            entries = np.frombuffer(os.pread(pagemap.fileno(), (end - begin) // page * 8, begin // page * 8), np.uint64)
            there = np.concatenate([[False], entries & np.uint64(PRESENT) != 0, [False]])
            edges = np.flatnonzero(there[1:] != there[:-1]) * page + begin
            advice = MADV_POPULATE_WRITE if allowed[1] == "w" else MADV_POPULATE_READ
            found += [(int(low), int(high), advice) for low, high in zip(edges[::2], edges[1::2], strict=True)]
    return found
