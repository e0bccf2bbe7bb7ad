"""Enough readings of the memory of a trial's process tree, of which the kernel keeps no peak.

Only whoever watches the trial reads it, in short epochs once or twice: of four workers of torch that lived for 0.25 s
it saw none in 6 of 8 trials, and trials of one Keras loader had from 96 to 299 MiB. So once a trial's own epochs have
been timed, one with workers runs further ones, in which its tree is read as fast as can be, until there are enough
readings. With too few, what its tree needs is unknown.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from loaders._trial.drain import children_ended

READINGS, LEAST = 10, 5
"""So many readings are waited for; with fewer than the second number, the highest of them is no peak."""

SECONDS, MOST = 5.0, 40
"""No further epoch begins after these seconds or this number."""


def is_unknown(tree: int | None, anonymous: int | None, readings: int | None) -> bool:
    """Whether the memory of a trial's process tree is unknown.

    So it is where the system does not tell what its processes share, as their resident sets count shared pages several
    times, and where workers were read too seldom.

    Parameters
    ----------
    tree, anonymous, readings
        ``peak_memory_tree``, ``anonymous_memory`` and ``tree_readings`` of its record.
    """
    return tree is not None and (anonymous is None or (readings is not None and readings < LEAST))


def told(report: Path) -> Path:
    """Return the file that has a byte for each reading, beside a trial's report."""
    return report.with_name("readings")


def are_read(report: Path) -> bool:
    """Whether the memory of the tree has been read often enough."""
    with contextlib.suppress(FileNotFoundError):
        return told(report).stat().st_size >= READINGS
    return False


def run_until_read(report: Path, before: int, epoch: Callable[[], object]) -> bool:
    """Run epochs until a trial's tree has been read often enough; return whether it had workers since ``before``.

    Parameters
    ----------
    report
        The trial's.
    before
        What ``children_ended`` was before its first epoch.
    epoch
        Runs one.
    """
    if children_ended() == before and not psutil.Process().children():
        return False
    until, run = time.monotonic() + SECONDS, 0
    while not are_read(report) and time.monotonic() < until and run < MOST:
        epoch()
        run += 1
    return True
