from __future__ import annotations

import math
import random
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders._law import LISTED, law, resolution

MIB = 2**20
AMOUNTS = (40, 160, 640)
Planted = Callable[[int], float]

PLANTED: dict[str, Planted] = {
    "level": lambda _: 60 * MIB,
    "small": lambda _: 0.3 * MIB,
    "a queue of 64": lambda samples: (30 + 0.3 * min(samples, 64)) * MIB,
    "an array": lambda samples: 0.575 * samples * MIB,
    "an array, and as much again": lambda samples: (40 + 1.8 * samples) * MIB,
}


def measured(
    planted: Planted, rounds: int, noise: float, seed: int = 1, amounts: tuple[int, ...] = AMOUNTS
) -> dict[int, dict[int, float]]:
    chance = random.Random(seed)
    return {
        amount: {index: max(0.0, planted(amount) * (1 + noise * chance.gauss())) for index in range(rounds)}
        for amount in amounts
    }


@pytest.mark.parametrize("rounds", [3, 6, 8])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("level", "level"),
        ("small", "level"),
        ("a queue of 64", "level"),
        ("an array", "linear"),
        ("an array, and as much again", "linear"),
    ],
)
def test_planted_laws_are_found(name: str, kind: str, rounds: int) -> None:
    found = law(measured(PLANTED[name], rounds, 0.002))
    assert found.kind == kind, found.why
    for samples in (640, 2560, 10_000):
        predicted = found.at(samples)
        assert predicted is not None
        assert predicted.low is not None
        assert predicted.high is not None
        assert predicted.low <= PLANTED[name](samples) <= predicted.high


def test_a_line_is_not_drawn_through_a_queue_that_is_flat() -> None:
    # 40, 160 and 640 images: a line through all three charged 145 MiB to a queue of 64 images.
    found = law(
        {40: {0: 38.3e6, 1: 38.9e6, 2: 38.1e6}, 160: {0: 51e6, 1: 51.5e6, 2: 51.2e6}, 640: {0: 51e6, 1: 52e6, 2: 51e6}}
    )
    assert found.kind == "level"
    predicted = found.at(10_000)
    assert predicted is not None
    assert predicted.high is not None
    assert predicted.high < 60e6


@pytest.mark.parametrize("rounds", [3, 6, 8])
def test_what_still_rises_is_unknown_beyond_what_was_measured(rounds: int) -> None:
    found = law(measured(lambda samples: 20 * samples**0.5 * MIB, rounds, 0.005))
    assert found.kind == "unknown"
    assert "adds less" in found.why
    assert "2560" in found.why
    assert found.at(641) is None
    assert found.at(640) is not None


def test_what_rises_ever_faster_is_unknown() -> None:
    found = law(measured(lambda samples: (20 + samples**2 / 2000) * MIB, 3, 0.002))
    assert (found.kind, found.at(2560)) == ("unknown", None)
    assert "adds more" in found.why


def test_noise_is_not_a_level() -> None:
    found = law(measured(PLANTED["level"], 3, 0.3))
    assert found.kind == "unknown"
    assert "more rounds" in found.why


@pytest.mark.parametrize(
    ("capacity", "at_most"),
    [(300, 350 * MIB), (1280, 40 * 1280**0.5 * MIB * 1.1)],
    ids=["exceeded", "not yet reached"],
)
def test_a_declared_capacity_bounds_what_still_rises(capacity: int, at_most: float) -> None:
    planted = measured(
        lambda samples: (40 * min(samples, capacity) ** 0.5 / (1 if capacity > 640 else 2.2)) * MIB, 3, 0.001
    )
    found = law(planted, capacity)
    assert found.kind == "saturating"
    one, other = found.at(5_000), found.at(500_000)
    assert one is not None
    assert other is not None
    assert one.value == other.value
    assert one.high is not None
    assert one.high <= at_most * 1.2
    assert one.high >= 40 * capacity**0.5 / (1 if capacity > 640 else 2.2) * MIB


