from __future__ import annotations

from typing import Any, cast

import pytest

from loaders._check import plan
from loaders._check.sides import Side
from loaders._check.trials import Alone
from loaders._errors import InputError

LISTED = {"batching": ["a", "b", "c"], "selection": ["x", "y"]}


class Fake:
    """A side with these strategies, whose sources are like the other's."""

    name = "fake"

    def strategies(self) -> dict[str, Any]:
        return {question: {"strategies": [{"name": each} for each in names]} for question, names in LISTED.items()}

    def sources(self) -> dict[str, str]:
        return {}


def _names(only: list[str], *, every: bool) -> list[str]:
    sides = cast(Side, Fake()), cast(Side, Fake())
    chosen = plan.chosen(*sides, only, lambda _: None, every=every)
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
