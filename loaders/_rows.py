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
from loaders._judge import RESOLUTION, TIME_MARGIN, Best, Fitted, Judged, fitted, margin_of
from loaders._law import Law, law
from loaders._stats import SHORTEST, Estimate, estimate
from loaders._trial.record import SCHEMA, Environment, MemoryTrace, Record

T = TypeVar("T")

EPOCHS = 20
"""Over so many the total of a strategy is stated, where nobody says otherwise: a short training run."""

TRACE_POINTS = 100
"""Of a drawn trace."""

MOST_WORDS = 1000
"""Characters of what a trial said. More is cut in the middle: the beginning says what, the end where."""

BUSY = 0.1
"""A share of the machine's processor time. What others take of it may be all that strategies differ by, and 10 % is the
least difference that matters to most readers. A quiet system's own services take 1 to 3 % of two processors."""

AT_START = 10
"""Steady epochs that take as long as a start in which the work of all was done: starts of pipelines take one or two."""

BUSY_TRIALS = 0.1
"""A share of the trials. One in ten may meet a service at work; shuffled rounds and intervals allow for that."""


class Row(msgspec.Struct, frozen=True):
    """What a comparison found out about one strategy in one case.

    Attributes
    ----------
    time
        In seconds: of the metric ``ranked_by``.
    ranked_by
        Of the case: the question's, or ``epoch_time`` where a trial of the case lacks that.
    start, steady
        In seconds: see ``start_time`` and ``steady_time`` in ``loaders._trial.record.Metrics``.
    total
        In seconds: of ``EPOCHS`` epochs, the conversion included, where a steady epoch is known.
    parts
        By round, in seconds: the conversion, the first epoch and a steady one, which make a total.
    ratio
        ``time`` over the baseline's, judged; ``None`` for the baseline itself.
    pair
        ``time`` over that of the strategy it ``matches``.
    best
        ``time`` over that of the fastest of the case, which is no ceiling and not historic; ``None`` for that one.
    in_best
        Whether it is one of those that cannot be shown to be slower than the fastest.
    total_best, in_best_total
        The same of ``total``.
    p_values
        Two-sided, of ``ratio``, ``pair`` and ``peak_ratio`` against 1, by these names: what is picked from several
        comparisons is corrected by them.
    spread
        Of ``time`` and ``memory``: the moderated variance of a logarithm, its degrees of freedom, and the most of the
        case: from these a reader's page judges ratios to another baseline.
    peak, peak_slow, peak_tree, retained, held
        In bytes above the baseline of memory; ``peak`` is with a fast consumer, and that of the process tree where
        there were worker processes; ``peak_slow`` has a slow consumer's epoch in it.
    needed, anonymous, file
        In bytes: see ``loaders._trial.record.Metrics``. ``needed`` is what the system cannot take back.
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
    converts
        Whether its data must be written first.
    saved
        In seconds an epoch: what a converted format saves against the strategy that needs no conversion, by round.
    steps, walk
        See ``loaders._trial.record.Metrics``.
    settings
        What its declaration sets for the process: variables of the environment, a library to be loaded first.
    historic, ceiling
        See ``loaders._registry.Variant``.
    first_batch
        In seconds: from the call that builds the strategy to the first batch in hand.
    wait
        In seconds: what a slow consumer waits for a batch in the mean.
    series, at
        See ``loaders._registry.Variant``.
    in_flight, waiting, waiting_bytes
        See ``bodies_in_flight`` and ``waiting`` in ``loaders._trial.record.Metrics``.
    delivered
        Samples of an epoch.
    page_cache
        The share of the files that the strategy reads that was in the page cache, the least of all trials and the most.
    times, peaks, needs
        ``time``, ``peak`` and ``needed`` of each round that was ``ok``, from which a reader can take other ratios.
    samples
        How many trials were ``ok``, of ``trials``.
    growth
        The verdicts on memory over the steps; ``None`` where all are undecided, as they are for short trials.
    growth_bound, in_use_bound
        In bytes over 1000 steps: what memory, and what of it is in use, grows at most, where every trial that was long
        enough has such a bound. "No leak" can be said only with the second.
    status
        The status of the trials in words, with the reasons.
    epoch
        In seconds: the first epoch, whatever metric the question is ranked by.
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
    ranked_by: str = "epoch_time"
    historic: bool = False
    ceiling: bool = False
    converts: bool = False
    times: dict[int, float] = {}
    peaks: dict[int, float] = {}
    needs: dict[int, float] = {}
    parts: dict[int, tuple[float, float, float]] = {}
    time: Estimate | None = None
    start: Estimate | None = None
    steady: Estimate | None = None
    total: Estimate | None = None
    ratio: Judged | None = None
    pair: Judged | None = None
    best: Judged | None = None
    in_best: bool = False
    total_best: Judged | None = None
    in_best_total: bool = False
    p_values: dict[str, float] = {}
    spread: dict[str, tuple[float, float, float]] = {}
    throughput: Estimate | None = None
    cpu: Estimate | None = None
    peak: Estimate | None = None
    peak_ratio: Judged | None = None
    peak_slow: Estimate | None = None
    needed: Estimate | None = None
    anonymous: Estimate | None = None
    file: Estimate | None = None
    peak_tree: Estimate | None = None
    retained: Estimate | None = None
    held: Estimate | None = None
    growth: str | None = None
    growth_bound: float | None = None
    in_use_bound: float | None = None
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
    wait: Estimate | None = None
    in_flight: Estimate | None = None
    waiting: Estimate | None = None
    waiting_bytes: Estimate | None = None
    delivered: int | None = None
    psnr: float | None = None
    max_difference: float | None = None
    order: OrderQuality | None = None
    epoch: Estimate | None = None
    commit: str = ""


def worked_first(row: Row) -> bool:
    """Whether a strategy did its work before its first batch, so that its steady epochs only hand out what is there."""
    return bool(row.start and row.steady and row.start.value > AT_START * row.steady.value)


def plain(rows: Sequence[Row]) -> list[Row]:
    """Return what works alike in every epoch and delivers as the baseline does: nothing converted, nothing kept.

    Ceilings and historic strategies are left out.
    """
    tier = next((row.tier for row in rows if row.is_baseline), "identical")
    return [
        row
        for row in rows
        if row.time and row.tier == tier and not (row.converts or row.ceiling or row.historic or worked_first(row))
    ]


class CaseLaws(msgspec.Struct, frozen=True):
    """How each strategy's memory follows the amount of data in one case, which is named without the axis of sizes."""

    case: dict[str, str]
    laws: dict[str, Law]


