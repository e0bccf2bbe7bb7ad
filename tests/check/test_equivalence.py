from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from loaders._check import equivalence
from loaders._check.equivalence import Equivalence
from loaders._trial.metrics import Metrics
from loaders._trial.record import Record
from tests.check.pairs import MIB, planted


def _only(records: list[Record]) -> Equivalence:
    (found,) = equivalence.judged(records)
    return found


SIX = {f"s{index}": 1.0 for index in range(6)}
LEAN = dict.fromkeys(SIX, (10.0, 10.0))


def test_what_is_the_same_is_shown_to_be_although_the_machine_drifts() -> None:
    found = _only(planted(SIX, memory=LEAN))
    assert found.verdict == "same"
    assert {each.verdict for name, each in found.pooled.items() if name != "epoch_time"} == {"within"}
    assert (found.rounds, found.strategies[0].pairs) == (8, 8)
    assert equivalence.sentences(found) == []


@pytest.mark.parametrize("factor", [1.06, 1 / 1.06])
def test_a_question_that_differs_as_a_whole_is_found(factor: float) -> None:
    found = _only(planted(dict.fromkeys(SIX, factor), memory=LEAN))
    assert found.verdict == "different"
    assert found.pooled["steady_time"].verdict == "beyond"
    assert found.pooled["steady_time"].value == pytest.approx(factor - 1, abs=0.01)


def test_what_is_too_wide_is_not_shown_yet_and_says_how_many_rounds_would_show_it() -> None:
    found = _only(planted(SIX, 3, 0.1, memory=LEAN))
    steady = found.pooled["steady_time"]
    assert (found.verdict, steady.verdict) == ("not shown yet", "undecided")
    assert steady.rounds is None or steady.rounds > 3
    assert "steady time: 6 of 6 strategies are not shown to be within ±5 %." in " ".join(equivalence.sentences(found))
    assert _only(planted(SIX, 3, 0.03, memory=LEAN)).pooled["steady_time"].rounds
    single = _only(planted(SIX, 1, memory=LEAN))
    assert single.verdict == "not shown yet"
    assert single.pooled["steady_time"].low is None


def test_one_strategy_that_differs_is_named_though_the_question_is_the_same() -> None:
    many = {f"s{index}": 1.0 for index in range(15)} | {"odd": 1.12}
    found = _only(planted(many, memory=dict.fromkeys(many, (10.0, 10.0))))
    assert found.pooled["steady_time"].verdict == "within"
    assert found.verdict == "different"
    (said,) = equivalence.sentences(found)
    assert "batching, steady time: forked trials differ in odd (+1" in said


def test_the_peak_is_that_of_the_process_tree() -> None:
    """Workers that seem to need more in forks do not show in the process that reads from them."""
    records = [
        msgspec.structs.replace(
            each,
            metrics=msgspec.structs.replace(
                each.metrics, peak_memory_tree=(108 if each.process == "forked" else 93) * MIB, anonymous_memory=1
            ),
        )
        for each in planted(SIX, memory=LEAN)
    ]
    found = _only(records)
    assert found.verdict == "different"
    assert found.pooled["peak_memory"].value == 15 * MIB


def test_what_a_server_does_to_all_trials_of_its_round_is_in_the_interval() -> None:
    many = {f"s{index}": 1.0 for index in range(20)}
    covered = []
    for seed in range(60):
        steady = _only(planted(many, 6, 0.001, server=0.02, seed=seed)).pooled["steady_time"]
        assert steady.low is not None
        assert steady.high is not None
        covered.append(steady.low < 0 < steady.high)
    assert np.mean(covered) > 0.88


def test_a_question_in_which_nothing_differs_is_seldom_said_to() -> None:
    """Each figure of the question, and of each strategy, could be the one by which it seems to."""
    memory = dict.fromkeys(SIX, (1000.0, 1000.0))
    wrong = [
        _only(planted(SIX, 8, 0.2, memory=memory, memory_spread=200.0, seed=seed)).verdict == "different"
        for seed in range(200)
    ]
    assert np.mean(wrong) < 0.08, "with a chance of 5 % of each it was one in ten"


