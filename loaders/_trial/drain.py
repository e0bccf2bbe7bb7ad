"""Drain a strategy for real, touch each batch, and stamp it. The only reader of clocks in the suite's figures."""

from __future__ import annotations

import math
import os
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from loaders._trial.memory import Held
from loaders._trial.timing import Timeline

TRACE_SHARE = 50
"""Reading memory takes at most one part in so many (2 %) of the time since it was last read. It is in no figure, but a
pipeline's threads go on meanwhile."""

PAGE = 4096
"""Bytes of the smallest page that a system has."""

TRACE_POINTS = 400
"""Past so many points every second one is dropped, so a long epoch keeps an even trace of bounded length."""


class Tracer:
    """Reads memory between batches, as often as costs 2 % of the time at most."""

    def __init__(
        self, read: Callable[[], tuple[Held, int, int]], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.points: list[tuple[int, float, Held, int, int]] = []
        self._read = read
        self._clock = clock
        self._next = 0.0
        self._cost = math.inf
        self._stride = 1

    def __call__(self, step: int, now: float) -> None:
        """Read memory after batch ``step``, unless it is too early to read again."""
        before = self._clock()  # ``now`` is when the batch came, and the consumer may have slept since
        if before < self._next or step % self._stride:
            return
        resident, in_use, held = self._read()
        after = self._clock()
        self.points.append((step, now, resident, in_use, held))
        # One slow reading (the machine was busy) must not leave a hole of a second in the trace.
        self._cost = min(after - before, 1.5 * self._cost)
        self._next = after + self._cost * TRACE_SHARE
        if len(self.points) > TRACE_POINTS:
            self._stride *= 2
            self.points = [point for point in self.points if point[0] % self._stride == 0]


@dataclass(frozen=True)
class Slow:
    """An epoch for a slow consumer, after the others.

    Attributes
    ----------
    step_time
        Is told the last epoch, and returns the seconds that the consumer takes for each batch.
    batches
        After so many the consumer has had enough; by default it takes all.
    """

    step_time: Callable[[Timeline], float]
    batches: Callable[[Timeline], int] = lambda _: sys.maxsize


def drain(
    build: Callable[[], Iterable[Any]],
    trace: Callable[[int, float], None] = lambda _step, _now: None,
    clock: Callable[[], float] = time.perf_counter,
    *,
    epochs: int = 1,
    keep: bool = False,
    step_time: float = 0.0,
    take: Callable[[int], None] = lambda _: None,
    slow: Slow | None = None,
) -> tuple[list[Timeline], list[Any]]:
    """Build a strategy, take every batch from it, touch each, and return when each arrived, epoch by epoch.

    Parameters
    ----------
    build
        Is called once, inside the measured time; again for a later epoch only where it returned a one-way iterator.
    trace
        Is called after each batch with its number, counted over all epochs, and the time.
    step_time
        Seconds to sleep after each batch, as a consumer that trains; part of an epoch's time and of no batch's.
    take
        Is told how many samples the consumer has just taken.
    keep
        Return the last epoch's batches; otherwise each is dropped before the next is asked for.
    slow
        Ask for one epoch more, whose timeline is the last.
    """
    timelines: list[Timeline] = []
    kept: list[Any] = []
    step = 0
    built: Iterable[Any] | None = None
    for epoch in range(epochs + (slow is not None)):
        enough = sys.maxsize
        if slow and epoch == epochs:
            step_time, enough = slow.step_time(timelines[-1]), slow.batches(timelines[-1])
        asked, received, samples = array("d"), array("d"), array("q")
        paused = array("d")
        kept.clear()  # of the epochs before
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
                time.sleep(step_time)
            step += 1
            before = clock()
            trace(step, now)
            paused.append(clock() - before)
            if len(received) >= enough:
                end = clock()
                break
        del iterator
        timelines.append(Timeline(start, asked, received, end, samples, paused))
    return timelines, kept


def cpu_time() -> float:
    """Return the seconds of processor time, user and system, of this process and its ended children."""
    try:
        import resource
    except ImportError:  # Windows, to 16 ms
        return sum(os.times()[:4])
    usages = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usages)


def touch(batch: Any) -> int:
    """Read one value of every page of a batch's arrays, so that lazy memory is charged; return the samples.

    An eager tensor is complete when it exists, and so is a list; they are not read, nor is what is smaller than a page:
    after a wait of 20 ms, when nothing of NumPy is in the processor's caches, reading costs 0.1 ms.
    """
    features = batch if isinstance(batch, tuple) else (batch,)
    if numpy := sys.modules.get("numpy"):  # without it there are no arrays
        for feature in features:
            if isinstance(feature, numpy.ndarray) and feature.nbytes > PAGE and feature.dtype.kind in "biufc":
                flat = feature.reshape(-1) if feature.flags.c_contiguous else feature.ravel()
                numpy.maximum.reduce(flat[:: max(1, PAGE // feature.itemsize)])
    first = features[0]
    return int(first.shape[0]) if hasattr(first, "shape") else len(first)
