"""From one strategy's own records to its row: estimates, words, a thinned trace. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from loaders import _registry
from loaders._contract import Delivery
from loaders._rows.declared import EPOCHS, MEASURED
from loaders._rows.values import Parts, Row
from loaders._stats import SHORTEST, Estimate, Scale, estimate, quantile
from loaders._trial import workers
from loaders._trial.growth import IN_USE, Growth
from loaders._trial.metrics import MemoryTrace
from loaders._trial.record import SCHEMA, Record

NOT_MEASURED = "not measured"
"""The status of a strategy that has no trial in a case yet."""

TRACE_POINTS = 100
"""Maximum number of points in a drawn trace."""


REACHED = ("peak_memory", "peak_memory_tree")
"""Metrics of trials that were ended early count too, if none was ok: they show how far the strategy got."""


OF_TREE = (
    *("peak_memory", "peak_memory_tree", "needed_memory"),
    *("anonymous_memory", "file_memory", "shared_memory"),
)
"""Metrics that cover the process tree."""


MOST_WORDS = 1000
"""Maximum characters of a trial's message. Longer ones lose their middle: the beginning says what, the end where."""


def parts_of(records: Iterable[Record], strategy: str) -> dict[int, Parts]:
    """Return, by round, what a total is made of (``total``)."""
    own = [
        record
        for record in records
        if record.strategy == strategy and record.status == "ok"
        if record.metrics.epoch_time is not None and record.metrics.steady_time is not None
    ]
    first, wide = _first_epochs(own, "ratio")
    return {
        record.round: (
            record.metrics.convert_time or 0.0,
            first[record.pairing],
            record.metrics.steady_time or 0.0,
            math.log(wide[record.pairing] / first[record.pairing]) if first[record.pairing] > 0 else 0.0,
        )
        for record in own
    }


def first_epochs(records: Iterable[Record], scale: Scale) -> dict[int, float]:
    """Return the seconds of the first epoch of one strategy's trials, by ``Record.pairing``, as a fresh process has it.

    A reader's process starts fresh, and a fork starts otherwise: until its first batch, ``load_all`` took 2.0 s in
    fresh processes and 1.1 to 1.8 s in forks. So a forked trial counts with what the fresh ones of its strategy took,
    one after the other. As that repeats few samples, they are spread about their mean, on the ``scale`` on which it is
    taken (``loaders._stats.estimate``), until its 95 % interval is again that of the fresh trials alone. Without any
    fresh ones, forked ones count as they are.
    """
    _, wide = _first_epochs(records, scale)
    return wide


def _first_epochs(records: Iterable[Record], scale: Scale) -> tuple[dict[int, float], dict[int, float]]:
    """Return the first epochs that count for each trial, as they are and spread (``first_epochs``)."""
    found = {each.pairing: each.metrics.epoch_time for each in records}
    known = {index: float(seconds) for index, seconds in sorted(found.items()) if seconds is not None}
    if min(known.values(), default=0.0) <= 0:
        return known, known  # no epoch takes no time, but a log may say so
    there, back = (math.log, math.exp) if scale == "ratio" else (float, float)
    fresh = [there(seconds) for index, seconds in known.items() if index >= 0]
    if not fresh or len(fresh) == len(known):
        return known, known
    counted = {index: there(known[index]) if index >= 0 else fresh[~index % len(fresh)] for index in known}
    mean, middle = (math.fsum(each) / len(each) for each in (fresh, counted.values()))
    few, many = len(fresh), len(known)
    least = back(min(fresh)) / 2

    def spread(by: float) -> dict[int, float]:
        wide = {index: max(least, back(mean + by * (each - middle))) for index, each in counted.items()}
        # What ``least`` has raised must not raise the mean.
        scaled = back(mean) / back(math.fsum(map(there, wide.values())) / many)
        return {index: scaled * each for index, each in wide.items()}

    wider = math.sqrt((many - 1) / (few - 1)) * quantile(few) / quantile(many) if few > 1 else 1.0
    return spread(1.0), spread(wider)


def total(parts: Parts, epochs: int = EPOCHS) -> float:
    """Return the seconds that ``epochs`` epochs take, including the conversion.

    What the first epoch is spread by enters to first order. The sum with a spread one would have a larger mean: where
    three of 24 trials were fresh, and varied by a quarter, a total was a fifth too long.
    """
    convert, first, steady, spread = parts
    found = convert + first + (epochs - 1) * steady
    return found * math.exp(spread * first / found) if found > 0 else found


