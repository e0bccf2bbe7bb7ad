"""From stamps to metrics: pure arithmetic, no clock."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from loaders._trial.metrics import BatchTime


@dataclass(frozen=True)
class Timeline:
    """The times of one epoch, in seconds of one clock.

    Attributes
    ----------
    start
        Just before the strategy was built or, in a later epoch, before its first batch was requested.
    asked, received
        For each batch, when ``next()`` was called and when it returned. Compact arrays: a list of floats would grow by
        80 bytes per batch, as much as a leak would.
    end
        When the strategy was exhausted.
    samples
        Number of samples in each batch.
    paused
        For each batch, the seconds that the instrument then spent reading memory, without what it waited for; they are
        excluded from every figure.
    closing
        Seconds that it then took to drop the iterator.
    """

    start: float
    asked: Sequence[float]
    received: Sequence[float]
    end: float
    samples: Sequence[int]
    paused: Sequence[float] = ()
    closing: float = 0.0


def epoch_time(timeline: Timeline) -> float:
    """Return the seconds from building to exhaustion."""
    return timeline.end - timeline.start - sum(timeline.paused)


def passes(timeline: Timeline, count: int) -> list[Timeline]:
    """Cut a timeline of several passes (``repeat``) into one for each pass, at the batches nearest the passes' ends.

    The iterator is dropped once, after all of them, and that is part of none. If a pass has less than one batch, there
    is nothing to cut, and the whole timeline is returned.
    """
    batches = len(timeline.received)
    if batches < count:
        return [timeline]
    cuts = [round(index * batches / count) for index in range(count + 1)]
    return [
        Timeline(
            start=timeline.received[first - 1] if first else timeline.start,
            asked=timeline.asked[first:last],
            received=timeline.received[first:last],
            end=timeline.received[last - 1] if last < batches else timeline.end,
            samples=timeline.samples[first:last],
            # A pause follows its batch, so the pause after a pass's last batch belongs to the next pass.
            paused=timeline.paused[max(0, first - 1) : last - 1 if last < batches else last],
        )
        for first, last in itertools.pairwise(cuts)
    ]


def cut(timelines: Sequence[Timeline], count: int) -> Sequence[Timeline]:
    """Return the epochs: the passes of the only timeline if it has several, else the timelines themselves."""
    return passes(timelines[0], count) if count > 1 else timelines


LEAST_BATCHES = 3
"""Batches that an epoch needs before its steady part can be told from its start."""


def steady_time(timelines: Sequence[Timeline], least: int = LEAST_BATCHES) -> float | None:
    """Return the seconds of a steady epoch: the median of all epochs after the first, and what closing them takes.

    ``None`` if there is only one epoch, or if any epoch has fewer than this many batches.
    """
    running, closing = _running_time(timelines, least), closing_time(timelines[1:])
    return None if running is None or closing is None else running + closing


def _running_time(timelines: Sequence[Timeline], least: int) -> float | None:
    """Return the seconds of a steady epoch until its last batch has been taken."""
    if len(timelines) < 2 or min(len(each.received) for each in timelines) < least:
        return None
    return statistics.median(map(epoch_time, timelines[1:]))


def closing_time(epochs: Sequence[Timeline]) -> float | None:
    """Return the seconds that it takes to drop the iterator after an epoch; ``None`` without any epoch.

    The mean, as tf.data takes either a millisecond or up to as long again as the epoch, so that a median would be one
    of them by chance: its thread that tunes looks after 10 · (2^k - 1) ms whether the iterator is gone, and often
    sleeps through being woken (TensorFlow 2.21: with epochs of 0.65 s, 7 of 24 took 1.27 s; none of 12
    did with ``options.autotune.enabled = False``).
    """
    return statistics.fmean(each.closing for each in epochs) if epochs else None


SETTLED, MOST_EPOCHS = 0.5, 20
"""Steady epochs are repeated until they take half a second together, at most this many of them. The kernel tells in
steps of 10 ms what was taken from them, and a pause of some milliseconds, which a single epoch of 50 ms cannot hide,
does not move their median."""

FEW, LONG = 3, 2.0
"""This many are run in any case, unless they take two seconds together: the median of one is as late as whatever else
runs. Of four loaders with epochs of 0.4 to 1.2 s, trials spread by 7 to 19 % with one or two steady epochs and by 4 to
12 % with two seconds of them (five trials each, in turn). Shorter epochs gained nothing from two seconds."""


def is_settled(steady: Sequence[Timeline]) -> bool:
    """Whether these steady epochs are enough."""
    seconds = sum(map(epoch_time, steady))
    return len(steady) >= MOST_EPOCHS or seconds >= LONG or (seconds >= SETTLED and len(steady) >= FEW)


def start_time(timelines: Sequence[Timeline], least: int = LEAST_BATCHES, step: float = 0.0) -> float | None:
    """Return how many seconds longer the first batch took than a steady one; ``None`` without a steady time.

    ``step`` is what the consumer spends on each batch: it is in the steady time, and not in that of the first batch.
    """
    first, steady = first_batch_time(timelines[0]), _running_time(timelines, least)
    if first is None or steady is None:
        return None
    return max(0.0, first - (steady / len(timelines[-1].received) - step))


def wait_time(timeline: Timeline) -> float | None:
    """Return the mean seconds that a consumer waited for a batch after the first; ``None`` with fewer than two."""
    waits = _latencies(timeline)[1:]
    return statistics.fmean(waits) if waits else None


def batches(timeline: Timeline, count: int) -> int:
    """Return the number of batches in one of the passes, which may share their last batch with the next."""
    return -(-len(timeline.received) // count)


SLOWER, LEAST_STEP, LONGEST = 3.0, 0.01, 20.0
"""The slow consumer spends three times as long on a batch as the batch took, however long that is, so that two in three
batches can wait in a buffer. It spends at least 10 ms on a batch. After twenty seconds it takes no more: by then, twice
as many batches can wait as it has taken.

