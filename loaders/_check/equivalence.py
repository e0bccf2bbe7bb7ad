"""Whether trials in forks measure the same as trials in fresh processes: pairs of trials in, verdicts out. Pure.

A pair is a fresh and a forked trial of one strategy with the same seed, whose steady epochs take turns. A strategy's
difference is the mean over its pairs; a question's is the trimmed mean over its strategies in each round, because a
trial now and then takes much longer than the others, and then the mean over rounds. What trimming hides, a strategy
that differs by much, is named by its own interval.
Rounds are the independent samples, because the forked trials of a round share a server and may deviate together. Times
are compared in logarithms, memory in bytes.

That a question is the same rests on a 95 % interval of each figure that is judged: all of them must lie within their
margins. That it is different may be said of any figure, of the question or of a strategy, and is corrected for all of
these (Bonferroni), so that where all are equal none seems to differ.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from loaders._check.judge import TRIMMED
from loaders._judge import CONFIDENCE, RESOLUTION, Difference, decide
from loaders._rows import figures
from loaders._stats import SHORTEST
from loaders._trial.record import SCHEMA, Environment, Record, surroundings
from loaders._words import ABSENT

NAME = "start.jsonl"
"""The log of these trials, beside the trial log."""

TIME, TIME_OF_EACH = 1.02, 1.05
"""Factors: a question's steady time must be shown to lie within the first one, and no strategy's wholly beyond the
second one."""

MEMORY, MEMORY_SHARE = RESOLUTION, 0.01
"""Bytes, and a share of the fresh figure: the larger of the two is the margin of memory."""

REPEATEDLY = 2
"""Failures: a single one may be chance."""

Verdict = Literal["within", "beyond", "undecided", "reported"]
Way = Literal["fresh", "forked"]
Kind = Literal["time", "memory", "share"]


class Figure(msgspec.Struct, frozen=True):
    """A metric that is compared; without ``is_judged`` its difference is only reported."""

    heading: str
    kind: Kind
    is_judged: bool


NOT_HELD = "retained_not_held"
"""What is retained without what malloc keeps of it: the key of a figure that is worked out of two metrics."""

FIGURES: Mapping[str, Figure] = {
    "steady_time": Figure("steady time", "time", is_judged=True),
    "peak_memory": Figure("peak", "memory", is_judged=True),
    "retained_memory": Figure("retained", "memory", is_judged=True),
    NOT_HELD: Figure("retained, without what malloc holds", "memory", is_judged=False),
    "closing_time": Figure("closing, of a steady epoch", "share", is_judged=False),
    "epoch_time": Figure("first epoch", "time", is_judged=False),
    "first_batch_time": Figure("first batch", "time", is_judged=False),
}
"""By metric; the peak is that of the process tree if there were worker processes. Start-up is only reported: its
figures are taken from fresh trials. So is what closing an iterator adds to a steady epoch: a millisecond or half an
epoch, by chance (see ``loaders._trial.timing.closing_time``), so a few pairs cannot tell it to 2 %. And so is what is
retained without what malloc holds, which tells where a difference is malloc's, as it gives back more or less by chance:
with five pairs, most strategies of ``training`` had intervals of ±0.1 MiB without that, and of ±10 MiB with it (AMD
EPYC, family 25, model 1)."""

WAYS = 2 * sum(each.is_judged for each in FIGURES.values())
"""The ways in which a question can differ: each figure that is judged, of all of its strategies or of one of them."""

UNITS: Mapping[Kind, tuple[str, float, int]] = {
    "time": ("%", 100.0, 1),
    "memory": ("MiB", 2.0**-20, 2),
    "share": ("% of an epoch", 100.0, 1),
}
"""By kind, in what a difference is told, how many of it there are in one, and digits."""


class Compared(msgspec.Struct, frozen=True):
    """By how much one figure of forked trials differs from that of fresh ones.

    Attributes
    ----------
    value, low, high
        The difference and its interval: for times as a share (0.01 is 1 % longer), for memory in bytes, for shares of
        a steady epoch as a difference of shares. No interval with a single pair.
    pairs
        The number of independent samples: pairs, or rounds.
    margin
        How much it may differ, in the same unit; ``None`` if it is only reported.
    rounds
        If undecided, the total number that would decide; ``None`` if that is unknown or too many.
    """

    value: float
    low: float | None
    high: float | None
    pairs: int
    verdict: Verdict
    margin: float | None = None
    rounds: int | None = None


class OfStrategy(msgspec.Struct, frozen=True):
    """What was compared of one strategy; ``failed`` counts the trials that were not ok, by how they began."""

    strategy: str
    pairs: int
    figures: dict[str, Compared]
    failed: dict[Way, int]

    @property
    def fails_forked(self) -> bool:
        """Whether it has failed in forks repeatedly, and more often than in fresh processes."""
        return self.failed["forked"] >= REPEATEDLY and self.failed["forked"] > self.failed["fresh"]

    def beyond(self, metric: str) -> bool:
        """Whether a figure's whole interval lies beyond its margin."""
        return metric in self.figures and self.figures[metric].verdict == "beyond"