def unmeasured(
    question: str,
    name: str,
    case: dict[str, str],
    variant: _registry.Variant | None,
    ranked_by: str,
    *,
    is_baseline: bool,
) -> Row:
    """Return the row of a strategy without a trial: what its declaration says."""
    return Row(
        question=question,
        strategy=name,
        label=variant.label if variant else "(declared elsewhere: name its file with --with)",
        tier=variant.tier if variant else "identical",
        matches=variant.matches if variant else None,
        case=case,
        is_baseline=is_baseline,
        status=NOT_MEASURED,
        samples=0,
        trials=0,
        ranked_by=ranked_by,
        historic=bool(variant and variant.historic),
        ceiling=bool(variant and variant.ceiling),
        may_lose=bool(variant and variant.may_lose),
        ends_late=variant.ends_late if variant else 0.0,
        converts=bool(variant and variant.convert),
        settings=variant.settings if variant else "",
        series=variant.series if variant else "",
        at=variant.at if variant else "",
        source=variant.source if variant else "",
        imports=variant.imports if variant else [],
        is_outside=variant is None or variant.is_outside,
        capacity=variant.capacity if variant else 0,
        asv_differs=variant.asv_differs if variant else None,
        engine=variant.engine if variant else "",
        optional=tuple(variant.optional) if variant else (),
    )


def row_of(records: Sequence[Record], variant: _registry.Variant | None, ranked_by: str, *, is_baseline: bool) -> Row:
    """Return the row that follows from a strategy's own records."""
    first = records[0]
    declared = unmeasured(first.question, first.strategy, first.case, variant, ranked_by, is_baseline=is_baseline)
    good = [record for record in records if record.status == "ok"]
    walks = [record.metrics for record in good if record.metrics.walk]
    order = [record.metrics.order_quality for record in good if record.metrics.order_quality]
    reached = good or records  # a strategy that was ended early still shows how far it got
    shares = [each.environment.page_cache for each in good if each.environment.page_cache is not None]
    judged = [each.metrics.memory_growth for each in good if each.metrics.memory_growth and not is_untold(each)]
    levels = [each for each in judged if each.verdict != "undecided" or each.level]
    floors = [each.metrics.memory_floor for each in good if each.metrics.memory_floor]
    return msgspec.structs.replace(
        declared,
        status=_status(records),
        samples=len(good),
        trials=len(records),
        epochs=records[0].epochs,
        ends=dict(Counter(each.status for each in records if each.status != "ok")),
        failed=any(each.went_wrong for each in records),
        converts=declared.converts or any(each.metrics.convert_time is not None for each in good),
        figures=_figures(good, reached, ranked_by, levels, floors[0] if floors else None),
        growth=_growth(judged, len(good)),
        growth_bound=_greatest([each.bound for each in levels]),
        in_use_bound=_greatest([None if each.verdict == IN_USE else each.in_use_bound for each in levels]),
        floor=floors[0] if floors else None,
        trace=_thinned(good[-1].metrics.memory_trace) if good else None,
        steps=walks[-1].steps if walks else None,
        walk=walks[-1].walk if walks else None,
        delivered=good[-1].metrics.samples if good else None,
        page_cache=(min(shares), max(shares)) if shares else None,
        psnr=min((each.metrics.psnr for each in good if each.metrics.psnr is not None), default=None),
        max_difference=max(
            (each.metrics.max_difference for each in good if each.metrics.max_difference is not None), default=None
        ),
        order=order[0] if order else None,
        roles=_roles([each.metrics.cpu_by_role for each in good if each.metrics.cpu_by_role]),
        role_memory=_roles([each.metrics.memory_by_role for each in good if each.metrics.memory_by_role]),
        delivery=_delivery([each.metrics.delivery for each in good if each.metrics.delivery]),
        left_behind=[each.metrics.left_behind for each in good if each.metrics.left_behind is not None],
        odd_files=next((each.metrics.odd_files for each in good if each.metrics.odd_files), None),
        commit=commits(records),
        forked=sorted(record.round for record in good if record.process == "forked"),
        forked_start=_forked_start(good),
    )


