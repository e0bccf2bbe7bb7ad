from __future__ import annotations

from typing import Any, cast

import pytest

from loaders import _registry
from loaders._check import plan
from loaders._check.sides import Side
from loaders._check.trials import Alone
from loaders._errors import InputError

LISTED = {"batching": ["a", "b", "c"], "selection": ["x", "y"]}

MODULE = """
import os

QUESTION = 1


def a(job):
    return 1


def b(job):
    return 2


def c(job):
    return 3
"""


class Fake:
    """A side with these strategies, and with a module of one question."""

    name = "fake"

    def __init__(self, module: str = "", listed: dict[str, list[str]] = LISTED) -> None:
        self._module, self._listed = module, listed

    def strategies(self) -> dict[str, Any]:
        return {
            question: {"strategies": [{"name": each} for each in names]} for question, names in self._listed.items()
        }

    def sources(self) -> dict[str, str]:
        return {"loaders/questions/batching/__init__.py": self._module}


def _names(only: list[str], *, every: bool) -> list[str]:
    sides = cast(Side, Fake()), cast(Side, Fake())
    chosen, _ = plan.chosen(*sides, only, lambda _: None, every=every)
    return [each.name for each in plan.subjects(chosen, Alone(sides, "tiny"))]


@pytest.mark.parametrize(
    ("only", "every", "expected"),
    [
        ([], False, []),
        ([], True, ["batching.a", "batching.b", "batching.c", "selection.x", "selection.y"]),
        (["batching"], True, ["batching.a", "batching.b", "batching.c"]),
        (["batching"], False, ["batching.a", "batching.b", "batching.c"]),
        (["batching.b", "selection"], True, ["batching.b", "selection.x", "selection.y"]),
    ],
)
def test_what_is_named_is_measured_and_nothing_else(only: list[str], every: bool, expected: list[str]) -> None:
    assert _names(only, every=every) == expected


def test_a_name_that_neither_side_has_is_an_error_with_all_too() -> None:
    with pytest.raises(InputError, match="not on both sides"):
        _names(["nothing"], every=True)


@pytest.mark.parametrize(
    ("changes", "measured", "left_out"),
    [
        ({"import os": "import sys"}, ["a"], ["batching.b", "batching.c"]),
        ({"import os": "import sys", "return 2": "return 4"}, ["a", "b"], ["batching.c"]),
        ({"return 2": "return 4"}, ["b"], []),
    ],
)
def test_where_all_is_touched_the_quick_and_the_edited_are_measured_and_the_others_named(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], measured: list[str], left_out: list[str]
) -> None:
    monkeypatch.setattr(_registry, "quick", lambda _: ["a"])
    after = MODULE
    for old, new in changes.items():
        after = after.replace(old, new)
    sides = cast(Side, Fake(MODULE)), cast(Side, Fake(after))
    assert plan.chosen(*sides, [], lambda _: None) == ({"batching": measured}, left_out)


@pytest.mark.parametrize("listed", [{"batching": ["a"]}, {"batching": ["a"], "selection": ["renamed"]}])
def test_a_question_of_which_one_side_has_nothing_is_left_out_and_no_name(listed: dict[str, list[str]]) -> None:
    sides = cast(Side, Fake()), cast(Side, Fake(listed=listed))
    said: list[str] = []
    chosen, _ = plan.chosen(*sides, [], said.append, every=True)
    assert chosen == {"batching": ["a"]}
    assert "selection.x" in said[0]
    with pytest.raises(InputError, match="selection"):
        plan.chosen(*sides, ["selection"], said.append, every=True)
