"""From readings to a trial's metrics: in its process from the instruments, in the parent with what only that could see.

Pure arithmetic: whatever it needs has been read before.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from loaders._contract import Quality
from loaders._registry import Meter
from loaders._trial import timing
from loaders._trial.growth import growth
from loaders._trial.memory import Held
from loaders._trial.metrics import Disturbance, MemoryTrace, Metrics
from loaders._trial.record import Converted, Outcome, Progress

WALK_POINTS = 1000
"""Number of points drawn of an order; more would overlap."""


@dataclass(frozen=True)
class Readings:
    """What the instruments read while a strategy was drained; memory in bytes above the baseline, time in seconds.

    Attributes
    ----------
    timelines
        The epochs of the fast consumer; one for all if they come in one pass.
    passes
        The number of epochs in each timeline.
    slow, slow_step
        The slow consumer's epoch, if there was one, and the seconds that it took for each batch.
    cpu_time
        Processor time of the fast consumer's epochs.
    peak, peak_slow
        The highest resident set of the fast consumer's epochs, and of all.
    most
        The highest of each kind of memory in all epochs.
    retained
        What was resident afterwards.
    allocator_held
        What malloc kept of it; ``None`` where malloc cannot be asked.
    trace
        Of the fast consumer's epochs: step, time, resident memory, and malloc's, in use and held.
    meter
        What the strategy's Python bodies counted.
    steady
        The epochs that count for the steady time; empty if there is none.
    further
        All epochs that came after the others, for the steady time only, as they were delivered.
    trains
        Whether the consumer trained.
    wire
        Bytes that came over the loopback interface meanwhile; ``None`` if nobody served the strategy.
    roles
        Processor time of the process that trains and of those that served it, by what they do.
    held
        Bytes that they held after the last epoch.
    had_workers
        Whether the strategy started processes.
    step_time
        What the fast consumer spent on each batch.
    """

    timelines: list[timing.Timeline]
    passes: int
    slow: timing.Timeline | None
    slow_step: float | None
    cpu_time: float
    peak: int
    peak_slow: int
    most: Held
    retained: int
    allocator_held: int | None
    trace: list[tuple[int, float, Held, int, int]]
    meter: Meter
    steady: Sequence[timing.Timeline] = ()
    further: Sequence[timing.Timeline] = ()
    trains: bool = False
    wire: int | None = None
    roles: Mapping[str, float] = field(default_factory=dict)
    held: Mapping[str, int] = field(default_factory=dict)
    had_workers: bool = False
    step_time: float = 0.0

    @property
    def delivered(self) -> int:
        """The number of samples in each timeline."""
        return sum(self.timelines[0].samples)


def outcome(
    read: Readings,
    quality: Quality,
    *,
    sample_bytes: int,
    memory_floor: int | None,
    disk_bytes: int | None,
    converted: Converted | None,
    disturbance: Disturbance | None,
    found: dict[str, Any] | None = None,
) -> Outcome:
    """Return the report of a strategy that has delivered what it should.

    Parameters
    ----------
    sample_bytes
        Bytes of its largest sample; 0 if that is not known.
    memory_floor, disk_bytes, disturbance
        See ``Metrics``.
    found
        What its question's audit says.
    """
    passes, delivered = read.passes, read.delivered
    timelines = timing.cut(read.timelines, passes)
    shared = passes if len(timelines) == 1 else 1  # too few batches to cut: every pass gets an equal share
    first = timelines[0]
    in_all = [first, *read.steady]
    sample_time, steady_time = timing.sample_time(first), timing.steady_time(in_all, least=1)
    steps = _drawn_steps(len(quality.walk or ()))
    meter = read.meter
    step_wait = timing.step_wait(read.steady) if read.trains else None
    return Outcome(
        "ok",
        f"lost {quality.lost} of {quality.lost + delivered // passes} samples" if quality.lost else "",
        found=found or {},
        had_workers=read.had_workers,
        began=first.start,
        ended=timelines[-1].end,
        metrics=Metrics(
            epoch_time=(timing.epoch_time(first) + (timing.closing_time(in_all) or 0.0)) / shared,
            steady_time=steady_time,
            closing_time=None if steady_time is None or passes > 1 else timing.closing_time(read.steady),
            steady_epochs=None if steady_time is None else len(read.steady),
            start_time=timing.start_time(in_all, least=1, step=read.step_time),
            wait_time=timing.wait_time(read.slow) if read.slow else None,
            slow_step=read.slow_step,
            slow_first=timing.first_batch_time(read.slow) if read.slow else None,
            step_wait=step_wait.p50 if step_wait else None,
            step_wait_99=step_wait.p99 if step_wait else None,
            first_batch_time=timing.first_batch_time(first),
            sample_time=sample_time,
            throughput=delivered / passes / steady_time if steady_time else 1 / sample_time if sample_time else None,
            batch_time=timing.batch_time(timelines[-1]),
            slow_batch_time=timing.batch_time(read.slow) if read.slow else None,
            cpu_time=read.cpu_time / (passes * len(read.timelines)),
            peak_memory=max(0, read.peak),
            peak_memory_slow=max(0, read.peak_slow) if read.slow else None,
            needed_memory=max(0, read.peak_slow - max(0, read.most.file), read.most.kept),
            anonymous_memory=read.most.anonymous,
            file_memory=read.most.file,
            shared_memory=read.most.shared,
            memory_floor=memory_floor,
            retained_memory=read.retained,
            convert_time=converted.time if converted else None,
            convert_memory=converted.memory if converted else None,
            disk_bytes=disk_bytes,
            bodies_in_flight=meter.most_running or None,
            waiting=meter.most_waiting if meter.finished else None,
            waiting_bytes=meter.most_waiting * sample_bytes if meter.finished and sample_bytes else None,
            lost=quality.lost or None,
            allocator_held=read.allocator_held,
            memory_trace=_trace(read),
            samples=delivered // passes,
            batches=timing.batches(read.timelines[0], passes),
            psnr=quality.psnr,
            max_difference=quality.max_difference,
            order_quality=quality.order,
            odd_files=quality.odd_files,
            left_behind=quality.left_behind,
            delivery=quality.delivery,
            cpu_by_role={name: used / (passes * len(read.timelines)) for name, used in read.roles.items()} or None,
            memory_by_role=dict(read.held) or None,
            wire_bytes=None if read.wire is None else round(read.wire / (delivered * len(read.timelines))),
            steps=steps or None,
            walk=[quality.walk[step] for step in steps] if quality.walk else None,
            disturbance=disturbance,
        ),
    )


def _trace(read: Readings) -> MemoryTrace:
    """Return memory over the fast consumer's batches."""
    malloc_tells = read.allocator_held is not None
    return MemoryTrace(
        step=[point[0] for point in read.trace],
        seconds=[round(point[1] - read.timelines[0].start, 6) for point in read.trace],
        resident=[point[2].total for point in read.trace],
        in_use=[point[3] for point in read.trace] if malloc_tells else None,
        held=[point[4] for point in read.trace] if malloc_tells else None,
        file=[point[2].file for point in read.trace],
    )


