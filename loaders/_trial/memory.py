"""Readings of memory. All values are in bytes and for this process unless stated otherwise.

On Linux the kernel keeps the peak: ``VmHWM`` in ``/proc/self/status``, reset by writing 5 to
``/proc/self/clear_refs`` (https://man7.org/linux/man-pages/man5/proc_pid_clear_refs.5.html). ``ru_maxrss`` is
unsuitable: it survives ``exec`` and cannot be reset. On other systems a thread samples memory, and the record says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import re
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
import psutil

KINDS, SHARES = (b"RssAnon:", b"RssFile:", b"RssShmem:"), (b"Pss_Anon:", b"Pss_File:", b"Pss_Shmem:")
"""Fields of Linux, of ``status`` and of ``smaps_rollup`` (since Linux 5.4)."""

SAMPLING_INTERVAL = 0.005
"""Seconds between samples if the kernel keeps no peak."""


class Peak(Protocol):
    """An instrument that knows the highest resident set since it was reset."""

    method: str

    def reset(self) -> None:
        """Start again from the current resident set."""

    def read(self) -> int:
        """Return the highest resident set since ``reset``."""


class KernelPeak:
    """The peak kept by Linux."""

    method = "VmHWM"

    def reset(self) -> None:
        """Set the peak to what is resident now."""
        Path("/proc/self/clear_refs").write_text("5")

    def read(self) -> int:
        """Return ``VmHWM``."""
        with open("/proc/self/status", "rb") as file:  # noqa: PTH123 - pathlib costs more than the read
            return _fields(file.read(), (b"VmHWM:",))[0]


class SampledPeak:
    """The highest of many samples; a peak between two samples is missed."""

    method = f"sampled every {SAMPLING_INTERVAL * 1000:.0f} ms"

    def __init__(self) -> None:
        self._peak = 0
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # a sample that was begun before a reset must not undo it

    def reset(self) -> None:
        """Start over, sampling in a thread."""
        with self._lock:
            self._peak = resident()
        if self._thread is None:
            self._thread = threading.Thread(target=self._sample, daemon=True)
            self._thread.start()

    def read(self) -> int:
        """Return the highest sample, including one taken now."""
        with self._lock:
            self._peak = max(self._peak, resident())
            return self._peak

    def _sample(self) -> None:
        pause = threading.Event()
        while not pause.wait(SAMPLING_INTERVAL):
            self.read()


def peak_instrument() -> Peak:
    """Return the kernel's own peak if it can be reset, else a sampler."""
    with contextlib.suppress(OSError):
        kernel = KernelPeak()
        kernel.reset()
        return kernel
    return SampledPeak()


def resident(pid: int | None = None) -> int:
    """Return the resident set of this or another process; raises ``psutil.Error`` if that process is gone."""
    try:  # the same figure as VmRSS in `status`, at a tenth of the cost
        with open(f"/proc/{pid or 'self'}/statm", "rb") as file:  # noqa: PTH123 - read between batches
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return int(psutil.Process(pid).memory_info().rss)


class Held(msgspec.Struct, frozen=True):
    """Resident memory in bytes, by what backs it.

    Attributes
    ----------
    anonymous
        Not backed by a file (``RssAnon``).
    file
        Backed by a mapped file (``RssFile``): the system can reclaim these pages and read them again.
    shared
        Shared memory (``RssShmem``), which could only be swapped out.
    """

    anonymous: int = 0
    file: int = 0
    shared: int = 0

    @property
    def total(self) -> int:
        """Sum of all kinds."""
        return self.anonymous + self.file + self.shared

    @property
    def kept(self) -> int:
        """Memory that the system cannot reclaim."""
        return self.anonymous + self.shared

    def most(self, other: Held) -> Held:
        """Return the larger value of each kind."""
        return Held(max(self.anonymous, other.anonymous), max(self.file, other.file), max(self.shared, other.shared))

    def __add__(self, other: Held) -> Held:
        return Held(self.anonymous + other.anonymous, self.file + other.file, self.shared + other.shared)

    def __sub__(self, other: Held) -> Held:
        return Held(self.anonymous - other.anonymous, self.file - other.file, self.shared - other.shared)


