"""What strategies of one case are against each other: ratios, the best, what a conversion saves. Pure."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from loaders import _registry
from loaders._judge import RESOLUTION, TIME_MARGIN, Best, Fitted, Judged, fitted, margin_of
from loaders._resolution import Calibration, Resolution
from loaders._rows.figures import by_round, parts_of, row_of, total
from loaders._rows.values import Row
from loaders._stats import SHORTEST, Estimate, estimate
from loaders._trial.record import Record


class Case:
    """The records of one case, and what they say about each strategy compared with the others."""

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
        self.paired = _started_alike(records, baseline)
        self.usual = _samples_of(records, baseline)
        # What delivers another number of samples does other work: its times are held against none.
        alike = [each for each in self.paired if not self.usual or each.metrics.samples in (None, self.usual)]
        names = sorted({each.strategy for each in records})
        self.times = {name: by_round(alike, name, ranked_by) for name in names}
        self.peaks = {name: by_round(self.paired, name, "peak_memory") for name in names}
        self.parts = {name: parts_of(alike, name) for name in names}
        self.time_fit = fitted(_long_enough(self.times))
        self.peak_fit = fitted(self.peaks, floor=RESOLUTION)
        totals = {name: {index: total(each) for index, each in of.items()} for name, of in self.parts.items()}
        self.totals = _long_enough(totals)
        self.total_fit = fitted(self.totals)
        self.best = self._with_unresolved(self._best(self.time_fit))
        self.best_total = self._best(self.total_fit)

    def _best(self, fit: Fitted, among: Iterable[str] | None = None) -> Best | None:
        """Return the best of the strategies a reader may choose, or of all if there are no others.

        What failed in any of its trials may not be chosen, however fast it was in the others.
        """
        timed = set(fit.strategies if among is None else among)
        failed = {each.strategy for each in self.records if each.went_wrong}
        loaders = {name for name in timed if not self._is(name, "is_apart")}
        return fit.best(loaders - failed or loaders or timed) if timed else None

    def _with_unresolved(self, best: Best | None) -> Best | None:
        """Return the best set with those that are slower by less than the clock can resolve, in the order of times."""
        if best is None or self.calibration is None:
            return best
        ratios = {name: self._time(name, best.fastest) for name in best.ratios if name not in best.names}
        unresolved = [name for name, each in ratios.items() if each and not each.ratio.resolved]
        return dataclasses.replace(best, names=best.names + unresolved)

    def _is(self, name: str, what: str) -> bool:
        return name in self.known and bool(getattr(self.known[name], what))

    def row(self, name: str) -> Row:
        """Return a strategy's row."""
        variant = self.known.get(name)
        own = [record for record in self.records if record.strategy == name]
        row = row_of(own, variant, self.ranked_by, is_baseline=name == self.baseline)
        matched = variant.matches if variant and variant.matches in self.times else None
        p_values: dict[str, float] = {}
        if name != self.baseline:
            _note(p_values, "ratio", self.time_fit, name, self.baseline)
            _note(p_values, "peak_ratio", self.peak_fit, name, self.baseline)
        if matched:
            _note(p_values, "pair", self.time_fit, name, matched)
        further = {
            "total": estimate(list(self.totals[name].values()), "ratio") if self.totals.get(name) else None,
            "saved": self._saved(name),
        }
        is_other = bool(self.usual and row.delivered and row.delivered != self.usual)
        return msgspec.structs.replace(
            row,
            instead_of=self.usual if is_other else None,
            times=self.times[name],
            peaks=self.peaks[name],
            needs=by_round(self.paired, name, "needed_memory"),
            cpus=by_round(self.paired, name, "cpu_time"),
            parts=self.parts[name],
            figures={**row.figures, **{figure: each for figure, each in further.items() if each}},
            ratio=None if name == self.baseline else self._time(name, self.baseline),
            pair=self._time(name, matched) if matched else None,
            best=self._to_best(name),
            in_best=bool(self.best and name in self.best.names),
            total_best=self._total(name),
            in_best_total=bool(self.best_total and name in self.best_total.names),
            peak_ratio=None if name == self.baseline else self._memory(name, self.baseline),
            p_values=p_values,
            spread=_spread(time=self.time_fit, memory=self.peak_fit, name=name),
            effect=self.time_fit.effect(name),
        )

    def _saved(self, name: str) -> Estimate | None:
        """Return the seconds per epoch that a conversion saves over the baseline, or the fastest without one."""
        if not self._is(name, "convert"):
            return None
        without = [each for each in self.time_fit.strategies if each in self.known and not self._is(each, "convert")]
        best = self._best(self.time_fit, without)
        if best is None:
            return None
        other = self.baseline if self.baseline in without else best.fastest
        one, rounds = self.times[other], sorted(self.times[other].keys() & self.times[name].keys())
        return estimate([one[each] - self.times[name][each] for each in rounds], "linear") if rounds else None

    def _time(self, one: str, other: str) -> Judged | None:
        """Judge two strategies' times; a difference that the instrument cannot resolve is undecided."""
        found = self.time_fit.compare(one, other, margin=TIME_MARGIN)
        if found is None or self.calibration is None:
            return found
        trials = min(len(self.times[one]), len(self.times[other]))
        resolution = self.calibration.resolution(self.ranked_by, trials)
        return _resolved(found, _mean(self.times[one]), _mean(self.times[other]), resolution)

    def _to_best(self, name: str) -> Judged | None:
        if self.best is None or name == self.best.fastest:
            return None
        return self._time(name, self.best.fastest) or _unpaired(self.time_fit, name, self.best.fastest)

    def _total(self, name: str) -> Judged | None:
        if self.best_total is None or name == self.best_total.fastest:
            return None
        found = self.total_fit.compare(name, self.best_total.fastest, margin=TIME_MARGIN)
        return found or _unpaired(self.total_fit, name, self.best_total.fastest)

    def _memory(self, one: str, other: str) -> Judged | None:
        """Judge two strategies' peaks; ``None`` if their ratio would be noise."""
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
        return None if min(peaks) < smallest else found  # the difference is real, but the ratio is noise


