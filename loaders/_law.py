"""How a strategy's memory depends on the amount of data: level, linear, saturating or unknown. Pure.

A law is derived from the peaks of one run at three or more amounts of data, and says what a larger amount needs. Each
kind must be shown by its 90 % interval, as *no difference* must; anything else is unknown, and gets no figure beyond
what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from loaders._judge import RESOLUTION
from loaders._stats import Estimate, estimate, quantile

Kind = Literal["level", "linear", "saturating", "unknown"]

BOUNDED = ("level", "saturating")
"""The laws of a memory that ends, however much data there is."""

SHARE = 0.05
"""As a share of a peak. A smaller difference changes no reader's choice."""

LISTED = 160
"""In bytes a sample: what a loader that keeps no pixels may hold of each. In some hundred samples the resolution hides
it, and with a million it counts. A path of 90 characters takes 136 in a tensor of strings; its label and its place in
the order of an epoch, or of two, take 8 each. The list of files that it is given is there before, and not in this."""

AMOUNTS = 3
"""With fewer amounts of data, a bend cannot be told from a line."""


class Beyond(msgspec.Struct, frozen=True):
    """The prediction beyond the largest amount, at ``x`` more samples.

    Attributes
    ----------
    value, slope
        In bytes and bytes a sample: the mean at ``x`` is ``value + slope * x``.
    variances
        The variance of the fitted mean, in bytes squared: ``v0 + v1 * x + v2 * x**2``.
    noise
        In bytes: the standard deviation of a single trial.
    quantile
        Student's t.
    bend
        In bytes a sample: how much the slope may differ from that of the step before; of a level, how steep a line may
        be that its resolution hides.
    factor
        The ratio of the largest amount to the one before. A level that was shown over one such step may hide the
        resolution in each further one, as the memory of tuned buffers creeps up logarithmically.
    end
        The number of samples from which memory is level; ``None`` for a line without end.
    """

    value: float
    slope: float
    variances: tuple[float, float, float]
    noise: float
    quantile: float
    bend: float
    factor: float
    end: int | None


class Law(msgspec.Struct, frozen=True):
    """How memory depends on the amount of data.

    Attributes
    ----------
    why
        The reason for ``kind``, in words.
    points
        The memory in bytes at each measured amount in samples.
    per_sample
        In bytes a sample: the slope of the last step, by round.
    capacity
        In samples: the most that all buffers of the strategy hold; 0 if that is not declared.
    beyond
        The prediction for more than was measured; ``None`` if the law is unknown.
    spans
        For each amount, in bytes: the ends of the interval of one further trial, resolution included.
    besides
        In bytes a sample: what each takes besides, which the points leave out because it is known exactly.
    once
        In bytes: what is needed besides, however many samples there are.
    """

    kind: Kind
    why: str
    points: list[tuple[int, Estimate]]
    per_sample: Estimate | None = None
    capacity: int = 0
    beyond: Beyond | None = None
    spans: list[tuple[float, float] | None] = []
    besides: float = 0.0
    once: float = 0.0

    @property
    def is_bounded(self) -> bool:
        """Whether memory ends, however much data there is, but for what is ``LISTED`` of each sample."""
        return self.kind in BOUNDED and not self._may_rise

    @property
    def _may_rise(self) -> bool:
        """Whether it is level, and its resolution hides a line."""
        return self.kind == "level" and self.beyond is not None and self.beyond.bend > 0

    def at(self, samples: int) -> Estimate | None:
        """Return the memory of a further trial with this many samples, in bytes, with its 95 % interval.

        Whoever asks runs one process, and it is that process which must fit.

        Between two amounts the interval spans those of both, because where between them memory rose was not seen.
        ``None`` beyond the measured amounts if the law is unknown.
        """
        found, more = self._measured(samples), self.besides * samples + self.once
        if found is None:
            return None
        low, high = (None if each is None else each + more for each in (found.low, found.high))
        return Estimate(found.value + more, low, high, found.count)

    def _measured(self, samples: int) -> Estimate | None:
        if not self.points:
            return None
        last, reached = self.points[-1]
        if samples > last:
            count = min(reached.count, self.per_sample.count) if self.per_sample else reached.count  # as its interval
            return self._further(self.beyond, samples - last, last, count) if self.beyond else None
        upper = next(index for index, (amount, _) in enumerate(self.points) if amount >= samples)
        amount, above = self.points[upper]
        span = self.spans[upper]
        if amount == samples:
            return Estimate(above.value, span and span[0], span and span[1], above.count)
        if upper == 0:
            return Estimate(above.value, span and 0.0, span and span[1], above.count)
        before, below = self.points[upper - 1]
        value = below.value + (above.value - below.value) * (samples - before) / (amount - before)
        count, under = min(above.count, below.count), self.spans[upper - 1]
        if span is None or under is None:
            return Estimate(value, None, None, count)
        return Estimate(value, min(span[0], under[0]), max(span[1], under[1]), count)

    def _further(self, beyond: Beyond, more: int, last: int, count: int) -> Estimate:
        """Return the prediction for this many samples more than the last amount: never less than that may need."""
        found, span = _predicted(beyond, more, last, count), self.spans[-1]
        is_hidden = not self.besides and self.kind != "linear" and not self._may_rise  # a line has it in its slope
        listed = LISTED * more if is_hidden else 0.0
        high = None if found.high is None else max(found.high + listed, span[1] if span else 0.0)
        return Estimate(found.value, found.low, high, count)