def test_what_rises_beyond_its_declared_capacity_has_no_law() -> None:
    found = law(measured(lambda samples: 20 * samples**0.5 * MIB, 3, 0.001), capacity=100)
    assert found.kind == "unknown"
    assert "beyond its declared capacity" in found.why


def test_noise_beyond_a_declared_capacity_shows_no_bound() -> None:
    """Two amounts beyond it can tell whether memory has ended; trials that vary too much do not."""
    chance = random.Random(1)
    noisy = {amount: {index: 100 * MIB * math.exp(chance.gauss(0, 0.5)) for index in range(4)} for amount in AMOUNTS}
    assert law(noisy, capacity=100).kind == "unknown"


def test_a_line_ends_at_a_declared_capacity() -> None:
    found = law(measured(PLANTED["an array"], 3, 0.001), capacity=1000)
    assert found.kind == "saturating"
    predicted = found.at(100_000)
    assert predicted is not None
    assert predicted.value == pytest.approx(575 * MIB, rel=0.02)


@pytest.mark.parametrize(
    "points",
    [
        {},
        {40: {0: 1.0}},
        {40: {0: 1.0, 1: 1.0}, 160: {0: 1.0, 1: 1.0}},
        {40: {0: 1.0}, 160: {0: 1.0}, 640: {0: 1.0}},
        {40: {0: 1.0}, 160: {1: 1.0}, 640: {2: 1.0}},
    ],
    ids=["nothing", "an amount", "two amounts", "a round", "no common round"],
)
def test_too_little_is_no_law(points: dict[int, dict[int, float]]) -> None:
    found = law(points)
    assert (found.kind, found.at(10_000)) == ("unknown", None)
    assert found.why


@given(
    st.lists(st.lists(st.floats(0, 2**36), min_size=3, max_size=3), min_size=1, max_size=6),
    st.integers(1, 10**7),
    st.integers(0, 5000),
)
def test_a_prediction_lies_in_its_interval(rounds: list[list[float]], samples: int, capacity: int) -> None:
    points = {amount: {index: each[place] for index, each in enumerate(rounds)} for place, amount in enumerate(AMOUNTS)}
    found = law(points, capacity)
    predicted = found.at(samples)
    assert (predicted is None) == (samples > 640 and found.kind == "unknown")
    if predicted and predicted.low is not None and predicted.high is not None:
        assert 0 <= predicted.low <= predicted.value <= predicted.high
    more, most = found.at(2 * 10**7), found.at(4 * 10**7)
    if more and most and more.high is not None and most.high is not None:
        assert more.high <= most.high * (1 + 1e-9), "more data never needs less for certain"


@pytest.mark.parametrize("rounds", [3, 6, 8])
@pytest.mark.parametrize("name", list(PLANTED))
def test_predictions_at_four_times_the_data_cover(name: str, rounds: int) -> None:
    chance = random.Random(rounds)
    hit = known = 0
    for seed in range(120):
        noise = chance.choice([0.002, 0.01, 0.03, 0.06])
        predicted = law(measured(PLANTED[name], rounds, noise, seed)).at(2560)
        if predicted is None:
            continue
        known += 1
        assert predicted.low is not None
        assert predicted.high is not None
        further = PLANTED[name](2560) * (1 + noise * chance.gauss())  # of a single process
        hit += predicted.low <= further <= predicted.high
        assert further <= 1.1 * predicted.high
    assert known >= 25, "it decides, where trials are alike"
    assert hit >= 0.93 * known


@pytest.mark.parametrize("rounds", [3, 6, 8])
def test_what_creeps_up_with_the_logarithm_stays_in_the_interval_or_is_unknown(rounds: int) -> None:
    for creep in (0.005, 0.02, 0.04, 0.08, 0.2):

        def planted(samples: int, creep: float = creep) -> float:
            return 100 * MIB * (1 + creep * math.log(samples / 40, 4))

        found = law(measured(planted, rounds, 0.002))
        for samples in (2560, 10_240):
            predicted = found.at(samples)
            if predicted is not None:
                assert predicted.high is not None
                assert planted(samples) <= 1.02 * predicted.high


