"""Instrument readings of known values, their error, and the smallest difference the instruments can resolve. Pure.

The records of a calibrating question hold the readings, the declarations of its strategies the true values.

*Resolution.* A figure of a comparison is the mean of ``n`` trials, and so is the figure it is compared with. Each may
be off by the instrument's mean error and, with 95 % probability, by the half-width of the prediction interval of a mean
of ``n`` further trials. This half-width follows from the spread of the ``m`` trials of the calibration:
``t s sqrt(1/m + 1/n)``. The difference of two figures has the errors of both, so a difference below ``sqrt(2)`` times
that may be the instrument's. The limit is interpolated between two known truths; beyond the largest it grows in
proportion.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from loaders import _registry
from loaders._stats import Estimate, estimate, quantile
from loaders._trial.record import Record

Unit = Literal["s", "bytes", "bytes a step", "count"]
Verdict = Literal["good", "off", "undecided"]


class Instrument(msgspec.Struct, frozen=True):
    """An instrument that is calibrated.

    Attributes
    ----------
    words
        What it reads.
    floor, share
        The promise: its error is at most ``floor`` or this share of the truth, whichever is larger.
    """

    words: str
    unit: Unit
    floor: float
    share: float = 0.01


MIB = 2**20
_MEMORY = MIB  # the kernel counts pages in batches, for each processor
_TIME = 1e-3  # draining ten batches takes 0.15 ms
INSTRUMENTS: Mapping[str, Instrument] = {
    "epoch_time": Instrument("time of an epoch", "s", _TIME),
    "first_batch_time": Instrument("time to the first batch", "s", _TIME),
    "sample_time": Instrument("time of a sample", "s", 1e-6),
    "cpu_time": Instrument("processor time", "s", _TIME),
    "peak_memory": Instrument("peak memory", "bytes", _MEMORY),
    "peak_memory_tree": Instrument("peak of the process tree", "bytes", _MEMORY),
    "retained_memory": Instrument("retained memory", "bytes", _MEMORY),
    "allocator_held": Instrument("held by malloc", "bytes", _MEMORY),
    # The floor is a quarter of the memory floor, over the 50 steps of a tail. A slope is read from a hundred points.
    "memory_growth": Instrument("growth of memory", "bytes a step", _MEMORY / 4 / 50, 0.05),
    "bodies_in_flight": Instrument("bodies in flight", "count", 0, 0),
    "waiting": Instrument("elements waiting", "count", 0, 0),
    "disk_bytes": Instrument("on disk", "bytes", 0, 0),
}
"""Instruments by metric (``loaders._trial.metrics.Metrics``)."""


STANDS_FOR: Mapping[str, str] = {
    "steady_time": "epoch_time",
    "start_time": "first_batch_time",
    "peak_memory_slow": "peak_memory",
    "needed_memory": "peak_memory",
}
"""Metrics without known values, each with the calibrated metric that uses the same clock or counter."""


class Resolution(msgspec.Struct, frozen=True):
    """The largest difference that may be due to the instrument, at each known truth, smallest truth first."""

    points: list[tuple[float, float]]

    def of(self, value: float) -> float:
        """Return that difference for figures of this size, which must not be negative."""
        below = [point for point in self.points if point[0] <= value]
        above = [point for point in self.points if point[0] > value]
        if not below:
            return above[0][1]
        truth, limit = below[-1]
        if not above:
            return limit * value / truth if truth else limit
        further, there = above[0]
        return limit + (there - limit) * (value - truth) / (further - truth)


class Reading(msgspec.Struct, frozen=True):
    """One known truth, and the trials' readings of it.

    Attributes
    ----------
    truth
        In the instrument's unit.
    measured
        The mean of the trials with its 95 % interval.
    spread
        Standard deviation of single trials; ``None`` for one trial.
    misjudged
        For ``memory_growth``: the wrong verdicts, in words.
    """

    metric: str
    strategy: str
    truth: float
    measured: Estimate
    spread: float | None
    misjudged: str = ""

    @property
    def error(self) -> Estimate:
        """The reading minus the truth."""
        low, high = (None if each is None else each - self.truth for each in (self.measured.low, self.measured.high))
        return Estimate(self.measured.value - self.truth, low, high, self.measured.count)

    @property
    def share(self) -> float | None:
        """The error as a share of the truth; ``None`` where that is zero."""
        return self.error.value / self.truth if self.truth else None

    @property
    def tolerance(self) -> float:
        """The largest error allowed."""
        promised = INSTRUMENTS[self.metric]
        return max(promised.floor, promised.share * self.truth)

    @property
    def verdict(self) -> Verdict:
        """Whether the promise is kept; undecided if the mean error breaks it but its interval does not rule it out."""
        error, tolerance = self.error, self.tolerance
        low, high = (error.value if each is None else each for each in (error.low, error.high))
        if self.misjudged or low > tolerance or high < -tolerance:
            return "off"
        return "good" if abs(error.value) <= tolerance else "undecided"

    def resolution(self, count: int = 1) -> float | None:
        """Return how far two means of ``count`` trials may differ by instrument error alone; ``None`` if unknown."""
        if self.spread is None:
            return None
        trials = self.measured.count
        half = quantile(trials) * self.spread * math.sqrt(1 / trials + 1 / count)
        return math.sqrt(2) * (abs(self.error.value) + half)


class Calibrated(msgspec.Struct, frozen=True):
    """An instrument's readings, smallest truth first."""

    metric: str
    readings: list[Reading]

    @property
    def instrument(self) -> Instrument:
        """The instrument itself."""
        return INSTRUMENTS[self.metric]

    def resolution(self, count: int = 1) -> Resolution | None:
        """Return its resolution for two means of ``count`` trials; ``None`` if no spread is known."""
        known: dict[float, float] = {}
        for each in self.readings:
            if (limit := each.resolution(count)) is not None:
                known[each.truth] = max(limit, known.get(each.truth, 0.0))
        return Resolution(sorted(known.items())) if known else None