def _predicted(found: Beyond, more: int, last: int, count: int) -> Estimate:
    """Return the prediction for this many samples more than the last amount."""
    x = more if found.end is None else min(more, max(0, found.end - last))
    value = max(0.0, found.value + found.slope * x)
    v0, v1, v2 = found.variances
    noise = found.noise * max(1.0, value / max(found.value, RESOLUTION))
    fitted = max(0.0, v0 + v1 * x + v2 * x * x)
    steps = max(1.0, math.log(1 + more / last) / math.log(found.factor)) if found.slope == 0 else 1.0
    half = found.quantile * math.sqrt(fitted + noise**2) + steps * resolution(value) + found.bend * x
    return Estimate(value, max(0.0, value - half), value + half, count)


def resolution(peak: float) -> float:
    """Return how far two peaks may differ and still agree, in bytes: 1 MiB, or 5 % of the peak if that is more."""
    return max(RESOLUTION, SHARE * abs(peak))


def law(points: Mapping[int, Mapping[int, float]], capacity: int = 0) -> Law:
    """Return the law of memory.

    Parameters
    ----------
    points
        The memory of each round in bytes, for each amount of data in samples; all from one run.
    capacity
        In samples: the most that all buffers of the strategy hold; 0 if that is not declared.
    """
    amounts = sorted(amount for amount, values in points.items() if values and amount > 0)
    shown = [(amount, estimate(list(points[amount].values()), "linear")) for amount in amounts]
    spans = [_span(list(points[amount].values())) for amount in amounts]

    def found(kind: Kind, why: str, beyond: Beyond | None = None, slope: Estimate | None = None) -> Law:
        return Law(kind, why, shown, slope, capacity, beyond, spans)

    if not amounts:
        return found("unknown", "it was not measured")
    more = f"measure with {4 * amounts[-1]} samples too"
    if len(amounts) < AMOUNTS:
        several = "one amount" if len(amounts) == 1 else f"{len(amounts)} amounts"
        return found("unknown", f"measured with only {several} of data; a law needs {AMOUNTS}")
    a, b, c = amounts[-3:]
    rounds = sorted(set(points[a]) & set(points[b]) & set(points[c]))
    first, middle, last = ([points[amount][each] for each in rounds] for amount in (a, b, c))
    if not rounds:
        return found("unknown", "no round covers every amount of data")
    slopes = [(late - early) / (c - b) for late, early in zip(last, middle, strict=True)]
    slope = estimate(slopes, "linear")
    if len(rounds) == 1:
        return found("unknown", "one round does not show how much trials vary; measure two or more", None, slope)
    rises = [late - early for late, early in zip(last, middle, strict=True)]
    low, high = _interval(rises)
    limit = resolution(_mean(last))
    earlier = [(early - earliest) / (b - a) for early, earliest in zip(middle, first, strict=True)]
    bends = [late - early for late, early in zip(slopes, earlier, strict=True)]
    less, greater = _interval(bends)
    if max(abs(low), abs(high)) <= limit:
        # A rise by more than a list takes, that is shown and not to flatten, may go on for ever.
        flat = _level(middle, last, c / b, high / (c - b) if low > LISTED * (c - b) and greater >= 0 else 0.0)
        return found("level", f"{c} samples need as much as {b}, within 1 MiB or 5 %", flat, slope)
    bent = max(abs(less), abs(greater))
    # If the slope is lost in the resolution, nothing counts as linear.
    allowed = max(limit / (c - b), 0.1 * slope.value)
    if slope.value > 0 and bent <= allowed and low > 0:
        end = capacity if capacity > c else None
        line = _line(last, slopes, bent, c / b, end)
        why = f"it rises at the same rate from {a} to {b} and from {b} to {c} samples"
        if end:
            return found("saturating", f"{why}, up to a declared capacity of {capacity} samples", line, slope)
        return found("linear", why, line, slope)
    if capacity and b >= capacity and low > limit:
        why = f"it rises from {b} to {c} samples, beyond its declared capacity of {capacity}; {more}"
        return found("unknown", why, None, slope)
    filled = max(0.0, _interval(earlier)[1]) * (min(capacity, c) - b)
    if capacity > b and low > filled + limit:
        why = f"it rises from {b} to {c} samples by more than its declared capacity of {capacity} explains; {more}"
        return found("unknown", why, None, slope)
    if capacity and b < capacity <= c:
        top = _line(last, [0.0] * len(rounds), 0.0, c / b, c)
        return found("saturating", f"{c} samples exceed its declared capacity of {capacity}", top, slope)
    if capacity > c:
        line = _line(last, [max(0.0, each) for each in slopes], 0.0, c / b, capacity)
        return found("saturating", f"it can rise up to a declared capacity of {capacity} samples", line, slope)
    if high < 0:
        return found("unknown", f"{c} samples need less than {b}, which none of the laws allows; {more}", None, slope)
    if low <= 0 <= high:
        why = f"trials vary too much to tell whether {c} samples need more than {b}; more rounds would decide"
        return found("unknown", why, None, slope)
    if less <= 0 <= greater:
        why = f"trials vary too much to tell whether each sample from {b} to {c} adds as much as one from {a} to {b}"
        return found("unknown", f"{why}; more rounds would decide", None, slope)
    faster = "more" if greater > 0 else "less"
    return found("unknown", f"each sample from {b} to {c} adds {faster} than one from {a} to {b}; {more}", None, slope)