def held(pid: int | None = None) -> Held:
    """Return the memory that a process holds; raises ``psutil.Error`` if it is gone.

    If the system does not tell the kinds apart, all memory counts as anonymous.
    """
    try:
        with open(f"/proc/{pid or 'self'}/status", "rb") as file:  # noqa: PTH123 - read between batches
            return Held(*_fields(file.read(), KINDS))
    except (OSError, ValueError):
        return Held(resident(pid))


def _fields(text: bytes, names: tuple[bytes, ...]) -> list[int]:
    """Return the bytes from lines such as ``RssAnon:    84 kB``, where kB means KiB.

    Raises
    ------
    ValueError
        If a line is missing.
    """
    found = []
    for name in names:
        at = text.index(name) + len(name)
        found.append(int(text[at : text.index(b"kB", at)]) * 1024)
    return found


MADV_POPULATE_READ, MADV_POPULATE_WRITE = 22, 23
"""Available since Linux 5.14 (https://man7.org/linux/man-pages/man2/madvise.2.html)."""

OWN = -1
"""Not the kernel's: populates by writing what may only be read, as a library's table of addresses that its loader has
filled."""

LIBRARY = re.compile(r"\.so(\.\d+)*$")
"""Matches the end of a shared library's path, but not a user's ``x.sorted``."""


