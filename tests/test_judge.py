from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from loaders import _judge
from loaders._judge import Difference, dunnett, fitted, holm, judge, margin_of

differences = st.builds(Difference, st.floats(-3, 3), st.floats(1e-4, 1), st.floats(1, 100), st.integers(2, 40))
tables = st.integers(2, 6).flatmap(
    lambda rounds: st.dictionaries(
        st.sampled_from("abcdefgh"),
        st.dictionaries(st.integers(0, rounds - 1), st.floats(1e-3, 1e3), min_size=1),
        min_size=2,
    )
)


def _made(truths: list[float], spreads: list[float], rounds: int, seed: int = 0) -> dict[str, dict[int, float]]:
    random = np.random.default_rng(seed)
    logs = np.array(truths)[:, None] + random.normal(0, 0.3, rounds)
    logs = logs + np.array(spreads)[:, None] * random.normal(size=logs.shape)
    return {f"s{name}": dict(enumerate(np.exp(row).tolist())) for name, row in enumerate(logs)}


@given(differences)
def test_an_interval_is_students_and_p_values_go_with_it(one: Difference) -> None:
    low, high = one.interval()
    assert math.log(low) == pytest.approx(one.value - scipy.stats.t.ppf(0.975, one.degrees) * one.error)
    assert one.p_above(low) == pytest.approx(0.025, rel=1e-6)
    assert one.p_below(high) == pytest.approx(0.025, rel=1e-6)
    assert one.p_below() + one.p_above() == pytest.approx(1)


@given(differences, st.floats(1.01, 2), st.floats(1, 1.5))
def test_words_follow_from_the_intervals(one: Difference, margin: float, beyond: float) -> None:
    found = judge(one, margin=margin, beyond=beyond)
    (low, high), (inner_low, inner_high) = one.interval(), one.interval(0.90)
    decided = {"more": low > beyond, "less": high < 1 / beyond}
    within = 1 / margin < inner_low and inner_high < margin
    assert found.verdict == next((word for word, is_so in decided.items() if is_so), None) or (
        not any(decided.values()) and found.verdict == ("no difference" if within else "undecided")
    )
    assert found.small == (found.verdict in ("less", "more") and 1 / margin < low and high < margin)
    assert (found.ratio.low, found.ratio.high, found.ratio.count) == (low, high, one.rounds)


def test_words_of_a_page_and_of_a_check() -> None:
    def word(ratio: float, error: float, **bounds: float) -> tuple[str, bool]:
        found = judge(Difference(math.log(ratio), error, 20, 6), **{"margin": 1.10, **bounds})
        return found.verdict, found.small

    assert word(1.9, 0.01) == ("more", False)
    assert word(1.04, 0.005) == ("more", True)
    assert word(0.96, 0.005) == ("less", True)
    assert word(1.0, 0.02) == ("no difference", False)
    assert word(1.5, 0.3) == ("undecided", False)
    check = {"margin": 1.05, "beyond": 1.02}
    assert word(1.015, 0.001, **check) == ("no difference", False), "sure, and too little to matter"
    assert word(1.04, 0.003, **check) == ("more", True)
    assert word(0.9, 0.005, **check) == ("less", False)


@given(differences, st.floats(1.01, 2))
def test_swapped_sides_turn_the_word_round(one: Difference, margin: float) -> None:
    words = {"less": "more", "more": "less", "no difference": "no difference", "undecided": "undecided"}
    found = judge(one, margin=margin)
    swapped = judge(Difference(-one.value, one.error, one.degrees, one.rounds), margin=margin)
    assert (words[found.verdict], found.small, found.rounds) == (swapped.verdict, swapped.small, swapped.rounds)