def test_many_strategies_at_the_margin_seldom_make_one_beyond_it() -> None:
    many = {f"s{index}": equivalence.TIME_OF_EACH for index in range(15)}
    wrong = [
        any(each.beyond("steady_time") for each in _only(planted(many, 6, 0.05, seed=seed)).strategies)
        for seed in range(60)
    ]
    assert np.mean(wrong) < 0.12, "with intervals of 95 % each it would be about a third"


@pytest.mark.parametrize(
    ("fresh", "forked", "verdict"),
    [
        (10.0, 10.0, "within"),
        (10.0, 12.0, "beyond"),
        (12.0, 10.0, "beyond"),
        (1000.0, 1002.0, "within"),
        (1000.0, 1020.0, "beyond"),
        (10.0, 11.0, "undecided"),
    ],
)
def test_memory_must_be_within_a_mebibyte_or_a_percent(fresh: float, forked: float, verdict: str) -> None:
    found = _only(planted(SIX, memory=dict.fromkeys(SIX, (fresh, forked))))
    assert found.pooled["peak_memory"].verdict == found.pooled["retained_memory"].verdict == verdict
    assert found.verdict == {"within": "same", "beyond": "different", "undecided": "not shown yet"}[verdict]


def test_a_single_large_strategy_widens_no_margin() -> None:
    memory = {**dict.fromkeys(SIX, (10.0, 12.0)), "s5": (10_000.0, 10_002.0)}
    peak = _only(planted(SIX, memory=memory)).pooled["peak_memory"]
    assert (peak.verdict, peak.margin) == ("beyond", MIB)


def test_a_strategy_whose_memory_differs_or_is_not_known_is_named() -> None:
    memory = {**LEAN, "s1": (10.0, 14.0), "s2": (10.0, 11.0)}
    found = _only(planted(SIX, memory=memory))
    said = " ".join(equivalence.sentences(found))
    assert "batching, peak: forked trials differ in s1 (+4." in said
    assert "batching, peak: not shown to be within the margin for s2." in said
    assert found.verdict == "different"


def test_start_up_is_reported_and_decides_nothing() -> None:
    found = _only(planted(SIX, memory=LEAN, start=1.5))
    assert found.verdict == "same"
    epoch = found.pooled["epoch_time"]
    assert (epoch.verdict, epoch.margin, epoch.value) == ("reported", None, pytest.approx(0.5, abs=0.02))


def test_how_forks_close_is_reported_of_all_strategies_and_decides_nothing() -> None:
    """One of six whose forks sleep through being woken: a mean without the longest would say that none does."""
    assert "closing_time" not in _only(planted(SIX, memory=LEAN)).pooled, "older trials did not look"
    closing = {**dict.fromkeys(SIX, (0.1, 0.1)), "s3": (0.1, 0.7)}
    found = _only(planted(SIX, memory=LEAN, closing=closing))
    assert found.verdict == "same"
    share = found.pooled["closing_time"]
    assert (share.verdict, share.margin, share.value) == ("reported", None, pytest.approx(0.1, abs=1e-9))
    (told,) = [line for line in equivalence.strategy_lines(found) if line[0] == "s3"]
    assert "+60.0 % of an epoch (+60.0 to +60.0)" in told
    assert equivalence.sentences(found) == []


def test_what_malloc_holds_by_chance_hides_no_difference_in_the_rest() -> None:
    """Forks retain 2 MiB more, and malloc holds up to 200 MiB of either kind, or less than before."""
    random, records = np.random.default_rng(1), []
    for each in planted(SIX, memory=dict.fromkeys(SIX, (10.0, 12.0))):
        retained, held = each.metrics.retained_memory or 0, int(random.integers(-20 * MIB, 200 * MIB))
        metrics = msgspec.structs.replace(each.metrics, retained_memory=retained + max(0, held), allocator_held=held)
        records.append(msgspec.structs.replace(each, metrics=metrics))
    found = _only(records).pooled
    assert found["retained_memory"].verdict == "undecided"
    rest = found[equivalence.NOT_HELD]
    assert (rest.verdict, rest.margin, rest.value) == ("reported", None, pytest.approx(2 * MIB, rel=0.05))
    assert equivalence.NOT_HELD not in _only(planted(SIX, memory=LEAN)).pooled, "not every system's malloc can be asked"


