"""Interleaved blocks of trials or of their epochs, A B B A, until every verdict is reached or the time is up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from loaders._check.judge import (
    EVERY_LOOK,
    LOOKS,
    NONE_FAILED,
    Block,
    Failures,
    Figure,
    Judgement,
    is_due,
    judge,
    shown,
    usual_blocks,
)
from loaders._judge import Difference
from loaders._trial.workers import is_unknown

FALLBACK = "epoch_time"
"""The metric that every record has. A metric that an older commit's trials lack is used for neither side."""

LEFT_OUT = "it is not quick, and its own code is the same"
"""Why a strategy is not measured although the change has touched all of its question."""

NONE_RAN = "none of its blocks was run"
"""Why it is not measured, where nothing else says why."""

GIVE_UP_AFTER = 3
"""Rounds in a row that nothing could be run in."""

LACKING = "not installed"
"""What a trial says that is skipped for want of a package."""


class Subject(msgspec.Struct, frozen=True):
    """A strategy in a case, and how each side runs it once.

    Attributes
    ----------
    a, b
        Run one trial with a seed, and return its record.
    time
        The metric used as time.
    figures
        The figures that are judged.
    start
        How its trials start on both sides: ``fresh`` or ``forked``.
    in_turn
        Runs one trial of each side, whose epochs alternate, and returns both records. That is a block then; without it,
        a block is four trials.
    environments
        How the versions of Python and of packages differ between the sides, in words. Empty if they do not.
    """

    name: str
    time: str
    a: Callable[[int], dict[str, Any]]
    b: Callable[[int], dict[str, Any]]
    figures: tuple[Figure, ...] = ("time", "memory")
    start: str = "fresh"
    in_turn: Callable[[int], Sequence[dict[str, Any]]] | None = None
    environments: str = ""


UNCONFIRMED = ("undecided", "no difference")
"""Verdicts that confirm no difference."""


class Outcome(msgspec.Struct, frozen=True):
    """What a check found out about one strategy.

    Attributes
    ----------
    message
        The first failure of each side, or why nothing was measured. Empty otherwise.
    broken
        Whether B fails more often, beyond doubt.
    failures
        How many trials of each side failed.
    timed_by
        The metric used as time, if it is not the one that ranks the question because a side lacks that.
    start
        How its trials started on both sides: ``fresh`` or ``forked``.
    skipped
        Why it is not compared: neither side runs it here, or it needs a package that only one side's environment has,
        or it was left out (``LEFT_OUT``). Empty otherwise.
    environments
        How the sides' environments differ, in words. Empty if they do not.
    """

    name: str
    time: Judgement | None
    memory: Judgement | None
    message: str = ""
    broken: bool = False
    failures: Failures = NONE_FAILED
    timed_by: str = ""
    start: str = "fresh"
    skipped: str = ""
    environments: str = ""

    @property
    def is_regression(self) -> bool:
        """Whether B is slower or fatter, or fails more often, beyond doubt."""
        worse = any(each and each.verdict in ("slower", "fatter") for each in (self.time, self.memory))
        return self.broken or worse

    @property
    def judgements(self) -> list[Judgement]:
        """The judgements that exist, of time and memory."""
        return [each for each in (self.time, self.memory) if each]