class Calibration(msgspec.Struct, frozen=True):
    """The results of a calibrating question's run for the instruments of one machine."""

    question: str
    started: str
    rounds: int
    commit: str
    calibrated: list[Calibrated]

    def resolution(self, metric: str, count: int = 1) -> Resolution | None:
        """Return an instrument's resolution; ``None`` if it was not measured."""
        known = {each.metric: each for each in self.calibrated}
        found = known.get(metric) or known.get(STANDS_FOR.get(metric, metric))
        return found.resolution(count) if found else None

    @property
    def readings(self) -> list[Reading]:
        """The readings of all instruments."""
        return [reading for each in self.calibrated for reading in each.readings]


def calibration(records: Sequence[Record]) -> Calibration:
    """Return the calibration from the records of one run."""
    known = _registry.variants(records[0].question)
    by_strategy: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record.status == "ok" and record.strategy in known:
            by_strategy[record.strategy].append(record)
    calibrated = []
    for metric in INSTRUMENTS:
        readings = [
            reading
            for strategy, trials in by_strategy.items()
            if metric in known[strategy].truth and (reading := _reading(metric, known[strategy], trials))
        ]
        if readings:
            calibrated.append(Calibrated(metric, sorted(readings, key=lambda each: (each.truth, each.strategy))))
    return Calibration(
        question=records[0].question,
        started=min(record.started for record in records),
        rounds=len({record.round for record in records}),
        commit=", ".join(sorted({record.environment.commit[:8] for record in records} - {""})),
        calibrated=calibrated,
    )


def newest(records: Iterable[Record]) -> Calibration | None:
    """Return the newest calibration among one machine's records; runs that did not finish a round are skipped."""
    known = _registry.questions()
    runs: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record.run and record.question in known and known[record.question].calibrates:
            runs[record.run].append(record)
    whole = [run for run in runs.values() if len(run) >= run[0].planned]
    return calibration(max(whole, key=lambda run: run[0].started)) if whole else None


def _reading(metric: str, variant: _registry.Variant, records: Sequence[Record]) -> Reading | None:
    values = [float(value) for record in records if (value := _value(metric, record)) is not None]
    if not values:
        return None
    truth, measured = variant.truth[metric], estimate(values, "linear")
    spread = None
    if len(values) > 1:
        spread = math.sqrt(math.fsum((value - measured.value) ** 2 for value in values) / (len(values) - 1))
    misjudged = _misjudged(truth, records) if metric == "memory_growth" else ""
    return Reading(metric, variant.name, truth, measured, spread, misjudged)


def _value(metric: str, record: Record) -> float | None:
    if metric == "memory_growth":
        growth = record.metrics.memory_growth
        return None if growth is None or growth.verdict == "undecided" else growth.slope
    value: float | None = getattr(record.metrics, metric)
    return value


def _misjudged(truth: float, records: Sequence[Record]) -> str:
    """Say which trials missed a leak or reported a false one; undecided verdicts are neither."""
    verdicts = [record.metrics.memory_growth.verdict for record in records if record.metrics.memory_growth]
    right = ("undecided", *(("growing, in use", "growing") if truth else ("flat", "plateau")))
    wrong = [each for each in verdicts if each not in right]
    return "; ".join(f"{each} in {wrong.count(each)} of {len(verdicts)}" for each in sorted(set(wrong)))
