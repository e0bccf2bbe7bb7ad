"""Drain a strategy for real, touch and stamp each batch. The only module whose clock readings become figures."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from loaders._trial.memory import Held
from loaders._trial.timing import Timeline

TRACE_SHARE = 50
"""Memory is read for at most 1/50 (2 %) of the time since the last reading. What the processor does for it is in no
figure. What a reading waits for is, as a pipeline's threads work meanwhile: with threads that keep Python's lock for
milliseconds (``kornia_rs`` in ``decode``) it waited for most of an epoch of 42 ms, and 36 ms were missing then."""

_IS_FINE = time.get_clock_info("thread_time").resolution < 0.001
"""Whether the system tells a thread's processor time in steps of less than a millisecond (Windows does not)."""

PAGE = 4096
"""Bytes in the smallest memory page of any system."""

TRACE_POINTS = 400
"""Beyond this many points every second one is dropped, so that a long epoch keeps an even trace of bounded length."""


BUSYWORK = bytes(2**20)
"""What a busy consumer reads again and again."""


class Tracer:
    """Reads memory between batches, as often as 2 % of the time allows.

    ``used`` is the processor time in seconds that all readings took.
    """

    def __init__(
        self, read: Callable[[], tuple[Held, int, int]], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.points: list[tuple[int, float, Held, int, int]] = []
        self.used = 0.0
        self._read = read
        self._clock = clock
        self._next = 0.0
        self._cost = math.inf
        self._stride = 1

    def __call__(self, step: int, now: float) -> float | None:
        """Read memory after batch ``step``, unless it is too early to read again.

        Returns the seconds of processor time that it took, if it read and the system tells these finely.
        """
        before = self._clock()  # ``now`` is when the batch arrived; the consumer may have slept since
        if before < self._next or step % self._stride:
            return None
        begun = time.thread_time()
        resident, in_use, held = self._read()
        used = time.thread_time() - begun
        self.used += used
        after = self._clock()
        self.points.append((step, now, resident, in_use, held))
        # One slow reading (the machine was busy) must not leave a gap of a second in the trace.
        self._cost = min(after - before, 1.5 * self._cost)
        self._next = after + self._cost * TRACE_SHARE
        if len(self.points) > TRACE_POINTS:
            self._stride *= 2
            self.points = [point for point in self.points if point[0] % self._stride == 0]
        return used if _IS_FINE else None


@dataclass(frozen=True)
class Slow:
    """An extra epoch with a slow consumer, after the others.

    Attributes
    ----------
    step_time
        Receives the last epoch's timeline and returns the seconds that the consumer spends on each batch.
    batches
        Receives the same timeline and returns after how many batches the consumer stops; by default it takes all.
    """

    step_time: Callable[[Timeline], float]
    batches: Callable[[Timeline], int] = lambda _: sys.maxsize


def drain(
    build: Callable[[], Iterable[Any]],
    trace: Callable[[int, float], float | None] = lambda _step, _now: None,
    clock: Callable[[], float] = time.perf_counter,
    *,
    epochs: int = 1,
    keep: bool = False,
    step_time: float = 0.0,
    spend: Callable[[float], None] = time.sleep,
    take: Callable[[int], None] = lambda _: None,
    slow: Slow | None = None,
    begin: Callable[[int], None] = lambda _: None,
) -> tuple[list[Timeline], list[Any]]:
    """Build a strategy, take every batch from it, touch each, and return when each arrived, epoch by epoch.

    Parameters
    ----------
    build
        Called once, inside the measured time; called again for a later epoch only if it returned a one-way iterator.
    trace
        Called after each batch with the batch's number, counted over all epochs, and the time. It returns the seconds
        that count in no figure; ``None`` if those are all that it took.
    step_time
        Seconds to spend after each batch, as training would take; they count in the epoch's time, but in no batch's.
    spend
        How they are spent: asleep, as if another device trained, or ``busy``.
    take
        Called with the number of samples that the consumer has just taken.
    keep
        Return the last epoch's batches; otherwise each is dropped before the next is asked for.
    slow
        Add one more epoch, whose timeline comes last.
    begin
        Called before each epoch, outside its time, with the epoch's number from 0.
    """
    timelines: list[Timeline] = []
    kept: list[Any] = []
    step = 0
    built: Iterable[Any] | None = None
    for epoch in range(epochs + (slow is not None)):
        enough = sys.maxsize
        begin(epoch)
        if slow and epoch == epochs:
            step_time, enough = slow.step_time(timelines[-1]), slow.batches(timelines[-1])
        asked, received, samples = array("d"), array("d"), array("q")
        paused = array("d")
        kept.clear()  # drop earlier epochs
        start = clock()
        if built is None or isinstance(built, Iterator):
            built = build()
        iterator = iter(built)
        while True:
            asked.append(clock())
            try:
                batch = next(iterator)
            except StopIteration:
                asked.pop()
                end = clock()
                break
            now = clock()
            received.append(now)
            samples.append(touch(batch))
            if keep:
                kept.append(batch)
            del batch
            take(samples[-1])
            if step_time:
                spend(step_time)
            step += 1
            before = clock()
            used = trace(step, now)
            paused.append(clock() - before if used is None else used)
            if len(received) >= enough:
                end = clock()
                break
        del iterator  # as a ``for`` loop does; tf.data may then wait for a thread of its own
        timelines.append(Timeline(start, asked, received, end, samples, paused, clock() - end))
    return timelines, kept


def busy(seconds: float) -> None:
    """Keep one core busy, without Python's lock, as an operation of TensorFlow does; a part takes about half a ms.

    It is so much work, which takes longer where a loader uses the same core. Where the system tells the processor time
    of a thread in coarse steps, it is so much time.
    """
    clock = time.thread_time if _IS_FINE else time.perf_counter
    until = clock() + seconds
    while clock() < until:
        zlib.crc32(BUSYWORK)


def cpu_time() -> float:
    """Return the seconds of processor time, user and system, of this process and of its children that have ended."""
    try:
        import resource
    except ImportError:  # Windows, to 16 ms
        return sum(os.times()[:4])
    usages = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usages)


