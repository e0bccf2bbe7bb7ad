"""From blocks of interleaved trials to a verdict with its interval. Pure.

A block is four trials, A B B A, or one of each side whose epochs alternate so; either way an even drift affects both
sides alike. Its outcome is one number, the difference of the sides' means (of logarithms for times), and blocks are
independent of each other. The mean over blocks is trimmed, because one trial in a few dozen takes several times as
long as the others, for reasons of the machine; its interval is Yuen's (1974), which for up to four blocks is Student's.

The verdict comes from the project's one judge (``loaders._judge``), with the check's own margins and confidence. It is
asked for again as blocks come in, for several strategies, for two figures each and for how often each fails. All these
questions share ``FAMILY`` (Bonferroni), so a check of a change that changes nothing seldom reports a difference. "No
difference" is no alarm: each such verdict has a chance of error of its own (``MISSED``), which only its looks share, as
far as their blocks are not the same (``ALIKE_LEVEL``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from loaders._judge import RESOLUTION, Difference, moderate, verdict_of
from loaders._stats import Estimate

Verdict = Literal["slower", "faster", "fatter", "leaner", "no difference", "undecided"]
Figure = Literal["time", "memory"]

FAMILY = 0.05
"""The chance that a check in which nothing differs reports any difference, margins not counted."""

MISSED = 0.05
"""The chance that a strategy which differs by the margin of "no difference" is said not to differ, for each figure."""

LOOKS = (4, 6, 8, 11, 15, 20, 27, 36, 48)
"""The numbers of blocks after which a verdict on a figure is due. It never rests on more than the last one."""

EVERY_LOOK = (*LOOKS, 66, 96)
"""Those after which it is due how often a strategy fails."""

MOST_TRIALS = EVERY_LOOK[-1]
"""The most trials that a check runs on a side of one strategy: they tell failures in 20 % of trials from none. They are
48 blocks of four trials, and twice as many where a block is a trial of each side."""

ALIKE_LEVEL = 0.009
"""The level, at each look, of the two one-sided tests that together say "no difference".

