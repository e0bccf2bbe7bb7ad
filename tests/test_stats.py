from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from loaders._stats import estimate, paired_ratio

positive = st.floats(1e-6, 1e6)


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=20))
def test_linear_interval_is_students(values: list[float]) -> None:
    found = estimate(values, "linear")
    half = scipy.stats.t.ppf(0.975, len(values) - 1) * scipy.stats.sem(values)
    scale = max(map(abs, values)) + 1
    assert found.value == pytest.approx(np.mean(values), abs=1e-9 * scale)
    assert found.low == pytest.approx(np.mean(values) - half, abs=1e-6 * scale)
    assert found.high == pytest.approx(np.mean(values) + half, abs=1e-6 * scale)


@given(st.lists(positive, min_size=2, max_size=20), st.floats(1e-3, 1e3))
def test_ratio_interval_scales_with_the_unit(values: list[float], unit: float) -> None:
    found, scaled = estimate(values, "ratio"), estimate([value * unit for value in values], "ratio")
    assert scaled.value == pytest.approx(found.value * unit, rel=1e-9)
    assert found.low is not None
    assert scaled.low == pytest.approx(found.low * unit, rel=1e-6)
    assert found.low <= found.value * (1 + 1e-9)


@given(st.dictionaries(st.integers(0, 9), positive, min_size=2), st.floats(1e-3, 1e3))
def test_a_constant_factor_is_found_exactly_however_the_machine_drifts(drift: dict[int, float], factor: float) -> None:
    found = paired_ratio({index: value * factor for index, value in drift.items()}, drift)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low == pytest.approx(factor, rel=1e-6)
    assert found.high == pytest.approx(factor, rel=1e-6)


def test_the_ratio_of_swapped_strategies_is_the_inverse() -> None:
    a, b = {0: 1.0, 1: 1.2, 2: 0.9}, {0: 2.0, 1: 2.2, 2: 2.1}
    forward, backward = paired_ratio(a, b), paired_ratio(b, a)
    assert forward is not None
    assert backward is not None
    assert forward.value == pytest.approx(1 / backward.value)
    assert forward.low == pytest.approx(1 / (backward.high or 0))


def test_a_single_sample_has_no_interval() -> None:
    found = estimate([3.0], "ratio")
    assert (found.value, found.low, found.high, found.count) == (pytest.approx(3.0), None, None, 1)


def test_rounds_without_a_partner_are_left_out() -> None:
    found = paired_ratio({0: 2.0, 1: 2.0, 5: 900.0}, {0: 1.0, 1: 1.0, 3: 7.0})
    assert found is not None
    assert (found.value, found.count) == (pytest.approx(2.0), 2)
    assert paired_ratio({0: 1.0}, {1: 1.0}) is None


@pytest.mark.parametrize(("values", "message"), [([], "no samples"), ([1.0, 0.0], "positive"), ([-1.0], "positive")])
def test_what_cannot_be_estimated_is_refused(values: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimate(values, "ratio")


def test_identical_strategies_are_rarely_called_different() -> None:
    """A/A with the 20 % spread of a noisy machine: about 5 % false alarms, by construction of the interval."""
    random = np.random.default_rng(1)
    alarms = 0
    for _ in range(400):
        drift = random.lognormal(0, 0.3, 5)
        a, b = (dict(enumerate(drift * random.lognormal(0, 0.2, 5))) for _ in range(2))
        found = paired_ratio(a, b)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        alarms += not found.low <= 1 <= found.high
    assert 4 <= alarms <= 40
