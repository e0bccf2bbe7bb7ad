from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders._judge import TIME_MARGIN, Difference, Judged, Verdict, judge
from loaders._rows import Disturbed, Row
from loaders._stats import Estimate
from loaders._trial import machine
from loaders._trial.record import Environment
from loaders._words import (
    MIB,
    amount,
    cached,
    case_in_words,
    disturbed,
    duration,
    elsewhere,
    enough,
    estimated,
    factor,
    fatter,
    level,
    machine_in_words,
    most,
    over_steps,
    pays_off,
    rounds,
    set_beforehand,
    software_in_words,
    times,
    to_fastest,
    waiting,
)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (104.2, "104 s"),
        (1.0367, "1.04 s"),
        (0.9996, "1.00 s"),
        (0.9994, "999 ms"),
        (0.0834, "83.4 ms"),
        (0.0009996, "1.00 ms"),
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


def _judged(value: float, low: float, high: float, verdict: Verdict = "undecided", **more: Any) -> Judged:
    return Judged(verdict, Estimate(value, low, high, 5), **more)


@pytest.mark.parametrize(
    ("judged", "words"),
    [
        (_judged(0.5, 0.4, 0.6, "less"), "2.00× faster (1.67 to 2.50)"),
        (_judged(1.04, 1.02, 1.06, "more", small=True), "1.04× slower (1.02 to 1.06), by less than 10 %"),
        (_judged(1.0, 0.97, 1.04, "no difference"), "no difference (0.97 to 1.04)"),
        (_judged(1.5, 0.87, 2.61, rounds=14), "undecided (0.87 to 2.61): 14 rounds would decide"),
        (_judged(1.5, 0.87, 2.61), "undecided (0.87 to 2.61): more than 1000 rounds would decide"),
        (Judged("undecided", Estimate(0.98, 0.97, 0.99, 5, False)), "below resolution (0.97 to 0.99)"),
        (Judged("undecided", Estimate(2.0, None, None, 1)), "2.00× slower (single sample)"),
        (Judged("undecided", Estimate(2.0, None, None, 1, False)), "below resolution (single sample)"),
        (None, "–"),
    ],
)
def test_ratios_in_words(judged: Judged | None, words: str) -> None:
    assert times(judged) == words


def test_memory_has_words_and_a_margin_of_its_own() -> None:
    assert fatter(_judged(45.2, 44.0, 46.0, "more")) == "45.2× fatter (44.0 to 46.0)"
    small = _judged(1 / 1.02, 1 / 1.03, 1 / 1.01, "less", small=True)
    assert fatter(small) == "1.02× leaner (1.01 to 1.03), by less than 5 % or 1 MiB"
    assert factor(173.2) == "173×"


@given(st.floats(-2, 2), st.floats(0.001, 1.0), st.integers(2, 30))
def test_faster_slower_and_no_difference_are_said_only_where_the_judge_decides(
    value: float, error: float, rounds: int
) -> None:
    difference = Difference(value, error, 10.0, rounds)
    said = times(judge(difference, margin=TIME_MARGIN))
    low, high = difference.interval()
    near, far = difference.interval(0.90)
    assert ("faster" in said) == (high < 1)
    assert ("slower" in said) == (low > 1)
    assert ("no difference" in said) == (low <= 1 <= high and near > 1 / 1.1 and far < 1.1)
    assert said.startswith("undecided") == (not any(word in said for word in ("faster", "slower", "no difference")))


def test_the_fastest_and_those_that_cannot_be_told_from_it_are_marked() -> None:
    row = Row(
        "selection", "x", "", "identical", None, {}, False, "ok", 5, 5, figures={"time": _estimate(1.0, 0.9, 1.1)}
    )
    assert to_fastest(row) == "–", "timed in rounds that nothing shares"
    row = msgspec.structs.replace(row, in_best=True)
    assert to_fastest(row) == "the fastest"
    beside = msgspec.structs.replace(row, best=_judged(1.1, 0.9, 1.3, rounds=9), in_best=True)
    assert to_fastest(beside) == "among the best (0.90 to 1.30): 9 rounds would decide"
    shown = msgspec.structs.replace(row, best=_judged(1.1, 1.01, 1.2, "more"), in_best=True)
    assert to_fastest(shown) == "among the best (1.01 to 1.20)", "its interval is not corrected, the set is"
    assert to_fastest(msgspec.structs.replace(shown, in_best=False)) == "1.10× slower (1.01 to 1.20)"
    assert to_fastest(msgspec.structs.replace(row, figures={}, in_best=False)) == "–"


