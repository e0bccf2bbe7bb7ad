from __future__ import annotations

from itertools import permutations

import msgspec
import pytest

from loaders._advise import coverage
from loaders._compare.plans import LEAST_ROUNDS
from loaders._trial.log import PUBLISHED
from loaders._trial.record import Environment

HERE = Environment(machine="reference-x", python="3.11.7", packages={"tensorflow": "2.21"})
OLD, NEW = "2026-01-02", "2026-05-01"


def _of(
    strategies: int,
    rounds: int,
    started: str = OLD,
    machine: str = "reference-x",
    tensorflow: str = "2.21",
    *,
    is_closed: bool = True,
) -> coverage.Coverage:
    where = msgspec.structs.replace(HERE, machine=machine, packages={"tensorflow": tensorflow})
    return coverage.of([rounds] * strategies, where, started, is_closed=is_closed)


@pytest.mark.parametrize(
    ("best", "others"),
    [
        (_of(15, 4), [_of(14, 4, NEW, PUBLISHED), _of(15, 3, NEW)]),
        (_of(14, 5), [_of(14, 4, NEW, PUBLISHED), _of(13, 5, NEW)]),
        (_of(19, 8), [_of(34, 1, NEW, PUBLISHED), _of(3, 8, NEW)]),  # many strategies once, or few of them often
        (_of(14, 4, OLD, PUBLISHED), [_of(14, 4, NEW), _of(8, 7, NEW)]),  # as much as the published machine
        (_of(14, 4), [_of(14, 4, NEW, PUBLISHED, is_closed=False), _of(13, 4, NEW, PUBLISHED)]),
        (_of(15, 4, is_closed=False), [_of(14, 4, NEW, PUBLISHED)]),
        (_of(14, 4, NEW), [_of(14, 4), _of(13, 4, "2026-06-01")]),
        (_of(2, 1, OLD, PUBLISHED), [_of(9, 9, NEW, tensorflow="2.22")]),
        (_of(2, 1, NEW, tensorflow="2.22"), [_of(9, 9)]),
    ],
    ids=[
        "strategies",
        "rounds",
        "both",
        "published",
        "closed",
        "more before closed",
        "newest",
        "versions of the published",
        "versions of the newest",
    ],
)
def test_what_covers_most_answers_in_whatever_order_it_is_met(
    best: coverage.Coverage, others: list[coverage.Coverage]
) -> None:
    for found in permutations([best, *others]):
        assert coverage.most(found, lambda each: each) == best


def test_rounds_that_not_every_strategy_gets_do_not_count() -> None:
    whole = _of(3, LEAST_ROUNDS)
    for counts in ([LEAST_ROUNDS, LEAST_ROUNDS, LEAST_ROUNDS * 3], [LEAST_ROUNDS * 3] * 3):
        assert coverage.of(counts, HERE, OLD, is_closed=True) == whole
    assert coverage.of([1, 1, LEAST_ROUNDS], HERE, OLD, is_closed=True) == _of(3, 1)


def test_of_nothing_nothing_answers() -> None:
    assert coverage.most([], lambda each: each) is None
    assert coverage.of([], HERE, OLD, is_closed=True).strategies == 0
