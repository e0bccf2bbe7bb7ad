"""Which strategy to take, given a reader's memory, training step, batch size, samples and epochs. Pure.

What counts is the reader's time: each step, its wait for a batch, the extra time of the first epoch over a later one,
and a conversion. With a strategy that works ahead, a step waits for the part of loading that it does not cover, and at
least as long as a slow consumer was seen to wait.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import msgspec

from loaders._judge import TIME_MARGIN, Fitted, fitted
from loaders._law import Law, law
from loaders._stats import Estimate, estimate

Kind = Literal[
    "recommended",
    "as good",
    "slower",
    "undecided",
    "not worth installing",
    "does not fit",
    "memory unknown",
    "time unknown",
    "historic",
    "ceiling",
    "other output",
    "failed",
    "not measured",
]
"""``as good``: at most 10 % slower than the fastest allowed strategy, by the upper end of its interval. What may be the
fastest is *undecided* and never *slower*, though its own interval may exclude that: the fastest was picked from all."""

CHOICE: tuple[Kind, ...] = ("recommended", "as good", "slower", "undecided")
"""The kinds of the strategies that may be taken."""

BATCH = 32
"""In samples: the batch size that every batching strategy was measured with (``loaders._registry.Job.batch_size``)."""

KEEPS_UP = 0.1
"""As a share of a step: a loader with a shorter wait is not the bottleneck."""

WORTH = 1.25
"""A strategy that needs an installation must be shown to be this many times as fast as the fastest that needs none. One
that is 10 % faster would do otherwise; a dependency has to be kept alive as long as the training code."""

CLOSES_WITHIN = 60.0
"""Seconds: dropping the iterator takes longer after a longer epoch, and by tf.data's code at most a minute (see
``loaders._trial.timing.closing_time``)."""

IDENTICAL = "identical"


class Amount(msgspec.Struct, frozen=True):
    """The measurements with one amount of data, by round, in bytes and seconds; all but ``wait`` are for an epoch.

    Attributes
    ----------
    needed
        See ``needed_memory`` in ``loaders._trial.metrics.Metrics``.
    first, steady
        ``epoch_time``, as a fresh process has it, and ``steady_time``.
    as_run
        ``epoch_time`` as it was, in forks too; empty if that is ``first``.
    wait
        ``wait_time``, for a batch.
    convert
        ``convert_time``.
    closing
        ``closing_time``, a part of ``steady``: no step is trained meanwhile.
    """

    samples: int
    batches: int
    needed: dict[int, float] = {}
    first: dict[int, float] = {}
    steady: dict[int, float] = {}
    wait: dict[int, float] = {}
    convert: dict[int, float] = {}
    as_run: dict[int, float] = {}
    closing: dict[int, float] = {}


class Candidate(msgspec.Struct, frozen=True):
    """A strategy, and its measurements from one run in one case at several amounts of data, the smallest first.

    ``lines`` counts the lines of its code; ``settings`` says what must be set for the process, and ``needs`` what must
    be installed first; ``batch`` is the batch size that it was measured with; ``problem`` says why it cannot be taken;
    without ``amounts`` it was not measured. If it has files, they were read from the memory of the machine that timed
    it, which holds those of ``held`` samples: how fast a disk delivers more, nobody has measured. ``grows`` says that
    its memory grows from step to step: how much training needs is then unknown.
    """

    name: str
    tier: str = IDENTICAL
    historic: bool = False
    ceiling: bool = False
    converts: bool = False
    settings: str = ""
    lines: int = 0
    capacity: int = 0
    batch: int = BATCH
    amounts: list[Amount] = []
    problem: str = ""
    needs: str = ""
    held: float | None = None
    grows: str = ""

    @property
    def effort(self) -> tuple[bool, bool, bool, int, str]:
        """How much effort it takes, as a sort key: the simplest comes first."""
        return self.converts, bool(self.settings), bool(self.needs), self.lines, self.name

    @property
    def largest(self) -> Amount:
        """The measurements with the most data."""
        return self.amounts[-1]


class Settings(msgspec.Struct, frozen=True):
    """What a reader has: bytes of memory for loading, seconds per training step (0: none), and the amount of data."""

    memory: int
    step: float = 0.0
    batch: int = 32
    samples: int = 10_000
    epochs: int = 20


class Decision(msgspec.Struct, frozen=True):
    """The decision for one set of settings.

    Attributes
    ----------
    rivals
        Strategies that may be taken, are not shown to be slower than the fastest, and are not known to be within 10 %
        of it. While there are any, the recommendation is undecided.
    bottleneck
        Whether loading holds up a training step; ``None`` without a step, or if that is undecided.
    kinds
        The kind of every strategy.
    fastest
        The fastest strategy that may be taken.
    """

    recommended: str | None
    bottleneck: bool | None
    kinds: dict[str, Kind]
    fastest: str | None = None
    rivals: list[str] = []

    @property
    def decided(self) -> bool:
        """Whether something is recommended, and all that may be the fastest are known to be within 10 % of it."""
        return self.recommended is not None and not self.rivals


@dataclass(frozen=True)
class Reckoned:
    """The figures of one case, worked out for a reader's settings except the memory that the reader has.

    Attributes
    ----------
    memory
        For each strategy, in bytes, at the reader's samples; ``None`` if the law is unknown.
    totals
        In seconds by round, for all epochs.
    waits
        In seconds by round: how long a step waits for its batch, on average over all epochs, with the conversion and
        the start of the first epoch. Without a step, how long a batch takes.
    """

    candidates: Sequence[Candidate]
    samples: int
    step: float
    laws: Mapping[str, Law]
    memory: Mapping[str, Estimate | None]
    totals: Mapping[str, Mapping[int, float]]
    waits: Mapping[str, Mapping[int, float]]
    _decided: dict[frozenset[str], Decision] = field(default_factory=dict)

    @cached_property
    def fits(self) -> Fitted:
        """The fit to the totals of all strategies that have one."""
        return fitted(self.totals)

    @cached_property
    def barred(self) -> dict[str, Kind]:
        """Why each barred strategy may not be taken, however much memory there is."""
        found: dict[str, Kind] = {}
        for each in self.candidates:
            bound = self.memory.get(each.name)
            if each.ceiling:
                found[each.name] = "ceiling"
            elif each.historic:
                found[each.name] = "historic"
            elif each.tier != IDENTICAL:
                found[each.name] = "other output"
            elif each.problem:
                found[each.name] = "not measured" if each.problem.startswith("not measured") else "failed"
            elif not self.totals.get(each.name):
                found[each.name] = "not measured"
            elif bound is None or bound.high is None:
                found[each.name] = "memory unknown"
            elif each.held is not None and self.samples > each.held:
                found[each.name] = "time unknown"
        return found

    @cached_property
    def shares(self) -> dict[str, Estimate]:
        """The wait for a batch as a share of a step, by strategy; empty without a step."""
        return {
            name: estimate([each / self.step for each in waits.values()], "linear")
            for name, waits in self.waits.items()
            if self.step and waits
        }

    def decide(self, memory: int) -> Decision:
        """Choose for this much memory, in bytes."""
        kinds = dict(self.barred)
        allowed = []
        for each in self.candidates:
            if each.name not in kinds:
                bound = self.memory[each.name]
                fits = bound is not None and bound.high is not None and bound.high <= memory
                if fits:
                    allowed.append(each)
                else:
                    kinds[each.name] = "does not fit"
        if not allowed:
            return Decision(None, None, kinds)
        key = frozenset(each.name for each in allowed)
        if key not in self._decided:
            self._decided[key] = self._choose(allowed)
        found = self._decided[key]
        return msgspec.structs.replace(found, kinds={**kinds, **found.kinds})

    def _worthwhile(self, allowed: Sequence[Candidate]) -> Sequence[Candidate]:
        """Return those that need no installation or gain enough by one; all if there are no others."""
        own = [each.name for each in allowed if not each.needs]
        if not own:
            return allowed
        fastest, *_ = self.fits.by_speed(own)
        gains = {each.name: self.fits.difference(fastest, each.name) for each in allowed if each.needs}
        worth = {name for name, gain in gains.items() if gain is not None and gain.interval()[0] >= WORTH}
        return [each for each in allowed if not each.needs or each.name in worth]

    def _choose(self, allowed: Sequence[Candidate]) -> Decision:
        """Choose among the strategies that fit; ``kinds`` covers these alone."""
        worth = self._worthwhile(allowed)
        best = self.fits.best_names([each.name for each in worth])
        fastest = best[0]
        kinds: dict[str, Kind] = {each.name: "not worth installing" for each in allowed if each not in worth}
        for each in worth:
            difference = self.fits.difference(each.name, fastest)
            low, high = difference.interval() if difference else (0.0, math.inf)
            alike = each.name == fastest or high <= TIME_MARGIN
            kinds[each.name] = "as good" if alike else "slower" if low > 1 and each.name not in best else "undecided"
        close = sorted((each for each in worth if kinds[each.name] == "as good"), key=lambda each: each.effort)
        keeps_up = [each for each in close if self._keeps_up(each.name)]
        winner = (keeps_up or close)[0].name
        kinds[winner] = "recommended"
        rivals = [name for name in best if kinds[name] not in ("as good", "recommended")]
        return Decision(winner, self._is_bottleneck(winner, fastest), kinds, fastest, rivals)

    def _keeps_up(self, name: str) -> bool:
        share = self.shares.get(name)
        return share is not None and share.high is not None and share.high < KEEPS_UP

    def _is_bottleneck(self, winner: str, fastest: str) -> bool | None:
        if not self.step:
            return None
        if self._keeps_up(winner):
            return False
        lows = [share.low for share in map(self.shares.get, (winner, fastest)) if share]
        return True if lows and all(low is not None and low > KEEPS_UP for low in lows) else None


def laws_of(candidates: Sequence[Candidate]) -> dict[str, Law]:
    """Return the law of memory of every strategy that was measured; there is none of what grows from step to step."""
    return {
        each.name: Law("unknown", each.grows, [])
        if each.grows
        else law({amount.samples: amount.needed for amount in each.amounts}, each.capacity)
        for each in candidates
        if any(amount.needed for amount in each.amounts)
    }


def why_unknown(candidate: Candidate, laws: Mapping[str, Law]) -> str:
    """Say why the memory of a strategy is unknown, or how its law was found."""
    if candidate.name in laws:
        return laws[candidate.name].why
    return "how much its processes hold together could not be read" if candidate.amounts else "it was not measured"


def is_steady(candidates: Sequence[Candidate]) -> bool:
    """Whether every strategy has a steady epoch with the most data."""
    timed = _timed(candidates)
    most = max((each.largest.samples for each in timed), default=0)
    # A strategy that nobody may take decides nothing for the others.
    whole = [each for each in timed if each.largest.samples == most and not each.problem and not each.historic]
    return all(each.largest.first.keys() == each.largest.steady.keys() for each in whole)


def _timed(candidates: Sequence[Candidate]) -> list[Candidate]:
    return [each for each in candidates if each.amounts and each.largest.first]


def reckon(
    candidates: Sequence[Candidate],
    settings: Settings,
    laws: Mapping[str, Law] | None = None,
    once: Mapping[str, Mapping[int, float]] | None = None,
) -> Reckoned:
    """Return the figures worked out for the settings, whatever the memory.

    If not every strategy has a steady epoch with the most data, the first epoch is used for all epochs of all of them.
    ``laws`` (``laws_of``) and ``once`` (``once_of``, by strategy) are worked out where they are not given: they are the
    same for many settings.
    """
    found = laws_of(candidates) if laws is None else laws
    steady, timed = is_steady(candidates), _timed(candidates)
    if once is None:
        once = {each.name: once_of(each, settings.samples, steady=steady) for each in timed}
    totals = {each.name: _total(each, settings, once[each.name], steady=steady) for each in timed}
    steps = settings.epochs * settings.samples / settings.batch
    waits = {
        name: {index: seconds / steps - settings.step for index, seconds in of_one.items()}
        for name, of_one in totals.items()
    }
    memory = {each.name: memory_of(each, found[each.name], settings) for each in candidates if each.name in found}
    return Reckoned(candidates, settings.samples, settings.step, found, memory, totals, waits)


def memory_of(candidate: Candidate, law: Law, settings: Settings) -> Estimate | None:
    """Return the memory that the reader's samples need, in batches of the reader's size; ``None`` if unknown.

    Memory that does not depend on the amount of data holds batches, in hand and in buffers, and grows with their size;
    where less was measured than these hold, so does what fills them. Smaller batches are never said to need less than
    was measured, and strategies that yield single elements do not batch.
    """
    predicted, amount = law.at(settings.samples), candidate.largest
    if predicted is None or amount.samples == amount.batches or settings.batch <= candidate.batch:
        return predicted
    slope = law.per_sample.value if law.kind == "linear" and law.per_sample else 0.0
    most = max(amount.samples, law.capacity) if law.kind == "saturating" else amount.samples
    reached = min(settings.samples, most)
    held, times = law.at(reached) or predicted, settings.batch / candidate.batch - 1

    def more(memory: float) -> float:
        return times * max(0.0, memory - slope * reached)

    high = None if predicted.high is None or held.high is None else predicted.high + more(held.high)
    return Estimate(predicted.value + more(held.value), predicted.low, high, predicted.count)


def _waits(candidate: Candidate, settings: Settings, *, steady: bool) -> dict[int, float]:
    """Return how long a step waits for its batch once the pipeline runs, in seconds by round."""
    amount, found = candidate.largest, {}
    for index, seconds in (amount.steady if steady and amount.steady else amount.first).items():
        closing = amount.closing.get(index, 0.0)
        load = (seconds - closing) / amount.samples * settings.batch
        closed = min(closing / amount.samples, CLOSES_WITHIN / settings.samples) * settings.batch
        if not settings.step:
            found[index] = load + closed
            continue
        slow = amount.wait.get(index)
        behind = load if slow is None else slow * amount.batches / amount.samples * settings.batch
        found[index] = max(load - settings.step, behind) + closed
    return found


def _total(candidate: Candidate, settings: Settings, once: Mapping[int, float], *, steady: bool) -> dict[int, float]:
    """Return the seconds of all epochs by round, training steps included."""
    steps = settings.epochs * settings.samples / settings.batch
    return {
        index: steps * (settings.step + wait) + once[index]
        for index, wait in _waits(candidate, settings, steady=steady).items()
    }


def once_of(candidate: Candidate, samples: int, *, steady: bool) -> dict[int, float]:
    """Return the seconds that are spent once, by round: a conversion, and what the first epoch takes beyond later ones.

    A round that lacks one of them has the mean of the others; if all lack it, it is zero.
    """
    extra = [_extra(each, each.first) for each in candidate.amounts] if steady else [{}]
    # Fresh trials of one amount and forks of another would differ by their start, and not by the amount alone.
    alike = [_extra(each, each.as_run or each.first) for each in candidate.amounts] if steady else [{}]
    convert = [each.convert for each in candidate.amounts]
    parts = _scaled(extra, alike, candidate, samples), _scaled(convert, convert, candidate, samples)
    rounds = candidate.largest.first.keys() | candidate.largest.steady.keys()
    return {
        index: math.fsum(
            found[index] if index in found else math.fsum(found.values()) / max(1, len(found)) for found in parts
        )
        for index in rounds
    }


def _extra(amount: Amount, first: Mapping[int, float]) -> dict[int, float]:
    """Return how much longer the first epoch takes than a later one, in seconds by round."""
    return {index: first[index] - each for index, each in amount.steady.items() if index in first}


def _scaled(
    values: Sequence[Mapping[int, float]], alike: Sequence[Mapping[int, float]], candidate: Candidate, samples: int
) -> dict[int, float]:
    """Return seconds by round for this many samples: on a line from the largest amount, never below zero.

    The line is as steep as ``alike`` is between the two largest amounts: the same seconds, by trials that started
    alike. Rounds with only the largest amount are left out; if all are, they are scaled in proportion.
    """
    last, at = values[-1], candidate.largest.samples
    paired = last.keys() & alike[-1].keys() & alike[-2].keys() if len(alike) > 1 else set()
    if not paired:
        return {index: max(0.0, value * samples / at) for index, value in last.items()}
    below = candidate.amounts[-2].samples
    return {
        index: max(0.0, last[index] + (alike[-1][index] - alike[-2][index]) / (at - below) * (samples - at))
        for index in sorted(paired)
    }
