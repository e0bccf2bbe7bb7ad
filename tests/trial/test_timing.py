from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders._trial.timing import (
    Timeline,
    batch_time,
    batches,
    closing_time,
    epoch_time,
    first_batch_time,
    is_settled,
    passes,
    sample_time,
    slow_batches,
    slow_step,
    start_time,
    steady_time,
    wait_time,
)

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
    paused = Timeline(A.start, A.asked, A.received, A.end, A.samples, paused=[0.5, 0.5, 0.0])
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


def _epoch(start: float, first: float, each: float, batches: int = 5, pause: float = 0.0) -> Timeline:
    """Return an epoch whose first batch takes ``first`` seconds, every other ``each``; a pause follows every batch."""
    asked, received, now = [], [], start
    for number in range(batches):
        asked.append(now)
        received.append(now + (each if number else first))
        now = received[-1] + pause
    return Timeline(start, asked, received, now, [4] * batches, [pause] * batches)


def test_start_is_what_the_first_batch_takes_beyond_a_steady_one() -> None:
    epochs = [_epoch(0.0, 2.0, 0.1), _epoch(10.0, 0.1, 0.1), _epoch(20.0, 0.3, 0.1), _epoch(30.0, 0.1, 0.1)]
    assert steady_time(epochs) == pytest.approx(0.5)  # the median of 0.5, 0.7, 0.5
    assert start_time(epochs) == pytest.approx(2.0 - 0.1)


def test_a_consumers_step_is_no_part_of_the_start() -> None:
    """It is in the time of a steady epoch, once for each batch, and comes after the first batch."""
    stepped = [dataclasses.replace(_epoch(0.0, first, 0.1, pause=0.05), paused=()) for first in (0.3, 0.1)]
    assert start_time(stepped, step=0.05) == pytest.approx(0.2)


def test_what_is_faster_at_first_has_no_start() -> None:
    assert start_time([_epoch(0.0, 0.01, 0.1), _epoch(10.0, 0.1, 0.1)]) == 0.0


def test_nothing_is_steady_in_one_epoch_or_in_two_batches() -> None:
    assert steady_time([_epoch(0.0, 1.0, 0.1)]) is None
    assert start_time([_epoch(0.0, 1.0, 0.1)]) is None
    short = [_epoch(0.0, 1.0, 0.1, batches=2)] * 2
    assert steady_time(short) is None
    assert steady_time(short, least=2) == pytest.approx(epoch_time(short[0]))


@pytest.mark.parametrize(
    ("epochs", "settled"),
    [
        ([_epoch(0.0, 0.02, 0.02)] * 4, False),  # 0.4 s
        ([_epoch(0.0, 0.02, 0.02, pause=9.0)] * 4, False),
        ([_epoch(0.0, 0.04, 0.02)] * 5, True),  # 0.6 s
        ([_epoch(0.0, 0.3, 0.02)] * 2, False),  # long enough, but a median of two
        ([_epoch(0.0, 0.3, 0.02)] * 3, True),
        ([_epoch(0.0, 1.8, 0.02)], False),
        ([_epoch(0.0, 2.0, 0.02)], True),
        ([_epoch(0.0, 0.001, 0.001)] * 19, False),
        ([_epoch(0.0, 0.001, 0.001)] * 20, True),
    ],
)
def test_steady_epochs_are_repeated_until_they_are_long_or_many(epochs: list[Timeline], settled: bool) -> None:
    assert is_settled(epochs) == settled


def test_a_consumer_waits_for_what_is_not_ready() -> None:
    assert wait_time(_epoch(0.0, 5.0, 0.25, pause=1.0)) == pytest.approx(0.25)
    assert wait_time(_epoch(0.0, 5.0, 0.25, batches=1)) is None


@given(st.integers(1, 6), st.integers(3, 9), st.floats(0.001, 1), st.floats(0, 0.5))
def test_passes_in_one_are_cut_where_they_end(count: int, batches: int, each: float, pause: float) -> None:
    whole = _epoch(3.0, each + 1, each, batches=count * batches, pause=pause)
    parts = passes(whole, count)
    assert [len(part.received) for part in parts] == [batches] * count
    assert sum(map(epoch_time, parts)) == pytest.approx(epoch_time(whole))
    for part in parts[1:]:
        assert epoch_time(part) == pytest.approx(batches * each)


def test_passes_that_share_a_batch_are_not_cut() -> None:
    whole = _epoch(0.0, 1.0, 0.1, batches=3)
    assert passes(whole, 5) == [whole]


def test_passes_may_share_a_batch_and_each_has_it() -> None:
    assert [batches(_epoch(0.0, 1.0, 0.1, batches=7), count) for count in (1, 2, 7)] == [7, 4, 1]


@pytest.mark.parametrize(
    ("seconds", "passes", "step"),
    [
        (0.5, 1, 0.15),  # three times what a batch took
        (1.0, 2, 0.3),  # of two passes with 10 batches, each has 5
        (0.01, 1, 0.01),  # at least 10 ms
        (10.0, 1, 3.0),  # however long that is
    ],
)
def test_a_slow_consumer_lets_a_buffer_fill_and_does_not_take_for_ever(
    seconds: float, passes: int, step: float
) -> None:
    epoch = _epoch(0.0, seconds / 10, seconds / 10, batches=10)
    found = slow_step(epoch, passes)
    assert found == pytest.approx(step)
    taken = slow_batches(epoch, passes)
    assert taken == (7 if seconds == 10 else 10 // passes), "after twenty seconds it takes no more"


def test_a_consumer_of_nothing_has_a_step_too() -> None:
    """What delivers nothing is wrong, and that must be what is said of it."""
    nothing = _epoch(0.0, 0.0, 0.0, batches=0)
    assert slow_step(nothing, 1) == pytest.approx(0.01)
    assert slow_batches(nothing, 1) == 0


def test_a_steady_epoch_is_closed_before_the_next_and_that_takes_its_mean() -> None:
    """Most take a millisecond or nothing, some as long again as the epoch: a median would leave these out."""
    epochs = [_epoch(10.0 * each, 0.1, 0.1) for each in range(5)]
    closed = [dataclasses.replace(each, closing=seconds) for each, seconds in zip(epochs, (9, 0, 0, 2, 0), strict=True)]
    assert closing_time(closed[1:]) == pytest.approx(0.5)
    assert steady_time(closed) == pytest.approx(0.5 + 0.5)
    assert epoch_time(closed[0]) == pytest.approx(0.5)
    late = dataclasses.replace(closed[0], received=[each + 1 for each in closed[0].received])
    assert start_time([late, *closed[1:]]) == pytest.approx(1.0), "a batch's share of an epoch has no part of that"
    assert is_settled(closed[1:3]) == is_settled(epochs[1:3]), "how many are run does not depend on it"


def test_passes_of_one_iterator_are_not_closed() -> None:
    whole = dataclasses.replace(_epoch(0.0, 1.0, 0.1, batches=8), closing=3.0)
    assert [part.closing for part in passes(whole, 4)] == [0.0] * 4