def cpu_time_of_children() -> float:
    """Return the seconds of processor time of those that this process started and that are still alive."""
    import psutil

    total = 0.0
    for each in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            total += sum(each.cpu_times()[:4])
    return total


def new_pages() -> tuple[int, float]:
    """Return how many pages were cleared for this process, and the seconds of processor time that the system used."""
    import resource

    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt, usage.ru_stime


def children_ended() -> int:
    """Return a number that rises whenever a child of this process has ended and been waited for: their page faults."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt


def touch(batch: Any) -> int:
    """Read one value from every page of a batch's arrays, so that lazy memory is charged; return the number of samples.

    Eager tensors and lists are complete once they exist, so they are not read. Arrays smaller than a page are not read
    either: after a wait of 20 ms, when nothing of NumPy is left in the processor's caches, reading costs 0.1 ms.
    """
    features = batch if isinstance(batch, tuple) else (batch,)
    if numpy := sys.modules.get("numpy"):  # without it there are no arrays
        for feature in features:
            if isinstance(feature, numpy.ndarray) and feature.nbytes > PAGE and feature.dtype.kind in "biufc":
                numpy.maximum.reduce(_of_each_page(feature), axis=None)
    first = features[0]
    return int(first.shape[0]) if hasattr(first, "shape") else len(first)


def _of_each_page(array: Any) -> Any:
    """Return a value from every page of an array, whatever the order of its axes, without a copy of it.

    To flatten a part of another array, or one that is read backwards, would copy it: each of their axes is stepped
    through by itself. That takes up to twice as many values, so the others are taken as the block that they are.
    """
    block = array
    if not array.flags.c_contiguous:
        block = array.transpose(sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis])))
    if block.flags.c_contiguous:
        return block.reshape(-1)[:: max(1, PAGE // array.itemsize)]
    return array[tuple(slice(None, None, max(1, PAGE // max(1, abs(stride)))) for stride in array.strides)]
