from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact, norm, t

from loaders._check.judge import (
    ALIKE_LEVEL,
    EVERY_LOOK,
    FAMILY,
    LOOKS,
    MISSED,
    MOST_TRIALS,
    TIME_ALIKE,
    TIME_MARGIN,
    UNFAILING,
    Block,
    Failures,
    Judgement,
    _difference,
    _moderated,
    _then,
    is_due,
    judge,
    shown,
)
from loaders._judge import Difference

MIB = 2**20
QUESTIONS = 2


def _blocks(ratio: float, spread: float, count: int, seed: int = 0, outliers: float = 0.0) -> list[Block]:
    """Blocks of times with log-normal noise; some trials take far longer, as some do."""
    random = np.random.default_rng(seed)
    noise = random.normal(0, spread, (count, 4)) + (random.random((count, 4)) < outliers) * 1.5
    times = np.exp(noise) * [1, 1, ratio, ratio]
    return [Block((each[0], each[1]), (each[2], each[3])) for each in times.tolist()]


def _checked(ratio: float, spread: float, seed: int, outliers: float = 0.0) -> Judgement:
    """Ask as blocks come in, as a check does."""
    blocks = _blocks(ratio, spread, LOOKS[-1], seed, outliers)
    for look in LOOKS:
        judged = judge("time", blocks[:look], QUESTIONS)
        if judged.verdict != "undecided":
            break
    return judged


@given(values=st.lists(st.floats(-100, 100), min_size=4, max_size=4), questions=st.integers(1, 50))
def test_the_interval_of_four_blocks_is_students(values: list[float], questions: int) -> None:
    found = judge("memory", [Block((0.0, 0.0), (each * MIB, each * MIB)) for each in values], questions).change
    assert found
    error = np.std(values, ddof=1) / 2 * MIB
    half = error * t.ppf(1 - FAMILY / (questions * len(LOOKS)) / 2, 3)
    assert found.low == pytest.approx(np.mean(values) * MIB - half, abs=1)
    assert found.high == pytest.approx(np.mean(values) * MIB + half, abs=1)


@pytest.mark.parametrize("count", [5, 8, 20, 36])
def test_the_interval_of_a_trimmed_mean_covers_what_it_says(count: int) -> None:
    random = np.random.default_rng(count)
    alpha = 0.1
    covered = 0
    for _ in range(2000):
        low, high = _difference(random.normal(0, 1, count).tolist()).bounds(1 - alpha)
        covered += low <= 0 <= high
    assert 0.87 < covered / 2000 < 0.93


def test_verdicts_need_the_whole_interval() -> None:
    assert judge("time", _blocks(1.10, 0.005, 8), QUESTIONS).verdict == "slower"
    assert judge("time", _blocks(0.90, 0.005, 8), QUESTIONS).verdict == "faster"
    assert judge("time", _blocks(1.00, 0.005, 8), QUESTIONS).verdict == "no difference"
    assert judge("time", _blocks(1.015, 0.0005, 8), QUESTIONS).verdict == "no difference", "within what matters"
    assert judge("time", _blocks(1.10, 0.1, 8), QUESTIONS).verdict == "undecided"
    few = judge("time", _blocks(1.5, 0.005, 3), QUESTIONS)
    assert (few.verdict, few.change and few.change.low) == ("undecided", None)


@pytest.mark.parametrize(
    ("more", "verdict"), [(8, "fatter"), (-8, "leaner"), (0, "no difference"), (1.5, "fatter"), (0.9, "no difference")]
)
def test_memory_is_judged_by_difference(more: float, verdict: str) -> None:
    blocks = [Block((100.0 * MIB, 100.1 * MIB), ((100 + more) * MIB, (100.1 + more) * MIB)) for _ in range(4)]
    found = judge("memory", blocks, QUESTIONS)
    assert found.verdict == verdict
    assert found.change
    assert found.change.value == pytest.approx(more * MIB, abs=1)
    assert found.a == pytest.approx(100.05 * MIB)


def test_a_drift_within_a_block_weighs_on_both_sides_alike() -> None:
    drift = [1.0, 1.2, 1.4, 1.6]  # A B B A
    found = judge("memory", [Block((drift[0], drift[3]), (drift[1], drift[2]))] * 8, QUESTIONS)
    assert found.change
    assert found.change.value == pytest.approx(0)


@pytest.mark.parametrize("outliers", [0.0, 0.05])
def test_alarms_are_rare_and_what_is_planted_is_found(outliers: float) -> None:
    nothing = [_checked(1.0, 0.05, seed, outliers).verdict for seed in range(300)]
    assert sum(each in ("slower", "faster") for each in nothing) <= 3
    planted = [_checked(1.10, 0.03, seed, outliers).verdict for seed in range(100)]
    assert planted.count("slower") >= 97


def test_more_questions_make_wider_intervals() -> None:
    blocks = _blocks(1.1, 0.02, 8)
    one, many = (judge("time", blocks, questions).change for questions in (1, 40))
    assert one and one.low and one.high and many and many.low and many.high  # noqa: PT018
    assert many.high / many.low > one.high / one.low