class Disturbed(msgspec.Struct, frozen=True):
    """What disturbed a comparison, or what is not known of it.

    Attributes
    ----------
    trials
        How many say what else went on.
    unrecorded
        How many do not: nothing says that the machine was quiet then.
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
    unrecorded: int = 0

    @property
    def is_busy(self) -> bool:
        """Whether any trial tells of a disturbance that counts."""
        return self.busy > BUSY_TRIALS * self.trials or bool(self.swapped or self.throttled)


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
    laws: list[CaseLaws] = []
    schema: int = SCHEMA
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
        ranked_by = _ranked_by(within, question)
        of_case = _Case(within, known, baseline, ranked_by, calibration)
        in_case = [of_case.row(name) for name in of_case.times]
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
        laws=_laws(records, question) if question.size_axis else [],
        schema=first.schema,
        disturbed=disturbed(records),
    )


def disturbed(records: Iterable[Record]) -> Disturbed | None:
    """Say what disturbed a comparison, and of how many trials that is not known; ``None`` where all tell of quiet.

    It was disturbed where the machine was busy in more than a tenth of the trials, or in any of them swapped or slowed
    down for its heat: what is in swap is in no figure of memory, and a hot processor is another processor. Trials that
    gave no figure count for nothing.
    """
    measured = [record for record in records if record.status == "ok"]
    found = [record.metrics.disturbance for record in measured if record.metrics.disturbance]
    swapped = [each.swapped for each in found if (each.swapped or 0) > RESOLUTION]
    seen = Disturbed(
        trials=len(found),
        busy=sum(each.others + (each.stolen or 0.0) > BUSY for each in found),
        others=max((each.others for each in found), default=0.0),
        stolen=max((each.stolen or 0.0 for each in found), default=0.0),
        swapped=len(swapped),
        most_swapped=max((each or 0 for each in swapped), default=0),
        throttled=sum((each.throttled or 0) > 0 for each in found),
        unrecorded=len(measured) - len(found),
    )
    return seen if seen.is_busy or seen.unrecorded else None


def _ranked_by(records: Sequence[Record], question: _registry.Question) -> str:
    """Return what a case is ranked by: never some strategies by one metric and some by another."""
    good = [record for record in records if record.status == "ok"]
    has_all = all(_value(record, question.ranked_by) is not None for record in good)
    return question.ranked_by if has_all else "epoch_time"


def _laws(records: Sequence[Record], question: _registry.Question) -> list[CaseLaws]:
    """Return how each strategy's memory follows the data, for every case without the axis of sizes."""
    known = _registry.variants(question.name)
    found: list[tuple[dict[str, str], dict[str, dict[int, dict[int, float]]]]] = []
    # A law is of one run: where cases of several stand in a comparison, of the one that has most of them.
    runs = Counter(run for run, _ in {(each.run, repr(each.case)) for each in records})
    most = max(runs, key=lambda run: (runs[run], run), default="")
    for record in records:
        metrics = record.metrics
        if record.run != most:
            continue
        if record.status != "ok" or not metrics.samples or metrics.needed_memory is None:
            continue
        case = {axis: value for axis, value in record.case.items() if axis != question.size_axis}
        points = next((each for other, each in found if other == case), None)
        if points is None:
            found.append((case, points := {}))
        of_amount = points.setdefault(record.strategy, {}).setdefault(metrics.samples, {})
        of_amount[record.round] = float(metrics.needed_memory)
    return [
        CaseLaws(
            case,
            {name: law(points, known[name].capacity if name in known else 0) for name, points in strategies.items()},
        )
        for case, strategies in found
    ]


