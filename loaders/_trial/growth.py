"""Is it a leak, a plateau, or an allocator that does not return memory? Pure arithmetic over a memory trace.

The tail of the trace is cut into blocks with equal numbers of steps. Two lines are fitted. One goes through the lowest
values of the blocks: the memory held even after a garbage collection or when a buffer is empty, so that a sawtooth
does not count as growth. The other goes through their medians, which noise moves less. The line with the narrower
interval counts. Its slope and the slope's interval are Theil and Sen's, which one outlier does not move
(https://docs.scipy.org/doc/scipy/reference/generated/scipy.stats.theilslopes.html).

Like *growing*, *flat* and *plateau* have to be shown: the upper end of the slope's interval, over the steps that the
verdict covers, must stay below the tolerance. Those steps are the last half of the trace or, for memory that settled
late, the last quarter. A trace that can be shown neither to grow nor to stay level is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

import msgspec

from loaders._units import Amount, Count

if TYPE_CHECKING:
    from loaders._trial.metrics import MemoryTrace

Verdict = Literal["flat", "plateau", "growing, in use", "growing, held by the allocator", "growing", "undecided"]

IN_USE: Verdict = "growing, in use"
"""Beside this verdict ``in_use_bound`` says nothing: Python's small objects are in use and not in malloc's account."""

BLOCKS = 8
"""Number of blocks in a tail."""

LEAST_POINTS = 3
"""Points that a block needs; with fewer, its value is an accident."""

MIN_POINTS = 2 * BLOCKS * LEAST_POINTS
"""Points that a trace needs, so that its last half has enough."""

CONFIDENCE = 0.99
"""Confidence of the slope's interval: a false leak alarm costs its reader a day."""

TOLERANCE = 2 * 2**20
"""Bytes over the last half of a trace: as much as an interpreter and TensorFlow gain by themselves (a null loop gains
less than 1 MiB). Over the last quarter it is half of that, so that a shorter span does not allow faster growth."""

TOLERANCE_SHARE = 0.02
"""Growth over the last half of a trace that does not count as growth, as a share of the level."""

SWING_POINTS, SWING_SHARE = 12, 1 / 2
"""If memory swings within the blocks, of n points each, then growth below 12/n of the swing, and never more than half
of it, cannot be told from the swing. It is tolerated, and the bound says how much it is."""

SLOWING = 0.6
"""The last quarter's slope as a share of the third quarter's; below it growth is slowing down."""

MOST_EPOCHS = 50
"""Limit on the multiple of the epochs that is suggested; a longer trial is no useful advice."""


class Growth(msgspec.Struct, frozen=True):
    """How memory developed after the start.

    Attributes
    ----------
    slope, low, high
        Bytes per step over the steps that the verdict covers, with the 99 % interval.
    per_epoch
        ``slope`` in bytes per epoch.
    level
        Bytes above the baseline that are held over these steps.
    steps
        Length of the trace.
    held
        Bytes of ``level`` that were freed but kept by the allocator; ``None`` where it cannot be asked.
    message
        For growth: how long this machine's memory, and 16 GB, would last. For *undecided*: why, and how long would do.
    bound
        For *flat* and *plateau*: upper bound on the growth of memory, in bytes per 1000 steps. Older records have none.
    over
        Number of steps that the verdict covers: the last half of the trace, or its last quarter.
    in_use_bound
        Upper bound on the growth of the memory that malloc reports as in use, in bytes per 1000 steps, over the same
        steps. "No leak" can be said only with it. ``None`` where the allocator cannot be asked, as over a process tree,
        or where the memory in use cannot be shown to stay within the tolerance.
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
    bound: Amount | None = None
    over: Count = 0
    in_use_bound: Amount | None = None


@dataclass(frozen=True)
class Tail:
    """The last steps of a trace: a value for each block, and the line through them.

    ``bottom`` is the median of the blocks' lowest values, ``lifted`` whether these certainly rise; ``tolerance`` is in
    bytes over all steps of the tail; ``points`` is the number of trace points in it.
    """

    at: list[float]
    values: list[float]
    slope: float
    low: float
    high: float
    level: float
    bottom: float
    lifted: bool
    tolerance: float
    steps: int
    points: int

    @property
    def span(self) -> float:
        return self.at[-1] - self.at[0]

    @property
    def rests(self) -> bool:
        """Whether even the upper end of the slope's interval stays below the tolerance."""
        return self.points >= BLOCKS * LEAST_POINTS and self.high * self.steps < self.tolerance

    @property
    def bound(self) -> float:
        """Upper bound on the growth, in bytes per 1000 steps."""
        return 1000 * max(0.0, self.high)


