"""What is predicted of more workers, from costs that are planted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from loaders import _registry, _scale
from loaders._report import findings
from loaders._rows import Comparison, Row, about
from loaders._scale import Costs
from loaders._stats import Estimate
from loaders._trial.record import Environment

IMAGES = 640
small = st.floats(1e-6, 1.0)
some_costs = st.builds(Costs, each=small, client=small, dispatcher=small, workers=small, wire=st.floats(1, 1e7))


@given(some_costs, st.integers(1, 64), st.integers(1, 64))
def test_more_workers_or_more_cores_never_deliver_less(cost: Costs, count: int, cores: int) -> None:
    assert cost.here(count + 1, cores) >= cost.here(count, cores)
    assert cost.here(count, cores + 1) >= cost.here(count, cores)
    assert cost.here(count, cores) <= count / cost.each


@given(some_costs, st.floats(0.1, 1e5), st.integers(1, 64))
def test_as_many_workers_as_are_needed_are_enough_and_one_less_is_not(cost: Costs, rate: float, cores: int) -> None:
    count = cost.needed(rate, cores)
    if count is None:
        assert rate > min(cost.limits(cores).values())
        return
    assert count / cost.each >= rate * (1 - 1e-9)
    assert count == 1 or (count - 1) / cost.each < rate * (1 + 1e-9)


@given(some_costs, st.integers(1, 64))
def test_what_ends_first_is_what_costs_most(cost: Costs, cores: int) -> None:
    limits = cost.limits(cores)
    assume(len(set(limits.values())) == len(limits))
    first = min(limits, key=lambda name: limits[name])
    if first == "the client's processors":
        assert cost.needed(1.01 * limits[first], cores) is None
        assert cost.limits(cores + 1)[first] > limits[first]
    assert cost.needed(1.01 * limits[first], cores) is None


def _row(workers: int, seconds: float, roles: Mapping[str, float], wire: float = 100_000, **more: Any) -> Row:
    name = f"service_{workers}_refreshed"
    row = Row("service", name, "", "identical", None, {"storage": "slow"}, False, "ok", 3, 3)
    figures = {"time": Estimate(seconds, None, None, 3), "wire": Estimate(wire, None, None, 3)}
    facts = {"figures": figures, "roles": dict(roles), "delivered": IMAGES, "series": _scale.SERIES, "at": str(workers)}
    return msgspec.structs.replace(row, **{**facts, **more})


ROLES = {"client": 0.2, "dispatcher": 0.01, "workers": 1.0}


def _comparison(rows: list[Row]) -> Comparison:
    environment = Environment(cores=2)
    found = Comparison("service", "", "r", "full", "d", "now", 3, "steady_time", 2, environment, rows)
    return msgspec.structs.replace(found, about=about(_registry.find_question("service")))


def test_costs_are_read_from_one_and_two_workers() -> None:
    rows = [_row(1, 3.2, ROLES), _row(2, 1.6, ROLES), _row(4, 0.8, {})]
    cost = _scale.costs(rows)
    assert cost is not None
    assert cost.each == pytest.approx(3.2 / IMAGES)
    assert (cost.client, cost.workers, cost.wire) == (0.2 / IMAGES, 1.0 / IMAGES, 100_000)
    assert _scale.costs(rows[1:]) is None
    assert _scale.costs([rows[0], msgspec.structs.replace(rows[1], roles={})]) is None


def test_a_prediction_is_held_against_what_four_workers_deliver() -> None:
    """Four would deliver 800 images a second by their number; the two cores that all share are used up at 1058."""
    rows = [_row(1, 3.2, ROLES), _row(2, 1.6, ROLES), _row(4, 0.8, ROLES)]
    (said,) = findings.of_scale(_comparison(rows))
    assert "With storage slow one worker delivers 200 images/s" in said
    assert "4 workers deliver 800 images/s, as many as the 800 predicted for processes that share 2 cores" in said
    assert "the client's processors at 6400" in said
    assert "a link of 10 Gbit/s at 12500" in said
    assert "; more than 32 workers would add nothing" in said
    slower = [*rows[:2], _row(4, 1.0, ROLES)]
    assert "640 images/s, 20 % less than the 800 predicted" in findings.of_scale(_comparison(slower))[0]
    crowded = [_row(1, 3.2, ROLES), _row(2, 1.6, {**ROLES, "workers": 2.35}), _row(4, 1.28, ROLES)]
    assert "500 images/s, as many as the 500 predicted" in findings.of_scale(_comparison(crowded))[0]


def test_nothing_is_said_where_nothing_was_measured() -> None:
    assert findings.of_scale(_comparison([_row(1, 3.2, ROLES)])) == []