def _samples_of(records: Sequence[Record], name: str) -> int | None:
    """Return the number of samples in an epoch of a strategy; ``None`` if that is not known."""
    good = (each.metrics.samples for each in records if each.strategy == name and each.status == "ok")
    return next(filter(None, good), None)


def _started_alike(records: Sequence[Record], baseline: str) -> list[Record]:
    """Return the records that may be paired: no ratio joins a trial in a fresh process and one in a fork.

    All trials of a round start alike. One that does not, as where a comparison went on in another way, is left out: it
    is held against the baseline of its round or, if that has none, against most of the round.
    """
    good = [record for record in records if record.status == "ok"]
    ways: dict[int, str] = {}
    for index in {record.round for record in good}:
        of_round = [record for record in good if record.round == index]
        first = [record for record in of_round if record.strategy == baseline] or of_round
        ways[index] = Counter(record.process for record in first).most_common(1)[0][0]
    return [record for record in good if record.process == ways[record.round]]


def _unpaired(fit: Fitted, one: str, other: str) -> Judged | None:
    """Return a judgement that rests on no round: the two were measured, but never in the same round."""
    if one not in fit.strategies:
        return None
    return Judged("undecided", Estimate(math.exp(fit._effects[one] - fit._effects[other]), None, None, 0))


def _spread(time: Fitted, memory: Fitted, name: str) -> dict[str, tuple[float, float, float]]:
    fits = {"time": time, "memory": memory}
    return {
        figure: (fit._variances[name], fit._degrees[name], fit._most_degrees)
        for figure, fit in fits.items()
        if name in fit.strategies and fit._most_degrees
    }


def _note(p_values: dict[str, float], name: str, fit: Fitted, one: str, other: str) -> None:
    """Note the two-sided p-value of two strategies' difference; a single round shows nothing."""
    difference = fit.difference(one, other)
    if difference is not None and difference.rounds > 1:
        p_values[name] = min(1.0, 2 * min(difference.p_below(), difference.p_above()))


def _resolved(judged: Judged, one: float, other: float, resolution: Resolution | None) -> Judged:
    """Return a judgement, without a direction if the two figures differ by less than can be resolved."""
    if resolution is None or abs(one - other) >= resolution.of(max(one, other)):
        return judged
    return _unresolved(judged)


def _unresolved(judged: Judged) -> Judged:
    """Return a judgement without a direction: its instrument could show such a difference where none exists."""
    if judged.verdict not in ("less", "more") and judged.ratio.low is not None:  # of one sample, its value has one
        return judged
    ratio = msgspec.structs.replace(judged.ratio, resolved=False)
    return Judged("undecided", ratio)


def _mean(values: Mapping[int, float]) -> float:
    return sum(values.values()) / len(values) if values else 0.0


def _long_enough(times: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, float]]:
    """Return the times that are long enough for the clock to measure."""
    return {
        name: {index: value for index, value in of.items() if value >= SHORTEST}
        for name, of in times.items()
        if any(value >= SHORTEST for value in of.values())
    }