def test_a_strategy_is_measured_until_it_is_decided_or_has_had_its_share() -> None:
    open_ = judge("time", _blocks(1.05, 0.2, 4), QUESTIONS)
    slower = judge("time", _blocks(1.5, 0.001, 4), QUESTIONS)
    same = judge("time", _blocks(1.0, 0.001, 4), QUESTIONS)
    assert is_due(0, [])
    assert is_due(5, [same, same]), "asked at the next look only"
    assert is_due(4, [same, open_])
    assert not is_due(4, [same, slower])
    assert not is_due(LOOKS[-1], [open_], _failed(0, 0, LOOKS[-1]))


def _failed(a: int, b: int, blocks: int) -> Failures:
    return Failures(a, b, 2 * blocks, 2 * blocks)


@given(data=st.data(), of_a=st.integers(0, 40), of_b=st.integers(0, 40))
def test_failures_are_counted_by_fishers_exact_test(data: Any, of_a: int, of_b: int) -> None:
    a, b = data.draw(st.integers(0, of_a)), data.draw(st.integers(0, of_b))
    expected = fisher_exact(np.array([[b, of_b - b], [a, of_a - a]]), alternative="greater").pvalue
    assert Failures(a, b, of_a, of_b).p == pytest.approx(expected, abs=1e-9)


def test_failures_are_a_question_of_their_own() -> None:
    same = judge("time", _blocks(1.0, 0.001, 8), QUESTIONS)
    slower = judge("time", _blocks(1.5, 0.001, 8), QUESTIONS)
    questions = 30
    assert is_due(4, [same], _failed(0, 0, 4), questions), "a fifth of failures may not have shown in so few"
    assert not is_due(UNFAILING, [same], _failed(0, 0, UNFAILING), questions)
    assert not is_due(4, [slower], _failed(0, 0, 4), questions), "a regression already"
    assert is_due(8, [same], _failed(0, 2, 8), questions), "more on the new side: may be shown"
    assert is_due(4, [same], _failed(2, 2, 4), questions), "as many on the old side: the next ones may tell"
    assert not is_due(8, [same], _failed(2, 2, 8), questions), "as many on the old side"
    assert not is_due(8, [same], _failed(2, 0, 8), questions)
    assert not is_due(2, [], _failed(4, 4, 2), questions), "always, on both sides"
    assert not is_due(2, [], _failed(4, 0, 2), questions), "nothing to compare with"
    assert is_due(2, [], _failed(0, 4, 2), questions)
    assert _failed(0, 8, 4).are_more(questions), "always, on the new side: found at the first look"
    assert not _failed(0, 2, 4).are_more(questions)
    assert not _failed(8, 8, 4).are_more(questions)


