"""From trial records to the rows of a comparison: one row for each strategy and case. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

import msgspec

from loaders import _registry
from loaders._calibration import Calibration, Resolution
from loaders._contract import OrderQuality
from loaders._stats import SHORTEST, Estimate, estimate, paired_ratio
from loaders._trial.record import Environment, MemoryTrace, Record

T = TypeVar("T")

RESOLUTION = 2**20
"""In bytes. Below it a ratio of two memory figures says nothing: the instrument is good to 1 MiB, or as a calibration
shows, if that is worse."""

TRACE_POINTS = 100
"""Of a drawn trace."""

MOST_WORDS = 1000
"""Characters of what a trial said. More is cut in the middle: the beginning says what, the end where."""

BUSY = 0.1
"""A share of the machine's processor time. What others take of it may be all that strategies differ by, and 10 % is the
least difference that matters to most readers. A quiet system's own services take 1 to 3 % of two processors."""

BUSY_TRIALS = 0.1
"""A share of the trials. One in ten may meet a service at work; shuffled rounds and intervals allow for that."""


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
        In bytes above the baseline of memory; ``peak`` is that of the process tree where there were worker processes.
    peak_ratio
        ``peak`` over the baseline strategy's; ``None`` where one of the two alone is below the resolution.
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
    steps, walk
        See ``loaders._trial.record.Metrics``.
    settings
        What its declaration sets for the process: variables of the environment, a library to be loaded first.
    first_batch
        In seconds: from the call that builds the strategy to the first batch in hand.
    series, at
        See ``loaders._registry.Variant``.
    later
        In seconds: an epoch after the first.
    extra
        In seconds: what the first epoch takes longer than the baseline's, by round, where there are later ones.
    in_flight, waiting, waiting_bytes
        See ``bodies_in_flight`` and ``waiting`` in ``loaders._trial.record.Metrics``.
    delivered
        Samples of an epoch.
    page_cache
        The share of the files that the strategy reads that was in the page cache, the least of all trials and the most.
    times, peaks
        ``time`` and ``peak`` of each round that was ``ok``, from which a reader can take ratios to another baseline.
    samples
        How many trials were ``ok``, of ``trials``.
    growth
        The verdicts on memory over the steps; ``None`` where all are undecided, as they are for short trials.
    status
        The status of the trials in words, with the reasons.
    epoch
        In seconds: an epoch, whatever metric the question is ranked by.
    code
        In bytes: see ``code_memory`` in ``loaders._trial.record.Metrics``; it is not in ``peak``.
    commit
        Of the row's own trials, eight digits, joined by ", " where there are several.
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
    times: dict[int, float] = {}
    peaks: dict[int, float] = {}
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
    steps: list[int] | None = None
    walk: list[int] | None = None
    page_cache: tuple[float, float] | None = None
    series: str = ""
    at: str = ""
    settings: str = ""
    first_batch: Estimate | None = None
    later: Estimate | None = None
    extra: Estimate | None = None
    in_flight: Estimate | None = None
    waiting: Estimate | None = None
    waiting_bytes: Estimate | None = None
    delivered: int | None = None
    psnr: float | None = None
    max_difference: float | None = None
    order: OrderQuality | None = None
    epoch: Estimate | None = None
    code: Estimate | None = None
    commit: str = ""


class Scaling(msgspec.Struct, frozen=True):
    """How a strategy's peak memory follows the amount of data.

    Attributes
    ----------
    per_sample
        In bytes: what each added sample adds to the peak, process tree included.
    largest
        The peak with the most data over the peak with the least.
    points
        For each amount of data, in samples, the peak in bytes.
    """

    strategy: str
    per_sample: Estimate
    largest: Estimate
    points: list[tuple[int, Estimate]]


class Disturbed(msgspec.Struct, frozen=True):
    """What disturbed a comparison.

    Attributes
    ----------
    trials
        How many say what else went on.
    busy
        In how many of them more than ``BUSY`` of the processor time went to other processes or other guests.
    others, stolen
        The largest shares of the processor time, 0 to 1, that other processes and other guests took of one.
    swapped, throttled
        In how many of them the machine swapped (more than 1 MiB), and its processors slowed down for their heat.
    most_swapped
        In bytes: the most of one trial.
    """

    trials: int
    busy: int
    others: float
    stolen: float
    swapped: int
    most_swapped: int
    throttled: int


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
    scaling: list[Scaling] = []
    disturbed: Disturbed | None = None

    @property
    def cases(self) -> list[tuple[dict[str, str], list[Row]]]:
        """The rows of each case."""
        return [(case, list(rows)) for case, rows in groupby(self.rows, lambda row: row.case)]