class _Case:
    """The records of one case, and what they say of each strategy beside the others."""

    def __init__(
        self,
        records: Sequence[Record],
        known: Mapping[str, _registry.Variant],
        baseline: str,
        ranked_by: str,
        calibration: Calibration | None,
    ) -> None:
        self.records, self.known, self.baseline, self.ranked_by = records, known, baseline, ranked_by
        self.calibration = calibration
        names = sorted({each.strategy for each in records})
        self.times = {name: _by_round(records, name, ranked_by) for name in names}
        self.peaks = {name: _by_round(records, name, "peak_memory") for name in names}
        self.parts = {name: _parts(records, name) for name in names}
        self.time_fit = fitted(_long_enough(self.times))
        self.peak_fit = fitted(self.peaks, floor=RESOLUTION)
        totals = {name: {index: total(each) for index, each in of.items()} for name, of in self.parts.items()}
        self.totals = _long_enough(totals)
        self.total_fit = fitted(self.totals)
        self.best = self._best(self.time_fit)
        self.best_total = self._best(self.total_fit)

    def _best(self, fit: Fitted) -> Best | None:
        """Return the best of what a reader may choose; of all where there is nothing else."""
        timed = set(fit.strategies)
        loaders = {name for name in timed if not self._is(name, "ceiling") and not self._is(name, "historic")}
        return fit.best(loaders or timed) if timed else None

    def _is(self, name: str, what: str) -> bool:
        return name in self.known and bool(getattr(self.known[name], what))

    def row(self, name: str) -> Row:
        """Return a strategy's row."""
        variant = self.known.get(name)
        own = [record for record in self.records if record.strategy == name]
        row = _row(own, variant, self.ranked_by, is_baseline=name == self.baseline)
        matched = variant.matches if variant and variant.matches in self.times else None
        p_values: dict[str, float] = {}
        if name != self.baseline:
            _note(p_values, "ratio", self.time_fit, name, self.baseline)
            _note(p_values, "peak_ratio", self.peak_fit, name, self.baseline)
        if matched:
            _note(p_values, "pair", self.time_fit, name, matched)
        return msgspec.structs.replace(
            row,
            times=self.times[name],
            peaks=self.peaks[name],
            needs=_by_round(own, name, "needed_memory"),
            parts=self.parts[name],
            total=estimate(list(self.totals[name].values()), "ratio") if self.totals.get(name) else None,
            ratio=None if name == self.baseline else self._time(name, self.baseline),
            pair=self._time(name, matched) if matched else None,
            best=self._time(name, self.best.fastest) if self.best and name != self.best.fastest else None,
            in_best=bool(self.best and name in self.best.names),
            total_best=self._total(name),
            in_best_total=bool(self.best_total and name in self.best_total.names),
            peak_ratio=None if name == self.baseline else self._memory(name, self.baseline),
            p_values=p_values,
            spread=_spread(time=self.time_fit, memory=self.peak_fit, name=name),
            saved=_saved(self.known, self.times, name),
        )

    def _time(self, one: str, other: str) -> Judged | None:
        """Judge two strategies' times; what the instrument cannot tell apart is undecided."""
        found = self.time_fit.compare(one, other, margin=TIME_MARGIN)
        if found is None or self.calibration is None:
            return found
        trials = min(len(self.times[one]), len(self.times[other]))
        resolution = self.calibration.resolution(self.ranked_by, trials)
        return _resolved(found, _mean(self.times[one]), _mean(self.times[other]), resolution)

    def _total(self, name: str) -> Judged | None:
        if self.best_total is None or name == self.best_total.fastest:
            return None
        return self.total_fit.compare(name, self.best_total.fastest, margin=TIME_MARGIN)

    def _memory(self, one: str, other: str) -> Judged | None:
        """Judge two strategies' peaks, none below the resolution."""
        peaks = [*self.peaks[one].values(), *self.peaks.get(other, {}).values()]
        if not peaks or not self.peaks.get(other):
            return None
        trials = min(len(self.peaks[one]), len(self.peaks[other])) or 1
        has_tree = any(each.metrics.peak_memory_tree for each in self.records if each.strategy in (one, other))
        metric = "peak_memory_tree" if has_tree else "peak_memory"
        memory = self.calibration.resolution(metric, trials) if self.calibration else None
        means = _mean(self.peaks[one]), _mean(self.peaks[other])
        limit = max(RESOLUTION, memory.of(max(means)) if memory else 0.0)
        found = self.peak_fit.compare(one, other, margin=margin_of(max(RESOLUTION, *means), limit))
        if found is None:
            return None
        if abs(means[0] - means[1]) < limit:
            return _unresolved(found)
        smallest = max(RESOLUTION, memory.of(0) if memory else 0.0)
        return None if min(peaks) < smallest else found  # the difference is there, but how many times is noise


