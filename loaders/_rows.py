"""From trial records to the rows of a comparison: one row for each strategy and case. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from loaders import _registry
from loaders._contract import OrderQuality
from loaders._stats import Estimate, estimate, paired_ratio
from loaders._trial.record import Environment, MemoryTrace, Record

T = TypeVar("T")

RESOLUTION = 2**20
"""In bytes. Below it a ratio of two memory figures says nothing: the instrument is good to 1 MiB."""

TRACE_POINTS = 100
"""Of a drawn trace."""


class Row(msgspec.Struct, frozen=True):
    """What a comparison found out about one strategy in one case.

    Attributes
    ----------
    time
        Of the question's ``ranked_by`` metric, in seconds.
    ratio
        ``time`` over the baseline's, paired by round; ``None`` for the baseline itself.
    pair
        ``time`` over that of the strategy it ``matches``.
    peak, peak_tree, retained, held
        In bytes above the baseline of memory.
    peak_ratio
        ``peak`` over the baseline strategy's; ``None`` where either is below the resolution.
    throughput
        In samples a second.
    cpu
        In seconds of processor time.
    floor
        In bytes: what the strategy's buffers must hold at least, where that is known.
    over_floor
        ``peak`` over ``floor``.
    level, level_held
        In bytes: what the tail of the memory trace holds, and how much of it malloc was given back and has kept.
    trace
        Memory over the steps of the last trial that was ``ok``, thinned.
    convert_time, convert_memory, disk
        In seconds and bytes: see ``loaders._trial.record.Metrics``.
    saved
        In seconds an epoch: what a converted format saves against the strategy that needs no conversion, by round.
    walk
        See ``loaders._trial.record.Metrics``.
    page_cache
        The share of the files that the strategy reads that was in the page cache, the least of all trials and the most.
    samples
        How many trials were ``ok``, of ``trials``.
    growth
        The verdicts on memory over the steps; ``None`` where all are undecided, as they are for short trials.
    status
        The status of the trials in words, with the reasons.
    """

    question: str
    strategy: str
    label: str
    tier: str
    matches: str | None
    case: dict[str, str]
    is_baseline: bool
    status: str
    samples: int
    trials: int
    time: Estimate | None = None
    ratio: Estimate | None = None
    pair: Estimate | None = None
    throughput: Estimate | None = None
    cpu: Estimate | None = None
    peak: Estimate | None = None
    peak_ratio: Estimate | None = None
    peak_tree: Estimate | None = None
    retained: Estimate | None = None
    held: Estimate | None = None
    growth: str | None = None
    floor: float | None = None
    over_floor: Estimate | None = None
    level: Estimate | None = None
    level_held: Estimate | None = None
    trace: MemoryTrace | None = None
    convert_time: Estimate | None = None
    convert_memory: Estimate | None = None
    disk: Estimate | None = None
    saved: Estimate | None = None
    walk: list[int] | None = None
    page_cache: tuple[float, float] | None = None
    psnr: float | None = None
    max_difference: float | None = None
    order: OrderQuality | None = None


class Comparison(msgspec.Struct, frozen=True):
    """One comparison run of one question: its rows, best first within a case, and where they came from."""

    question: str
    title: str
    run: str
    size: str
    data: str
    started: str
    rounds: int
    ranked_by: str
    epochs: int
    environment: Environment
    rows: list[Row]


def comparison(records: Sequence[Record]) -> Comparison:
    """Return the comparison of the records of one run.

    A strategy that this checkout no longer has keeps its name and figures.
    """
    first = records[0]
    question = _registry.find_question(first.question)
    known = _registry.variants(first.question)
    baseline = _registry.baseline(first.question).name
    rows = []
    cases = _distinct(record.case for record in records)
    for case in sorted(cases, key=lambda each: question.cases.index(each) if each in question.cases else len(cases)):
        within = [record for record in records if record.case == case]
        times = {name: _by_round(within, name, question.ranked_by) for name in {each.strategy for each in within}}
        peaks = {name: _by_round(within, name, "peak_memory") for name in times}
        in_case = [
            _row(
                [record for record in within if record.strategy == name],
                known.get(name),
                question.ranked_by,
                is_baseline=name == baseline,
                ratio=None if name == baseline else paired_ratio(times[name], times.get(baseline, {})),
                pair=_pair(known.get(name), times),
                peak_ratio=None if name == baseline else _memory_ratio(peaks[name], peaks.get(baseline, {})),
                saved=_saved(known, times, name),
            )
            for name in times
        ]
        rows += sorted(in_case, key=lambda row: (row.time is None, row.time.value if row.time else 0.0, row.strategy))
    return Comparison(
        question=first.question,
        title=question.title,
        run=first.run,
        size=first.size,
        data=first.data,
        started=min(record.started for record in records),
        rounds=1 + max(record.round for record in records),
        ranked_by=question.ranked_by,
        epochs=first.epochs,
        # What differs from trial to trial stands in the rows.
        environment=msgspec.structs.replace(
            max((record.environment for record in records), key=lambda each: len(each.packages)), page_cache=None
        ),
        rows=rows,
    )


def _row(
    records: Sequence[Record],
    variant: _registry.Variant | None,
    ranked_by: str,
    *,
    is_baseline: bool,
    ratio: Estimate | None,
    pair: Estimate | None,
    peak_ratio: Estimate | None,
    saved: Estimate | None,
) -> Row:
    first = records[0]
    good = [record for record in records if record.status == "ok"]
    order = [record.metrics.order_quality for record in good if record.metrics.order_quality]
    peaks = good or records  # a strategy that was ended still shows how far it came
    shares = [each.environment.page_cache for each in good if each.environment.page_cache is not None]
    judged = [each.metrics.memory_growth for each in good if each.metrics.memory_growth]
    levels = [each for each in judged if each.verdict != "undecided" or each.level]
    floors = [each.metrics.memory_floor for each in good if each.metrics.memory_floor]
    peak = _estimate(peaks, "peak_memory")
    return Row(
        question=first.question,
        strategy=first.strategy,
        label=variant.label if variant else "(declared elsewhere: name its file with --with)",
        tier=variant.tier if variant else "identical",
        matches=variant.matches if variant else None,
        case=first.case,
        is_baseline=is_baseline,
        status=_status(records),
        samples=len(good),
        trials=len(records),
        time=_estimate(good, ranked_by, positive=True),
        ratio=ratio,
        pair=pair,
        throughput=_estimate(good, "throughput", positive=True),
        cpu=_estimate(good, "cpu_time", positive=True),
        peak=peak,
        peak_ratio=peak_ratio,
        peak_tree=_estimate(peaks, "peak_memory_tree"),
        retained=_estimate(good, "retained_memory"),
        held=_estimate(good, "allocator_held"),
        growth=_growth(good),
        floor=floors[0] if floors else None,
        over_floor=_scaled(peak, 1 / floors[0]) if peak and floors else None,
        level=estimate([each.level for each in levels], "linear") if levels else None,
        level_held=estimate([each.held or 0.0 for each in levels], "linear") if levels else None,
        trace=_thinned(good[-1].metrics.memory_trace) if good and levels else None,
        convert_time=_estimate(good, "convert_time", positive=True),
        convert_memory=_estimate(good, "convert_memory"),
        disk=_estimate(good, "disk_bytes"),
        saved=saved,
        walk=good[-1].metrics.walk if good else None,
        page_cache=(min(shares), max(shares)) if shares else None,
        psnr=min((each.metrics.psnr for each in good if each.metrics.psnr is not None), default=None),
        max_difference=max(
            (each.metrics.max_difference for each in good if each.metrics.max_difference is not None), default=None
        ),
        order=order[0] if order else None,
    )


def _status(records: Sequence[Record]) -> str:
    """Put the trials' ends into words: ``ok``, or what went wrong, how often, and why."""
    ends = _distinct((record.status, record.message) for record in records if record.status != "ok" or record.message)
    if not ends:
        return "ok"
    words = []
    for status, message in ends:
        count = sum((record.status, record.message) == (status, message) for record in records)
        times = f" in {count} of {len(records)}" if count < len(records) else ""
        words.append(f"{status.replace('_', ' ')}{times}: {message}" if message else f"{status}{times}")
    return "; ".join(words)