class Equivalence(msgspec.Struct, frozen=True):
    """What was compared of one question.

    Attributes
    ----------
    skipped
        Why nothing was compared; if so, the rest is empty.
    verdict
        Whether forked trials of the question measure the same as fresh ones.
    started
        When the first trial started.
    rounds
        The number of rounds that every strategy which never failed has finished.
    pooled
        Each figure over these strategies, in these rounds.
    """

    question: str
    skipped: str = ""
    verdict: Literal["same", "different", "not shown yet", "skipped"] = "skipped"
    case: dict[str, str] = {}
    started: str = ""
    environment: Environment = Environment()
    rounds: int = 0
    pooled: dict[str, Compared] = {}
    strategies: list[OfStrategy] = []


def judged(records: Iterable[Record]) -> list[Equivalence]:
    """Compare the trials of each question; of several runs the last counts."""
    by_question: dict[str, list[Record]] = {}
    for record in records:
        if record.schema == SCHEMA:
            by_question.setdefault(record.question, []).append(record)
    return [_judged([each for each in found if each.run == found[-1].run]) for _, found in sorted(by_question.items())]


def _judged(records: Sequence[Record]) -> Equivalence:
    names = sorted({each.strategy for each in records})
    failed: Counter[tuple[str, str]] = Counter((each.strategy, each.process) for each in records if each.went_wrong)
    pooled: dict[str, Compared] = {}
    own: dict[str, dict[str, Compared]] = {name: {} for name in names}
    for metric in FIGURES:
        pairs = {name: _pairs(records, name, metric) for name in names}
        pairs = {name: found for name, found in pairs.items() if found}
        for name, found in pairs.items():
            own[name][metric] = _compared(metric, {name: found}, TIME_OF_EACH, (1 - CONFIDENCE) / len(pairs))
        whole = {name: found for name, found in pairs.items() if not failed[name, "fresh"] + failed[name, "forked"]}
        most = max(map(len, whole.values()), default=0)
        whole = {name: found for name, found in whole.items() if 2 * len(found) > most}  # others are too slow for more
        if whole and set.intersection(*map(set, whole.values())):
            pooled[metric] = _compared(metric, whole, TIME, 1 - CONFIDENCE)
    strategies = [
        OfStrategy(
            name,
            max((each.pairs for each in own[name].values()), default=0),
            own[name],
            {"fresh": failed[name, "fresh"], "forked": failed[name, "forked"]},
        )
        for name in names
    ]
    environment = surroundings(records)
    return Equivalence(
        question=records[0].question,
        verdict=_verdict(pooled, strategies),
        case=records[0].case,
        started=min(each.started for each in records),
        environment=environment,
        rounds=max((each.pairs for each in pooled.values()), default=0),
        pooled=pooled,
        strategies=strategies,
    )


def _verdict(
    pooled: Mapping[str, Compared], strategies: Sequence[OfStrategy]
) -> Literal["same", "different", "not shown yet"]:
    judged = [metric for metric, each in FIGURES.items() if each.is_judged]
    found = [pooled[metric].verdict if metric in pooled else "undecided" for metric in judged]
    if "beyond" in found or any(each.fails_forked or any(map(each.beyond, judged)) for each in strategies):
        return "different"
    return "same" if set(found) == {"within"} else "not shown yet"