def test_a_strategy_that_fails_only_in_forks_is_no_equivalence() -> None:
    fresh = planted({**SIX, "bad": 1.0}, memory={**LEAN, "bad": (10.0, 10.0)})
    broken = [
        msgspec.structs.replace(each, status="failed", metrics=Metrics())
        if each.strategy == "bad" and each.process == "forked" and each.round < 2
        else each
        for each in fresh
    ]
    found = _only(broken)
    assert found.verdict == "different"
    assert equivalence.sentences(found) == ["batching: only forked trials fail of bad."]
    assert found.rounds == 8, "a strategy that has failed takes no round from the others"
    (bad,) = (line for line in equivalence.strategy_lines(found) if line[0] == "bad")
    assert (bad[1], bad[-1]) == ("6", "2 forked")
    assert _only([each for each in broken if each.strategy == "bad"]).pooled == {}
    both = [
        msgspec.structs.replace(each, status="failed", metrics=Metrics()) if each.strategy == "bad" else each
        for each in fresh
    ]
    assert _only(both).verdict == "same"
    once = [
        msgspec.structs.replace(each, status="failed", metrics=Metrics())
        if each.strategy == "bad" and each.process == "fresh" and each.round == 5
        else each
        for each in broken
    ]
    assert _only(once).verdict == "different", "a fresh trial that fails by chance hides nothing"
    assert equivalence.sentences(_only(once)) == ["batching: forked trials fail more often of bad."]


def test_an_unfinished_round_counts_only_for_the_strategies_that_have_finished_it() -> None:
    records = [each for each in planted(SIX, memory=LEAN) if not (each.round == 7 and each.strategy != "s0")]
    half = [each for each in records if not (each.round == 6 and each.strategy == "s1" and each.process == "fresh")]
    found = _only(half)
    assert found.rounds == 6
    assert {each.strategy: each.pairs for each in found.strategies} == {**dict.fromkeys(SIX, 7), "s0": 8, "s1": 6}


def test_only_the_last_run_of_each_question_counts() -> None:
    old = planted(dict.fromkeys(SIX, 2.0), run="older")
    other = planted(SIX, 2, question="caching", run="older")
    aged = planted(SIX, 2, question="resize", schema=1)
    found = {each.question: each for each in equivalence.judged([*old, *other, *aged, *planted(SIX)])}
    assert found.keys() == {"batching", "caching"}
    assert found["batching"].pooled["steady_time"].value == pytest.approx(0, abs=0.02)


def test_what_is_not_compared_is_not_shown() -> None:
    found = [
        Equivalence("caching", verdict="same"),
        Equivalence("decode", verdict="not shown yet"),
        Equivalence("resize", verdict="different"),
    ]
    assert equivalence.standing([], found) == ""
    assert equivalence.standing(["caching", "decode", "resize", "batching"], found) == (
        "That forked trials measure the same as fresh ones is shown in caching; refuted in resize; "
        "not shown in decode; not tested on this machine in batching."
    )
    assert equivalence.standing(["batching"], []).endswith("is not tested on this machine in batching.")


def test_a_difference_in_words() -> None:
    def words(metric: str, *figures: Any) -> str:
        return equivalence.in_words(metric, equivalence.Compared(*figures))

    assert words("steady_time", 0.004, -0.006, 0.013, 8, "within", 0.02) == "+0.4 % (-0.6 to +1.3): within ±2 %"
    assert words("steady_time", 0.09, 0.06, 0.12, 8, "beyond", 0.05) == "+9.0 % (+6.0 to +12.0): beyond ±5 %"
    assert words("steady_time", 0.0, -0.06, 0.06, 8, "undecided", 0.02, 31) == (
        "+0.0 % (-6.0 to +6.0): undecided about ±2 %, 31 rounds would decide"
    )
    assert words("peak_memory", MIB / 4, 0, MIB / 2, 8, "within", MIB) == "+0.25 MiB (+0.00 to +0.50): within ±1 MiB"
    assert words("epoch_time", 0.07, 0.05, 0.09, 8, "reported") == "+7.0 % (+5.0 to +9.0)"
    assert words("epoch_time", 0.07, None, None, 1, "reported") == "+7.0 % (single pair)"
    assert equivalence.in_words("epoch_time", None) == "–"
