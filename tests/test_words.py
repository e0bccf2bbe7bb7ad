from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders._stats import Estimate
from loaders._words import amount, case_in_words, duration, estimated, factor, times


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (104.2, "104 s"),
        (1.0367, "1.04 s"),
        (0.0834, "83.4 ms"),
        (0.000212, "212 µs"),
        (2e-7, "0.20 µs"),
        (0.0, "0.00 µs"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("count", "words"), [(1054 * 2**20, "1054 MiB"), (3.6 * 2**20, "3.6 MiB"), (-(2**19), "-0.5 MiB")]
)
def test_amounts(count: float, words: str) -> None:
    assert amount(count) == words


def test_an_estimate_never_stands_without_its_uncertainty() -> None:
    assert estimated(Estimate(0.0834, 0.081, 0.0859, 5), duration) == "83.4 ms (81.0 to 85.9)"
    assert estimated(Estimate(0.9, 0.5, 1.6, 5), duration) == "900 ms (500 ms to 1.60 s)"
    assert estimated(Estimate(0.0834, None, None, 1), duration) == "83.4 ms (single sample)"
    assert estimated(None, duration) == "–"


def test_ratios_in_words() -> None:
    assert times(Estimate(0.5, 0.4, 0.6, 5)) == "2.00× faster (1.67 to 2.50)"
    assert times(Estimate(45.2, 44.0, 46.0, 5), "leaner", "fatter") == "45.2× fatter (44.0 to 46.0)"
    assert times(Estimate(1.1, 0.97, 1.25, 5)) == "no difference (0.97 to 1.25)"
    assert times(Estimate(2.0, None, None, 1)) == "2.00× slower (single sample)"
    assert times(None) == "–"
    assert factor(173.2) == "173×"


@given(st.floats(0.01, 100), st.floats(1.0, 3.0), st.floats(1.0, 3.0))
def test_faster_and_slower_are_said_only_outside_the_interval(value: float, below: float, above: float) -> None:
    ratio = Estimate(value, value / below, value * above, 5)
    said = times(ratio)
    assert ("no difference" in said) == (value / below <= 1 <= value * above)
    assert ("faster" in said) == (value * above < 1)
    assert ("slower" in said) == (value / below > 1)


def test_cases_in_words() -> None:
    assert case_in_words({"scale": "0.5", "size": "2"}) == "scale 0.5, size 2"
    assert case_in_words({}) == ""