def comparison(records: Sequence[Record], calibration: Calibration | None = None) -> Comparison:
    """Return the comparison of the records of one run.

    A strategy that this checkout no longer has keeps its name and figures. With a calibration of the machine, ratios of
    what its instruments cannot tell apart are marked.
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
        later = {name: _by_round(within, name, "later_epoch_time") for name in times}
        in_case = [
            _row(
                [record for record in within if record.strategy == name],
                known.get(name),
                question.ranked_by,
                is_baseline=name == baseline,
                times=times[name],
                peaks=peaks[name],
                ratio=None if name == baseline else paired_ratio(times[name], times.get(baseline, {})),
                pair=_pair(known.get(name), times),
                peak_ratio=None if name == baseline else paired_ratio(peaks[name], peaks.get(baseline, {})),
                saved=_saved(known, times, name) or (None if name == baseline else _less(later, baseline, name)),
                extra=_less(times, name, baseline) if later[name] and name != baseline else None,
            )
            for name in times
        ]
        in_case = [_marked(row, in_case, question.ranked_by, calibration) for row in in_case]
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
            max((record.environment for record in records), key=lambda each: len(each.packages)),
            load=None,
            page_cache=None,
            frequency=None,
            swap=None,
            commit=_commits(records),
        ),
        rows=rows,
        scaling=_scaling(records, question) if question.size_axis else [],
        disturbed=disturbed(records),
    )


def disturbed(records: Iterable[Record]) -> Disturbed | None:
    """Say what disturbed a comparison; ``None`` where nothing did, or where no trial tells.

    It was disturbed where the machine was busy in more than a tenth of the trials, or in any of them swapped or slowed
    down for its heat: what is in swap is in no figure of memory, and a hot processor is another processor.
    """
    found = [record.metrics.disturbance for record in records if record.metrics.disturbance]
    busy = sum(each.others + (each.stolen or 0.0) > BUSY for each in found)
    swapped = [each.swapped for each in found if (each.swapped or 0) > RESOLUTION]
    throttled = sum((each.throttled or 0) > 0 for each in found)
    if busy <= BUSY_TRIALS * len(found) and not swapped and not throttled:
        return None
    return Disturbed(
        trials=len(found),
        busy=busy,
        others=max(each.others for each in found),
        stolen=max(each.stolen or 0.0 for each in found),
        swapped=len(swapped),
        most_swapped=max((each or 0 for each in swapped), default=0),
        throttled=throttled,
    )


def _scaling(records: Sequence[Record], question: _registry.Question) -> list[Scaling]:
    """Return how each strategy's memory follows the data, the other axes at their default; slopes are by round."""
    sizes: dict[str, dict[int, dict[int, float]]] = {}
    for record in records:
        elsewhere = {axis: value for axis, value in record.case.items() if axis != question.size_axis}
        default = {axis: question.default_case.get(axis) for axis in elsewhere}
        metrics = record.metrics
        if record.status == "ok" and elsewhere == default and metrics.samples and metrics.peak_memory is not None:
            peak = _value(record, "peak_memory") or 0.0
            sizes.setdefault(record.strategy, {}).setdefault(record.round, {})[metrics.samples] = peak
    found = []
    for strategy, rounds in sizes.items():
        whole = [peaks for peaks in rounds.values() if len(peaks) > 1]
        amounts = sorted(set.intersection(*(set(peaks) for peaks in whole))) if whole else []
        if len(amounts) < 2:
            continue
        found.append(
            Scaling(
                strategy,
                estimate([_slope(peaks) for peaks in whole], "linear"),
                estimate([max(1.0, peaks[amounts[-1]]) / max(1.0, peaks[amounts[0]]) for peaks in whole], "ratio"),
                [(amount, estimate([peaks[amount] for peaks in whole], "linear")) for amount in amounts],
            )
        )
    return sorted(found, key=lambda each: each.per_sample.value)


