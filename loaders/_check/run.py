"""Interleaved blocks of trials, A B B A, until every verdict is reached or the time is up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from loaders._check.judge import Block, Figure, Judgement, is_due, judge

GIVE_UP_AFTER = 2
"""Trials of one side that are not ok: what fails is not measured on."""


class Subject(msgspec.Struct, frozen=True):
    """A strategy in a case, and how either side is asked to run it once.

    Attributes
    ----------
    a, b
        Run one trial with a seed, and return its record.
    time
        The metric that stands for time.
    figures
        What is judged.
    """

    name: str
    time: str
    a: Callable[[int], dict[str, Any]]
    b: Callable[[int], dict[str, Any]]
    figures: tuple[Figure, ...] = ("time", "memory")


class Outcome(msgspec.Struct, frozen=True):
    """What a check found out about one strategy.

    Attributes
    ----------
    message
        Why there are no figures: what failed, on which side. Empty otherwise.
    broken
        Whether only B fails.
    """

    name: str
    time: Judgement | None
    memory: Judgement | None
    message: str = ""
    broken: bool = False

    @property
    def is_regression(self) -> bool:
        """Whether B is slower, fatter or broken beyond doubt."""
        worse = any(each and each.verdict in ("slower", "fatter") for each in (self.time, self.memory))
        return self.broken or worse

    @property
    def judgements(self) -> list[Judgement]:
        """The verdicts that there are."""
        return [each for each in (self.time, self.memory) if each]


class _State:
    """One strategy's trials so far."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.blocks: dict[Figure, list[Block]] = {figure: [] for figure in subject.figures}
        self.count = 0
        self.failed: dict[str, list[str]] = {"a": [], "b": []}
        self.given_up = False

    def run_block(self, seed: int) -> None:
        """Run A B B A and keep it where all four are ok; both sides draw alike."""
        found: dict[str, list[dict[str, Any]]] = {"a": [], "b": []}
        for letter in "abba":
            record = (self.subject.a if letter == "a" else self.subject.b)(seed)
            if record["status"] == "ok":
                found[letter].append(record["metrics"])
            else:
                self.failed[letter].append(f"{record['status'].replace('_', ' ')}: {record['message']}".rstrip(": "))
        self.given_up = any(len(each) >= GIVE_UP_AFTER for each in self.failed.values())
        if not (len(found["a"]) == len(found["b"]) == 2):
            return
        self.count += 1
        for figure in self.blocks:
            values = {side: [_value(figure, each, self.subject.time) for each in found[side]] for side in "ab"}
            if all(value is not None for side in values.values() for value in side):
                self.blocks[figure].append(Block(*(tuple(values[side]) for side in "ab")))  # type: ignore[arg-type]

    def is_due(self, questions: int) -> bool:
        """Whether another block may decide something."""
        return not self.given_up and is_due(self.count, self.outcome(questions).judgements)

    def outcome(self, questions: int) -> Outcome:
        """Judge what there is."""
        words = [f"{side.upper()} {messages[0]}" for side, messages in self.failed.items() if messages]
        if self.given_up or not self.count:
            broken = len(self.failed["b"]) >= GIVE_UP_AFTER and not self.failed["a"]
            return Outcome(self.subject.name, None, None, "; ".join(words) or "not measured: the time was up", broken)
        judged = {figure: judge(figure, blocks, questions) for figure, blocks in self.blocks.items() if blocks}
        return Outcome(self.subject.name, judged.get("time"), judged.get("memory"), "; ".join(words))


def _value(figure: Figure, metrics: dict[str, Any], time_metric: str) -> float | None:
    if figure == "time":
        return metrics.get(time_metric)
    peak = metrics.get("peak_memory")
    return None if peak is None else max(peak, metrics.get("peak_memory_tree") or 0)


def run(
    subjects: Sequence[Subject],
    seconds: float,
    *,
    questions: int | None = None,
    told: Callable[[list[Outcome]], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Outcome]:
    """Measure all subjects, the undecided ones again and again, for at most so many seconds.

    Parameters
    ----------
    questions
        How many verdicts share the chance of a false alarm; by default all that are asked for.
    told
        Is given all outcomes so far after each block; of an interrupted check it has what was measured.
    """
    end = clock() + seconds
    states = [_State(each) for each in subjects]
    shared = questions or sum(len(each.blocks) for each in states)
    seed = 0
    while due := [each for each in states if each.is_due(shared)]:
        seed += 1
        random.Random(seed).shuffle(due)  # noqa: S311
        for each in due:
            if clock() >= end:
                return [state.outcome(shared) for state in states]
            each.run_block(seed)
            told([state.outcome(shared) for state in states])
    return [each.outcome(shared) for each in states]