def _spread(time: Fitted, memory: Fitted, name: str) -> dict[str, tuple[float, float, float]]:
    fits = {"time": time, "memory": memory}
    return {
        figure: (fit._variances[name], fit._degrees[name], fit._most_degrees)
        for figure, fit in fits.items()
        if name in fit.strategies and fit._most_degrees
    }


def _note(p_values: dict[str, float], name: str, fit: Fitted, one: str, other: str) -> None:
    """Note how surely two strategies differ, either way; a single round shows nothing."""
    difference = fit.difference(one, other)
    if difference is not None and difference.rounds > 1:
        p_values[name] = min(1.0, 2 * min(difference.p_below(), difference.p_above()))


def _resolved(judged: Judged, one: float, other: float, resolution: Resolution | None) -> Judged:
    """Return a judgement, unless the two figures differ by less than can be resolved."""
    if resolution is None or abs(one - other) >= resolution.of(max(one, other)):
        return judged
    return _unresolved(judged)


def _unresolved(judged: Judged) -> Judged:
    """Return a judgement without a direction: its instrument could show such a difference where there is none."""
    if judged.verdict not in ("less", "more"):
        return judged
    ratio = msgspec.structs.replace(judged.ratio, resolved=False)
    return Judged("undecided", ratio)


def _mean(values: Mapping[int, float]) -> float:
    return sum(values.values()) / len(values) if values else 0.0