The looks of one strategy share ``MISSED``. Bonferroni would give each a ninth of it, 0.0056; but a look has most of its
blocks from the one before, so the chance that any of them errs grows more slowly. For sums of independent normal steps
(Jennison and Turnbull 2000, sections 2.3 and 4.4) 0.011 would do. The judge's interval errs more often than that where
blocks spread widely: at 0.011 it missed 5.3 to 6.4 % of strategies whose trials spread by 6 %, at 0.009 no more than
5 %. ``make evidence`` counts it with the noise of published trials."""

UNFAILING = 15
"""After this many trials of a side, a strategy that has not failed more often counts as not failing more often: of
strategies that fail in 20 % of trials, 96 % have shown it by then."""

WORDS: dict[Figure, dict[str, Verdict]] = {
    "time": {"more": "slower", "less": "faster"},
    "memory": {"more": "fatter", "less": "leaner"},
}

TRIMMED = 0.2
"""The share of blocks at either end that the mean leaves out, as Yuen and Wilcox recommend."""

EFFICIENCY = 1.06
"""The error of a mean that leaves out a fifth at either end, over that of the plain mean, for normal noise (Wilcox)."""

TIME_MARGIN, TIME_ALIKE = 1.02, 1.05
"""Factors. A change is confirmed if its whole interval lies beyond the first, and there is no difference if the whole
interval lies within the second."""

MEMORY_MARGIN, MEMORY_ALIKE = RESOLUTION, 2 * RESOLUTION
"""The same in bytes; for the second, a share of the peak (``TIME_ALIKE``) if that is more."""


class Block(msgspec.Struct, frozen=True):
    """One figure from one or two trials of each side."""

    a: tuple[float, ...]
    b: tuple[float, ...]


class Judgement(msgspec.Struct, frozen=True):
    """A verdict on one figure of one strategy.

    Attributes
    ----------
    change
        B over A for time; B minus A, in bytes, for memory. The interval covers all questions of the check together, so
        it is wider than a 95 % interval for this figure alone.
    a, b
        The trimmed means, in seconds or bytes.
    blocks
        How many blocks the verdict rests on.
    enough
        If undecided, the look whose number of blocks would decide at this spread; ``None`` if not even the last would.
    """

    verdict: Verdict
    change: Estimate
    a: float
    b: float
    blocks: int
    enough: int | None = None


class Failures(msgspec.Struct, frozen=True):
    """How many trials of each side were not ok, and how many were run."""

    a: int = 0
    b: int = 0
    of_a: int = 0
    of_b: int = 0

    @property
    def p(self) -> float:
        """The chance of this many or more failures on B's side if both fail alike: Fisher's exact test, one-sided."""
        from scipy.special import gammaln

        def ways(total: int, chosen: int) -> float:
            return float(gammaln(total + 1) - gammaln(chosen + 1) - gammaln(total - chosen + 1))

        failed = self.a + self.b
        every = ways(self.of_a + self.of_b, failed)
        least = max(self.b, failed - self.of_a)
        found = (
            ways(self.of_b, b) + ways(self.of_a, failed - b) - every for b in range(least, min(failed, self.of_b) + 1)
        )
        return min(math.fsum(map(math.exp, found)), 1.0)

    def are_more(self, questions: int) -> bool:
        """Whether B fails more often than A beyond doubt, when this many questions are asked."""
        return self.p < _alpha(questions, EVERY_LOOK)

    @property
    def may_be_more(self) -> bool:
        """Whether more trials may show that B fails more often."""
        if self.of_b >= MOST_TRIALS:
            return False
        return self.b * self.of_a > self.a * self.of_b or self.of_b < UNFAILING

    @property
    def is_hopeless(self) -> bool:
        """Whether A has failed every time, so nothing can be measured. If only B has, a few more trials prove it."""
        return self.of_a >= GIVE_UP_AFTER and self.a == self.of_a


GIVE_UP_AFTER = 4
"""Trials of side A, all of which have failed."""

NONE_FAILED = Failures()


def judge(figure: Figure, blocks: Sequence[Block], questions: int, others: Sequence[Difference] = ()) -> Judgement:
    """Return the verdict on these blocks, when the check asks this many questions in all.

    Parameters
    ----------
    others
        What the blocks of the check's other strategies show (see ``shown``). Their spreads tell how far those of a few
        blocks can be trusted.

    Raises
    ------
    ValueError
        Without blocks, or if a time is not positive.
    """
    if not blocks:
        raise ValueError("no blocks")
    back = math.exp if figure == "time" else float
    if figure == "time" and min(min(*each.a, *each.b) for each in blocks) <= 0:
        raise ValueError("a time must be positive")
    sides = _sides(figure, blocks)
    a, b = (back(_trimmed([each[side] for each in sides])) for side in (0, 1))
    differences = _differences(figure, blocks)
    middle = _trimmed(differences)
    if len(blocks) < LOOKS[0]:
        return Judgement("undecided", Estimate(back(middle), None, None, len(blocks)), a, b, len(blocks))
    difference = _moderated(_difference(differences), others)
    confidence = 1 - _alpha(questions)
    low, high = difference.bounds(confidence)

    def verdict_on(each: Difference) -> str:
        return verdict_of(
            each,
            within=math.log(TIME_ALIKE) if figure == "time" else max(MEMORY_ALIKE, (TIME_ALIKE - 1) * a),
            beyond=math.log(TIME_MARGIN) if figure == "time" else MEMORY_MARGIN,
            confidence=confidence,
            alike=1 - 2 * ALIKE_LEVEL,
        )

    verdict, enough = verdict_on(difference), None
    if verdict == "undecided":
        later = (look for look in LOOKS if look > len(blocks))
        enough = next((look for look in later if verdict_on(_then(difference, look)) != "undecided"), None)
    change = Estimate(back(middle), back(low), back(high), len(blocks))
    return Judgement(WORDS[figure].get(verdict, verdict), change, a, b, len(blocks), enough)  # type: ignore[arg-type]


def _then(difference: Difference, blocks: int) -> Difference:
    """Predict what more blocks of the same spread show."""

    def scale(count: int) -> float:
        return (EFFICIENCY if _kept(count) < count else 1.0) / math.sqrt(count)

    error = difference.error * scale(blocks) / scale(difference.rounds)
    degrees = difference.degrees + _kept(blocks) - _kept(difference.rounds)
    return Difference(difference.value, error, degrees, blocks)


def _kept(blocks: int) -> int:
    """Return how many blocks the trimmed mean keeps."""
    return blocks - 2 * int(TRIMMED * blocks)


def shown(figure: Figure, blocks: Sequence[Block]) -> Difference | None:
    """Return the difference that these blocks show; ``None`` if they are fewer than a verdict needs."""
    return _difference(_differences(figure, blocks)) if len(blocks) >= LOOKS[0] else None


def _sides(figure: Figure, blocks: Sequence[Block]) -> list[list[float]]:
    """Return the mean of each side of each block, of logarithms for times."""
    scale = math.log if figure == "time" else float
    return [[sum(map(scale, side)) / len(side) for side in (each.a, each.b)] for each in blocks]


def _differences(figure: Figure, blocks: Sequence[Block]) -> list[float]:
    return [b - a for a, b in _sides(figure, blocks)]


def _moderated(own: Difference, others: Sequence[Difference]) -> Difference:
    """Return a difference with what the others' spreads say about its own; its error never becomes smaller."""
    if not others:
        return own
    every = [own, *others]
    degrees = [each.degrees for each in every]
    squares = [each.error**2 * each.rounds * each.degrees for each in every]
    variances, moderated = moderate(squares, degrees, math.fsum(degrees))
    error = math.sqrt(variances[0] / own.rounds)
    return Difference(own.value, max(own.error, error), moderated[0], own.rounds)


