"""How memory is read. Every value is in bytes and of this process unless it says otherwise.

On Linux the kernel keeps the peak: ``VmHWM`` in ``/proc/self/status``, reset by writing 5 to
``/proc/self/clear_refs`` (https://man7.org/linux/man-pages/man5/proc_pid_clear_refs.5.html). ``ru_maxrss`` will not
do: it survives ``exec`` and cannot be reset. Elsewhere a thread samples, and the record says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from pathlib import Path
from typing import Protocol

import psutil

SAMPLING_INTERVAL = 0.005
"""Seconds between samples where the kernel keeps no peak."""


class Peak(Protocol):
    """An instrument that knows the highest resident set since it was reset."""

    method: str

    def reset(self) -> None:
        """Forget the past."""

    def read(self) -> int:
        """Return the highest resident set since ``reset``."""


class KernelPeak:
    """The peak that Linux keeps."""

    method = "VmHWM"

    def reset(self) -> None:
        """Set the peak to what is resident now."""
        Path("/proc/self/clear_refs").write_text("5")

    def read(self) -> int:
        """Return ``VmHWM``."""
        return _status("VmHWM")


class SampledPeak:
    """The highest of many samples; a shorter peak goes unseen."""

    method = f"sampled every {SAMPLING_INTERVAL * 1000:.0f} ms"

    def __init__(self) -> None:
        self._peak = 0
        self._thread: threading.Thread | None = None

    def reset(self) -> None:
        """Start over, sampling in a thread."""
        self._peak = resident()
        if self._thread is None:
            self._thread = threading.Thread(target=self._sample, daemon=True)
            self._thread.start()

    def read(self) -> int:
        """Return the highest sample, this moment included."""
        self._peak = max(self._peak, resident())
        return self._peak

    def _sample(self) -> None:
        pause = threading.Event()
        while not pause.wait(SAMPLING_INTERVAL):
            self._peak = max(self._peak, resident())


def peak_instrument() -> Peak:
    """Return the kernel's own peak where it can be reset, else a sampler."""
    with contextlib.suppress(OSError):
        kernel = KernelPeak()
        kernel.reset()
        return kernel
    return SampledPeak()


def resident(pid: int | None = None) -> int:
    """Return the resident set, or that of another process; raises ``psutil.Error`` when that one is gone."""
    try:  # a tenth of what reading VmRSS from `status` costs, and the same figure
        with open(f"/proc/{pid or 'self'}/statm", "rb") as file:  # noqa: PTH123 - read between batches
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return int(psutil.Process(pid).memory_info().rss)


def libraries() -> int:
    """Return how much of the shared libraries' own pages (code and constants) is resident; 0 where it is not told.

    A library's pages are mapped when they are first used, in pieces whose size depends on how the file lies in the
    page cache: the same first call of OpenCV mapped 1 MiB in one installation and 5 MiB in another.
    """
    resident, is_library = 0, False
    with contextlib.suppress(OSError), open("/proc/self/smaps", "rb") as file:  # noqa: PTH123 - thousands of lines
        for line in file:
            if line.startswith(b"Rss:"):
                resident += int(line.split()[1]) * 1024 if is_library else 0
            elif b"-" in line.split(b" ", 1)[0]:  # the head of a mapping: 7f0c1000-7f0c2000 r-xp ... /path/name.so.1
                is_library = b".so" in line
    return resident


def _status(field: str) -> int:
    """Read one field of ``/proc/self/status``, which says kB and means KiB."""
    with open("/proc/self/status", "rb") as file:  # noqa: PTH123 - read often; pathlib costs more than the read
        for line in file:
            if line.startswith(field.encode() + b":"):
                return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


class _Mallinfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


class Malloc:
    """What glibc's malloc says of itself; under another C library or allocator ``available`` is false.

    https://man7.org/linux/man-pages/man3/mallinfo.3.html. Python's small objects live in arenas that
    bypass malloc, so they are in neither figure.
    """

    def __init__(self) -> None:
        self.available = False
        if os.environ.get("LD_PRELOAD"):
            return  # another allocator has taken the C library's place, which would answer for an empty heap
        with contextlib.suppress(OSError, AttributeError, TypeError):
            libc = ctypes.CDLL(None)
            self._mallinfo2 = libc.mallinfo2
            self._mallinfo2.restype = _Mallinfo2
            self._trim = libc.malloc_trim
            self.available = True

    def in_use_and_held(self) -> tuple[int, int]:
        """Return the bytes handed out, and the bytes freed but kept for later; zeros where nobody can be asked."""
        if not self.available:
            return 0, 0
        info = self._mallinfo2()
        return info.uordblks + info.hblkhd, info.fordblks

    def trim(self) -> None:
        """Give back to the system what can be given back."""
        if self.available:
            self._trim(0)


def tree_memory(process: psutil.Process, children: list[psutil.Process]) -> int:
    """Return what a process and its children hold together, shared pages counted once (PSS).

    A process that is gone counts nothing. Where the kernel gives no PSS, resident sets are added up.
    """
    total = 0
    for each in (process, *children):
        with contextlib.suppress(psutil.Error):
            total += proportional(each.pid) if children else resident(each.pid)
    return total


def proportional(pid: int) -> int:
    """Return what a process holds, shared pages divided among those who share them (PSS), else its resident set."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        pass
    return int(psutil.Process(pid).memory_info().rss)


_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