def map_code() -> None:
    """Map all code and constants of the loaded libraries, as far as the system can.

    A library's pages are mapped when they are first used, in pieces whose size depends on how the file lies in the
    page cache: the same first call of OpenCV mapped 1 MiB in one installation and 5 MiB in another. If they are mapped
    beforehand, they are in the baseline and in no figure. With TensorFlow, whose libraries have 1.3 GB, it takes 0.1 s
    once they are in the page cache. Where the system cannot do it, code counts as memory that the strategy uses.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        populate((each.begin, each.end, MADV_POPULATE_READ) for each in mapped() if each.is_code)


class Mapped(NamedTuple):
    """A range of addresses that this process has mapped; without a file ``name`` may be empty."""

    begin: int
    end: int
    allowed: str
    name: str

    @property
    def is_code(self) -> bool:
        """Whether it is code of a library, or its constants."""
        return self.allowed[:2] == "r-" and bool(LIBRARY.search(self.name))


def mapped() -> Iterator[Mapped]:
    """Yield what this process has mapped (https://man7.org/linux/man-pages/man5/proc_pid_maps.5.html)."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)  # 7f0c1000-7f0c2000 r-xp 00001000 fe:00 1234   /path/name.so.1
        begin, end = (int(each, 16) for each in fields[0].split("-"))
        yield Mapped(begin, end, fields[1], fields[5] if len(fields) > 5 else "")


Range = tuple[int, int, int]
"""Of addresses: first, one beyond the last, and the advice that populates it."""


def populate(ranges: Iterable[Range]) -> None:
    """Map the pages of ranges of addresses."""
    libc = ctypes.CDLL(None)
    for begin, end, advice in ranges:
        these = ctypes.c_void_p(begin), ctypes.c_size_t(end - begin)
        if advice == OWN:
            libc.mprotect(*these, mmap.PROT_READ | mmap.PROT_WRITE)
            libc.madvise(*these, MADV_POPULATE_WRITE)
            libc.mprotect(*these, mmap.PROT_READ)
        else:
            libc.madvise(*these, advice)


class _Mallinfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


class Malloc:
    """The statistics of glibc's malloc; with another C library or allocator ``available`` is false.

    https://man7.org/linux/man-pages/man3/mallinfo.3.html. Python's small objects live in arenas that
    bypass malloc, so they are in neither figure.
    """

    def __init__(self) -> None:
        self.available = False
        if os.environ.get("LD_PRELOAD"):
            return  # another allocator is used, and the C library's statistics would be those of an empty heap
        with contextlib.suppress(OSError, AttributeError, TypeError):
            libc = ctypes.CDLL(None)
            self._mallinfo2 = libc.mallinfo2
            self._mallinfo2.restype = _Mallinfo2
            self._trim = libc.malloc_trim
            self.available = True

    def in_use_and_held(self) -> tuple[int, int]:
        """Return the bytes handed out, and the bytes freed but kept for later; zeros if not ``available``."""
        if not self.available:
            return 0, 0
        info = self._mallinfo2()
        return info.uordblks + info.hblkhd, info.fordblks

    def trim(self) -> None:
        """Return unused memory to the system, as far as possible."""
        if self.available:
            self._trim(0)


class AboveBaseline:
    """Memory of this process above a baseline, which is read when the object is made.

    Attributes
    ----------
    baseline, baseline_tree
        Resident memory at the baseline, the second with shared pages divided (PSS).
    most
        The highest values of each kind that ``read`` has returned, each at its own time.
    """

    def __init__(self, malloc: Malloc, peak: Peak) -> None:
        self._malloc, self._peak = malloc, peak
        self.baseline, self.baseline_tree = held(), proportional(os.getpid())
        self._in_use, self._held = malloc.in_use_and_held()
        self.most = Held()

    def read(self) -> tuple[Held, int, int]:
        """Return resident memory, what malloc has handed out, and what was freed but kept by malloc."""
        now = held() - self.baseline
        self.most = self.most.most(now)
        in_use, kept = self._malloc.in_use_and_held()
        return now, in_use - self._in_use, kept - self._held

    def reset_peak(self) -> None:
        """Let the peak start again from the current resident set."""
        self._peak.reset()

    def peak(self) -> int:
        """Return the highest resident set since ``reset_peak``."""
        return self._peak.read() - self.baseline.total

    def resident(self) -> int:
        """Return the resident set."""
        return resident() - self.baseline.total

    def allocator_held(self) -> int | None:
        """Return what was freed but kept by malloc; ``None`` where malloc cannot be asked."""
        return self._malloc.in_use_and_held()[1] - self._held if self._malloc.available else None


def tells_kinds(*, tree: bool) -> bool:
    """Whether the system tells the kinds of memory apart, of a process (``RssAnon``) or of several (``Pss_Anon``).

    Where it does not, ``held`` and ``proportional`` return resident sets.
    """
    try:
        file = "/proc/self/smaps_rollup" if tree else "/proc/self/status"
        _fields(Path(file).read_bytes(), SHARES if tree else KINDS)
    except (OSError, ValueError):
        return False
    return True


def tree_memory(process: psutil.Process, children: list[psutil.Process]) -> tuple[Held, set[int]]:
    """Return the memory that a process and its children hold together (PSS), and which of them are gone.

    Shared pages are counted once. A process that is gone counts as zero. If the kernel reports no PSS, resident sets
    are added up.
    """
    total, gone = Held(), set[int]()
    for each in (process, *children):
        found = Held()
        with contextlib.suppress(psutil.Error):
            found = proportional(each.pid) if children else held(each.pid)
        total += found
        if not found.total:
            gone.add(each.pid)
    return total, gone


def together(pids: Iterable[int]) -> int:
    """Return the bytes that processes hold together (PSS); those that have ended hold nothing."""
    total = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            total += proportional(pid).total
    return total


def proportional(pid: int) -> Held:
    """Return a process's memory, shared pages divided among the processes sharing them (PSS), else its resident set."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:  # noqa: PTH123 - read often
            return Held(*_fields(file.read(), SHARES))
    except (OSError, ValueError):
        return held(pid)


_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
