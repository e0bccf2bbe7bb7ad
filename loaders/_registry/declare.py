"""How questions and strategies are declared, and found by name."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, Unpack, overload

from loaders._contract import TIERS
from loaders._errors import InputError
from loaders._registry.values import ENGINES, Batch, Build, BuildT, Facts, Job, Question, Variant

Place = int | str
"""Of a strategy in a sweep."""

SweptT = TypeVar("SweptT", bound=Callable[..., Iterable[Batch]])

AT = "_at_"
"""Stands for the place in the name of a sweep that goes on after it."""

PARTS = 3
"""Of the name of a question's module; a module of a question that is a package has more."""

_variants: dict[str, dict[str, Variant]] = {}
_own: dict[str, Question] = {}


@overload
def variant(build: BuildT, /) -> BuildT: ...


@overload
def variant(
    *, question: str | None = None, sweep: None = None, **facts: Unpack[Facts]
) -> Callable[[BuildT], BuildT]: ...


@overload
def variant(
    *, question: str | None = None, sweep: Mapping[Place, Facts], **facts: Unpack[Facts]
) -> Callable[[SweptT], SweptT]: ...


def variant(
    build: Build | None = None,
    /,
    *,
    question: str | None = None,
    sweep: Mapping[Place, Facts] | None = None,
    **facts: Unpack[Facts],
) -> Any:
    """Declare a strategy; the function is returned unchanged.

    Parameters
    ----------
    question
        The question that it answers; by default that of the module, or package, which defines it.
    sweep
        Declares a strategy for each of these places: ``sweep={1: {}, 2: {}}`` over ``name`` declares ``name_1`` and
        ``name_2``; over ``name_at_rest``, ``name_1_rest`` and ``name_2_rest``. The function is given the place after
        the job, and ``{at}`` in its docstring is the place. What a place maps to are facts of that strategy alone.
    facts
        See ``Variant``. Exactly one strategy of a question is its ``baseline``.

    Raises
    ------
    InputError
        For a function without a question or a docstring, an unknown tier or engine, or a name already taken.
    """

    def register(function: Callable[..., Iterable[Batch]]) -> Callable[..., Iterable[Batch]]:
        if sweep is None:
            _register(function, question, facts)
        for at, own in (sweep or {}).items():
            _register(_at(function, at), question, {**facts, "at": str(at), **own})
        return function

    return register if build is None else register(build)


def _register(function: Build, question: str | None, facts: Facts) -> None:
    belongs_to = question or _question_of(function.__module__)
    if belongs_to is None:
        raise InputError(
            f"{function.__name__}: a strategy outside the package says which question it answers: "
            f'@variant(question="selection")'
        )
    if (tier := facts.get("tier", TIERS[0])) not in TIERS:
        raise InputError(f"{function.__name__}: tier {tier!r} is none of {', '.join(TIERS)}")
    engine = facts.get("engine", _engine_of(function.__module__, facts.get("optional", ())))
    if engine not in ("", *ENGINES.values(), *facts.get("optional", ())):
        raise InputError(f"{function.__name__}: engine {engine!r} is none of {', '.join(ENGINES.values())}")
    if not function.__doc__:
        raise InputError(f"{function.__name__} has no docstring; its first line is the strategy's label")
    strategies = _variants.setdefault(belongs_to, {})
    if function.__name__ in strategies:
        raise InputError(f"{belongs_to} already has a strategy named {function.__name__}")
    declared: Facts = {**facts, "engine": engine}
    strategies[function.__name__] = Variant(question=belongs_to, name=function.__name__, build=function, **declared)


def _engine_of(module: str, optional: Sequence[str]) -> str:
    """Return what a module's strategies are put together by: the package that they need, in a module named after it."""
    name = module.rpartition(".")[2]
    return ENGINES.get(name, name if name in optional and len(module.split(".")) > PARTS else "")


def also(question: str, build: Build, **facts: Unpack[Facts]) -> None:
    """Let another question, in all its cases, have a strategy too, with the same facts but these."""
    (known,) = {id(each): each for of in _variants.values() for each in of.values() if each.build is build}.values()
    declared = dataclasses.replace(known, question=question, baseline=False, quick=False, matches=None, only={})
    _variants.setdefault(question, {})[known.name] = dataclasses.replace(declared, **facts)


def _at(function: Callable[..., Iterable[Batch]], at: Place) -> Build:
    """Return a function of a sweep at one of its places, by a name of its own."""

    @functools.wraps(function)
    def build(job: Job[Any]) -> Iterable[Batch]:
        return function(job, at)

    name = function.__name__
    build.__name__ = (name.replace(AT, f"_{at}_") if AT in name else f"{name}_{at}").lower()
    build.__doc__ = (function.__doc__ or "").replace("{at}", str(at))
    return build


def _question_of(module: str) -> str | None:
    """Return the question that a module of the package belongs to."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["loaders", "questions"] else None


def questions() -> dict[str, Question]:
    """Return every question of the package by name; importing their modules registers their strategies."""
    return dict(_declared())


@functools.cache
def _declared() -> dict[str, Question]:
    found = {}
    for module_info in pkgutil.iter_modules([str(Path(__file__).parents[1] / "questions")]):
        module = importlib.import_module(f"loaders.questions.{module_info.name}")
        declared: Question = module.QUESTION
        _import_parts(module, declared.modules)
        found[module_info.name] = Question(
            **{**declared.__dict__, "name": module_info.name, "doc": inspect.cleandoc(module.__doc__ or "")}
        )
    return found


def _import_parts(package: ModuleType, first: Iterable[str]) -> None:
    """Import the modules of a question that is a package, which registers their strategies: these first, then by name.

    A question that is one module has none.
    """
    found = [each.name for each in pkgutil.iter_modules(getattr(package, "__path__", ()))]  # sorted
    for name in dict.fromkeys([*first, *found]):
        importlib.import_module(f"{package.__name__}.{name}")


def declare_question(name: str, question: Question) -> None:
    """Declare a question that is none of the package's: nothing lists or compares it."""
    _own[name] = dataclasses.replace(question, name=name)


def find_question(name: str) -> Question:
    """Return one question by its name; an unknown name is an ``InputError`` that suggests the nearest one."""
    known = {**questions(), **_own}
    if name not in known:
        raise InputError(f"unknown question {name!r}{_nearest(name, known)}")
    return known[name]


def variants(question: str) -> dict[str, Variant]:
    """Return the strategies of a question in the order of their declaration, ``--with`` files last."""
    find_question(question)
    return dict(_variants.get(question, {}))


def quick(question: str) -> list[str]:
    """Return the strategies that a quick comparison runs; all of them if none is declared quick."""
    known = variants(question)
    return [name for name, each in known.items() if each.quick] or list(known)


def find_variant(question: str, name: str) -> Variant:
    """Return one strategy; an unknown name is an ``InputError`` that suggests the nearest one."""
    known = variants(question)
    if name not in known:
        raise InputError(f"{question} has no strategy {name!r}{_nearest(name, known)}")
    return known[name]


def baseline(question: str) -> Variant:
    """Return the strategy that this question's ratios are relative to."""
    (found,) = (each for each in variants(question).values() if each.baseline)
    return found


def _nearest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(names)}"
