"""From stamps to metrics: pure arithmetic, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loaders._trial.record import BatchTime


@dataclass(frozen=True)
class Timeline:
    """When things happened in one epoch, in seconds of one clock.

    Attributes
    ----------
    start
        Just before the strategy was built, or its first batch of a later epoch was asked for.
    asked, received
        For each batch, when ``next()`` was called and when it returned. Compact arrays: a list of floats would grow
        by 80 bytes a batch, which is a leak's size.
    end
        When the strategy was exhausted.
    samples
        How many samples each batch held.
    paused
        Seconds that the instrument took for itself, reading memory after batches; they are in no figure.
    """

    start: float
    asked: Sequence[float]
    received: Sequence[float]
    end: float
    samples: Sequence[int]
    paused: float = 0.0


def epoch_time(timeline: Timeline) -> float:
    """Return the seconds from building to exhaustion."""
    return timeline.end - timeline.start - timeline.paused


def first_batch_time(timeline: Timeline) -> float | None:
    """Return the seconds from building to the first batch; ``None`` when there was none."""
    return timeline.received[0] - timeline.start if timeline.received else None


def sample_time(timeline: Timeline) -> float | None:
    """Return the steady seconds a sample: the first batch is in neither the time nor the count.

    With one batch there is no steady part, and the whole epoch is taken; ``None`` without samples.
    """
    steady = sum(timeline.samples[1:])
    if steady:
        return (timeline.end - timeline.received[0] - timeline.paused) / steady
    total = sum(timeline.samples)
    return epoch_time(timeline) / total if total else None


def batch_time(timeline: Timeline) -> BatchTime | None:
    """Return percentiles of the latency of ``next()``, the first left out unless it is the only one."""
    import numpy as np

    latencies = [after - before for before, after in zip(timeline.asked, timeline.received, strict=True)]
    if not latencies:
        return None
    p50, p95, p99 = np.percentile(latencies[1:] or latencies, [50, 95, 99])
    return BatchTime(float(p50), float(p95), float(p99), max(latencies[1:] or latencies))
