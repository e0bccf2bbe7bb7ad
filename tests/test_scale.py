"""What is predicted of more workers, from costs that are planted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from loaders import _registry, _scale
from loaders._report import charts, findings
from loaders._rows import Comparison, Row, about
from loaders._scale import Costs
from loaders._stats import Estimate
from loaders._trial.record import Environment

IMAGES = 640
small = st.floats(1e-6, 1.0)


def _costs(each: float, share: float, **more: float) -> Costs:
    return Costs(each=each, once=share * each, **more)


some_costs = st.builds(
    _costs, each=small, share=st.floats(0, 1), client=small, dispatcher=small, workers=small, wire=st.floats(1, 1e7)
)


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
    figures = {"time": Estimate(seconds, 0.99 * seconds, 1.01 * seconds, 3), "wire": Estimate(wire, None, None, 3)}
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


@given(st.floats(0, 2), st.floats(0.1, 10), st.integers(1, 64))
def test_what_an_epoch_costs_once_is_told_from_what_workers_share(once: float, shared: float, count: int) -> None:
    """Planted; what ends first is known to be the workers."""
    roles = dict.fromkeys(ROLES, 1e-6)
    cost = _scale.costs([_row(1, once + shared, roles, wire=1), _row(2, once + shared / 2, roles, wire=1)])
    assert cost is not None
    assert cost.here(count, 2) == pytest.approx(IMAGES / (once + shared / count))
    assert cost.elsewhere(count, 2) == pytest.approx(count * IMAGES / (once + shared)), "all of it counts as shared"
    assert cost.apart(2).once == 0


def test_where_a_second_worker_gains_nothing_none_is_predicted_to() -> None:
    """Nor does a second one that gains more than its share promise that others will."""
    cost = _scale.costs([_row(1, 1.0, ROLES), _row(2, 1.1, ROLES)])
    assert cost is not None
    assert cost.here(64, 2) == pytest.approx(IMAGES)
    lucky = _scale.costs([_row(1, 1.0, ROLES), _row(2, 0.4, ROLES)])
    assert lucky is not None
    assert lucky.once == 0


def test_what_all_processes_need_and_who_holds_it_is_said() -> None:
    rows = [_row(1, 3.2, ROLES), _row(2, 1.6, ROLES)]
    needed = [{**row.figures, "needed": Estimate(count * 2**28, 2**28, 2**30, 3)} for count, row in enumerate(rows, 1)]
    rows = [msgspec.structs.replace(row, figures=each) for row, each in zip(rows, needed, strict=True)]
    together = "All processes together need 256 MiB (256 to 1024) with 1, 512 MiB (256 to 1024) with 2"
    assert f"{together}. Projected" in findings.of_scale(_comparison(rows))[0]
    held = {"client": 20.0 * 2**20, "dispatcher": 300.0 * 2**20, "workers": 640.0 * 2**20}
    rows[1] = msgspec.structs.replace(rows[1], role_memory=held)
    said = "; after an epoch of service_2_refreshed they hold: client 20.0 MiB, dispatcher 300 MiB, workers 640 MiB. "
    assert together + said in findings.of_scale(_comparison(rows))[0]


def test_a_prediction_is_held_against_what_four_workers_deliver() -> None:
    """Four would deliver 800 images a second by their number; the two cores that all share are used up at 1058."""
    rows = [_row(1, 3.2, ROLES), _row(2, 1.6, ROLES), _row(4, 0.8, ROLES)]
    (said,) = findings.of_scale(_comparison(rows))
    assert "With storage slow one worker (service_1_refreshed) delivers 200 images/s" in said
    assert "; 2 workers deliver 400 (396 to 404) images/s, 2.00 (" in said
    assert "4 workers deliver 800 (792 to 808) images/s, 4.00 (" in said
    assert " times as many and as many as the 800 predicted" in said
    assert "the client's processors at 6400" in said
    assert "together" not in said, "nothing was read of their memory"
    assert "a link of 10 Gbit/s at 12500" in said
    assert "; more than 32 workers would add nothing" in said
    slower = [*rows[:2], _row(4, 1.0, ROLES)]
    assert " times as many and 20 % less than the 800 predicted" in findings.of_scale(_comparison(slower))[0]
    noisy = {"figures": {**rows[2].figures, "time": Estimate(0.9, 0.79, 1.1, 3)}}
    (open_,) = findings.of_scale(_comparison([*rows[:2], msgspec.structs.replace(rows[2], **noisy)]))
    assert "4 workers deliver 711 (582 to 810) images/s" in open_
    assert "times as many and not shown to differ from the 800 predicted" in open_
    crowded = [_row(1, 3.2, ROLES), _row(2, 1.6, {**ROLES, "workers": 2.35}), _row(4, 1.28, ROLES)]
    assert "times as many and as many as the 500 predicted" in findings.of_scale(_comparison(crowded))[0]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (1.6, "service_2_refreshed, takes 1.60 s (1.58 to 1.62), and local, in the process that trains, 800 ms"),
        (1.6, ": 2.00× slower (2.00 to 2.00)"),
        (0.4, ": 2.00× faster (2.00 to 2.00)"),
        (0.8, ": no difference (1.00 to 1.00)"),
    ],
)
def test_whether_other_processes_gain_over_reading_in_this_one_comes_out_either_way(seconds: float, said: str) -> None:
    noise = [1.0, 1.01, 0.99, 1.0, 1.005, 0.995, 1.01, 0.99]

    def timed(row: Row, seconds: float) -> Row:
        times = {index: seconds * each for index, each in enumerate(noise)}
        figures = {"time": Estimate(seconds, 0.99 * seconds, 1.01 * seconds, len(noise))}
        return msgspec.structs.replace(row, times=times, figures=figures)

    rows = [
        timed(_row(2, seconds, ROLES), seconds),
        timed(_row(4, 3.0, ROLES), 3.0),
        timed(_row(1, 0.8, {}, strategy="local"), 0.8),
        timed(_row(1, 0.1, {}, strategy="other", tier="same purpose"), 0.1),
    ]
    (found,) = findings.of_processes(_comparison(rows))
    assert said in found
    assert findings.of_processes(_comparison(rows[2:])) == []


@pytest.mark.parametrize(("planted", "least", "most"), [(1.0, 0.0, 0.06), (0.8, 0.95, 1.0)])
def test_the_best_of_many_is_not_called_faster_because_it_was_picked(planted: float, least: float, most: float) -> None:
    """24 strategies with processes and one without, alike; then with processes that take eight tenths of the time."""
    random = np.random.default_rng(5)

    def made(served: bool, place: int, drift: np.ndarray) -> Row:
        values = np.exp(np.log(planted if served else 1.0) + drift + random.normal(0, 0.03, 8))
        row = _row(place, float(values.mean()), ROLES if served else {}, strategy=f"{served}_{place}")
        return msgspec.structs.replace(row, times=dict(enumerate(values.tolist())))

    told = []
    for _ in range(200):
        drift = random.normal(0, 0.1, 8)
        (found,) = findings.of_processes(
            _comparison(
                [made(served, place, drift) for served, count in ((True, 24), (False, 1)) for place in range(count)]
            )
        )
        told.append("× faster" in found or "× slower" in found)
    assert least <= np.mean(told) <= most, np.mean(told)


def test_what_is_measured_predicted_and_projected_is_told_apart_in_the_chart() -> None:
    rows = [_row(1, 3.2, ROLES), _row(2, 1.6, ROLES), _row(4, 1.0, ROLES)]
    chart = charts.scale_chart(_comparison(rows), rows)
    assert chart is not None
    assert "measured: 4 workers, 640 images/s" in chart.picture
    assert "predicted, 2 cores shared by all: 4 workers, 800 images/s" in chart.picture
    assert "predicted, 2 cores shared by all: 8 workers, 1058 images/s" in chart.picture, "the cores are used up"
    assert "projected, a machine for each: 8 workers, 1600 images/s" in chart.picture
    assert "projected, a machine for each: 32 workers, 6400 images/s" in chart.picture, "the client is used up"
    assert "64 workers" not in chart.picture, "more would add nothing"
    assert charts.scale_chart(_comparison(rows[:1]), rows[:1]) is None


@given(some_costs, st.integers(1, 64), st.integers(1, 64))
def test_machines_of_their_own_deliver_more_until_one_part_is_used_up(cost: Costs, count: int, cores: int) -> None:
    limit = min(cost.limits(cores).values())
    assert cost.elsewhere(count, cores) == pytest.approx(min(count / cost.each, limit))
    most = cost.most(cores)
    assert cost.elsewhere(most, cores) == pytest.approx(limit)
    assert most <= 1 or (most - 1) / cost.each < limit * (1 + 1e-9)


def test_nothing_is_said_where_nothing_was_measured() -> None:
    assert findings.of_scale(_comparison([_row(1, 3.2, ROLES)])) == []