QUIET = 0.25
"""The spread of the quieter strategies is told by this quantile of all blocks' distances from no difference."""


def usual_blocks(every: Sequence[Sequence[Block]]) -> int:
    """Return the look at which a quiet strategy that does not differ is as likely decided as not.

    Its spread is told by the blocks of all strategies, of which each may have a single one. It is the lowest look where
    nobody has a block.
    """
    from scipy.special import ndtri

    distances = sorted(abs(each) for blocks in every for each in _differences("time", blocks))
    if not distances:
        return LOOKS[0]
    spread = distances[int(QUIET * len(distances))] / float(ndtri((1 + QUIET) / 2))
    error = math.log(TIME_ALIKE) / float(ndtri(1 - ALIKE_LEVEL) + ndtri(0.75))
    return min((look for look in LOOKS if spread <= error * math.sqrt(look)), default=LOOKS[-1])


def _alpha(questions: int, looks: Sequence[int] = LOOKS) -> float:
    return FAMILY / (questions * len(looks))


def is_due(blocks: int, judgements: Sequence[Judgement], failures: Failures = NONE_FAILED, questions: int = 1) -> bool:
    """Whether a strategy needs another block: no verdict is due yet, or something undecided may still be decided."""
    if blocks >= EVERY_LOOK[-1] or failures.is_hopeless:
        return False
    if blocks not in EVERY_LOOK:
        return True
    if failures.are_more(questions):
        return False
    if blocks < LOOKS[-1] and any(each.verdict == "undecided" for each in judgements):
        return True
    regressed = any(each.verdict in ("slower", "fatter") for each in judgements)
    return failures.may_be_more and not regressed


def _trimmed(values: Sequence[float]) -> float:
    out = int(TRIMMED * len(values))
    kept = sorted(values)[out : len(values) - out]
    return math.fsum(kept) / len(kept)


def _difference(values: Sequence[float]) -> Difference:
    """Return the trimmed mean with Yuen's error, from the winsorised variance."""
    out, kept = int(TRIMMED * len(values)), _kept(len(values))
    ordered = sorted(values)
    winsorised = [ordered[out]] * out + ordered[out : len(values) - out] + [ordered[-1 - out]] * out
    mean = math.fsum(winsorised) / len(values)
    spread = math.fsum((each - mean) ** 2 for each in winsorised)
    return Difference(_trimmed(values), math.sqrt(spread / (kept * (kept - 1))), kept - 1, len(values))
