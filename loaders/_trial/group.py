"""Control groups: one for each trial, where available, and the limits of those that this process is in already.

The kernel enforces a trial's limits between two checks by the parent: only in version 2
(https://docs.kernel.org/admin-guide/cgroup-v2.html), and only beside our own group, as a group that has processes of
its own cannot limit groups below it; so not where our own has limits, which a trial would leave. On a desktop the user
may write there; in a container or over SSH they usually may not.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import psutil

ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
PREFIX, OURS = "loaders-", re.compile(r"loaders-(\d+)-[0-9a-f]+")
"""How the groups of trials are called; others may call theirs something like it."""

MEMORY = {
    "": ("", "memory.max", "memory.current", "file", "shmem"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache", "total_shmem"),
}
"""By the controller that ``OWN`` names, in version 2 and in version 1: where its groups are, the files with their limit
and with what is used, and what ``memory.stat`` calls the page cache and what of it is shared memory."""


LIMITS = ("memory.max", "memory.high", "cpu.max", "cpuset.cpus", "io.max")
"""The files of a group that limit what its processes take."""


@contextlib.contextmanager
def created(memory_limit: int | None, tasks: int) -> Iterator[Path | None]:
    """Make a group limited to these bytes and tasks (processes and threads); yield ``None`` where none is available."""
    group = None
    with contextlib.suppress(OSError):
        group = _create("max" if memory_limit is None else str(memory_limit), str(tasks))
    try:
        yield group
    finally:
        if group:
            with contextlib.suppress(OSError):
                group.rmdir()


def _create(memory_limit: str, tasks: str) -> Path | None:
    own = next((line[3:] for line in OWN.read_text().splitlines() if line.startswith("0::")), None)
    if own is None or not (ROOT / "cgroup.controllers").exists():
        return None
    place = ROOT / own.strip("/")
    if place != ROOT and any(_is_set(place / each) for each in LIMITS):
        return None  # the group would lie beside ours, and its processes not be limited as ours are
    name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"  # two trials of one command may take turns
    group = (place if place == ROOT else place.parent) / name
    _remove_abandoned(group.parent)
    group.mkdir()
    try:
        (group / "memory.max").write_text(memory_limit)
        (group / "memory.oom.group").write_text("1")
        (group / "pids.max").write_text(tasks)
        with contextlib.suppress(OSError):  # not every kernel accounts for swap
            (group / "memory.swap.max").write_text("0")
    except OSError:  # these controllers are not delegated to this group
        group.rmdir()
        raise
    return group


def _is_set(limit: Path) -> bool:
    """Whether a file of a group limits it."""
    with contextlib.suppress(OSError):
        return limit.read_text().split()[:1] not in ([], ["max"])
    return False


def quotas() -> Iterator[float]:
    """Yield the number of processors whose time each group of this process may use, where that is limited."""
    for inner in _groups("", ROOT):
        with contextlib.suppress(OSError, ValueError):  # not there, or "max"
            quota, period = (inner / "cpu.max").read_text().split()
            yield int(quota) / int(period)
    for inner in _groups("cpu", ROOT / "cpu"):
        with contextlib.suppress(OSError, ValueError):
            quota_, period_ = (int((inner / f"cpu.cfs_{each}_us").read_text()) for each in ("quota", "period"))
            if quota_ > 0:  # else it is -1
                yield quota_ / period_


def limits() -> Iterator[tuple[int, int]]:
    """Yield the bytes to which each group of this process is limited, and those that it may still take.

    A container is such a group, and psutil tells the memory of its host. What the page cache takes of a group is given
    up when its processes need it, unless it is shared memory. The group of a trial does not count.
    """
    for controller, (place, *names) in MEMORY.items():
        for inner in _groups(controller, ROOT / place):
            yield from _limit_of(inner, *names)


def _groups(controller: str, root: Path) -> Iterator[Path]:
    """Yield the groups that this process is in, of a controller of version 1 or (nameless) of version 2."""
    for line in OWN.read_text().splitlines() if OWN.exists() else ():
        _, controllers, own = line.split(":", 2)
        if controller in controllers.split(","):
            # In a container the path may be that of the host; its own group is then what is mounted.
            for inner in {Path(own.strip("/")), *Path(own.strip("/")).parents}:
                if not OURS.fullmatch(inner.name):
                    yield root / inner


def _limit_of(group: Path, limit: str, used: str, cached: str, shared: str) -> Iterator[tuple[int, int]]:
    """Yield the limit of one group, unless it has none."""
    with contextlib.suppress(OSError, ValueError):  # not there, or "max"
        most = int((group / limit).read_text())
        stat = group / "memory.stat"
        taken = int((group / used).read_text()) - _field(stat, cached) + _field(stat, shared)
        yield most, max(0, most - taken)


def _remove_abandoned(place: Path) -> None:
    """Remove the groups of commands that were killed before they could."""
    for left in place.glob(f"{PREFIX}*"):
        ours = OURS.fullmatch(left.name)
        if ours and not psutil.pid_exists(int(ours[1])):
            with contextlib.suppress(OSError):
                left.rmdir()


def held(group: Path) -> bool:
    """Whether a process has been in the group: the kernel may refuse to move it there."""
    return _field(group / "cpu.stat", "usage_usec") > 0


def out_of_memory(group: Path) -> bool:
    """Whether the kernel has ended the group at its own memory limit."""
    return _field(group / "memory.events", "oom") > 0 and was_killed(group)


def was_killed(group: Path) -> bool:
    """Whether the kernel has ended a process of the group for want of memory, wherever there was none left."""
    return _field(group / "memory.events", "oom_kill") > 0


def _field(file: Path, name: str) -> int:
    """Return the number after ``name`` in a file of names and numbers; 0 if a keeper has removed the group."""
    try:
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0)
