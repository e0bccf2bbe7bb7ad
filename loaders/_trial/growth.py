"""Is it a leak, a plateau, or an allocator that does not give back? Pure arithmetic over a memory trace.

The trace is cut into blocks of equally many steps, and of each block the lowest value is taken: what is held even when
a garbage collector or a buffer is at its emptiest, so that a sawtooth is not growth and noise cannot hide a slope. The
verdict is about the tail, the second half of the blocks; the slope and its interval are Theil and Sen's, which one
outlier does not move (https://docs.scipy.org/doc/scipy/reference/generated/scipy.stats.theilslopes.html).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from loaders._units import Amount, Count

if TYPE_CHECKING:
    from loaders._trial.record import MemoryTrace

Verdict = Literal["flat", "plateau", "growing, in use", "growing, held by the allocator", "growing", "undecided"]

BLOCKS = 16
MIN_POINTS = 3 * BLOCKS
"""Below it a block's lowest value is an accident."""

CONFIDENCE = 0.99
"""Of the slope's interval: a false alarm of a leak costs its reader a day."""

TOLERANCE = 2 * 2**20
"""Bytes over the tail: what an interpreter and TensorFlow gain by themselves (a null loop gains below 1 MiB)."""

TOLERANCE_SHARE = 0.02
"""Of the level: growth over the tail that is no growth."""

SLOWING = 0.6
"""The last quarter's slope as a share of the third quarter's; below it growth is slowing down."""


class Growth(msgspec.Struct, frozen=True):
    """How memory went on after the beginning.

    Attributes
    ----------
    slope, low, high
        Bytes a step over the tail, with its 99 % interval.
    per_epoch
        ``slope`` in bytes an epoch.
    level
        Bytes above the baseline that the tail holds.
    steps
        Length of the trace.
    held
        Bytes of ``level`` that the allocator was given back and has kept; ``None`` where it cannot be asked.
    message
        For growth: how far this machine's memory, and 16 GB, would last. For *undecided*: why, and how long would do.
    """

    verdict: Verdict
    slope: Amount
    low: Amount
    high: Amount
    per_epoch: Amount
    level: Amount
    steps: Count
    message: str = ""
    held: Amount | None = None


def growth(trace: MemoryTrace, *, steps_per_epoch: float, memory: int = 0) -> Growth:
    """Judge a trace.

    Parameters
    ----------
    trace
        Memory above the baseline over the steps.
    steps_per_epoch
        To state the slope for an epoch.
    memory
        This machine's, in bytes, to say how long it would last.
    """
    steps = trace.step[-1] if trace.step else 0
    if len(trace.step) < MIN_POINTS:
        longer = max(2, math.ceil(MIN_POINTS / max(1, len(trace.step))))
        return Growth(
            "undecided", 0, 0, 0, 0, 0, steps, f"the trace is too short; {longer} times as many epochs would do"
        )
    at, lowest = _lowest(trace.step, trace.resident)
    half = BLOCKS // 2
    slope, low, high = _slope(at[half:], lowest[half:])
    span = at[-1] - at[half]
    level = _median(lowest[half:])
    # The lowest point of a sawtooth is seen to one part in so many as there are points in a block.
    unseen = 3 * _swing(trace.step, trace.resident) * BLOCKS / len(trace.step)
    tolerance = max(TOLERANCE, TOLERANCE_SHARE * level, unseen)

    held = None if trace.held is None else _median(_lowest(trace.step, trace.held)[1][half:])

    def found(verdict: Verdict, message: str = "") -> Growth:
        return Growth(verdict, slope, low, high, slope * steps_per_epoch, level, steps, message, held)

    quarter = BLOCKS // 4
    third_rise = _rise(at, lowest, half, half + quarter)
    last_rise = _rise(at, lowest, half + quarter, BLOCKS)
    rises = low > 0 and slope * span > tolerance
    if not rises or last_rise <= tolerance / 4:
        if high * span > 4 * tolerance and last_rise > tolerance / 4:
            return found("undecided", "memory swings too much for a trace of this length; twice the epochs may do")
        return found("plateau" if level - lowest[0] > tolerance else "flat")
    middle = _median(at[half:])
    scatter = _median(
        [abs(value - level - slope * (x - middle)) for x, value in zip(at[half:], lowest[half:], strict=True)]
    )
    if last_rise < SLOWING * third_rise and third_rise - last_rise > 2 * scatter:
        share = last_rise / third_rise
        to_come = last_rise * share / (1 - share)  # the sum of what each further quarter adds, each a share of the last
        if to_come < 2 * tolerance:
            return found("plateau")
        return found("undecided", "memory still grows but slows down; twice the epochs would do")
    return found(_held_by(trace, slope), _lasts(slope, level, memory))


def _held_by(trace: MemoryTrace, slope: float) -> Verdict:
    """Say who holds what grows: the allocator, if what it has freed and kept grows at least half as fast.

    Python's small objects bypass malloc, so what is in nobody's books is in use.
    """
    if trace.in_use is None or trace.held is None:
        return "growing"
    half = BLOCKS // 2
    held, _, _ = _slope(*(each[half:] for each in _lowest(trace.step, trace.held)))
    in_use, _, _ = _slope(*(each[half:] for each in _lowest(trace.step, trace.in_use)))
    return "growing, held by the allocator" if held > slope / 2 > in_use else "growing, in use"


def _lasts(slope: float, level: float, memory: int) -> str:
    """Say after how many steps memory would be gone."""
    sizes = [("this machine's memory", memory), ("16 GB", 16 * 10**9)]
    return "; ".join(
        f"{name} is gone after {(size - level) / slope:,.0f} steps" for name, size in sizes if size > level
    )


def _lowest(steps: Sequence[int], values: Sequence[int]) -> tuple[list[float], list[float]]:
    """Return, for each of ``BLOCKS`` blocks of equally many steps, its middle step and its lowest value."""
    blocks = _blocks(steps, values)
    width = (steps[-1] - steps[0] + 1) / BLOCKS
    at = [steps[0] + (index + 0.5) * width for index in range(BLOCKS)]
    kept = [(middle, float(min(block))) for middle, block in zip(at, blocks, strict=True) if block]
    # A block without a point takes its neighbour's value, so that every block has one.
    return at, [min(kept, key=lambda each: abs(each[0] - middle))[1] for middle in at]


def _blocks(steps: Sequence[int], values: Sequence[int]) -> list[list[int]]:
    """Cut a trace into ``BLOCKS`` blocks of equally many steps."""
    width = (steps[-1] - steps[0] + 1) / BLOCKS
    blocks: list[list[int]] = [[] for _ in range(BLOCKS)]
    for step, value in zip(steps, values, strict=True):
        blocks[min(BLOCKS - 1, int((step - steps[0]) / width))].append(value)
    return blocks


def _swing(steps: Sequence[int], values: Sequence[int]) -> float:
    """Return how far memory goes up and down within a block, the median over the blocks."""
    return _median([max(block) - min(block) for block in _blocks(steps, values) if block])


def _slope(at: Sequence[float], values: Sequence[float]) -> tuple[float, float, float]:
    """Return Theil and Sen's slope with its 99 % interval."""
    from scipy.stats import theilslopes

    found = theilslopes(values, at, CONFIDENCE)
    return float(found.slope), float(found.low_slope), float(found.high_slope)


def _rise(at: Sequence[float], values: Sequence[float], begin: int, end: int) -> float:
    """Return by how much the line through some blocks rises over them."""
    slope, _, _ = _slope(at[begin:end], values[begin:end])
    return slope * (at[end - 1] - at[begin])


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