def _pairs(records: Iterable[Record], strategy: str, metric: str) -> dict[int, tuple[float, float]]:
    """Return a strategy's values by round, fresh and forked, of the rounds that have both."""
    found: dict[str, dict[int, float]] = {"fresh": {}, "forked": {}}
    for record in records:
        value = _value(record, metric)
        if record.strategy != strategy or record.status != "ok" or value is None:
            continue
        if value >= SHORTEST or FIGURES[metric].kind != "time":
            found[record.process][record.round] = value
    fresh, forked = found["fresh"], found["forked"]
    return {index: (fresh[index], forked[index]) for index in sorted(fresh.keys() & forked.keys())}


def _value(record: Record, metric: str) -> float | None:
    if metric == NOT_HELD:
        kept, held = record.metrics.retained_memory, record.metrics.allocator_held
        # What malloc holds can be less than before: memory that it had given back, and has taken into use again.
        return None if kept is None or held is None else kept - max(0, held)
    value = figures.value(record, metric)
    if value is None or FIGURES[metric].kind != "share":
        return value
    return value / record.metrics.steady_time if record.metrics.steady_time else None


def _compared(
    metric: str, pairs: Mapping[str, Mapping[int, tuple[float, float]]], factor: float, alpha: float
) -> Compared:
    """Compare the pairs of strategies by round, in the rounds that all of them have; ``factor`` is for times.

    The interval leaves the true difference out with a probability of ``alpha``; it is judged to lie beyond the margin
    with one of ``alpha / WAYS``.
    """
    import numpy as np
    from scipy.stats import trim_mean

    rounds = sorted(set.intersection(*map(set, pairs.values())))
    fresh, forked = np.moveaxis(np.array([[found[index] for index in rounds] for found in pairs.values()]), 2, 0)
    kind = FIGURES[metric].kind
    if kind == "time":
        samples, margin = trim_mean(np.log(forked / fresh), TRIMMED, axis=0), math.log(factor)
    elif kind == "share":  # where one strategy in a few differs, trimming would hide just that
        samples, margin = (forked - fresh).mean(axis=0), factor - 1
    else:
        samples = trim_mean(forked - fresh, TRIMMED, axis=0)
        margin = max(MEMORY, MEMORY_SHARE * abs(float(trim_mean(fresh, TRIMMED, axis=0).mean())))
    count = len(rounds)
    error = float(samples.std(ddof=1)) / math.sqrt(count) if count > 1 else math.inf
    difference = Difference(float(samples.mean()), error, count - 1, count)
    verdict, needed = decide(difference, within=margin, beyond=margin, confidence=1 - alpha / WAYS, alike=1 - alpha)
    unit = math.expm1 if kind == "time" else float
    low, high = difference.bounds(1 - alpha) if count > 1 else (None, None)
    words: dict[str, Verdict] = {"no difference": "within", "undecided": "undecided"}
    is_judged = FIGURES[metric].is_judged
    return Compared(
        unit(difference.value),
        None if low is None else unit(low),
        None if high is None else unit(high),
        count,
        words.get(verdict, "beyond") if is_judged else "reported",
        unit(margin) if is_judged else None,
        needed if is_judged else None,
    )


HEADINGS = ("question", "strategies", "rounds", *(each.heading for each in FIGURES.values()), "verdict")

STRATEGY_HEADINGS = ("strategy", "pairs", *(each.heading for each in FIGURES.values()), "failed")

METHOD = (
    "Differences of forked trials to fresh ones. A question's figures are means over its strategies, without a fifth "
    "at either end in each round, with 95 % intervals over rounds; steady time, until an epoch's last batch, must lie "
    f"within ±{100 * (TIME - 1):.0f} %, memory within ±1 MiB or {100 * MEMORY_SHARE:.0f} %, whichever is more. The "
    "intervals of a question's strategies hold together (Bonferroni); none may lie wholly beyond "
    f"±{100 * (TIME_OF_EACH - 1):.0f} % of steady time, or beyond the margin of memory. Before a figure is said to lie "
    "beyond its margin, its interval is widened for all of which that could be said. The rest is only reported: "
    "what closing an iterator adds to an epoch, over all strategies, as it is too much a matter of chance; what is "
    "retained without what malloc holds, which tells if a difference is malloc's; the first epoch and the first batch, "
    "as start figures are taken from fresh trials."
)
"""What the tables show."""