It takes a whole epoch. One that is slow for half of it, by when a loader as fast as before has made all batches, would
save a tenth of a round of ``batching``, and miss what tf.data adds to its own buffers later: with 20 batches, four of
its pipelines reached 101 to 104 MiB in 16 of 16 trials with a whole epoch, and in 22 of 32 with half of one; the others
stayed at 64 to 85 MiB (TensorFlow 2.21; Intel, family 6, model 207). On another processor (AMD EPYC, family 26, model
2) a whole epoch was enough in 21 of 24. A longer epoch reaches as much more often, and no more: 17 of 20 such trials
with 47 batches, 12 of 20 with 20, interleaved on the first of these processors, and 108 MiB at most in both."""


def slow_step(timeline: Timeline, count: int) -> float:
    """Return the seconds that a slow consumer spends on each batch, after a fast one's epoch of several passes."""
    return max(SLOWER * epoch_time(timeline) / count / max(1, batches(timeline, count)), LEAST_STEP)


def slow_batches(timeline: Timeline, count: int, step: float | None = None) -> int:
    """Return after how many batches a slow consumer stops: those of a pass, unless they would take too long."""
    return min(batches(timeline, count), max(LEAST_BATCHES, math.ceil(LONGEST / (step or slow_step(timeline, count)))))


def first_batch_time(timeline: Timeline) -> float | None:
    """Return the seconds from building to the first batch; ``None`` if there was no batch."""
    return timeline.received[0] - timeline.start if timeline.received else None


def sample_time(timeline: Timeline) -> float | None:
    """Return the seconds per sample after the first batch, which counts in neither the time nor the samples.

    With only one batch, the whole epoch is used; ``None`` without samples.
    """
    later = sum(timeline.samples[1:])
    if later:
        return (timeline.end - timeline.received[0] - sum(timeline.paused)) / later
    total = sum(timeline.samples)
    return epoch_time(timeline) / total if total else None


def step_wait(steady: Sequence[Timeline]) -> BatchTime | None:
    """Return percentiles of the latency of ``next()`` over all steady epochs, without the first batch of each."""
    return _percentiles([wait for each in steady for wait in _latencies(each)[1:]])


def batch_time(timeline: Timeline) -> BatchTime | None:
    """Return percentiles of the latency of ``next()``, without the first batch unless it is the only one."""
    latencies = _latencies(timeline)
    return _percentiles(latencies[1:] or latencies)


def _latencies(timeline: Timeline) -> list[float]:
    return [after - before for before, after in zip(timeline.asked, timeline.received, strict=True)]


def _percentiles(latencies: Sequence[float]) -> BatchTime | None:
    import numpy as np

    if not latencies:
        return None
    p50, p95, p99 = np.percentile(latencies, [50, 95, 99])
    return BatchTime(float(p50), float(p95), float(p99), max(latencies))
