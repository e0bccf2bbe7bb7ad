"""What a check measures: strategies that both sides have and that may differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from loaders import _registry
from loaders._check.run import FALLBACK, Subject
from loaders._check.sides import Side
from loaders._check.touched import edited, touched
from loaders._check.trials import Trials
from loaders._errors import InputError


def chosen(
    a: Side, b: Side, only: Sequence[str], say: Callable[[str], None], *, every: bool = False
) -> tuple[dict[str, list[str]], list[str]]:
    """Return the strategies to measure, by question, and those left out that the change can have touched as well.

    Parameters
    ----------
    only
        ``QUESTION`` or ``QUESTION.STRATEGY``; if empty, what the change can have touched. If all of a question is
        touched, only its quick strategies run, and those whose own code differs.
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
    both = {name: common for name, own in listed[0].items() if (common := own & listed[1].get(name, set()))}
    asked = list(only) or (list(both) if every else [])
    if asked:
        return {question: sorted(names) for question, names in _named(asked, both).items()}, []
    sources = a.sources(), b.sources()
    found, own_code = touched(*sources, both), edited(*sources, both)
    measured = {
        question: _standing_for(question, names, both[question], own_code[question])
        for question, names in found.items()
    }
    left_out = [f"{question}.{name}" for question, names in found.items() for name in names - measured[question]]
    return {question: sorted(names) for question, names in measured.items()}, sorted(left_out)


def subjects(strategies: Mapping[str, Sequence[str]], trials: Trials, environments: str = "") -> list[Subject]:
    """Return the strategies with how each side runs them; ``environments`` says how the sides' environments differ."""
    return [_subject(question, name, trials, environments) for question, names in strategies.items() for name in names]


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


def _standing_for(question: str, names: set[str], every: Collection[str], own_code: set[str]) -> set[str]:
    """Return only the quick strategies and those of ``own_code`` if all are touched: all of them would take hours."""
    quick = set(_registry.quick(question) if question in _registry.questions() else ()) & names
    return quick | own_code if quick and names == set(every) else names


def _subject(question: str, name: str, trials: Trials, environments: str) -> Subject:
    known = _registry.questions().get(question)
    full, runs = f"{question}.{name}", trials.of(question, name)
    return Subject(
        full,
        known.ranked_by if known else FALLBACK,
        runs.a,
        runs.b,
        start=trials.start_of(full),
        in_turn=runs.in_turn,
        environments=environments,
    )
