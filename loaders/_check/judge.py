"""From blocks of interleaved trials to a verdict with its interval. Pure.

A block is A B B A: what drifts evenly through it weighs on both sides alike. Its outcome is one number, the difference
of the sides' means (of logarithms for times), and blocks are independent of each other. The mean over blocks is
trimmed, because one trial in a few dozen takes several times as long as the others for reasons of the machine; its
interval is Yuen's (1974), which for up to four blocks is Student's.

The verdict is asked again as blocks come in, of several strategies and of two figures each. All these questions share
``FAMILY`` (Bonferroni), so that a check of a change that changes nothing is seldom wrong about anything at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from loaders._rows import RESOLUTION
from loaders._stats import Estimate

Verdict = Literal["slower", "faster", "fatter", "leaner", "no difference", "inconclusive"]
Figure = Literal["time", "memory"]

FAMILY = 0.05
"""The chance that a check in which nothing differs calls anything different, margins not counted."""

LOOKS = (4, 6, 8, 11, 15, 20, 27, 36)
"""After so many blocks a verdict is asked. The last is the most that a check takes of one strategy."""

TRIMMED = 0.2
"""The share of blocks at either end that the mean leaves out: Yuen's, and Wilcox's, recommendation."""

TIME_MARGIN, TIME_ALIKE = 1.02, 1.05
"""As factors. A change is confirmed when its whole interval lies beyond the first, and there is no difference when the
whole interval lies within the second."""

MEMORY_MARGIN, MEMORY_ALIKE = RESOLUTION, 2 * RESOLUTION
"""The same in bytes, or as a share of the peak (``TIME_ALIKE``) if that is more for the second."""


class Block(msgspec.Struct, frozen=True):
    """One figure of four trials: two of either side."""

    a: tuple[float, float]
    b: tuple[float, float]


class Judgement(msgspec.Struct, frozen=True):
    """A verdict on one figure of one strategy.

    Attributes
    ----------
    change
        B over A for a time; B minus A, in bytes, for memory. The interval is that of all questions of the check
        together, so it is wider than one of 95 % for this figure alone.
    a, b
        The trimmed means, in seconds or bytes.
    blocks
        How many it rests on.
    """

    verdict: Verdict
    change: Estimate | None
    a: float
    b: float
    blocks: int


def judge(figure: Figure, blocks: Sequence[Block], questions: int) -> Judgement:
    """Return the verdict on so many blocks, where so many strategies and figures are judged in the same check.

    Raises
    ------
    ValueError
        Without blocks, or for a time that is not positive.
    """
    if not blocks:
        raise ValueError("no blocks")
    scale, back = (math.log, math.exp) if figure == "time" else (float, float)
    if figure == "time" and min(min(*each.a, *each.b) for each in blocks) <= 0:
        raise ValueError("a time must be positive")
    sides = [[sum(map(scale, side)) / 2 for side in (each.a, each.b)] for each in blocks]
    a, b = (back(_trimmed([each[side] for each in sides])) for side in (0, 1))
    differences = [each[1] - each[0] for each in sides]
    middle = _trimmed(differences)
    if len(blocks) < LOOKS[0]:
        return Judgement("inconclusive", Estimate(back(middle), None, None, len(blocks)), a, b, len(blocks))
    low, high = _interval(differences, FAMILY / (questions * len(LOOKS)))
    margin = math.log(TIME_MARGIN) if figure == "time" else MEMORY_MARGIN
    alike = math.log(TIME_ALIKE) if figure == "time" else max(MEMORY_ALIKE, (TIME_ALIKE - 1) * a)
    more: Verdict = "slower" if figure == "time" else "fatter"
    less: Verdict = "faster" if figure == "time" else "leaner"
    verdict: Verdict = "inconclusive"
    if low > margin:
        verdict = more
    elif high < -margin:
        verdict = less
    elif -alike < low and high < alike:
        verdict = "no difference"
    return Judgement(verdict, Estimate(back(middle), back(low), back(high), len(blocks)), a, b, len(blocks))


def is_due(blocks: int, judgements: Sequence[Judgement]) -> bool:
    """Whether a strategy needs another block: it has not been asked, or something is undecided and may be decided."""
    if blocks >= LOOKS[-1]:
        return False
    return blocks not in LOOKS or any(each.verdict == "inconclusive" for each in judgements)


def _trimmed(values: Sequence[float]) -> float:
    out = int(TRIMMED * len(values))
    kept = sorted(values)[out : len(values) - out]
    return math.fsum(kept) / len(kept)


def _interval(values: Sequence[float], alpha: float) -> tuple[float, float]:
    """Return the interval of the trimmed mean: Yuen's, from the winsorised variance."""
    from scipy.special import stdtrit

    out = int(TRIMMED * len(values))
    ordered = sorted(values)
    kept = len(values) - 2 * out
    winsorised = [ordered[out]] * out + ordered[out : len(values) - out] + [ordered[-1 - out]] * out
    mean = math.fsum(winsorised) / len(values)
    spread = math.fsum((each - mean) ** 2 for each in winsorised)
    error = math.sqrt(spread / (kept * (kept - 1)))
    half = float(stdtrit(kept - 1, 1 - alpha / 2)) * error
    middle = _trimmed(values)
    return middle - half, middle + half