def _drawn_steps(count: int) -> list[int]:
    """Choose which steps of an order to draw: at random, because a fixed stride would alias with the order's cycles."""
    return sorted(random.Random(0).sample(range(count), min(count, WALK_POINTS)))  # noqa: S311


def completed(
    outcome: Outcome,
    progress: Progress | None,
    process: Held,
    tree: Sequence[tuple[float, Held]],
    *,
    kinds_told: bool = True,
) -> Metrics:
    """Return the process's metrics, completed by what only the parent could see: the tree, and how it was ended.

    Parameters
    ----------
    process
        The highest of each kind of memory while there was one process, in bytes.
    tree
        What several processes held together, and when, by the clock that stamps batches.
    kinds_told
        Whether the system tells the kinds of memory apart; if not, their metrics are absent.
    """
    metrics = outcome.metrics
    if progress is None:
        return metrics
    own = process - progress.baseline
    tree = [(at, held - progress.baseline_tree) for at, held in tree]
    if outcome.status in ("over_budget", "timed_out"):
        highest = max([own.total, *(held.total for _, held in tree)])
        metrics = msgspec.structs.replace(metrics, peak_memory=max(0, highest))
    elif outcome.status == "ok" and metrics.peak_memory is not None:
        kinds = Held(metrics.anonymous_memory or 0, metrics.file_memory or 0, metrics.shared_memory or 0).most(own)
        for _, held in tree:
            kinds = kinds.most(held)
        metrics = msgspec.structs.replace(
            metrics,
            needed_memory=max([metrics.needed_memory or 0, own.kept, *(held.kept for _, held in tree)]),
            anonymous_memory=kinds.anonymous,
            file_memory=kinds.file,
            shared_memory=kinds.shared,
        )
    if not kinds_told:
        metrics = msgspec.structs.replace(metrics, anonymous_memory=None, file_memory=None, shared_memory=None)
    if tree or outcome.had_workers:
        highest = max([0, *(held.total for _, held in tree)])
        metrics = msgspec.structs.replace(metrics, peak_memory_tree=highest, tree_readings=len(tree))
    if metrics.memory_trace and metrics.batches and (tree or not outcome.had_workers):
        trace = _of_tree(metrics.memory_trace, tree, outcome) if tree else metrics.memory_trace
        judged = growth(trace, steps_per_epoch=metrics.batches, memory=progress.environment.memory)
        metrics = msgspec.structs.replace(metrics, memory_trace=trace, memory_growth=judged)
    return metrics


TREE_POINTS = 1000
"""Of a tree's trace at most, evenly; there are 30 readings a second, and a record with too many is not read back."""


def _of_tree(trace: MemoryTrace, tree: Sequence[tuple[float, Held]], outcome: Outcome) -> MemoryTrace:
    """Return a tree's memory over the steps: memory held by workers does not show in the process that reads from them.

    Both clocks are the system's monotonic one, on Linux (https://docs.python.org/3/library/time.html).
    """
    import numpy as np

    within = [(at, held) for at, held in tree if outcome.began <= at <= outcome.ended]
    within = within[:: -(-len(within) // TREE_POINTS) or 1]
    seconds = [at - outcome.began for at, _ in within]
    steps = np.interp(seconds, trace.seconds or [0.0], trace.step or [0])
    return MemoryTrace(
        step=[int(step) for step in steps],
        seconds=[round(each, 6) for each in seconds],
        resident=[held.total for _, held in within],
        in_use=None,
        file=[held.file for _, held in within],
        tree=True,
    )