def lines(found: Iterable[Equivalence]) -> list[tuple[str, ...]]:
    """Return the cells under ``HEADINGS``, a line for each question in which something was compared."""
    return [
        (
            each.question,
            str(len(each.strategies)),
            str(each.rounds),
            *(in_words(metric, each.pooled.get(metric)) for metric in FIGURES),
            each.verdict,
        )
        for each in found
        if not each.skipped
    ]


def strategy_lines(each: Equivalence) -> list[tuple[str, ...]]:
    """Return the cells of a question's strategies under ``STRATEGY_HEADINGS``."""
    return [
        (
            one.strategy,
            str(one.pairs),
            *(in_words(metric, one.figures.get(metric)) for metric in FIGURES),
            ", ".join(f"{count} {way}" for way, count in one.failed.items() if count) or ABSENT,
        )
        for one in each.strategies
    ]


def in_words(metric: str, each: Compared | None) -> str:
    """Put a difference into words: ``+0.4 % (-0.6 to +1.3): within ±2 %``."""
    if each is None:
        return ABSENT
    unit, scale, digits = UNITS[FIGURES[metric].kind]
    value = f"{each.value * scale:+.{digits}f} {unit}"
    if each.low is None or each.high is None:
        return f"{value} (single pair)"
    found = f"{value} ({each.low * scale:+.{digits}f} to {each.high * scale:+.{digits}f})"
    if each.margin is None:
        return found
    margin = f"±{each.margin * scale:.3g} {unit}"
    if each.verdict == "undecided":
        return f"{found}: undecided about {margin}{f', {each.rounds} rounds would decide' * bool(each.rounds)}"
    return f"{found}: {each.verdict} {margin}"


def standing(questions: Sequence[str], found: Sequence[Equivalence]) -> str:
    """Say in which of these questions a machine's forked trials measure the same as fresh ones; nothing of none."""
    verdicts = {each.question: each.verdict for each in found}
    parts = [
        f"{words} in {', '.join(named)}"
        for words, wanted in STANDING.items()
        if (named := [each for each in questions if verdicts.get(each, "skipped") in wanted])
    ]
    return f"That forked trials measure the same as fresh ones is {'; '.join(parts)}." if parts else ""


STANDING = {
    "shown": ("same",),
    "refuted": ("different",),
    "not shown": ("not shown yet",),
    "not tested on this machine": ("skipped",),
}
"""By what is said, the verdicts of ``Equivalence``."""


def sentences(each: Equivalence) -> list[str]:
    """Name the strategies of a question that differ, or of which it is not known yet."""
    said = []
    for metric, figure in FIGURES.items():
        if not figure.is_judged:
            continue
        known = {one.strategy: one.figures[metric] for one in each.strategies if metric in one.figures}
        beyond = [f"{name} ({in_words(metric, found)})" for name, found in known.items() if found.verdict == "beyond"]
        unsure = [name for name, found in known.items() if found.verdict == "undecided"]
        what = f"{each.question}, {figure.heading}"
        if beyond:
            said.append(f"{what}: forked trials differ in {', '.join(beyond)}.")
        if unsure and figure.kind == "time":  # with few pairs none can lie wholly beyond the margin
            margin = f"±{100 * (TIME_OF_EACH - 1):.0f} %"
            said.append(f"{what}: {len(unsure)} of {len(known)} strategies are not shown to be within {margin}.")
        elif unsure:
            said.append(f"{what}: not shown to be within the margin for {', '.join(unsure)}.")
    failing = [one for one in each.strategies if one.fails_forked]
    for how, names in (
        ("only forked trials fail", [one.strategy for one in failing if not one.failed["fresh"]]),
        ("forked trials fail more often", [one.strategy for one in failing if one.failed["fresh"]]),
    ):
        if names:
            said.append(f"{each.question}: {how} of {', '.join(names)}.")
    return said