@given(differences, st.floats(1.01, 2))
def test_as_many_rounds_as_are_said_decide_and_one_less_does_not(one: Difference, margin: float) -> None:
    found = judge(one, margin=margin)
    if found.verdict != "undecided":
        assert found.rounds is None
        return
    for rounds in () if found.rounds is None else (found.rounds - 1, found.rounds):
        error = one.error * math.sqrt(one.rounds / rounds)
        then = judge(Difference(one.value, error, one.degrees * (rounds - 1) / (one.rounds - 1), rounds), margin=margin)
        assert (then.verdict == "undecided") == (rounds < found.rounds)  # type: ignore[operator]


def test_the_design_says_how_many_rounds_decide_at_the_usual_spread() -> None:
    usual = 0.088 * math.sqrt(2)
    rounds = {
        ratio: judge(Difference(math.log(ratio), usual / math.sqrt(3), 10, 3), margin=1.1).rounds
        for ratio in (1.08, 1.0)
    }
    assert 8 <= (rounds[1.08] or 0) <= 25
    assert 5 <= (rounds[1.0] or 0) <= 20


@settings(deadline=None)
@given(tables, st.floats(0.1, 10))
def test_a_unit_or_a_rounds_drift_changes_nothing(samples: dict[str, dict[int, float]], factor: float) -> None:
    drifted = {
        name: {index: value * factor ** (index + 1) for index, value in values.items()}
        for name, values in samples.items()
    }
    one, other = fitted(samples), fitted(drifted)
    for name, own in samples.items():
        for against, others in samples.items():
            plain, moved = one.difference(name, against), other.difference(name, against)
            assert (plain is None) == (moved is None) == (not own.keys() & others.keys())
            if plain and moved:
                assert moved.value == pytest.approx(plain.value, abs=1e-9)
                assert moved.error == pytest.approx(plain.error, rel=1e-3)


@settings(deadline=None)
@given(tables)
def test_swapped_strategies_are_the_inverse_and_the_fastest_is_of_the_set(samples: dict[str, dict[int, float]]) -> None:
    found = fitted(samples)
    best = found.best()
    assert best.names[0] == best.fastest
    assert found.best_names() == best.names
    assert set(best.names) <= set(samples)
    assert best.ratios[best.fastest].ratio.value == 1
    for name in samples:
        forward, backward = found.difference(name, best.fastest), found.difference(best.fastest, name)
        if forward and backward:
            assert forward.value == pytest.approx(-backward.value)
            assert forward.error == backward.error > 0
            assert name == best.fastest or best.ratios[name] == judge(forward, margin=_judge.TIME_MARGIN)
    assert found.best([best.fastest]).names == [best.fastest]


@settings(deadline=None)
@given(tables)
def test_two_strategies_alone_are_students_paired_test_or_wider(samples: dict[str, dict[int, float]]) -> None:
    (one, ones), (other, others) = list(samples.items())[:2]
    common = sorted(ones.keys() & others.keys())
    if len(common) < 2:
        return
    found = fitted({one: {each: ones[each] for each in common}, other: {each: others[each] for each in common}})
    logs = [math.log(ones[each] / others[each]) for each in common]
    difference = found.difference(one, other)
    assert difference
    assert difference.degrees == pytest.approx(len(common) - 1)
    assert difference.value == pytest.approx(np.mean(logs), abs=1e-9)
    assert difference.error >= scipy.stats.sem(logs) * (1 - 1e-6)


def test_where_gaps_are_is_kept_with_the_shape_of_the_table() -> None:
    """Both have a gap at the fourth of six places, one in three rounds and one in two."""
    random = np.random.default_rng(0)
    gaps = [[("a", (0, 1, 2)), ("b", (1, 2))], [("a", (0, 1)), ("b", (0,)), ("c", (0, 1))]]
    tables = [{name: {at: float(random.lognormal()) for at in rounds} for name, rounds in each} for each in gaps]
    alone = []
    for each in tables:
        _judge._design.cache_clear()
        alone.append(fitted(each).best())
    assert [fitted(each).best() for each in tables] == alone