class _State:
    """One strategy's trials so far; ``every`` are those of all."""

    def __init__(self, subject: Subject, every: Sequence[_State]) -> None:
        self.subject, self.every = subject, every
        self.measured: list[dict[str, list[dict[str, Any]]]] = []
        self.count = 0
        self.ran = {"a": 0, "b": 0}
        self.seconds = 0.0
        self.judged: Outcome | None = None
        self.paired: dict[Figure, list[Block]] = {}
        self.differences: dict[Figure, Difference | None] = {}
        self.seen: dict[tuple[Figure, str], tuple[Judgement, int]] = {}  # with its last look; times by their metric
        self.failed: dict[str, list[str]] = {"a": [], "b": []}
        self.skips: dict[str, str] = {}
        self.why_not = NONE_RAN
        self.schemas: dict[str, int | None] = {"a": None, "b": None}

    def run_block(self, seed: int) -> None:
        """Run A B B A and keep what is ok; both sides get the same seed. What is skipped at first is left at that."""
        found: dict[str, list[dict[str, Any]]] = {"a": [], "b": []}
        for letter, record in self._records(seed):
            self.ran[letter] += 1
            if record["status"] == "ok":
                self.schemas[letter] = record.get("schema")
                found[letter].append(record["metrics"])
            else:
                self.failed[letter].append(f"{record['status'].replace('_', ' ')}: {record['message']}".rstrip(": "))
                if record["status"] == "skipped" and self.count == 0:
                    self.skips[letter] = record["message"]
            if self.skipped:
                break
        self.count += 1
        self.measured.append(found)
        self.judged, self.paired, self.differences = None, {}, {}

    def _records(self, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
        if self.subject.in_turn:
            yield from zip("ab", self.subject.in_turn(seed), strict=True)
        else:
            for letter in "abba":
                yield letter, (self.subject.a if letter == "a" else self.subject.b)(seed)

    @property
    def skipped(self) -> str:
        """Why it is not compared: neither side runs it here, or one side's environment lacks a package."""
        if len(self.skips) == len(self.failed):
            return self.skips["b"]
        alone = [
            f"on {letter.upper()} alone: {why}"
            for letter, other in ("ab", "ba")
            if (why := self.skips.get(letter)) and LACKING in why and self.ran[other] and not self.failed[other]
        ]
        return alone[0] if alone and self.subject.environments else ""

    @property
    def failures(self) -> Failures:
        """How many trials have failed."""
        return Failures(len(self.failed["a"]), len(self.failed["b"]), self.ran["a"], self.ran["b"])

    @property
    def are_two_instruments(self) -> bool:
        """Whether the sides' records have different meanings, so that their figures must not be compared."""
        return None not in self.schemas.values() and self.schemas["a"] != self.schemas["b"]

    def is_due(self, questions: int) -> bool:
        """Whether another block may decide something."""
        if self.are_two_instruments or self.skipped:
            return False
        if self.count not in EVERY_LOOK and not self.failures.is_hopeless:
            return True  # without judging, which takes a while and is not needed yet
        return is_due(self.count, self.outcome(questions).judgements, self.failures, questions)

    def seconds_until(self, enough: int) -> float:
        """Seconds until the look after which there are enough blocks, as they have taken so far; 0 if none was run."""
        look = min((each for each in EVERY_LOOK if each >= enough), default=EVERY_LOOK[-1])
        return (look - self.count) * self.seconds / max(1, self.count)

    def is_decided(self, questions: int) -> bool:
        """Whether all its figures have a verdict, or will get none."""
        found = self.outcome(questions).judgements
        return self.count >= LOOKS[-1] or (bool(found) and all(each.verdict != "undecided" for each in found))

    def seconds_to_go(self, questions: int) -> float:
        """Seconds until all is decided at this spread, or until the figures' last look if nobody knows."""
        open_ = [each for each in self.outcome(questions).judgements if each.verdict == "undecided"]
        enough = (min(each.enough or LOOKS[-1], LOOKS[-1]) for each in open_)
        return self.seconds_until(max([self.count + 1, *enough]))

    def outcome(self, questions: int) -> Outcome:
        """Judge the trials so far, once after each block."""
        if self.judged is None:
            found = self._outcome(questions)
            self.judged = msgspec.structs.replace(found, environments=self.subject.environments)
        return self.judged

    def _outcome(self, questions: int) -> Outcome:
        subject = self.subject
        if self.skipped:
            return Outcome(subject.name, None, None, start=subject.start, skipped=self.skipped)
        words = [f"{side.upper()} {messages[0]}" for side, messages in self.failed.items() if messages]
        if self.are_two_instruments:
            words.append(
                f"A and B measure with different instruments (records of schema {self.schemas['a']} and "
                f"{self.schemas['b']}), so nothing is concluded"
            )
            return Outcome(subject.name, None, None, "; ".join(words), failures=self.failures, start=subject.start)
        judged = {figure: self._judged(figure, questions) for figure in subject.figures if self.blocks(figure)}
        return Outcome(
            subject.name,
            judged.get("time"),
            judged.get("memory"),
            "; ".join(words) or ("" if judged else f"not measured: {self.why_not}"),
            self.failures.are_more(questions),
            self.failures,
            self._time_metric if self._time_metric != subject.time else "",
            subject.start,
        )

    def _judged(self, figure: Figure, questions: int) -> Judgement:
        """Judge a figure at the last look that its blocks reach.

        A verdict that was reached stays: its look has its share of the chance of error. "No difference" alone, which
        needs less, gives way to a difference that a later look confirms: that look has its share too. Between looks
        there is none, as a judgement after each block would be a look more.
        """
        blocks, key = self.blocks(figure), (figure, self._time_metric if figure == "time" else "")
        at = max((look for look in LOOKS if look <= len(blocks)), default=len(blocks))
        known, looked = self.seen.get(key, (None, 0))
        if known is None or (known.verdict in UNCONFIRMED and looked < at):
            others = [each.difference(figure) for each in self.every if each is not self]
            found = judge(figure, blocks[:at], questions, [each for each in others if each])
            if known is None or known.verdict == "undecided" or found.verdict not in UNCONFIRMED:
                known = found
            self.seen[key] = known, at
        return known

    @property
    def _time_metric(self) -> str:
        ok = [metrics for found in self.measured for side in found.values() for metrics in side]
        return self.subject.time if all(each.get(self.subject.time) is not None for each in ok) else FALLBACK

    def blocks(self, figure: Figure) -> list[Block]:
        """Return the blocks in which both sides have a figure: a failed trial costs only itself.

        Those after the last look at figures tell only how often trials fail.
        """
        if figure not in self.paired:
            found, time_metric = [], self._time_metric
            for each in self.measured[: LOOKS[-1]]:
                values = {
                    side: tuple(value for one in metrics if (value := _value(figure, one, time_metric)) is not None)
                    for side, metrics in each.items()
                }
                if values["a"] and values["b"]:
                    found.append(Block(values["a"], values["b"]))
            self.paired[figure] = found
        return self.paired[figure]

    def difference(self, figure: Figure) -> Difference | None:
        """Return what its blocks show, worked out once after each block: all others are judged by it as well."""
        if figure not in self.differences:
            self.differences[figure] = shown(figure, self.blocks(figure))
        return self.differences[figure]


def _value(figure: Figure, metrics: dict[str, Any], time_metric: str) -> float | None:
    if figure == "time":
        return metrics.get(time_metric)
    peak, of_tree = metrics.get("peak_memory"), metrics.get("peak_memory_tree")
    if is_unknown(of_tree, metrics.get("anonymous_memory"), metrics.get("tree_readings")):
        return None
    return None if peak is None else max(peak, of_tree or 0)


def run(
    subjects: Sequence[Subject],
    seconds: float,
    *,
    questions: int | None = None,
    apart: bool = False,
    begin: Callable[[Sequence[str]], str | None] = lambda _: None,
    told: Callable[[list[Outcome]], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Outcome]:
    """Measure all subjects, the undecided ones again and again, for at most this many seconds.

    Parameters
    ----------
    questions
        How many verdicts share the chance of a false alarm; by default all that are asked for, including failures.
    apart
        Judge each strategy as if it were measured alone, not by what the others' spreads say about its own.
    begin
        Called before each round of blocks, with the names of those that it measures. If it returns why none can be
        forked, the round is left out by those whose trials are; after several that nothing can run in, the check ends.
    told
        Called with all outcomes so far, at first and after each block, so an interrupted check has what was measured.
    """
    begun = clock()
    end, half = begun + seconds, begun + seconds / 2
    states: list[_State] = []
    states += [_State(each, [] if apart else states) for each in subjects]

    def shared() -> int:
        """Return the number of questions, which the first round settles: what is skipped asks none."""
        return questions or sum(len(each.subject.figures) + 1 for each in states if not each.skipped)

    if told:
        told([state.outcome(shared()) for state in states])
    seed, idle = 0, 0
    while due := _in_reach([each for each in states if each.is_due(shared())], end - clock(), shared()):
        seed += 1
        random.Random(seed).shuffle(due)  # noqa: S311
        lost = begin([each.subject.name for each in due])
        idle = idle + 1 if lost and all(each.subject.start == "forked" for each in due) else 0
        if idle == GIVE_UP_AFTER:
            break
        for each in due:
            before = clock()
            if before >= end:
                return _late(states, shared())
            if lost and each.subject.start == "forked":
                each.why_not, each.judged = lost, None
                continue
            if before >= half and seed == 1:
                continue  # the rest of the time is first for those that have begun
            each.run_block(seed)
            each.seconds += clock() - before
            if told:
                told([state.outcome(shared()) for state in states])
    return _late(states, shared())


def _late(states: Sequence[_State], questions: int) -> list[Outcome]:
    """Return the outcomes at the end, when the time is up for whatever has had no block."""
    for each in states:
        if not each.count and each.why_not == NONE_RAN:
            each.why_not, each.judged = "the time was up", None
    return [each.outcome(questions) for each in states]


def _in_reach(due: Sequence[_State], seconds: float, questions: int) -> list[_State]:
    """Return the strategies whose next blocks are run: first those that are nearest to a decision.

    Those of which all is decided, and of which only more trials can tell how often they fail, come last. A strategy
    that cannot be decided in the time left waits, so that others can be; the nearest one never waits. It waits at
    looks alone, or before its first one, when nothing is judged: when it is judged must not depend on what its
    latest blocks have shown. Before its first look it is expected to need as many blocks as others of this check,
    and before its first block as many seconds for each.
    """
    found = [each for each in due if each.count > LOOKS[0] and each.count not in EVERY_LOOK]
    left = seconds - sum(each.seconds_until(each.count + 1) for each in found)
    waiting: list[tuple[float, _State]] = []
    if early := [each for each in due if each.count < LOOKS[0]]:
        every = early[0].every
        usual = usual_blocks([each.blocks("time") for each in every])
        a_block = sum(each.seconds for each in every) / max(1, sum(each.count for each in every))
        waiting += [(each.seconds_until(usual) if each.count else usual * a_block, each) for each in early]
    waiting += [(each.seconds_to_go(questions), each) for each in due if each.count in EVERY_LOOK]
    waiting.sort(key=lambda pair: (pair[1].is_decided(questions), pair[0]))
    for needed, each in waiting:
        left -= needed
        if left >= 0 or not found:
            found.append(each)
    return found
