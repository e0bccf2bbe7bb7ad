from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders._trial.timing import Timeline, batch_time, epoch_time, first_batch_time, sample_time

A = Timeline(start=10.0, asked=[10.5, 13.1, 14.2], received=[13.0, 14.0, 15.0], end=15.5, samples=[4, 4, 2])


def test_known_timeline() -> None:
    assert epoch_time(A) == 5.5
    assert first_batch_time(A) == 3.0
    assert sample_time(A) == pytest.approx((15.5 - 13.0) / 6)
    latencies = batch_time(A)
    assert latencies is not None
    assert latencies.p50 == pytest.approx((0.9 + 0.8) / 2)
    assert latencies.max == pytest.approx(0.9)


def test_what_the_instrument_took_is_in_no_figure() -> None:
    paused = Timeline(A.start, A.asked, A.received, A.end, A.samples, paused=1.0)
    assert epoch_time(paused) == 4.5
    assert sample_time(paused) == pytest.approx((15.5 - 13.0 - 1.0) / 6)
    assert first_batch_time(paused) == 3.0


def test_one_batch_has_no_steady_part() -> None:
    only = Timeline(0.0, [0.5], [2.0], 2.5, [5])
    assert sample_time(only) == 0.5
    latencies = batch_time(only)
    assert latencies is not None
    assert latencies.max == 1.5


def test_nothing_delivered_is_absent_not_zero() -> None:
    empty = Timeline(0.0, [], [], 2.0, [])
    assert epoch_time(empty) == 2.0
    assert first_batch_time(empty) is None
    assert sample_time(empty) is None
    assert batch_time(empty) is None


@given(st.lists(st.tuples(st.floats(0.001, 10), st.integers(1, 64)), min_size=2, max_size=30))
def test_a_steady_loader_has_its_own_time_whatever_the_first_batch_cost(batches: list[tuple[float, int]]) -> None:
    """Each sample after the first batch takes 3 ms, the first batch takes anything."""
    now = batches[0][0]
    asked, received, samples = [0.0], [now], [batches[0][1]]
    for _, count in batches[1:]:
        asked.append(now)
        now += 0.003 * count
        received.append(now)
        samples.append(count)
    assert sample_time(Timeline(0.0, asked, received, now, samples)) == pytest.approx(0.003)
