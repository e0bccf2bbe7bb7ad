"""What the trials of a pipeline show: figures with their intervals, and verdicts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

import msgspec

from loaders._advise.choose import KEEPS_UP
from loaders._probe import asked
from loaders._probe.delivered import Delivered
from loaders._probe.pages import NewPages
from loaders._probe.stages import Stages
from loaders._rows.figures import is_untold, value
from loaders._stats import Estimate, Scale, estimate
from loaders._trial import Record
from loaders._trial.growth import Growth
from loaders._trial.metrics import MemoryTrace
from loaders._trial.record import Environment

T = TypeVar("T")
Answer = Literal["yes", "no", "undecided", "not asked"]

FIGURES: dict[str, Scale] = {
    "start_time": "ratio",
    "first_batch_time": "ratio",
    "steady_time": "ratio",
    "epoch_time": "ratio",
    "throughput": "ratio",
    "cpu_time": "ratio",
    "wait_time": "linear",
    "peak_memory": "linear",
    "retained_memory": "linear",
    "anonymous_memory": "linear",
    "file_memory": "linear",
    "shared_memory": "linear",
}
"""Fields of ``Metrics``, and how trials vary."""


A_GOOD_PART = 0.1
"""Share of a steady epoch. What dropping the iterator takes is said from there on, and what giving memory back does."""


NOTHING = 0.02
"""In seconds: neither is said of less, as the kernel may tell processor time in steps of 4 ms."""

TIMES_AS_MANY = 2
"""Fewer new pages than so many times those with malloc's threshold set back are not that threshold's."""


class Waits(msgspec.Struct, frozen=True):
    """How long a step waits for its batch, in seconds: the medians over trials of two percentiles."""

    p50: float
    p99: float


class Found(msgspec.Struct, frozen=True):
    """What was found out about a pipeline.

    Attributes
    ----------
    trials
        How many ended well.
    figures
        By field of ``Metrics``, in its unit. Peaks are those of the process tree if there were workers.
    highest
        The highest peak of any trial, in bytes; a trial that was ended early counts too. Where that of all processes
        together is unknown, it is the pipeline's own process'.
    bottleneck
        Whether loading holds up training.
    steps
        The batches of an epoch, if they were given.
    closing
        The longest that any trial took to drop the iterator of a steady epoch, in seconds (the mean of its epochs).
    new_pages
        Pages that an epoch takes anew, if the pipeline calls a generator through TensorFlow.
    growth
        The verdict on memory over the steps; ``grows`` says it in one word, over all trials.
    has_workers
        Whether it started processes.
    failure
        What it raised, and when; or why it was ended.
    """

    name: str
    step: float | None
    steps: int | None
    trials: int
    figures: dict[str, Estimate]
    highest: int
    closing: float
    waits: Waits | None
    bottleneck: Answer
    grows: Answer
    growth: Growth | None
    trace: MemoryTrace | None
    has_workers: bool
    delivered: Delivered | None
    stages: Stages | None
    new_pages: NewPages | None
    samples: int
    batches: int
    epochs: int
    failure: str
    environment: Environment

    @property
    def closes_late(self) -> bool:
        """Whether a trial spent a good part of an epoch on dropping its iterator, after the last batch."""
        steady = self.figures.get("steady_time")
        return steady is not None and self.closing > max(NOTHING, A_GOOD_PART * steady.value)

    @property
    def gives_back(self) -> bool:
        """Whether the system spends a good part of an epoch on memory that malloc gives back and takes anew."""
        steady, pages = self.figures.get("steady_time"), self.new_pages
        if steady is None or pages is None or pages.given_back < TIMES_AS_MANY * pages.kept:
            return False
        return pages.spent > max(NOTHING, A_GOOD_PART * steady.value)

    @property
    def utilisation(self) -> float | None:
        """How many cores an epoch keeps busy, on average."""
        used, first, steady = (self.figures.get(name) for name in ("cpu_time", "epoch_time", "steady_time"))
        if used is None or first is None:
            return None
        # The processor time is a mean over the first epoch and the later ones, which a cache may make much shorter.
        took = (first.value + (self.epochs - 1) * (steady or first).value) / self.epochs
        return used.value / took if took else None


def found(plan: asked.Asked, records: Sequence[Record]) -> Found:
    """Judge the trials of a pipeline.

    Raises
    ------
    ValueError
        Without a trial.
    """
    if not records:
        raise ValueError("no trials")
    good = [each for each in records if each.status == "ok"]
    measured = good or records
    last = measured[-1].metrics
    growths = [each.metrics.memory_growth for each in good if each.metrics.memory_growth and not is_untold(each)]
    waits = [each.metrics.slow_batch_time for each in good if each.metrics.slow_batch_time]
    figures = {
        name: _estimate([_wait(each, plan) if name == "wait_time" else value(each, name) for each in good], scale)
        for name, scale in FIGURES.items()
    }
    bad = next((each for each in records if each.status not in ("ok", "failed")), None)
    raised = next(filter(None, map(asked.failure, records)), "")
    return Found(
        name=plan.target.name,
        step=plan.step,
        steps=plan.steps,
        trials=len(good),
        figures={name: each for name, each in figures.items() if each},
        highest=max(int(value(each, "peak_memory") or each.metrics.peak_memory or 0) for each in records),
        closing=max((each.metrics.closing_time or 0.0 for each in good), default=0.0),
        waits=_waits([each.p50 for each in waits], [each.p99 for each in waits]) if waits else None,
        bottleneck=_bottleneck(figures["wait_time"], plan.step),
        grows=_grows(growths),
        growth=_typical(growths),
        trace=max(
            (each.metrics.memory_trace for each in good if each.metrics.memory_trace),
            key=lambda each: len(each.step),
            default=None,
        ),
        has_workers=any(each.metrics.peak_memory_tree is not None for each in records),
        delivered=_worst(filter(None, map(asked.delivered, measured))),
        stages=_first(good, "stages", Stages),
        new_pages=_first(good, "new_pages", NewPages),
        samples=last.samples or 0,
        batches=last.batches or 0,
        epochs=max(each.epochs for each in records),
        failure=raised or (f"{bad.status.replace('_', ' ')}: {bad.message}" if bad else ""),
        environment=records[-1].environment,
    )


def _worst(found: Iterable[Delivered]) -> Delivered | None:
    """Return what the trial delivered whose two epochs differ most: a pipeline may lose samples now and then."""
    return max(
        found, key=lambda each: (each.only_first + each.only_second, bool(each.unread), each.twice), default=None
    )


def _first(records: Sequence[Record], name: str, kind: type[T]) -> T | None:
    """Return what the first trial that tells it has found."""
    told = next((each.found[name] for each in records if each.found.get(name)), None)
    return None if told is None else msgspec.convert(told, kind)


def _estimate(values: Sequence[float | None], scale: Scale) -> Estimate | None:
    known = [each for each in values if each is not None and (each > 0 or scale == "linear")]
    return estimate(known, scale) if known else None


def _wait(record: Record, plan: asked.Asked) -> float | None:
    """Return the mean seconds that a step waits for its batch, the first one of an epoch included.

    With a given number of steps an epoch goes on in the stream, and has no first one.
    """
    later, first, count = record.metrics.wait_time, record.metrics.slow_first, record.metrics.batches
    if later is None or first is None or not count or plan.steps is not None:
        return later
    return (first + (count - 1) * later) / count


def _waits(p50: Sequence[float], p99: Sequence[float]) -> Waits:
    import statistics

    return Waits(statistics.median(p50), statistics.median(p99))


def _bottleneck(wait: Estimate | None, step: float | None) -> Answer:
    """Say whether a step waits for a larger share of its time than the suite calls no bottleneck."""
    if step is None:
        return "not asked"
    if wait is None or wait.low is None or wait.high is None:
        return "undecided"
    limit = KEEPS_UP * step
    return "yes" if wait.low > limit else "no" if wait.high < limit else "undecided"


def _grows(growths: Sequence[Growth]) -> Answer:
    """Say whether memory grows: if most trials show it; not if none does and most show that it does not."""
    if not growths:
        return "undecided"
    verdicts = Counter(_kind(each) for each in growths)
    if 2 * verdicts["yes"] > len(growths):
        return "yes"
    return "no" if not verdicts["yes"] and 2 * verdicts["no"] > len(growths) else "undecided"


def _kind(growth: Growth) -> Answer:
    if growth.verdict.startswith("growing"):
        return "yes"
    return "undecided" if growth.verdict == "undecided" else "no"


def _typical(growths: Sequence[Growth]) -> Growth | None:
    """Return the verdict of the trial whose slope is the median of those that agree with the answer."""
    agreeing = [each for each in growths if _kind(each) == _grows(growths)] or list(growths)
    ordered = sorted(agreeing, key=lambda each: each.slope)
    return ordered[len(ordered) // 2] if ordered else None