def _slope(points: Mapping[int, float]) -> float:
    """Return the slope of the least squares' line."""
    middle_x, middle_y = sum(points) / len(points), sum(points.values()) / len(points)
    products = sum((x - middle_x) * (y - middle_y) for x, y in points.items())
    return products / sum((x - middle_x) ** 2 for x in points)


def _row(
    records: Sequence[Record],
    variant: _registry.Variant | None,
    ranked_by: str,
    *,
    is_baseline: bool,
    times: dict[int, float],
    peaks: dict[int, float],
    ratio: Estimate | None,
    pair: Estimate | None,
    peak_ratio: Estimate | None,
    saved: Estimate | None,
    extra: Estimate | None,
) -> Row:
    first = records[0]
    good = [record for record in records if record.status == "ok"]
    order = [record.metrics.order_quality for record in good if record.metrics.order_quality]
    reached = good or records  # a strategy that was ended still shows how far it came
    shares = [each.environment.page_cache for each in good if each.environment.page_cache is not None]
    judged = [each.metrics.memory_growth for each in good if each.metrics.memory_growth]
    levels = [each for each in judged if each.verdict != "undecided" or each.level]
    floors = [each.metrics.memory_floor for each in good if each.metrics.memory_floor]
    peak = _estimate(reached, "peak_memory")
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
        times=times,
        peaks=peaks,
        time=_estimate(good, ranked_by, positive=True),
        ratio=ratio,
        pair=pair,
        throughput=_estimate(good, "throughput", positive=True),
        cpu=_estimate(good, "cpu_time", positive=True),
        peak=peak,
        peak_ratio=peak_ratio,
        peak_tree=_estimate(reached, "peak_memory_tree"),
        retained=_estimate(good, "retained_memory"),
        held=_estimate(good, "allocator_held"),
        growth=_growth(good),
        floor=floors[0] if floors else None,
        over_floor=_scaled(peak, 1 / floors[0]) if peak and floors else None,
        level=estimate([each.level for each in levels], "linear") if levels else None,
        level_held=estimate([each.held or 0.0 for each in levels], "linear") if levels else None,
        trace=_thinned(good[-1].metrics.memory_trace) if good else None,
        convert_time=_estimate(good, "convert_time", positive=True),
        convert_memory=_estimate(good, "convert_memory"),
        disk=_estimate(good, "disk_bytes"),
        saved=saved,
        steps=good[-1].metrics.steps if good else None,
        walk=good[-1].metrics.walk if good else None,
        settings=variant.settings if variant else "",
        first_batch=_estimate(good, "first_batch_time", positive=True),
        series=variant.series if variant else "",
        at=variant.at if variant else "",
        later=_estimate(good, "later_epoch_time", positive=True),
        extra=extra,
        in_flight=_estimate(good, "bodies_in_flight"),
        waiting=_estimate(good, "waiting"),
        waiting_bytes=_estimate(good, "waiting_bytes"),
        delivered=good[-1].metrics.samples if good else None,
        page_cache=(min(shares), max(shares)) if shares else None,
        psnr=min((each.metrics.psnr for each in good if each.metrics.psnr is not None), default=None),
        max_difference=max(
            (each.metrics.max_difference for each in good if each.metrics.max_difference is not None), default=None
        ),
        order=order[0] if order else None,
        epoch=_estimate(good, "epoch_time", positive=True),
        code=_estimate(good, "code_memory"),
        commit=_commits(records),
    )


def _status(records: Sequence[Record]) -> str:
    """Put the trials' ends into words: ``ok``, or what went wrong, how often, and why."""
    ends = Counter((each.status, each.message) for each in records if each.status != "ok" or each.message)
    if not ends:
        return "ok"
    words = []
    for (status, message), count in ends.items():
        times = f" in {count} of {len(records)}" if count < len(records) else ""
        words.append(": ".join(filter(None, [f"{status.replace('_', ' ')}{times}", _shortened(message)])))
    return _shortened("; ".join(words))


def _shortened(text: str) -> str:
    half = MOST_WORDS // 2
    return text if len(text) <= MOST_WORDS else f"{text[:half]} […] {text[-half:]}"


def _commits(records: Iterable[Record]) -> str:
    return ", ".join(sorted({record.environment.commit[:8] for record in records} - {""}))


