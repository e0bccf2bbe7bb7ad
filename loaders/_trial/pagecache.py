"""How much of some files is in the system's page cache: whether a strategy reads from memory or from the disk.

Asked of the kernel, not assumed: ``mincore`` tells for each page of a mapped file whether it is resident
(https://man7.org/linux/man-pages/man2/mincore.2.html).
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterable
from pathlib import Path


def resident_share(paths: Iterable[str | Path]) -> float | None:
    """Return the share of the files' pages that is in the page cache, 0 to 1; ``None`` where nobody can be asked."""
    if sys.platform != "linux":
        return None
    resident = total = 0
    for path in paths:
        with Path(path).open("rb") as file:
            size = Path(path).stat().st_size
            if not size:
                continue
            with mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as mapped:
                states = _states(mapped, size)
        resident += sum(state & 1 for state in states)
        total += len(states)
    return resident / total if total else None


def _states(mapped: mmap.mmap, size: int) -> bytes:
    """Return a byte for each page, its lowest bit set where the page is resident."""
    import numpy as np

    pages = -(-size // mmap.PAGESIZE)
    states = (ctypes.c_ubyte * pages)()
    view = np.frombuffer(mapped, np.uint8)  # the only way to a read-only mapping's address
    try:
        failed = ctypes.CDLL(None, use_errno=True).mincore(
            ctypes.c_void_p(view.ctypes.data), ctypes.c_size_t(size), states
        )
    finally:
        del view  # or the mapping could not be closed
    if failed:
        raise OSError(ctypes.get_errno(), "mincore")
    return bytes(states)