def growth(trace: MemoryTrace, *, steps_per_epoch: float, memory: int = 0) -> Growth:
    """Judge a trace.

    Parameters
    ----------
    trace
        Memory above the baseline over the steps, for one process or a whole tree.
    steps_per_epoch
        Used to express the slope per epoch.
    memory
        This machine's memory in bytes, used to say how long it would last.
    """
    steps = trace.step[-1] if trace.step else 0
    seen = len(set(trace.step))  # a tree is sampled by the clock, several times in a long step
    if seen < MIN_POINTS:
        longer = max(2, math.ceil(MIN_POINTS / max(1, seen)))
        return Growth(
            "undecided", 0, 0, 0, 0, 0, steps, f"the trace is too short; {longer} times as many epochs would do"
        )
    judged = _judged(trace)
    half, quarter = _tail(trace.step, judged, 2), _tail(trace.step, judged, 4)
    asked = not trace.tree and trace.in_use is not None

    def found(verdict: Verdict, tail: Tail, message: str = "") -> Growth:
        part = 4 if tail is quarter else 2
        in_use = _tail(trace.step, trace.in_use, part) if asked and trace.in_use is not None else None
        return Growth(
            verdict,
            tail.slope,
            tail.low,
            tail.high,
            tail.slope * steps_per_epoch,
            tail.level,
            steps,
            message,
            _tail(trace.step, trace.held, part).level if asked and trace.held is not None else None,
            bound=tail.bound if verdict in ("flat", "plateau") else None,
            over=tail.steps,
            in_use_bound=in_use.bound if in_use and in_use.rests else None,
        )

    def rest(tail: Tail) -> Growth:
        first = min(judged[: max(1, len(trace.step) // (2 * BLOCKS))])
        return found("plateau" if tail.bottom - first > tail.tolerance else "flat", tail)

    if half.rests:
        return rest(half)
    middle = BLOCKS // 2
    third_rise, last_rise = _rise(half, 0, middle), _rise(half, middle, BLOCKS)
    # If memory rises but its bottom does not, that is a swing, not growth.
    surely = half.low > 0 and half.lifted
    grows = surely and half.slope * half.span > half.tolerance and last_rise > half.tolerance / 4
    slows = grows and last_rise < SLOWING * third_rise and third_rise - last_rise > 2 * _scatter(half)
    if grows and not slows:
        return found(_held_by(trace, half.slope), half, _lasts(half.slope, half.level, memory))
    if quarter.rests:
        return rest(quarter)
    return found("undecided", half, _would_decide(half, slows=slows))


def _judged(trace: MemoryTrace) -> Sequence[int]:
    """Return the memory to judge: of a tree, without the pages of files.

    A tree's memory is its share of each page, and the code of a library is shared with every process on the machine
    that uses it: if another one starts or ends, the share changes by half of TensorFlow's code. A leak is not in files.
    """
    if not trace.tree or trace.file is None:
        return trace.resident
    return [held - file for held, file in zip(trace.resident, trace.file, strict=True)]


def _would_decide(tail: Tail, *, slows: bool) -> str:
    """Say why the verdict is undecided, and what would decide it."""
    if slows:
        return "memory still grows but slows down; twice the epochs would do"
    said = f"up to {tail.high * tail.steps / 2**20:.1f} MiB more over the last {tail.steps} steps cannot be excluded"
    rise, uncertain = tail.slope * tail.span, (tail.high - tail.low) / 2 * tail.span
    # Growth adds up with the steps, and the noise that hides it does not.
    times = math.ceil(1.25 * max(tail.tolerance, uncertain) / rise) if rise > 0 else MOST_EPOCHS
    if times < MOST_EPOCHS:
        return f"{said}; {max(2, times)} times as many epochs would show growth, if it goes on like this"
    return f"{said}: memory swings too much for a trace of this length; twice the epochs may do"


def _held_by(trace: MemoryTrace, slope: float) -> Verdict:
    """Say who holds the growing memory: the allocator, if freed memory that it keeps grows more than half as fast.

    Python's small objects bypass malloc, so memory that malloc does not account for is in use. malloc accounts for one
    process only, so for a tree nobody can say.
    """
    if trace.tree or trace.in_use is None or trace.held is None:
        return "growing"
    held, in_use = _tail(trace.step, trace.held, 2).slope, _tail(trace.step, trace.in_use, 2).slope
    return "growing, held by the allocator" if held > slope / 2 > in_use else "growing, in use"


def _lasts(slope: float, level: float, memory: int) -> str:
    """Say after how many steps memory would be used up."""
    sizes = [("this machine's memory", memory), ("16 GB", 16 * 10**9)]
    return "; ".join(
        f"{name} is gone after {(size - level) / slope:,.0f} steps" for name, size in sizes if size > level
    )


def _tail(steps: Sequence[int], memory: Sequence[int], part: int) -> Tail:
    """Return the last half (``part`` 2) or the last quarter (4) of a trace."""
    length = steps[-1] - steps[0] + 1
    begin = steps[-1] - length // part
    points = [(step, value) for step, value in zip(steps, memory, strict=True) if step > begin]
    width = (steps[-1] - begin) / BLOCKS
    blocks: list[list[int]] = [[] for _ in range(BLOCKS)]
    for step, value in points:
        blocks[min(BLOCKS - 1, int((step - begin - 1) / width))].append(value)
    at = [begin + (index + 0.5) * width for index in range(BLOCKS)]
    # A block without a point takes its neighbour's value, so that every block has one.
    kept = [(middle, block) for middle, block in zip(at, blocks, strict=True) if block]
    near = [min(kept, key=lambda each: abs(each[0] - middle))[1] for middle in at]
    lowest = [float(min(each)) for each in near]
    lines = [(_slope(at, values), values) for values in (lowest, [median(each) for each in near])]
    (slope, low, high), values = min(lines, key=lambda line: line[0][2] - line[0][1])
    lifted = lines[0][0][1] > 0
    level = median(values)
    swing = median([max(block) - min(block) for block in blocks if block])
    unseen = swing * min(SWING_POINTS * BLOCKS / len(points), SWING_SHARE)
    tolerance = max(2 / part * TOLERANCE, 2 / part * TOLERANCE_SHARE * level, unseen)
    return Tail(at, values, slope, low, high, level, median(lowest), lifted, tolerance, steps[-1] - begin, len(points))


def _slope(at: Sequence[float], values: Sequence[float]) -> tuple[float, float, float]:
    """Return Theil and Sen's slope with its 99 % interval."""
    from scipy.stats import theilslopes

    found = theilslopes(values, at, CONFIDENCE)
    return float(found.slope), float(found.low_slope), float(found.high_slope)


def _rise(tail: Tail, begin: int, end: int) -> float:
    """Return how far the line through some blocks rises over them."""
    slope, _, _ = _slope(tail.at[begin:end], tail.values[begin:end])
    return slope * (tail.at[end - 1] - tail.at[begin])


def _scatter(tail: Tail) -> float:
    """Return the median distance of the blocks from the line through them."""
    middle = median(tail.at)
    return median([abs(y - tail.level - tail.slope * (x - middle)) for x, y in zip(tail.at, tail.values, strict=True)])
