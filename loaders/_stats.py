"""Estimates and ratios with their intervals: pure arithmetic over samples.

Each sample is one trial in its own process, so samples are independent. Durations and ratios vary in proportion to
their size, so their interval is Student's t over logarithms; bytes vary additively.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

CONFIDENCE = 0.95

SHORTEST = 1e-12
"""In seconds, or samples a second: a smaller value is no measurement, and its logarithm's interval is unbounded."""

Scale = Literal["ratio", "linear"]


class Estimate(msgspec.Struct, frozen=True):
    """A mean (geometric on the ratio scale) with its 95 % interval; a single sample has no interval.

    ``resolved`` is false for a ratio of two figures that differ by less than the instrument can resolve.
    """

    value: float
    low: float | None
    high: float | None
    count: int
    resolved: bool = True

    def scaled(self, by: float) -> Estimate:
        """Return it in another unit: so many times as large."""
        low, high = (None if bound is None else bound * by for bound in (self.low, self.high))
        return Estimate(self.value * by, low, high, self.count, self.resolved)


def estimate(values: Sequence[float], scale: Scale) -> Estimate:
    """Return the mean of independent samples with Student's t interval.

    Raises
    ------
    ValueError
        Without samples, or if one is not positive on the ratio scale.
    """
    if not values:
        raise ValueError("no samples")
    if scale == "ratio" and min(values) <= 0:
        raise ValueError("a sample on the ratio scale must be positive")
    points = [math.log(value) for value in values] if scale == "ratio" else list(values)
    back = math.exp if scale == "ratio" else float
    count = len(points)
    mean = math.fsum(points) / count
    if count == 1:
        return Estimate(back(mean), None, None, 1)
    variance = math.fsum((point - mean) ** 2 for point in points) / (count - 1)
    half = quantile(count) * math.sqrt(variance / count)
    return Estimate(back(mean), back(mean - half), back(mean + half), count)


@functools.cache
def quantile(count: int) -> float:
    """Return Student's t for the 95 % interval of a mean of this many samples, at least two."""
    from scipy.special import stdtrit  # a tenth of the import time of scipy.stats

    return float(stdtrit(count - 1, 0.5 + CONFIDENCE / 2))


def paired_ratio(values: Mapping[int, float], reference: Mapping[int, float]) -> Estimate | None:
    """Return the ratio of two strategies, paired by round so that the machine's drift cancels.

    Parameters
    ----------
    values, reference
        Samples by round. Rounds that only one of them has are left out, and so are values below ``SHORTEST``.

    Returns
    -------
    The ratio; ``None`` without a common round.
    """
    ratios = [
        values[index] / reference[index]
        for index in sorted(values.keys() & reference.keys())
        if values[index] >= SHORTEST and reference[index] >= SHORTEST
    ]
    return estimate(ratios, "ratio") if ratios else None


def ratio_of(one: Estimate | None, other: Estimate | None) -> Estimate | None:
    """Return the ratio of two estimates, from the ends of both intervals: wider than a paired one, never narrower.

    ``None`` if one is missing or the divisor is not positive; the upper end is infinite if the divisor's interval
    reaches zero.
    """
    if one is None or other is None or other.value <= 0:
        return None
    count = min(one.count, other.count)
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return Estimate(one.value / other.value, None, None, count)
    high = one.high / other.low if other.low > 0 else math.inf
    return Estimate(one.value / other.value, one.low / other.high, high, count)