def _growth(records: Sequence[Record]) -> str | None:
    """Put the verdicts on memory into words, the most frequent first."""
    verdicts = Counter(record.metrics.memory_growth.verdict for record in records if record.metrics.memory_growth)
    if not verdicts.keys() - {"undecided"}:
        return None
    (first, count), *others = verdicts.most_common()
    return first if not others else "; ".join(f"{verdict} in {n}" for verdict, n in [(first, count), *others])


def _estimate(records: Sequence[Record], metric: str, *, positive: bool = False) -> Estimate | None:
    values = [getattr(record.metrics, metric) for record in records]
    present = [float(value) for value in values if value is not None]
    if positive:  # a duration too short for its clock says nothing
        present = [value for value in present if value > 0]
    return estimate(present, "ratio" if positive else "linear") if present else None


def _by_round(records: Iterable[Record], strategy: str, metric: str) -> dict[int, float]:
    return {
        record.round: float(value)
        for record in records
        if record.strategy == strategy and record.status == "ok"
        if (value := getattr(record.metrics, metric)) is not None
    }


def _pair(variant: _registry.Variant | None, times: dict[str, dict[int, float]]) -> Estimate | None:
    if variant is None or variant.matches is None:
        return None
    return paired_ratio(times[variant.name], times.get(variant.matches, {}))


def _saved(known: dict[str, _registry.Variant], times: dict[str, dict[int, float]], name: str) -> Estimate | None:
    """Return the seconds an epoch that a conversion saves, against the strategy that needs none."""
    if name not in known or known[name].convert is None:
        return None
    unconverted = next((times[each] for each in times if each in known and known[each].convert is None), {})
    rounds = times[name].keys() & unconverted.keys()
    return estimate([unconverted[each] - times[name][each] for each in sorted(rounds)], "linear") if rounds else None


def _scaled(each: Estimate, factor: float) -> Estimate:
    low, high = (None if bound is None else bound * factor for bound in (each.low, each.high))
    return Estimate(each.value * factor, low, high, each.count)


def _thinned(trace: MemoryTrace | None) -> MemoryTrace | None:
    """Keep every n-th point of a trace, enough to draw."""
    if trace is None:
        return None
    every = -(-len(trace.step) // TRACE_POINTS)
    return MemoryTrace(
        trace.step[::every],
        trace.seconds[::every],
        trace.resident[::every],
        trace.in_use and trace.in_use[::every],
        trace.held and trace.held[::every],
    )


def _memory_ratio(values: dict[int, float], reference: dict[int, float]) -> Estimate | None:
    if any(value < RESOLUTION for value in (*values.values(), *reference.values())):
        return None
    return paired_ratio(values, reference)


def _distinct(items: Iterable[T]) -> list[T]:
    """Return the items without repetition, in order of first appearance; they need not be hashable."""
    found: list[T] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
