from __future__ import annotations

from itertools import product

import msgspec

from loaders._advise import coverage
from loaders._compare.plans import LEAST_ROUNDS
from loaders._trial.record import Environment

HERE = Environment(python="3.11.7", packages={"tensorflow": "2.21"})


def test_more_is_as_many_of_both_and_more_of_either() -> None:
    every = [coverage.of([rounds] * strategies, HERE) for strategies, rounds in product((1, 2, 3), repeat=2)]
    for one, other in product(every, repeat=2):
        no_less = one.strategies >= other.strategies and one.rounds >= other.rounds
        assert one.exceeds(other) == (no_less and one != other)


def test_rounds_that_not_every_strategy_gets_do_not_count() -> None:
    whole = coverage.of([LEAST_ROUNDS] * 3, HERE)
    assert not coverage.of([LEAST_ROUNDS, LEAST_ROUNDS, LEAST_ROUNDS * 3], HERE).exceeds(whole)
    assert not coverage.of([LEAST_ROUNDS * 3] * 3, HERE).exceeds(whole)
    assert whole.exceeds(coverage.of([1, 1, LEAST_ROUNDS], HERE))


def test_other_versions_are_no_match() -> None:
    few = coverage.of([1], HERE)
    for change in ({"python": "3.12.0"}, {"packages": {"tensorflow": "2.22"}}):
        assert not coverage.of([9, 9], msgspec.structs.replace(HERE, **change)).exceeds(few)
    assert coverage.of([], HERE) == (0, 0, ("3.11.7", "2.21"))