def _roles(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the means by role."""
    names = dict.fromkeys(name for each in found for name in each)
    return {name: math.fsum(each.get(name, 0.0) for each in found) / len(found) for name in names}


def _delivery(found: Sequence[Delivery]) -> Delivery | None:
    """Return the worst of what the checked trials found."""
    return max(found, key=lambda each: (each.verdict == "broken", each.missing + each.repeated), default=None)


def _status(records: Sequence[Record]) -> str:
    """Put the trials' outcomes into words: ``ok``, or what went wrong, how often, and why."""
    ends = Counter((each.status, each.message) for each in records if each.status != "ok" or each.message)
    if not ends:
        return "ok"
    words = []
    for (status, message), count in ends.items():
        could = len(records) if status != "ok" else sum(each.checked for each in records)  # have said so
        times = f" in {count} of {could}" if count < could else ""
        words.append(": ".join(filter(None, [f"{status.replace('_', ' ')}{times}", _shortened(message)])))
    return _shortened("; ".join(words))


def _shortened(text: str) -> str:
    half = MOST_WORDS // 2
    return text if len(text) <= MOST_WORDS else f"{text[:half]} […] {text[-half:]}"


def commits(records: Iterable[Record]) -> str:
    return ", ".join(sorted({record.environment.commit[:8] for record in records} - {""}))


def _growth(judged: Sequence[Growth], trials: int) -> str | None:
    """Put the verdicts on memory into words, most frequent first; each with its count, unless it is that of all."""
    verdicts = Counter(each.verdict for each in judged)
    if not verdicts.keys() - {"undecided"}:
        return None
    (first, count), *others = verdicts.most_common()
    return first if count == trials else "; ".join(f"{verdict} in {n}" for verdict, n in [(first, count), *others])


def _greatest(bounds: Sequence[float | None]) -> float | None:
    """Return the greatest bound; ``None`` if any trial has none."""
    known = [each for each in bounds if each is not None]
    return max(known) if known and len(known) == len(bounds) else None


def _forked_start(records: Sequence[Record]) -> float | None:
    """Return the mean ``start_time`` of forked trials, in seconds; ``None`` without such."""
    starts = [record.metrics.start_time for record in records if record.process == "forked"]
    known = [each for each in starts if each is not None]
    return math.fsum(known) / len(known) if known else None


def _figures(
    good: Sequence[Record], reached: Sequence[Record], ranked_by: str, levels: Sequence[Growth], floor: float | None
) -> dict[str, Estimate]:
    """Return the estimates of one strategy's own trials, by the name of the figure."""
    fresh = [record for record in good if record.process == "fresh"]
    found = {
        name: _estimate(
            reached if each.field in REACHED else fresh if each.fresh_only else good, each.field, each.scale
        )
        for name, each in MEASURED.items()
    }
    found["time"] = _estimate(good, ranked_by, "ratio")
    if (peak := found["peak"]) and floor:
        found["over_floor"] = peak.scaled(1 / floor)
    traces = [each.metrics.memory_trace for each in good]
    if firsts := [float(each.resident[0]) for each in traces if each and not each.tree and each.step[:1] == [1]]:
        found["held_first"] = estimate(firsts, "linear")
    if levels:
        found["level"] = estimate([each.level for each in levels], "linear")
        found["level_held"] = estimate([each.held or 0.0 for each in levels], "linear")
    return {name: each for name, each in found.items() if each}


def _estimate(records: Sequence[Record], metric: str, scale: Scale) -> Estimate | None:
    values = [value(record, metric) for record in records]
    present = [float(value) for value in values if value is not None]
    if scale == "ratio":  # a duration too short for its clock says nothing
        present = [value for value in present if value >= SHORTEST]
    return estimate(present, scale) if present else None


def value(record: Record, metric: str) -> float | None:
    """Return a metric; the peak is that of the process tree if there were worker processes, or unknown as that is."""
    if metric in OF_TREE and is_untold(record):
        return None
    value: float | None = getattr(record.metrics, metric)
    if metric == "peak_memory" and value is not None:
        return max(value, record.metrics.peak_memory_tree or 0)
    return value


def is_not_closed(record: Record) -> bool:
    """Whether a trial's steady epochs end at their last batch, as those of older trials do, or of several passes."""
    return record.metrics.steady_time is not None and record.metrics.closing_time is None


def is_untold(record: Record) -> bool:
    """Whether it could not be read how much a trial's processes held together."""
    if record.status != "ok" or record.schema != SCHEMA:
        return False
    metrics = record.metrics
    readings, trace = metrics.tree_readings, metrics.memory_trace
    if readings is None and trace and trace.tree:  # an older record's trace leaves out the slow consumer's epoch
        readings = len(trace.step)
    return workers.is_unknown(metrics.peak_memory_tree, metrics.anonymous_memory, readings)


def by_round(records: Iterable[Record], strategy: str, metric: str) -> dict[int, float]:
    return {
        record.round: float(found)
        for record in records
        if record.strategy == strategy and record.status == "ok"
        if (found := value(record, metric)) is not None
    }


def _thinned(trace: MemoryTrace | None) -> MemoryTrace | None:
    """Keep every n-th point of a trace, enough to draw."""
    if trace is None:
        return None
    every = max(1, -(-len(trace.step) // TRACE_POINTS))
    return MemoryTrace(
        trace.step[::every],
        trace.seconds[::every],
        trace.resident[::every],
        trace.in_use and trace.in_use[::every],
        trace.held and trace.held[::every],
        trace.file and trace.file[::every],
        trace.tree,
    )