def _level(middle: Sequence[float], last: Sequence[float], factor: float, hidden: float) -> Beyond:
    """Return the prediction for level memory: the mean of the last two amounts, with the noise of both.

    ``hidden`` are the bytes a sample of a line that the resolution hides, and that no bend speaks against.
    """
    rounds = len(last)
    level = [(early + late) / 2 for early, late in zip(middle, last, strict=True)]
    squares = sum((each - _mean(values)) ** 2 for values in (middle, last) for each in values)
    noise = math.sqrt(squares / (2 * (rounds - 1)))
    return Beyond(
        value=_mean(level),
        slope=0.0,
        variances=(max(_covariance(level, level), noise**2 / 2) / rounds, 0.0, 0.0),
        noise=noise,
        quantile=quantile(2 * rounds - 1),
        bend=hidden,
        factor=factor,
        end=None,
    )


def _line(last: Sequence[float], slopes: Sequence[float], bend: float, factor: float, end: int | None) -> Beyond:
    """Return the prediction for a line through the last amount; the slopes are by round, like the peaks."""
    rounds = len(last)
    return Beyond(
        value=_mean(last),
        slope=_mean(slopes),
        variances=(
            _covariance(last, last) / rounds,
            2 * _covariance(last, slopes) / rounds,
            _covariance(slopes, slopes) / rounds,
        ),
        noise=math.sqrt(_covariance(last, last)),
        quantile=quantile(rounds),
        bend=bend,
        factor=factor,
        end=end,
    )


def _span(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the interval of one further trial, resolution included; ``None`` for a single trial."""
    if len(values) < 2:
        return None
    mean = _mean(values)
    variance = _covariance(values, values)
    half = quantile(len(values)) * math.sqrt(variance / len(values) + variance) + resolution(mean)
    return max(0.0, mean - half), mean + half


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean's 90 % interval, by Student's t; if it lies within a margin, so does the mean, beyond doubt."""
    from scipy.special import stdtrit

    half = float(stdtrit(len(values) - 1, 0.95)) * math.sqrt(_covariance(values, values) / len(values))
    return _mean(values) - half, _mean(values) + half


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _covariance(one: Sequence[float], other: Sequence[float]) -> float:
    first, second = _mean(one), _mean(other)
    return math.fsum((x - first) * (y - second) for x, y in zip(one, other, strict=True)) / (len(one) - 1)