def test_one_round_is_never_decided_but_in_a_case_that_has_more() -> None:
    single = fitted({"a": {0: 1.0}, "b": {0: 9.0}})
    judged = single.compare("b", "a", margin=1.1)
    assert judged
    assert (judged.verdict, judged.ratio.low, judged.ratio.count, judged.rounds) == ("undecided", None, 1, None)
    assert single.best().names == ["a", "b"]
    samples = _made([0.0] * 6, [0.05] * 6, 4)
    samples["late"] = {0: samples["s0"][0] * 9}
    assert "late" not in fitted(samples).best().names, "what the first round has shown needs no second"
    judged = fitted(samples).compare("late", "s0", margin=1.1)
    assert judged
    assert judged.ratio.count == 1
    assert judged.ratio.low


def test_equal_values_are_no_proof_of_no_spread_and_what_is_below_resolution_is_alike() -> None:
    same = fitted({"a": {0: 2e6, 1: 2e6}, "b": {0: 2e6, 1: 2e6}}).compare("a", "b", margin=1.05)
    assert same
    assert same.verdict == "no difference"
    noise = {"a": {0: 10.0, 1: 0.0, 2: -500.0}, "b": {0: 9000.0, 1: 80000.0, 2: 5.0}}
    floored = fitted(noise, floor=2**20).compare("a", "b", margin=2)
    assert floored
    assert (floored.verdict, floored.ratio.value) == ("no difference", 1.0)
    assert fitted({"a": {0: 0.0}, "b": {0: 1.0}}).strategies == ["b"]
    with pytest.raises(ValueError, match="no strategy"):
        fitted({}).best()


def test_a_quiet_strategy_borrows_spread_and_a_noisy_one_keeps_its_own() -> None:
    samples = _made([0.0] * 12, [0.05] * 10 + [0.001, 0.4], 5, seed=3)
    found = fitted(samples)
    assert found._variances["s10"] > 0.01**2
    assert found._variances["s11"] > 0.2**2


def test_dunnetts_quantile_is_the_published_one_for_many_degrees_and_students_for_one_comparison() -> None:
    assert dunnett(1, 1e4, 0.95) == pytest.approx(1.645, abs=0.002)
    assert dunnett(9, 1e4, 0.95) == pytest.approx(2.42, abs=0.01)  # Dunnett 1955, table 1a
    assert dunnett(4, 1e4, 0.95) == pytest.approx(2.16, abs=0.01)
    assert dunnett(1, 10, 0.95) == pytest.approx(scipy.stats.t.ppf(0.95, 10), rel=0.01)
    assert dunnett(9, 10, 0.95) < scipy.stats.t.ppf(1 - 0.05 / 9, 5)
    assert dunnett(0, 10) == 0


@pytest.mark.parametrize("noisier", [1.0, 4.0])
def test_the_truly_best_stays_in_the_set_and_the_slow_leave_it(noisier: float) -> None:
    held = left = 0
    for seed in range(200):
        found = fitted(_made([0.0] * 8 + [0.5], [0.1 * noisier] + [0.1] * 8, 6, seed)).best()
        held += "s0" in found.names
        left += "s8" not in found.names
    assert held >= 0.95 * 200 - 2 * math.sqrt(200 * 0.05 * 0.95)
    assert left >= 190


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_is_bonferroni_or_better_and_never_skips_a_smaller_one(p_values: list[float]) -> None:
    rejected = holm(p_values)
    for p, is_rejected in zip(p_values, rejected, strict=True):
        assert is_rejected >= (p <= 0.05 / len(p_values))
        assert is_rejected <= (p <= 0.05)
        assert all(other for q, other in zip(p_values, rejected, strict=True) if is_rejected and q < p)


def test_holm_steps_down() -> None:
    assert holm([0.03, 0.01, 0.04, 0.2]) == [False, True, False, False]
    assert holm([0.02, 0.01, 0.04]) == [True, True, True]


def test_a_memory_margin_is_the_resolution_or_a_share() -> None:
    assert margin_of(1000 * 2**20) == 1.05
    assert margin_of(4 * 2**20) == 1.25
    assert margin_of(0) == 2