def test_failures_are_asked_for_until_as_many_trials_whatever_a_block_is() -> None:
    open_ = judge("time", _blocks(1.05, 0.2, 4), QUESTIONS)
    assert not is_due(LOOKS[-1], [open_], _failed(0, 3, MOST_TRIALS // 2)), "blocks of four trials"
    in_turn = Failures(0, 3, LOOKS[-1], LOOKS[-1])
    assert is_due(LOOKS[-1], [open_], in_turn, 30), "blocks of two trials: half as many trials yet"
    assert not is_due(LOOKS[-1], [open_], Failures(3, 3, LOOKS[-1], LOOKS[-1]), 30), "figures have had their share"
    assert not is_due(EVERY_LOOK[-1], [open_], Failures(0, 3, MOST_TRIALS, MOST_TRIALS), 30)
    assert 2 * LOOKS[-1] == EVERY_LOOK[-1] == MOST_TRIALS


def test_the_word_is_the_one_judges() -> None:
    from loaders import _judge

    words = {"more": "slower", "less": "faster"}
    for ratio in (0.9, 0.97, 1.0, 1.03, 1.1):
        for spread in (0.001, 0.01, 0.03):
            blocks = _blocks(ratio, spread, 11)
            logs = [(np.log(each.b).mean() - np.log(each.a).mean()) for each in blocks]
            confidence, alike = 1 - FAMILY / (QUESTIONS * len(LOOKS)), 1 - 2 * ALIKE_LEVEL
            difference = _difference(logs)
            found = _judge.judge(difference, margin=TIME_ALIKE, beyond=TIME_MARGIN, confidence=confidence, alike=alike)
            judged = judge("time", blocks, QUESTIONS)
            assert judged.verdict == words.get(found.verdict, found.verdict)
            assert judged.enough is None or (judged.enough in LOOKS and judged.enough > 11)


@pytest.mark.parametrize("before", LOOKS[:-1])
def test_as_many_blocks_as_are_said_to_be_enough_decide_and_fewer_do_not(before: int) -> None:
    """With the same difference, and an error that falls as a trimmed mean's does."""

    def at(blocks: int, spread: float) -> Judgement:
        own = norm.ppf((np.arange(blocks) + 0.5) / blocks)
        trimmed = 1.06 if blocks > LOOKS[0] else 1.0
        logs = 0.1 + own * (spread * trimmed / np.sqrt(blocks) / _difference(own.tolist()).error)
        return judge("time", [Block((1.0,), (float(np.exp(each)),)) for each in logs], QUESTIONS)

    asked = 0
    for spread in np.geomspace(0.005, 0.5, 200):
        said = at(before, float(spread))
        if said.verdict == "undecided":
            later = (look for look in LOOKS if look > before and at(look, float(spread)).verdict != "undecided")
            assert said.enough == next(later, None)
            asked += said.enough is not None
    assert asked


def test_the_error_of_more_blocks_is_foreseen() -> None:
    random = np.random.default_rng(1)
    errors = {
        count: np.mean([_difference(random.normal(0, 1, count).tolist()).error for _ in range(4000)]) for count in LOOKS
    }
    for before, after in itertools.combinations(LOOKS[1:], 2):
        foreseen = _then(Difference(0.0, float(errors[before]), 1.0, before), after).error
        assert foreseen == pytest.approx(errors[after], rel=0.1)


def test_a_trial_that_failed_costs_itself_alone() -> None:
    whole = [Block((1.0, 1.0), (1.5, 1.5))] * 6
    assert judge("time", [*whole, Block((1.0,), (1.5, 1.5))], QUESTIONS).verdict == "slower"


@pytest.mark.parametrize("blocks", [[], [Block((1.0, 0.0), (1.0, 1.0))]])
def test_no_blocks_and_no_time_are_errors(blocks: list[Block]) -> None:
    with pytest.raises(ValueError, match=r"no blocks|must be positive"):
        judge("time", blocks, QUESTIONS)


def test_a_detectable_difference_is_found_nine_times_in_ten() -> None:
    from loaders._check.selftest import detectable

    spread, blocks = 0.03, 15
    ratio = detectable(spread, blocks)
    found = [judge("time", _blocks(ratio, spread, blocks, seed), QUESTIONS).verdict == "slower" for seed in range(400)]
    assert 0.8 < sum(found) / len(found) < 0.97


def test_the_spreads_of_others_narrow_an_interval_of_few_blocks_but_never_its_error() -> None:
    own = _blocks(1.0, 0.02, 4, seed=1)
    alike = [_blocks(1.0, 0.02, 8, seed=2 + each) for each in range(14)]
    alone, moderated = judge("time", own, QUESTIONS).change, judge("time", own, QUESTIONS, _shown(alike)).change
    assert alone and alone.low and alone.high and moderated and moderated.low and moderated.high  # noqa: PT018
    assert moderated.value == alone.value
    assert moderated.high / moderated.low < alone.high / alone.low
    noisy = _blocks(1.0, 0.3, 8, seed=1)
    quiet = [_blocks(1.0, 0.001, 8, seed=2 + each) for each in range(14)]
    assert _error(noisy, quiet) >= _error(noisy, []), "its own noise counts"
    assert _error(quiet[0], [noisy] * 14) > _error(quiet[0], []), "what looks quiet by chance is not trusted"
    assert shown("time", _blocks(1.0, 0.02, 3)) is None, "fewer blocks than a verdict needs say nothing"


def _shown(every: list[list[Block]]) -> list[Difference]:
    return [found for each in every if (found := shown("time", each))]


def _error(own: list[Block], others: list[list[Block]]) -> float:
    mine, *rest = _shown([own, *others])
    return _moderated(mine, rest).error


def test_alarms_stay_rare_where_spreads_are_shared_and_differ() -> None:
    """The whole check: of strategies with spreads as they are published, none is called different."""
    wrong = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        spreads = np.exp(random.normal(np.log(0.06), 0.7, 15))
        blocks = [_blocks(1.0, float(each), LOOKS[3], 100 * seed + index, 0.03) for index, each in enumerate(spreads)]
        for look in LOOKS[:4]:
            now = [each[:look] for each in blocks]
            for own in now:
                others = _shown([each for each in now if each is not own])
                wrong += judge("time", own, 45, others).verdict in ("slower", "faster")
    assert wrong <= 3


@pytest.mark.parametrize("spread", [0.02, 0.03, 0.06])
def test_a_difference_that_matters_is_seldom_called_none(spread: float) -> None:
    found = [_checked(TIME_ALIKE, spread, seed).verdict for seed in range(1000)]
    assert found.count("no difference") <= MISSED * 1000
    assert "slower" in found


def test_looks_at_the_same_blocks_share_the_chance_of_an_error() -> None:
    """A sum of normal steps is below the level's quantile at any look as often as one test would be."""
    steps = np.random.default_rng(1).normal(0, 1, (200_000, LOOKS[-1]))
    looks = np.array(LOOKS)
    sums = np.cumsum(steps, axis=1)[:, looks - 1] / np.sqrt(looks)
    errs = (sums < norm.ppf(ALIKE_LEVEL)).any(axis=1).mean()
    assert 0.8 * MISSED < errs < MISSED