def test_cases_in_words() -> None:
    assert case_in_words({"scale": "0.5", "size": "2"}) == "scale 0.5, size 2"
    assert case_in_words({}) == ""


def _estimate(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(value, low, high, 1 if low is None else 4)


@pytest.mark.parametrize(
    ("convert", "saved", "words"),
    [
        (_estimate(2.0), _estimate(0.5, 0.4, 0.6), "after 4 epochs (4 to 5)"),
        (_estimate(0.1), _estimate(0.5, 0.4, 0.6), "after 1 epoch (1 to 1)"),
        (_estimate(2.0), _estimate(0.1, -0.1, 0.3), "undecided: it may save no time"),
        (_estimate(2.0), _estimate(-0.2, -0.3, -0.1), "never: it is slower to read"),
        (_estimate(2.0), _estimate(0.5), "after 4 epochs (single sample)"),
        (_estimate(-0.1), _estimate(0.5, 0.4, 0.6), "immediately"),
        (None, None, "–"),
    ],
)
def test_when_a_conversion_has_paid_for_itself(convert: Estimate | None, saved: Estimate | None, words: str) -> None:
    assert pays_off(convert, saved) == words


@pytest.mark.parametrize(
    ("count", "words"), [(731.4, "732 MiB"), (731.0, "731 MiB"), (9.21, "9.3 MiB"), (9.2, "9.2 MiB")]
)
def test_what_something_fits_into_is_rounded_up(count: float, words: str) -> None:
    assert enough(count * MIB) == words


def test_a_level_says_who_holds_it() -> None:
    mib = 2**20
    held = level("plateau", _estimate(567 * mib), _estimate(350 * mib))
    assert held == "plateau at 567 MiB, 350 MiB of it held by the allocator"
    assert level("flat", _estimate(12 * mib), _estimate(0)) == "flat at 12.0 MiB"
    assert level(None, None, None) == "undecided: too few steps"
    assert level(None, _estimate(12 * mib), _estimate(0)) == "undecided at 12.0 MiB", (
        "long enough, and no trial decides"
    )


@pytest.mark.parametrize(
    ("shares", "words"), [([(1.0, 1.0), None], "100 %"), ([(0.0, 0.01), (0.0, 0.02)], "0 to 2 %"), ([None], "")]
)
def test_the_page_cache_in_words(shares: list[tuple[float, float] | None], words: str) -> None:
    assert cached(shares) == words


def test_what_waits_in_words() -> None:
    assert waiting(_estimate(6), _estimate(240 * 2**20)) == "6 (240 MiB)"
    assert waiting(_estimate(6), None) == "6"
    assert waiting(None, None) == most(None) == "–"


def test_what_disturbed_a_comparison_is_one_sentence_and_a_remedy() -> None:
    every = Disturbed(trials=18, busy=5, others=0.48, stolen=0.03, swapped=2, most_swapped=12 * 2**20, throttled=1)
    assert disturbed(every) == (
        "The machine was not quiet: in 5 of 18 trials, others used more than 10% of the processor time (other "
        "processes up to 48%, other guests of its host up to 3%); in 2 of 18 trials, it swapped (up to 12.0 MiB); in 1 "
        "of 18 trials, heat throttled its processors. Repeat the comparison with nothing else running."
    )
    assert "it swapped" not in disturbed(Disturbed(18, 5, 0.48, 0.0, 0, 0, 0))


def test_what_is_not_recorded_is_never_called_quiet() -> None:
    none, some = Disturbed(0, 0, 0.0, 0.0, 0, 0, 0, unrecorded=3), Disturbed(6, 0, 0.02, 0.0, 0, 0, 0, unrecorded=3)
    assert disturbed(none) == "Whether the machine was quiet was not recorded for any trial."
    assert disturbed(some) == "Whether the machine was quiet was not recorded for 3 of 9 trials."
    both = disturbed(Disturbed(6, 5, 0.4, 0.0, 0, 0, 0, unrecorded=3))
    assert both.startswith("The machine was not quiet")
    assert both.endswith("was not recorded for 3 of 9 trials.")
    repeated = Disturbed(8, 0, 0.02, 0.0, 0, 0, 0, repeated=2)
    assert disturbed(repeated) == (
        "2 of 8 trials were repeated because others used the processor; the least disturbed run counts."
    )
    assert disturbed(None) == ""


def test_a_verdict_on_growth_carries_its_bound() -> None:
    row = Row(
        "selection", "x", "", "identical", None, {}, False, "ok", 5, 5, growth="flat", figures={"level": _estimate(MIB)}
    )
    assert over_steps(row) == "flat at 1.0 MiB"
    bounded = msgspec.structs.replace(row, growth_bound=MIB / 2)
    assert over_steps(bounded) == "flat at 1.0 MiB: grows by at most 0.5 MiB per 1000 steps"
    some = msgspec.structs.replace(bounded, growth="flat in 3")
    assert over_steps(some) == "flat in 3 at 1.0 MiB: grows by at most 0.5 MiB per 1000 steps"
    grows = msgspec.structs.replace(bounded, growth="growing, in use")
    assert "at most" not in over_steps(grows)


def test_whether_onednn_was_used_stands_beside_the_versions() -> None:
    known = Environment(python="3.11.7", packages={"tensorflow": "2.21.0"}, commit="a" * 40)
    assert software_in_words(known) == "Python 3.11.7; tensorflow 2.21.0; commit aaaaaaaa"
    used = software_in_words(msgspec.structs.replace(known, onednn="off"))
    assert used == "Python 3.11.7; tensorflow 2.21.0; oneDNN off; commit aaaaaaaa"


def test_what_was_set_for_a_whole_run_is_said_with_its_place() -> None:
    """Not what every trial sets. Without it, figures of a setting would be taken for those of the machine."""
    ours = Environment(machine="box", variables={**machine.PINNED, "TF_CPP_MIN_LOG_LEVEL": "2"})
    given = {**ours.variables, "TF_ENABLE_ONEDNN_OPTS": "1", "MALLOC_ARENA_MAX": "1"}
    theirs = msgspec.structs.replace(ours, variables=given)
    words = "MALLOC_ARENA_MAX=1 TF_ENABLE_ONEDNN_OPTS=1"
    assert (set_beforehand(ours), set_beforehand(theirs)) == ("", words)
    assert [elsewhere(each, "box") for each in (ours, theirs)] == ["", f" (measured with `{words}` set)"]
    assert [elsewhere(each, "other") for each in (ours, theirs)] == [
        " (on box)",
        f" (on box, measured with `{words}` set)",
    ]
    assert f"; with {words}; commit" in software_in_words(theirs)


def test_a_machines_settings_stand_where_they_are_known() -> None:
    known = Environment(
        packages={"numpy": "9.9"},
        governor="powersave",
        frequency=800_000_000,
        frequency_limit=3_500_000_000,
        huge_pages="madvise",
        load=0.5,
        swap=2**20,
        virtual=True,
    )
    settings = "; a virtual machine; governor powersave; 0.80 of 3.50 GHz; huge pages: madvise; load before: 0.50"
    assert machine_in_words(known).endswith(f"{settings}; swap in use: 1.0 MiB")
    assert machine_in_words(Environment(packages={"numpy": "9.9"})).endswith("peaks: ")
    assert machine_in_words(Environment(packages={"a": "1"}, frequency_limit=10**9)).endswith("; at most 1.00 GHz")


@pytest.mark.parametrize(
    ("trials", "words"),
    [([3, 3], "3 rounds"), ([10, 3, 10], "3 to 10 rounds"), ([1], "1 round"), ([2, 1], "1 to 2 rounds")],
)
def test_rounds_are_those_of_the_rows_that_are_shown(trials: list[int], words: str) -> None:
    rows = [Row("selection", "x", "", "identical", None, {}, False, "ok", each, each) for each in trials]
    assert rounds(rows) == words