def _long_enough(times: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, float]]:
    """Return what a clock can have measured."""
    return {
        name: {index: value for index, value in of.items() if value >= SHORTEST}
        for name, of in times.items()
        if any(value >= SHORTEST for value in of.values())
    }


def _parts(records: Iterable[Record], strategy: str) -> dict[int, tuple[float, float, float]]:
    """Return, by round, the seconds of the conversion, of the first epoch and of a steady one."""
    return {
        record.round: (record.metrics.convert_time or 0.0, record.metrics.epoch_time, record.metrics.steady_time)
        for record in records
        if record.strategy == strategy and record.status == "ok"
        if record.metrics.epoch_time is not None and record.metrics.steady_time is not None
    }


def total(parts: tuple[float, float, float], epochs: int = EPOCHS) -> float:
    """Return the seconds that so many epochs take, the conversion included."""
    convert, first, steady = parts
    return convert + first + (epochs - 1) * steady


def _row(records: Sequence[Record], variant: _registry.Variant | None, ranked_by: str, *, is_baseline: bool) -> Row:
    """Return what a strategy's own records say."""
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
        ranked_by=ranked_by,
        historic=bool(variant and variant.historic),
        ceiling=bool(variant and variant.ceiling),
        converts=bool(variant and variant.convert) or any(each.metrics.convert_time is not None for each in good),
        time=_estimate(good, ranked_by, positive=True),
        start=_estimate(good, "start_time"),
        steady=_estimate(good, "steady_time", positive=True),
        throughput=_estimate(good, "throughput", positive=True),
        cpu=_estimate(good, "cpu_time", positive=True),
        peak=peak,
        peak_slow=_estimate(good, "peak_memory_slow"),
        needed=_estimate(good, "needed_memory"),
        anonymous=_estimate(good, "anonymous_memory"),
        file=_estimate(good, "file_memory"),
        peak_tree=_estimate(reached, "peak_memory_tree"),
        retained=_estimate(good, "retained_memory"),
        held=_estimate(good, "allocator_held"),
        growth=_growth(good),
        growth_bound=_greatest([each.bound for each in levels]),
        in_use_bound=_greatest([each.in_use_bound for each in levels]),
        floor=floors[0] if floors else None,
        over_floor=_scaled(peak, 1 / floors[0]) if peak and floors else None,
        level=estimate([each.level for each in levels], "linear") if levels else None,
        level_held=estimate([each.held or 0.0 for each in levels], "linear") if levels else None,
        trace=_thinned(good[-1].metrics.memory_trace) if good else None,
        convert_time=_estimate(good, "convert_time", positive=True),
        convert_memory=_estimate(good, "convert_memory"),
        disk=_estimate(good, "disk_bytes"),
        steps=good[-1].metrics.steps if good else None,
        walk=good[-1].metrics.walk if good else None,
        settings=variant.settings if variant else "",
        first_batch=_estimate(good, "first_batch_time", positive=True),
        series=variant.series if variant else "",
        at=variant.at if variant else "",
        wait=_estimate(good, "wait_time"),
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


def _greatest(bounds: Sequence[float | None]) -> float | None:
    """Return the greatest bound; ``None`` where one trial has none."""
    known = [each for each in bounds if each is not None]
    return max(known) if known and len(known) == len(bounds) else None


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


def _saved(known: Mapping[str, _registry.Variant], times: dict[str, dict[int, float]], name: str) -> Estimate | None:
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
        trace.file and trace.file[::every],
        trace.tree,
    )


def _distinct(items: Iterable[T]) -> list[T]:
    """Return the items without repetition, in order of first appearance; they need not be hashable."""
    found: list[T] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