def _growth(records: Sequence[Record]) -> str | None:
    """Put the verdicts on memory into words, the most frequent first."""
    verdicts = Counter(record.metrics.memory_growth.verdict for record in records if record.metrics.memory_growth)
    if not verdicts.keys() - {"undecided"}:
        return None
    (first, count), *others = verdicts.most_common()
    return first if not others else "; ".join(f"{verdict} in {n}" for verdict, n in [(first, count), *others])


def _estimate(records: Sequence[Record], metric: str, *, positive: bool = False) -> Estimate | None:
    values = [_value(record, metric) for record in records]
    present = [float(value) for value in values if value is not None]
    if positive:  # a duration too short for its clock says nothing
        present = [value for value in present if value >= SHORTEST]
    return estimate(present, "ratio" if positive else "linear") if present else None


def _value(record: Record, metric: str) -> float | None:
    """Return a metric; the peak is that of the process tree where there were worker processes."""
    value: float | None = getattr(record.metrics, metric)
    if metric == "peak_memory" and value is not None:
        return max(value, record.metrics.peak_memory_tree or 0)
    return value


def _by_round(records: Iterable[Record], strategy: str, metric: str) -> dict[int, float]:
    return {
        record.round: float(value)
        for record in records
        if record.strategy == strategy and record.status == "ok"
        if (value := _value(record, metric)) is not None
    }


def _pair(variant: _registry.Variant | None, times: dict[str, dict[int, float]]) -> Estimate | None:
    if variant is None or variant.matches is None:
        return None
    return paired_ratio(times[variant.name], times.get(variant.matches, {}))


def _saved(known: dict[str, _registry.Variant], times: dict[str, dict[int, float]], name: str) -> Estimate | None:
    """Return the seconds an epoch that a conversion saves, against the strategy that needs none."""
    if name not in known or known[name].convert is None:
        return None
    unconverted = next((each for each in times if each in known and known[each].convert is None), "")
    return _less(times, unconverted, name)


def _less(times: dict[str, dict[int, float]], more: str, less: str) -> Estimate | None:
    """Return by how much one strategy's time exceeds another's, paired by round."""
    one, other = times.get(more, {}), times.get(less, {})
    rounds = sorted(one.keys() & other.keys())
    return estimate([one[each] - other[each] for each in rounds], "linear") if rounds else None


def _scaled(each: Estimate, factor: float) -> Estimate:
    low, high = (None if bound is None else bound * factor for bound in (each.low, each.high))
    return Estimate(each.value * factor, low, high, each.count)


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
    )


def _marked(row: Row, rows: Sequence[Row], ranked_by: str, calibration: Calibration | None) -> Row:
    """Mark those of a row's ratios whose two sides are nearer to each other than the instrument can resolve."""
    baseline = next((each for each in rows if each.is_baseline), None)
    matched = next((each for each in rows if each.strategy == row.matches), None)
    trials = row.samples or 1
    time = calibration.resolution(ranked_by, trials) if calibration else None
    ratio, pair, peak_ratio = row.ratio, row.pair, row.peak_ratio
    if time and ratio and baseline and _near(row.time, baseline.time, time):
        ratio = msgspec.structs.replace(ratio, resolved=False)
    if time and pair and matched and _near(row.time, matched.time, time):
        pair = msgspec.structs.replace(pair, resolved=False)
    if peak_ratio and baseline:
        has_tree = row.peak_tree or baseline.peak_tree
        metric = "peak_memory_tree" if has_tree else "peak_memory"
        memory = calibration.resolution(metric, trials) if calibration else None
        if _near(row.peak, baseline.peak, memory, RESOLUTION):
            peak_ratio = msgspec.structs.replace(peak_ratio, resolved=False)
        elif min(*row.peaks.values(), *baseline.peaks.values()) < max(RESOLUTION, memory.of(0) if memory else 0):
            peak_ratio = None  # the difference is there, but how many times is noise
    return msgspec.structs.replace(row, ratio=ratio, pair=pair, peak_ratio=peak_ratio)


def _near(one: Estimate | None, other: Estimate | None, resolution: Resolution | None, floor: float = 0.0) -> bool:
    """Whether two figures differ by less than can be resolved, or than the floor."""
    if one is None or other is None:
        return False
    apart = resolution.of(max(one.value, other.value)) if resolution else 0.0
    return abs(one.value - other.value) < max(floor, apart)


def _distinct(items: Iterable[T]) -> list[T]:
    """Return the items without repetition, in order of first appearance; they need not be hashable."""
    found: list[T] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
