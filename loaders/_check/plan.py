"""What a check measures: strategies that both sides have and that may differ, and how to run each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from loaders import _registry
from loaders._check.run import Subject
from loaders._check.sides import Side
from loaders._check.touched import touched
from loaders._errors import InputError


def subjects(
    a: Side, b: Side, only: Sequence[str], size: str, say: Callable[[str], None], *, every: bool = False
) -> list[Subject]:
    """Return what to measure.

    Parameters
    ----------
    only
        ``QUESTION`` or ``QUESTION.STRATEGY``; if empty, what the change can have touched. If all of a question is
        touched, only its quick strategies run.
    say
        Called with what cannot be compared because one side lacks it.
    every
        Measure all, or all of ``only``, whatever the change can have touched.

    Raises
    ------
    InputError
        For a name that the two sides do not both have.
    """
    listed = [_names(side.strategies()) for side in (a, b)]
    for side, own, other in ((a, listed[0], listed[1]), (b, listed[1], listed[0])):
        alone = [f"{question}.{name}" for question, names in own.items() for name in names - other.get(question, set())]
        if alone:
            say(f"only {side.name} has {', '.join(sorted(alone))}: nothing to compare with")
    both = {question: names & listed[1].get(question, set()) for question, names in listed[0].items()}
    asked = list(only) or (list(both) if every else [])
    chosen = _named(asked, both) if asked else touched(a.sources(), b.sources(), both)
    return [
        _subject(a, b, question, name, size)
        for question, names in chosen.items()
        for name in sorted(names if asked else _standing_for(question, names, both[question]))
    ]


def _names(listed: Mapping[str, Any]) -> dict[str, set[str]]:
    return {question: {each["name"] for each in about["strategies"]} for question, about in listed.items()}


def _named(only: Sequence[str], both: Mapping[str, set[str]]) -> dict[str, set[str]]:
    chosen: dict[str, set[str]] = {}
    for each in only:
        question, _, name = each.partition(".")
        if question not in both or (name and name not in both[question]):
            there_are = ", ".join(sorted(both.get(question, both)))
            raise InputError(f"--only {each}: not on both sides; there are {there_are}")
        chosen.setdefault(question, set()).update({name} if name else both[question])
    return chosen


def _standing_for(question: str, names: set[str], every: Collection[str]) -> set[str]:
    """Return only the quick strategies if the whole question is touched: all of them would take hours."""
    quick = set(_registry.quick(question) if question in _registry.questions() else ()) & names
    return quick if quick and names == set(every) else names


def _subject(a: Side, b: Side, question: str, name: str, size: str) -> Subject:
    known = _registry.questions().get(question)

    def running(side: Side) -> Callable[[int], dict[str, Any]]:
        return lambda seed: side.trial([question, name, "--size", size, "--seed", str(seed)])

    return Subject(f"{question}.{name}", known.ranked_by if known else "epoch_time", running(a), running(b))
