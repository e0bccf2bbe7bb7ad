"""Judge whether two strategies differ: samples by round in; a ratio, its interval and a verdict out. Pure.

The page, README, terminal, claims, recommendation and ``check`` all use it, so no figure is judged in two ways.

Within a case, the logarithm of a figure is modelled as the strategy's effect plus the round's, because the machine
drifts. The residuals give the strategy's spread. A few rounds say little about the spread of one strategy, but the
others of its case add information, so each variance is moderated: raised towards the pooled variance of the case, to
the extent that the case's variances are alike (Smyth 2004, https://doi.org/10.2202/1544-6115.1027).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from loaders._stats import SHORTEST, Estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

Verdict = Literal["less", "more", "no difference", "undecided"]

CONFIDENCE, ALIKE = 0.95, 0.90
"""Confidence of the interval that must exclude 1, and of the one that must lie within the margin (two one-sided tests
at 5 %)."""

BEST = 0.97
"""Confidence of the best set's quantile. At 95 % the true best stayed in the set in 94 % of simulated runs: trials have
tails, and their spreads differ more than the prior expects."""

RESOLUTION = 2**20
"""In bytes. Smaller memory differences are not resolved: the instrument is accurate to 1 MiB, or to what a calibration
shows, if that is worse."""

TIME_MARGIN, MEMORY_SHARE = 1.10, 1.05
"""Factors within which the page says "no difference": of times, and of memory (see ``margin_of``)."""

MOST_ROUNDS = 1000
"""No advice asks for more rounds than this: nobody would run them."""

MOST_ERRORS = 1e6
"""In standard errors: a quantile beyond this counts as out of reach, as happens with half a degree of freedom."""

LEAST_SPREAD = 1e-4
"""Smallest standard deviation of a logarithm: 0.01 %. Equal samples, as memory counters give, do not prove a spread of
zero."""

LEAST_DEGREES = 0.25
"""In residual degrees of freedom: a strategy with fewer has its rounds almost to itself, and they say nothing about its
spread."""

USUAL_DEGREES = 4.0
"""Degrees of freedom of the prior (how alike the variances are) for a case with too few strategies to tell. About the
median of the published cases."""

USUAL_WEIGHT = 4.0
"""Weight of ``USUAL_DEGREES``, counted in strategies; a case with 27 of them speaks for itself."""


class Difference(msgspec.Struct, frozen=True):
    """The difference of two logarithms, one minus other, with its standard error and degrees of freedom.

    The error is infinite if the case has a single round, which shows no spread. A strategy with one round in a case
    that has more is given the spread that is usual in that case.
    """

    value: float
    error: float
    degrees: float
    rounds: int

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the ratio's interval; from 0 to infinity if the error is unknown."""
        low, high = self.bounds(confidence)
        return _exp(low), _exp(high)

    def bounds(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval of the difference itself."""
        if math.isinf(self.error):
            return -math.inf, math.inf
        half = _t(self.degrees, 0.5 + confidence / 2) * self.error
        return self.value - half, self.value + half

    def p_below(self, bound: float = 1.0) -> float:
        """Return the one-sided p-value against "the ratio is ``bound`` or more": small if it is clearly below."""
        return self._p(self.value - math.log(bound))

    def p_above(self, bound: float = 1.0) -> float:
        """Return the one-sided p-value against "the ratio is ``bound`` or less": small if it is clearly above."""
        return self._p(math.log(bound) - self.value)

    def _p(self, distance: float) -> float:
        from scipy.special import stdtr

        return 1.0 if math.isinf(self.error) else float(stdtr(self.degrees, distance / self.error))


class Judged(msgspec.Struct, frozen=True):
    """A verdict on a ratio.

    Attributes
    ----------
    ratio
        The ratio with its 95 % interval (or one of the requested confidence); no interval if the case has a single
        round.
    small
        The verdict is less or more, but the whole interval lies within the margin: too small a difference to matter.
    rounds
        If undecided, the total number of rounds that would decide at this estimate and spread. ``None`` if that is
        unknown or more than ``MOST_ROUNDS``.
    """

    verdict: Verdict
    ratio: Estimate
    small: bool = False
    rounds: int | None = None


def judge(
    difference: Difference,
    *,
    margin: float,
    beyond: float = 1.0,
    confidence: float = CONFIDENCE,
    alike: float = ALIKE,
) -> Judged:
    """Return the verdict on a difference.

    Parameters
    ----------
    margin
        A factor above 1. The verdict is no difference if the whole interval of confidence ``alike`` lies within it.
    beyond
        The verdict is less or more if the whole interval of ``confidence`` lies beyond this factor.
    """
    ratio = Estimate(_exp(difference.value), None, None, difference.rounds)
    if math.isinf(difference.error):
        return Judged("undecided", ratio)
    low, high = difference.interval(confidence)
    ratio = msgspec.structs.replace(ratio, low=low, high=high)
    verdict, rounds = decide(
        difference, within=math.log(margin), beyond=math.log(beyond), confidence=confidence, alike=alike
    )
    is_small = verdict in ("less", "more") and 1 / margin < low and high < margin
    return Judged(verdict, ratio, is_small, rounds)


def decide(
    difference: Difference, *, within: float, beyond: float, confidence: float, alike: float
) -> tuple[Verdict, int | None]:
    """Return the verdict and, if undecided, the rounds that would decide; bounds are on the scale of the difference.

    ``judge`` works in logarithms; ``check`` and its proof of forks work in bytes for memory.
    """

    def verdict(each: Difference) -> Verdict:
        return verdict_of(each, within=within, beyond=beyond, confidence=confidence, alike=alike)

    found = verdict(difference)
    if found != "undecided":
        return found, None
    return found, rounds_until(difference, lambda each: verdict(each) != "undecided")


def verdict_of(difference: Difference, *, within: float, beyond: float, confidence: float, alike: float) -> Verdict:
    """Return the verdict alone, as ``decide`` does."""
    low, high = difference.bounds(confidence)
    if high < -beyond:
        return "less"
    if low > beyond:
        return "more"
    low, high = difference.bounds(alike)
    return "no difference" if -within < low and high < within else "undecided"


def rounds_until(difference: Difference, decides: Callable[[Difference], bool]) -> int | None:
    """Return how many rounds in all would decide at this estimate and spread; ``None`` if ``MOST_ROUNDS`` would not."""

    def then(rounds: int) -> Difference:
        """Predict more rounds: the error falls with the root of their number, the degrees grow with it."""
        grown = (rounds - 1) / (difference.rounds - 1) if difference.rounds > 1 else 1.0
        error = difference.error * math.sqrt(difference.rounds / rounds)
        return Difference(difference.value, error, difference.degrees * grown, rounds)

    if not decides(then(MOST_ROUNDS)):
        return None
    low, high = difference.rounds, MOST_ROUNDS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(then(middle)) else (middle, high)
    return high


@dataclass(frozen=True)
class Best:
    """The strategies of a case that are not shown to be slower than any other, fastest first.

    ``ratios`` holds each strategy's ratio to the fastest, with an interval that is not corrected for having picked the
    fastest; the fastest's own ratio is exactly 1. A strategy that shares no round with the fastest has no ratio.
    """

    fastest: str
    names: list[str]
    ratios: dict[str, Judged]


@dataclass(frozen=True)
class Fitted:
    """One figure of one case: each strategy's logarithms by round, and its moderated variance."""

    strategies: list[str]
    _logs: dict[str, dict[int, float]]
    _effects: dict[str, float]
    _variances: dict[str, float]
    _degrees: dict[str, float]
    _most_degrees: float

    def difference(self, one: str, other: str) -> Difference | None:
        """Return one minus other, paired by round; ``None`` without a common round or for an unknown name."""
        ones, others = self._logs.get(one), self._logs.get(other)
        if ones is None or others is None:
            return None
        common = sorted(ones.keys() & others.keys())
        if not common:
            return None
        value = math.fsum(ones[each] - others[each] for each in common) / len(common)
        if not self._most_degrees:
            return Difference(value, math.inf, 0.0, len(common))
        variances = self._variances[one], self._variances[other]
        total = sum(variances)
        # Satterthwaite's degrees of freedom of a sum of variances.
        parts = variances[0] ** 2 / self._degrees[one] + variances[1] ** 2 / self._degrees[other]
        return Difference(value, math.sqrt(total / len(common)), min(total**2 / parts, self._most_degrees), len(common))

    def effect(self, name: str) -> float | None:
        """Return a strategy's logarithm as fitted, which ``by_speed`` ranks by; ``None`` without a sample."""
        return self._effects.get(name)

    def compare(self, one: str, other: str, *, margin: float, picked_from: int = 1) -> Judged | None:
        """Judge the ratio of one to the other; ``None`` without a common round.

        ``picked_from`` is the number of pairs that could have been compared instead, had they come out as these two
        did: the intervals then hold for all of them at once (Bonferroni).
        """
        difference = self.difference(one, other)
        if difference is None:
            return None
        confidence, alike = (1 - (1 - each) / picked_from for each in (CONFIDENCE, ALIKE))
        return judge(difference, margin=margin, confidence=confidence, alike=alike)

    def best(self, among: Collection[str] | None = None) -> Best:
        """Return the best set, which holds the true best with a probability of 95 %.

        Hsu's comparisons with the best (1981, https://doi.org/10.1214/aos/1176345597): a strategy leaves the set when
        it is shown to be slower than some other one, using Dunnett's one-sided quantile for as many comparisons as
        there are other strategies.

        Raises
        ------
        ValueError
            If none of the strategies has a sample.
        """
        names = self.by_speed(among)
        fastest = names[0]
        found = {each: self.compare(each, fastest, margin=TIME_MARGIN) for each in names if each != fastest}
        rounds = len(self._logs[fastest])
        itself = Judged("no difference", Estimate(1.0, 1.0, 1.0, rounds))
        ratios = {fastest: itself, **{each: judged for each, judged in found.items() if judged}}
        return Best(fastest, self.best_names(names), ratios)

    def best_names(self, among: Collection[str] | None = None) -> list[str]:
        """Return the names of the best set, the fastest first, as ``best`` has them; ratios take as long again."""
        names = self.by_speed(among)
        return [each for each in names if not any(self._is_slower(each, other, len(names)) for other in names)]

    def by_speed(self, among: Collection[str] | None = None) -> list[str]:
        """Return the strategies by their effects, the fastest first; ``ValueError`` if none has a sample."""
        names = [each for each in self.strategies if among is None or each in among]
        if not names:
            raise ValueError("no strategy has a sample")
        return sorted(names, key=lambda each: (self._effects[each], each))

    def _is_slower(self, one: str, other: str, count: int) -> bool:
        if self._effects[one] <= self._effects[other]:
            return False
        difference = self.difference(one, other)
        if difference is None or math.isinf(difference.error):
            return False
        return difference.value / difference.error > dunnett(count - 1, difference.degrees)


def fitted(samples: Mapping[str, Mapping[int, float]], floor: float = 0.0) -> Fitted:
    """Fit the effects of strategies and rounds, and the moderated variances.

    Parameters
    ----------
    samples
        Values by round for every strategy. Strategies without values, and values too small to be a measurement, are
        left out.
    floor
        Smaller values are raised to it: below the instrument's resolution there is only noise.
    """
    logs = {
        name: {index: math.log(max(value, floor)) for index, value in values.items() if max(value, floor) >= SHORTEST}
        for name, values in samples.items()
    }
    logs = {name: values for name, values in logs.items() if values}
    names = list(logs)
    effects, squares, degrees = _residuals(logs)
    total = math.fsum(degrees)
    if total < LEAST_DEGREES:
        variances, own, total = [math.inf] * len(names), degrees, 0.0
    else:
        variances, own = moderate(squares, degrees, total)
    return Fitted(
        names,
        logs,
        dict(zip(names, effects, strict=True)),
        dict(zip(names, variances, strict=True)),
        dict(zip(names, own, strict=True)),
        total,
    )


def _residuals(logs: Mapping[str, Mapping[int, float]]) -> tuple[list[float], list[float], list[float]]:
    """Return each strategy's effect, its sum of squared residuals, and its share of their degrees of freedom."""
    import numpy as np

    names = list(logs)
    rounds = sorted({index for values in logs.values() for index in values})
    if not names:
        return [], [], []
    table = np.array([[logs[name].get(index, math.nan) for index in rounds] for name in names])
    there = ~np.isnan(table)
    if there.all():
        effects = table.mean(axis=1)
        left = table - effects[:, None] - table.mean(axis=0) + table.mean()
        share = (1 - 1 / len(names)) * (len(rounds) - 1)
        return effects.tolist(), (left**2).sum(axis=1).tolist(), [share] * len(names)
    design, inverse, degrees = _design(there.tobytes(), there.shape)
    solution = inverse @ table[there]
    left = table[there] - design @ solution
    effects = solution[: len(names)] + solution[len(names) :].mean()
    squares = np.bincount(np.nonzero(there)[0], left**2, len(names))
    return effects.tolist(), squares.tolist(), degrees.tolist()


@lru_cache(maxsize=64)
def _design(there: bytes, shape: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the design of a table with gaps, its inverse, and the degrees of freedom of each strategy's residuals.

    They follow from where the gaps are: a page's chooser fits thousands of tables that have the same ones.
    """
    import numpy as np

    rows, columns = np.nonzero(np.frombuffer(there, bool).reshape(shape))
    design = np.zeros((len(rows), sum(shape)))
    design[np.arange(len(rows)), rows] = 1
    design[np.arange(len(rows)), shape[0] + columns] = 1
    inverse = np.linalg.pinv(design)
    leverage = np.einsum("ij,ji->i", design, inverse)
    return design, inverse, np.bincount(rows, np.clip(1 - leverage, 0, 1), shape[0])


def moderate(squares: Sequence[float], degrees: Sequence[float], total: float) -> tuple[list[float], list[float]]:
    """Return each strategy's variance, raised towards the pooled one but never lowered, and its degrees of freedom.

    The prior is a scaled inverse chi-squared, fitted to the logarithms of the variances by their moments. Lowering the
    variance of a strategy that is noisier than its case costs more than it gains: a noisy best would leave its set.
    """
    import numpy as np
    from scipy.special import digamma, polygamma

    least = LEAST_SPREAD**2
    freedom, sums = np.array(degrees), np.array(squares)
    known = freedom >= min(LEAST_DEGREES, freedom.max())
    count = int(known.sum())
    own = np.full(len(sums), least)
    own[known] = np.maximum(sums[known] / freedom[known], least)
    # Two strategies share one variance, with the degrees of both.
    halves = np.minimum(freedom[known] * count / max(count - 1, 1), total) / 2
    logs = np.log(own[known]) - digamma(halves) + np.log(halves)
    beyond_chance = float(logs.var(ddof=1) - polygamma(1, halves).mean()) if count > 1 else 0.0
    usual = float(polygamma(1, USUAL_DEGREES / 2))
    spread = (max(beyond_chance, 0.0) * (count - 1) + usual * USUAL_WEIGHT) / (count - 1 + USUAL_WEIGHT)
    prior = 2 * _trigamma_inverse(spread)
    level = max(math.exp(float(logs.mean()) + float(digamma(prior / 2)) - math.log(prior / 2)), least)
    shrunk = (prior * level + np.where(known, freedom * own, 0.0)) / (prior + np.where(known, freedom, 0.0))
    shrunk[known] = np.maximum(shrunk[known], _unmixed(own[known]))
    return shrunk.tolist(), np.minimum(prior + np.where(known, freedom, 0.0), total).tolist()


def _unmixed(variances: NDArray[Any]) -> NDArray[Any]:
    """Return variances without the others' share: the round's effect that was subtracted holds their noise too."""
    count = len(variances)
    if count <= 2:
        return variances
    return (variances * (1 - 1 / count) - variances.mean() / count) / (1 - 2 / count)


def _trigamma_inverse(value: float) -> float:
    """Solve ``trigamma(x) = value`` for a positive value by Newton's method on 1/trigamma, which is nearly linear."""
    from scipy.special import polygamma

    x = 0.5 + 1 / value
    for _ in range(50):
        slope = float(polygamma(2, x))
        now = float(polygamma(1, x))
        step = now * (1 - now / value) / slope
        x += step
        if abs(step) < 1e-9 * x:
            break
    return x


def dunnett(comparisons: int, degrees: float, confidence: float = BEST) -> float:
    """Return Dunnett's one-sided quantile: that of the largest of several t values that share the compared strategy.

    Dunnett's original assumes one variance for all. Here every strategy has its own, with half the degrees of freedom
    each, which makes the largest t larger: 3.3 instead of 3.1 for 14 comparisons at 8 degrees. Degrees are rounded down
    to the next of twenty steps a decade, so the quantile is exact or slightly too large.
    """
    step = math.floor(20 * math.log10(min(max(degrees, 0.5), 1e4)) + 1e-9)
    return _dunnett(comparisons, 10 ** (step / 20), confidence)


@lru_cache(maxsize=4096)
def _dunnett(comparisons: int, degrees: float, confidence: float) -> float:
    import numpy as np
    from scipy.optimize import brentq
    from scipy.special import gammaincinv, ndtr

    if comparisons < 1:
        return 0.0
    points, weights = np.polynomial.hermite_e.hermegauss(24)
    weights = weights / weights.sum()
    shares, share_weights = np.polynomial.legendre.leggauss(20)
    variances = gammaincinv(degrees / 4, (shares + 1) / 2) / (degrees / 4)
    errors = np.sqrt(variances[:, None] + variances)  # rows: the compared strategy; columns: each other one

    def excess(quantile: float) -> float:
        inner = ndtr(quantile * errors[:, :, None] + points)
        one = np.einsum("j,ijz->iz", share_weights / 2, inner)
        return float(share_weights @ (one**comparisons @ weights)) / 2 - confidence

    high = 1.0
    while excess(high) < 0 and high < MOST_ERRORS:
        high *= 2
    return high if excess(high) < 0 else float(brentq(excess, 0, high, rtol=1e-6))


def holm(p_values: Sequence[float], alpha: float = 0.05) -> list[bool]:
    """Return which hypotheses are rejected, with a chance of ``alpha`` of any false rejection (Holm 1979)."""
    rejected = [False] * len(p_values)
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] > alpha / (len(p_values) - rank):
            break
        rejected[index] = True
    return rejected


def margin_of(peak: float, resolution: float = RESOLUTION) -> float:
    """Return the margin of a memory figure, as a factor: the instrument's resolution or 5 %, whichever is larger."""
    return max(MEMORY_SHARE, 1 + resolution / max(peak, resolution))


def _t(degrees: float, share: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, share))


def _exp(value: float) -> float:
    """Return e to the power of ``value``; infinity if a float cannot hold it."""
    return math.exp(value) if value < 709 else math.inf