def test_resolution_is_a_mebibyte_or_a_share() -> None:
    assert resolution(3 * MIB) == MIB
    assert resolution(100 * MIB) == 5 * MIB


def test_what_the_resolution_hides_of_each_sample_counts_where_there_are_many() -> None:
    """A path and a place in an order, of which a few hundred are lost in it: a million are 150 MiB."""

    def planted(samples: int) -> float:
        return 40 * MIB + 150 * samples

    found = law(measured(planted, 6, 0.002))
    assert found.kind == "level"
    for samples in (10_000, 10**6, 10**9):
        predicted = found.at(samples)
        assert predicted is not None
        assert predicted.high is not None
        assert planted(samples) <= predicted.high <= 1.3 * planted(samples)
    known = msgspec.structs.replace(found, besides=500.0).at(10**6)
    assert known is not None
    assert known.high is not None
    assert known.high < 40 * MIB + 500e6 + LISTED * 5e5, "what is known exactly is not counted twice"


@pytest.mark.parametrize("each", [1000, 4300])
def test_a_line_that_the_resolution_hides_may_go_on(each: int) -> None:
    """What a loader keeps of each sample, such as a small picture, is some MiB of what was measured, and then GiB."""

    def planted(samples: int) -> float:
        return 40 * MIB + each * samples

    found = law(measured(planted, 6, 0.0002))
    assert found.kind == "level"
    for samples in (10_000, 10**6, 10**8):
        predicted = found.at(samples)
        assert predicted is not None
        assert predicted.high is not None
        assert planted(samples) <= predicted.high <= 2 * planted(samples) + 20 * MIB


def test_a_level_that_has_settled_is_not_said_to_grow() -> None:
    def planted(samples: int) -> float:
        return (40 + 0.5 * math.log(samples, 4)) * MIB  # flattens, beyond doubt

    predicted = law(measured(planted, 6, 0.0002)).at(10**6)
    assert predicted is not None
    assert predicted.high is not None
    assert predicted.high < 40 * MIB + LISTED * 10**6 + 30 * MIB


@pytest.mark.parametrize("capacity", [448, 1280])
def test_a_declared_capacity_explains_no_more_than_it_holds(capacity: int) -> None:
    """30, 60 and 400 MiB: a queue of so many, a quarter of a MiB each, does not explain the last step."""
    rises = {40: 30.0, 160: 60.0, 640: 400.0}
    found = law(measured(lambda samples: rises[samples] * MIB, 6, 0.002), capacity)
    assert (found.kind, found.at(2560)) == ("unknown", None)
    assert "more than its declared capacity" in found.why


def test_a_bend_that_is_not_shown_is_not_stated() -> None:
    found = law(
        {
            40: dict.fromkeys(range(3), 20.0 * MIB),
            160: {0: 25.0 * MIB, 1: 30.0 * MIB, 2: 35.0 * MIB},
            640: {0: 65.0 * MIB, 1: 75.0 * MIB, 2: 85.0 * MIB},
        }
    )
    assert found.kind == "unknown"
    assert "more rounds would decide" in found.why
    assert "2560" not in found.why


def test_more_data_never_needs_less_than_what_was_measured() -> None:
    """Where memory creeps up within the resolution, the mean of the last two amounts lies below the last one."""
    found = law(
        {40: dict.fromkeys(range(3), 38e6), 160: dict.fromkeys(range(3), 40e6), 640: dict.fromkeys(range(3), 42e6)}
    )
    assert found.kind == "level"
    high = [each.high for samples in (640, 641, 2560, 10_000) if (each := found.at(samples)) and each.high is not None]
    assert len(high) == 4
    assert high == sorted(high)
