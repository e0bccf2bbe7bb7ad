"""From trial records to the rows of a comparison: one row for each strategy and case. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from loaders import _registry
from loaders._contract import OrderQuality
from loaders._stats import Estimate, estimate, paired_ratio
from loaders._trial.record import Environment, Record

T = TypeVar("T")

RESOLUTION = 2**20
"""In bytes. Below it a ratio of two memory figures says nothing: the instrument is good to 1 MiB."""


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
    for case in _distinct(record.case for record in records):
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
        environment=max((record.environment for record in records), key=lambda each: len(each.packages)),
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
) -> Row:
    first = records[0]
    good = [record for record in records if record.status == "ok"]
    order = [record.metrics.order_quality for record in good if record.metrics.order_quality]
    peaks = good or records  # a strategy that was ended still shows how far it came
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
        peak=_estimate(peaks, "peak_memory"),
        peak_ratio=peak_ratio,
        peak_tree=_estimate(peaks, "peak_memory_tree"),
        retained=_estimate(good, "retained_memory"),
        held=_estimate(good, "allocator_held"),
        growth=_growth(good),
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
