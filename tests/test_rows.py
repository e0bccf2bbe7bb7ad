from __future__ import annotations

import dataclasses
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from loaders import _registry, _words
from loaders._contract import OrderQuality
from loaders._rows import (
    MEASURED,
    Comparison,
    Disturbed,
    Row,
    advisable,
    comparison,
    disturbed,
    document,
    total,
    worked_first,
)
from loaders._rows.figures import first_epochs, parts_of
from loaders._stats import Scale, estimate
from loaders._trial.growth import Growth, Verdict
from loaders._trial.metrics import Disturbance, MemoryTrace, Metrics
from loaders._trial.record import Record
from tests.trial.test_log import RECORD

MIB = 2**20


def record(strategy: str, round_: int, time: float | None = None, peak: float | None = None, **changes: Any) -> Record:
    metrics = Metrics(epoch_time=time, peak_memory=None if peak is None else int(peak * MIB))
    return msgspec.structs.replace(
        RECORD, **{"strategy": strategy, "round": round_, "metrics": metrics, "message": "", **changes}
    )


def rows(found: Comparison) -> dict[str, Row]:
    return {row.strategy: row for row in found.rows}


def test_ratios_are_paired_by_round_so_drift_cancels() -> None:
    found = rows(
        comparison(
            [
                record(name, index, time=drift * factor, peak=mebibytes)
                for index, drift in enumerate([1.0, 3.0, 9.0])
                for name, factor, mebibytes in [("numpy_to_numpy", 1.0, 24), ("numpy_to_list", 4.0, 1054)]
            ]
        )
    )
    mixed, baseline = found["numpy_to_list"], found["numpy_to_numpy"]
    assert mixed.ratio is not None
    assert mixed.ratio.verdict == "more"
    assert (mixed.ratio.ratio.low, mixed.ratio.ratio.high) == (pytest.approx(4.0, rel=0.01), pytest.approx(4, rel=0.01))
    assert mixed.peak_ratio is not None
    assert mixed.peak_ratio.ratio.value == pytest.approx(1054 / 24)
    assert (baseline.is_baseline, baseline.ratio, baseline.peak_ratio) == (True, None, None)
    assert mixed["time"] is not None
    assert mixed["time"].low is not None
    assert mixed["time"].low < 2 < mixed["time"].value, "the time itself is as uncertain as the machine's drift"


def test_a_failed_trial_has_words_and_no_part_in_any_figure() -> None:
    found = rows(
        comparison(
            [
                record("numpy_to_numpy", 0, time=1.0),
                record("numpy_to_numpy", 1, time=1.0),
                record("mixed_copy", 0, time=2.0),
                record("mixed_copy", 1, status="failed", message="ValueError: x"),
                record("list_to_list", 0, status="over_budget", message="held 900 MiB", peak=850),
                record("mixed_tolist", 0, status="skipped", message="not here"),
            ]
        )
    )
    half, none = found["mixed_copy"], found["list_to_list"]
    assert (half.samples, half.trials, half.status) == (1, 2, "failed in 1 of 2: ValueError: x")
    assert half.ratio is not None
    assert half.ratio.ratio.count == 1
    assert (none.samples, none["time"], none.ratio) == (0, None, None)
    assert none.status == "over budget: held 900 MiB"
    assert none["peak"] is not None
    assert none["peak"].value == 850 * MIB, "how far it came is shown"
    assert found["mixed_tolist"].status == "skipped: not here"


def test_rows_stand_best_first_and_untimed_ones_last() -> None:
    found = comparison(
        [
            record("numpy_to_numpy", 0, time=2.0),
            record("mixed_copy", 0, status="failed"),
            record("list_to_list", 0, time=3.0),
            record("mixed_tolist", 0, time=1.0),
        ]
    )
    assert [row.strategy for row in found.rows] == ["mixed_tolist", "numpy_to_numpy", "list_to_list", "mixed_copy"]


def test_memory_below_what_the_instrument_resolves_has_no_ratio() -> None:
    found = rows(comparison([record("numpy_to_numpy", 0, 1.0, 24), record("mixed_copy", 0, 1.0, 0.5)]))
    assert found["mixed_copy"].peak_ratio is None
    assert found["mixed_copy"]["peak"] is not None


def test_the_time_of_what_delivers_all_twice_is_held_against_nothing() -> None:
    def of(name: str, index: int, time: float, samples: int) -> Record:
        return record(name, index, metrics=Metrics(epoch_time=time, samples=samples, peak_memory=24 * MIB))

    counts = {"numpy_to_numpy": (1.0, 100), "mixed_copy": (0.5, 200), "list_to_list": (3.0, 100)}
    made = [of(name, index, *each) for index in range(3) for name, each in counts.items()]
    failed = record("numpy_to_numpy", 3, status="failed", metrics=Metrics(samples=7))
    found = rows(comparison([failed, *made]))
    twice, once = found["mixed_copy"], found["list_to_list"]
    assert twice["time"] == estimate([0.5] * 3, "ratio")
    assert (twice.ratio, twice.best, twice.in_best, twice.times, twice.parts) == (None, None, False, {}, {})
    assert twice.peaks == {0: 24 * MIB, 1: 24 * MIB, 2: 24 * MIB}
    assert _words.of_times(twice) == ["delivers 200 samples instead of 100"]
    assert once.ratio is not None
    assert (once.in_best, once.instead_of, _words.of_times(once)) == (True, None, []), "the baseline has failed once"
    assert twice not in advisable(list(found.values()))


def test_cases_are_compared_within_themselves() -> None:
    found = comparison(
        [
            record(name, 0, time=factor * scale, case={"images": images})
            for images, scale in [("500", 1.0), ("2000", 10.0)]
            for name, factor in [("numpy_to_numpy", 1.0), ("mixed_copy", 2.0)]
        ]
    )
    ratios = [row.ratio.ratio.value for row in found.rows if row.ratio]
    assert ratios == [pytest.approx(2.0), pytest.approx(2.0)]


def test_a_pair_is_compared_with_what_it_matches() -> None:
    records = [
        record(
            name, index, question="resize", case={"scale": "224x224"}, metrics=Metrics(steady_time=time * (1 + index))
        )
        for index in range(2)
        for name, time in [
            ("skimage_resize_astype", 100.0),
            ("skimage_linear_float", 60.0),
            ("opencv_linear_float", 3.0),
        ]
    ]
    found = rows(comparison(records))["opencv_linear_float"]
    assert found.matches == "skimage_linear_float"
    assert found.pair is not None
    assert found.pair.ratio.value == pytest.approx(1 / 20)
    assert found.ratio is not None
    assert found.ratio.ratio.value == pytest.approx(3 / 100)


def test_quality_is_the_worst_of_all_trials() -> None:
    metrics = [
        Metrics(epoch_time=1.0, psnr=psnr, max_difference=difference) for psnr, difference in [(40.0, 0.1), (30.0, 0.3)]
    ]
    found = comparison([record("numpy_to_numpy", index, metrics=each) for index, each in enumerate(metrics)]).rows[0]
    assert (found.psnr, found.max_difference) == (30.0, 0.3)
    order = OrderQuality(0.1, 2.0, 0.3)
    assert comparison([record("numpy_to_numpy", 0, metrics=Metrics(order_quality=order))]).rows[0].order == order


def test_verdicts_on_memory_are_counted() -> None:
    def judged(index: int, verdict: Verdict) -> Record:
        growth = Growth(verdict, 0, 0, 0, 0, 0, 100)
        return record("numpy_to_numpy", index, metrics=Metrics(epoch_time=1.0, memory_growth=growth))

    assert comparison([judged(0, "flat"), judged(1, "flat")]).rows[0].growth == "flat"
    mixed = comparison([judged(0, "flat"), judged(1, "growing, in use"), judged(2, "growing, in use")]).rows[0]
    assert mixed.growth == "growing, in use in 2; flat in 1"
    of_one = comparison([judged(0, "flat"), record("numpy_to_numpy", 1, time=1.0)]).rows[0]
    assert of_one.growth == "flat in 1", "the other says nothing of it"
    assert comparison([judged(0, "undecided")]).rows[0].growth is None
    assert comparison([record("numpy_to_numpy", 0, time=1.0)]).rows[0].growth is None


def test_a_row_names_the_engine_of_its_strategy() -> None:
    found = rows(
        comparison([record(name, 0, question="batching", time=1.0) for name in ("path_generator", "tf1_queue")])
    )
    assert {name: row.engine for name, row in found.items()} == {"path_generator": "", "tf1_queue": "tensorflow 1"}


def test_a_strategy_that_is_no_longer_there_keeps_its_figures() -> None:
    found = rows(comparison([record("numpy_to_numpy", 0, time=1.0), record("forgotten", 0, time=2.0)]))
    assert found["forgotten"].ratio is not None
    assert "declared elsewhere" in found["forgotten"].label


def _metrics(**values: Any) -> Metrics:
    return Metrics(**values)


def test_what_a_conversion_saves_is_held_against_separate_files_by_round() -> None:
    def of(strategy: str, index: int, time: float, **more: Any) -> Record:
        case = {"page_cache": "warm"}
        return record(strategy, index, question="record_format", case=case, metrics=_metrics(epoch_time=time, **more))

    records = []
    for index, drift in enumerate([1.0, 2.0, 4.0]):
        records += [
            of("separate_files", index, drift + 0.5),
            of("encoded_bytes", index, drift, convert_time=2.0, disk_bytes=100),
        ]
    found = rows(comparison(records))
    saved = found["encoded_bytes"]["saved"]
    assert saved is not None
    assert (saved.value, saved.low, saved.high) == (pytest.approx(0.5), pytest.approx(0.5), pytest.approx(0.5))
    assert found["separate_files"]["saved"] is None


def test_what_a_conversion_saves_is_held_against_the_baseline_not_what_comes_first_in_the_alphabet() -> None:
    found = _three_rounds(
        grain_threads=(9.0, 9.0, 9.0),
        load_all=(0.1, 0.1, 0.1),
        memory_map=(1.0, 1.0, 1.0),
        path_generator=(3.0, 3.0, 3.0),
    )
    saved = found["memory_map"]["saved"]
    assert saved is not None
    assert saved.value == pytest.approx(2.0)


def test_a_peak_is_held_against_its_floor_and_a_level_says_who_holds_it() -> None:
    growth = Growth("plateau", 0, 0, 0, 0, 300 * MIB, 400, held=180 * MIB)
    metrics = _metrics(epoch_time=1.0, peak_memory=400 * MIB, memory_floor=200 * MIB, memory_growth=growth)
    case = {"record": "tensor"}
    found = comparison(
        [record("interleave", index, question="read_order", case=case, metrics=metrics) for index in range(2)]
    ).rows[0]
    assert found["over_floor"] is not None
    assert found["over_floor"].value == pytest.approx(2.0)
    assert found["level"] is not None
    assert found["level_held"] is not None
    assert (found["level"].value, found["level_held"].value) == (300 * MIB, 180 * MIB)


def test_what_ran_where_it_answers_nothing_is_left_out() -> None:
    """As an earlier checkout had it: augmented once, it would come before all that do so in each epoch."""
    cases = ({"data": "x4", "augment": "off"}, {"data": "x4", "augment": "on"})
    found = comparison(
        [
            record(name, index, question="batching", case=case)
            for index in range(3)
            for name in ("load_all", "path_generator", "of_long_ago")
            for case in cases
        ]
    )
    rows = {each: {row.strategy for row in found.rows if row.case["augment"] == each} for each in ("off", "on")}
    assert rows == {"off": {"load_all", "path_generator", "of_long_ago"}, "on": {"path_generator", "of_long_ago"}}
    assert "load_all" not in {row.strategy for row in found.missing(cases[1])}


def test_memory_over_the_data_has_a_law_in_each_case_by_what_cannot_be_taken_back() -> None:
    def of(strategy: str, per_image: float, index: int, data: str, count: int, augment: str) -> Record:
        needed = int((20 + per_image * count) * MIB)
        metrics = _metrics(epoch_time=1.0, samples=count, peak_memory=2 * needed, needed_memory=needed)
        case = {"data": data, "augment": augment}
        return record(strategy, index, question="batching", case=case, metrics=metrics)

    found = comparison(
        [
            of(strategy, per_image, index, data, count, augment)
            for index in range(3)
            for strategy, per_image in (("load_all_uint8", 0.5), ("path_generator", 0.0))
            for data, count in (("x1", 40), ("x4", 160), ("x16", 640))
            for augment in (("off", "on") if data == "x4" else ("off",))
        ]
    )
    by_case = {each.case["augment"]: each.laws for each in found.laws}
    grows, level = by_case["off"]["load_all_uint8"], by_case["off"]["path_generator"]
    assert (grows.kind, level.kind, by_case["on"]["load_all_uint8"].kind) == ("linear", "level", "unknown")
    assert grows.per_sample is not None
    assert grows.per_sample.value == pytest.approx(0.5 * MIB)
    assert [count for count, _ in grows.points] == [40, 160, 640]


def _epochs(strategy: str, index: int, first: float, steady: float | None, **more: Any) -> Record:
    metrics = _metrics(epoch_time=first, steady_time=steady, **more)
    return record(strategy, index, question="record_format", case={"page_cache": "warm"}, metrics=metrics)


def test_a_total_holds_the_conversion_the_first_epoch_and_all_later_ones() -> None:
    found = rows(
        comparison(
            [
                each
                for index in range(3)
                for each in (
                    _epochs("separate_files", index, 1.0, 1.0),
                    _epochs("encoded_bytes", index, 2.0, 0.5, convert_time=3.0),
                )
            ]
        )
    )
    converted = found["encoded_bytes"]
    assert converted.parts[0] == (3.0, 2.0, 0.5, 0.0)
    assert converted["total"] is not None
    assert converted["total"].value == pytest.approx(3.0 + 2.0 + 19 * 0.5)
    assert (converted.in_best_total, found["separate_files"].in_best_total) == (True, False)
    assert total((3.0, 2.0, 0.5, 0.0), 1) == 5.0
    assert total((3.0, 2.0, 0.5, math.log(2)), 1) == pytest.approx(5.0 * 2 ** (2 / 5)), "of the first epoch alone"


def _bounds(values: Mapping[int, float]) -> tuple[float, float, float]:
    found = estimate(list(values.values()), "ratio")
    assert found.low is not None
    assert found.high is not None
    return found.value, found.low, found.high


def _first(*seconds: float, forked: Sequence[float] = (), scale: Scale = "ratio") -> dict[int, float]:
    fresh = [_epochs("x", index, each, 1.0) for index, each in enumerate(seconds)]
    forks = [
        msgspec.structs.replace(_epochs("x", len(fresh) + index, each, 1.0), process="forked")
        for index, each in enumerate(forked)
    ]
    return first_epochs([*fresh, *forks], scale)


def test_a_first_epoch_is_that_of_fresh_processes() -> None:
    """A fork's start is not a reader's. Means and errors are those of the fresh trials alone, whatever forks took."""
    alone = _first(2.10, 1.90, 2.02)
    assert alone == {0: 2.10, 1: 1.90, 2: 2.02}
    mixed = _first(2.10, 1.90, 2.02, forked=(1.05, 1.8, 1.2, 1.1, 1.4))
    assert list(mixed) == [~7, ~6, ~5, ~4, ~3, 0, 1, 2], "each pairs with its own kind"
    assert statistics.geometric_mean(mixed.values()) == pytest.approx(statistics.geometric_mean(alone.values()))
    linear = _first(2.10, 1.90, 2.02, forked=(1.05, 1.8, 1.2, 1.1, 1.4), scale="linear")
    assert statistics.fmean(linear.values()) == pytest.approx(statistics.fmean(alone.values()))
    wide = [high / low - 1 for _, low, high in map(_bounds, (alone, mixed))]
    assert wide[1] == pytest.approx(wide[0], rel=0.1), "eight rounds know the start no better than three"
    assert mixed[~3] == mixed[0], "in the same round for every strategy, so that what is paired stays paired"
    assert _first(forked=(1.0, 1.2)) == {~0: 1.0, ~1: 1.2}, "all that there is"
    assert _first(0.0, 1.0, forked=(1.0,)) == {~2: 1.0, 0: 0.0, 1: 1.0}, "of which no mean can be taken"
    assert [*_first(2.0, forked=(1.0, 1.1)).values()] == pytest.approx([2.0] * 3)


@pytest.mark.parametrize(
    ("start", "steady", "rounds", "spread"),
    [(2.0, 0.001, 8, 0.1), (0.5, 0.1, 8, 0.1), (0.05, 0.5, 8, 0.1), (3.0, 0.35, 24, 0.1), (3.0, 0.35, 24, 0.25)],
)
def test_a_total_s_interval_holds_the_truth_though_forks_start_sooner(
    start: float, steady: float, rounds: int, spread: float
) -> None:
    """Simulated: three fresh trials, and forks whose start is a third shorter; all spread alike."""
    truth, held, away, chance = start + 20 * steady, 0, [], random.Random(3)
    for _ in range(400):
        trials = []
        for index in range(rounds):
            fresh = index < 3
            times = (start if fresh else start / 1.5, steady)
            once, each = (value * math.exp(chance.gauss(0, spread)) for value in times)
            made = _epochs("x", index, once + each, each)
            trials.append(msgspec.structs.replace(made, process="fresh" if fresh else "forked"))
        found = estimate([total(each) for each in parts_of(trials, "x").values()], "ratio")
        held += found.low is not None and found.high is not None and found.low <= truth <= found.high
        away.append(math.log(found.value / truth))
    assert held / 400 >= 0.93
    assert abs(statistics.fmean(away)) < spread / 4, "it was 0.20 of the last"


def test_a_total_is_no_shorter_than_its_start_where_forks_start_sooner() -> None:
    trials = [_epochs("separate_files", index, 1.0, 0.05) for index in range(8)]
    trials += [_epochs("encoded_bytes", index, 2.0 if index < 3 else 1.0, 1e-4, start_time=2.0) for index in range(8)]
    trials = [msgspec.structs.replace(each, process="fresh" if each.round < 3 else "forked") for each in trials]
    row = rows(comparison(trials))["encoded_bytes"]
    assert row["total"]
    assert row["start"]
    assert row["total"].value >= row["start"].value


def test_a_case_is_ranked_by_steady_epochs_only_where_all_of_its_trials_have_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declared = _registry.find_question("record_format")
    by_steady = dataclasses.replace(declared, ranked_by="steady_time")
    monkeypatch.setattr(_registry, "find_question", lambda _: by_steady)
    whole = [_epochs("separate_files", 0, 1.0, 0.4), _epochs("encoded_bytes", 0, 0.5, 0.5)]
    assert [(row.strategy, row.ranked_by) for row in comparison(whole).rows] == [
        ("separate_files", "steady_time"),
        ("encoded_bytes", "steady_time"),
    ]
    partly = [whole[0], _epochs("encoded_bytes", 0, 0.5, None)]
    assert [(row.strategy, row.ranked_by) for row in comparison(partly).rows] == [
        ("encoded_bytes", "epoch_time"),
        ("separate_files", "epoch_time"),
    ]
    failed = msgspec.structs.replace(partly[1], status="failed")
    assert comparison([whole[0], failed]).rows[0].ranked_by == "steady_time", "what failed has no say"


def _three_rounds(**seconds: tuple[float, float, float]) -> dict[str, Row]:
    """Return rows of ``batching``, whose bare pool is a ceiling."""
    case = {"data": "x16", "augment": "off"}
    return rows(
        comparison(
            [
                record(name, index, time, 24, question="batching", case=case)
                for name, times in seconds.items()
                for index, time in enumerate(times)
            ]
        )
    )


def test_the_best_are_those_that_cannot_be_shown_to_be_slower_than_the_fastest() -> None:
    found = _three_rounds(
        path_generator=(2.0, 2.02, 1.98),
        path_generator_pool=(1.0, 1.02, 0.98),
        memory_map=(1.01, 1.0, 1.0),
        opencv_pool=(0.5, 0.51, 0.49),
    )
    assert {name for name, row in found.items() if row.in_best} == {"path_generator_pool", "memory_map"}
    fastest = found["path_generator_pool"]
    assert fastest.best is None, "the fastest is what the others are held against"
    slower, ceiling = found["path_generator"].best, found["opencv_pool"].best
    assert slower is not None
    assert ceiling is not None
    assert (slower.verdict, ceiling.verdict) == ("more", "less"), "a ceiling wins nothing, and shows what is left"
    assert found["opencv_pool"].ceiling


def test_how_surely_a_ratio_is_not_1_goes_with_it() -> None:
    found = _three_rounds(path_generator=(2.0, 2.02, 1.98), path_generator_pool=(1.0, 1.02, 0.98))
    assert found["path_generator_pool"].p_values["ratio"] < 0.01
    assert found["path_generator_pool"].p_values["peak_ratio"] == pytest.approx(1.0)
    assert found["path_generator"].p_values == {}, "the baseline has no ratio"


@pytest.mark.parametrize(
    ("mebibytes", "rounds", "said"),
    [
        (24.3, 1, "below resolution (single sample)"),
        (24.0, 1, "below resolution (single sample)"),
        (1054.0, 1, "43.9× fatter (single sample)"),
        (24.3, 2, "below resolution ("),
    ],
)
def test_one_sample_has_no_direction_where_the_instrument_cannot_resolve_it(
    mebibytes: float, rounds: int, said: str
) -> None:
    made = [
        record(name, index, time=1.0, peak=peak + index / 1000)
        for index in range(rounds)
        for name, peak in (("numpy_to_numpy", 24.0), ("numpy_to_list", mebibytes))
    ]
    row = rows(comparison(made))["numpy_to_list"]
    assert _words.fatter(row.peak_ratio).startswith(said)


def test_a_bound_on_growth_needs_one_of_every_trial() -> None:
    def judged(index: int, bound: float | None, verdict: Verdict = "flat") -> Record:
        growth = Growth(verdict, 0, 0, 0, 0, MIB, 100, bound=bound, in_use_bound=bound and bound / 2)
        return record("numpy_to_numpy", index, metrics=Metrics(epoch_time=1.0, memory_growth=growth))

    (row,) = comparison([judged(0, 10.0), judged(1, 30.0)]).rows
    assert (row.growth_bound, row.in_use_bound) == (30.0, 15.0)
    (row,) = comparison([judged(0, 10.0), judged(1, None)]).rows
    assert (row.growth_bound, row.in_use_bound) == (None, None)
    (row,) = comparison([judged(0, 10.0), judged(1, 30.0, "growing, in use")]).rows
    assert row.in_use_bound is None, "malloc's account does not show what grows"


def test_what_is_held_after_the_first_step_is_an_estimate_over_trials() -> None:
    """Not that of the last trial; and a trace that begins later does not know it."""

    def traced(index: int, step: int, held: int) -> Record:
        trace = MemoryTrace([step, 9], [0.1, 0.2], [held, 90 * MIB], None)
        return record("numpy_to_numpy", index, metrics=Metrics(epoch_time=1.0, memory_trace=trace))

    (row,) = comparison([traced(0, 1, 10 * MIB), traced(1, 1, 14 * MIB), traced(2, 3, 80 * MIB)]).rows
    assert row["held_first"] is not None
    assert (row["held_first"].value, row["held_first"].count) == (12 * MIB, 2)
    (row,) = comparison([traced(0, 3, 80 * MIB)]).rows
    assert row["held_first"] is None


QUIET, BUSY = Disturbance(others=0.02, stolen=0.01, swapped=0), Disturbance(others=0.3, stolen=0.04)


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        ([], None),
        ([QUIET] * 20, None),
        ([None] * 3, Disturbed(0, 0, 0.0, 0.0, 0, 0, 0, unrecorded=3)),
        ([QUIET] * 2 + [None], Disturbed(2, 0, 0.02, 0.01, 0, 0, 0, unrecorded=1)),
        ([QUIET] * 18 + [BUSY] * 2, None),
        ([QUIET] * 17 + [BUSY] * 3, Disturbed(20, 3, 0.3, 0.04, 0, 0, 0)),
        ([Disturbance(others=0.06, stolen=0.05)], Disturbed(1, 1, 0.06, 0.05, 0, 0, 0)),
        ([QUIET] * 20 + [Disturbance(others=0.0, swapped=MIB)], None),
        ([QUIET] * 20 + [Disturbance(others=0.0, swapped=9 * MIB)], Disturbed(21, 0, 0.02, 0.01, 1, 9 * MIB, 0)),
        ([QUIET] * 20 + [Disturbance(others=0.0, throttled=2)], Disturbed(21, 0, 0.02, 0.01, 0, 0, 1)),
    ],
)
def test_a_comparison_that_was_disturbed_says_in_how_many_trials(
    seen: list[Disturbance | None], found: Disturbed | None
) -> None:
    silent = record("numpy_to_numpy", 0, status="timed_out")  # a trial that was ended gives no figure
    told = [record("numpy_to_numpy", index, metrics=Metrics(disturbance=each)) for index, each in enumerate(seen)]
    assert disturbed([silent, *told]) == found


@pytest.mark.parametrize("question", ["batching", "known_issues"])
def test_older_trials_whose_epochs_are_not_closed_are_told(question: str) -> None:
    """Where several passes are made with one iterator, it is part of none."""
    (name, *_), case = _registry.variants(question), _registry.find_question(question).default_case
    old, new = Metrics(epoch_time=1.0, steady_time=1.0), Metrics(epoch_time=1.0, steady_time=1.0, closing_time=0.0)
    records = [record(name, index, question=question, case=case, metrics=each) for index, each in enumerate((old, new))]
    assert comparison(records).not_closed == (question == "batching")
    assert not comparison(records[1:]).not_closed


def test_a_comparison_whose_trials_were_repeated_says_how_many() -> None:
    told = [record("numpy_to_numpy", index, metrics=Metrics(disturbance=QUIET), tries=1 + index) for index in range(3)]
    assert disturbed(told) == Disturbed(3, 0, 0.02, 0.01, 0, 0, 0, repeated=2)


def test_what_has_no_trial_in_a_case_is_a_row_of_its_own() -> None:
    records = [record("numpy_to_numpy", 0, time=1.0), record("mixed_copy", 0, status="skipped", message="not here")]
    other = record("mixed_copy", 0, time=1.0, case={"images": "2000"})
    found = comparison([*records, other])
    every = set(_registry.variants("selection"))
    here, there = ({row.strategy for row in found.missing({"images": images})} for images in ("500", "2000"))
    assert here == every - {"numpy_to_numpy", "mixed_copy"}, "what was skipped was reached"
    assert "numpy_to_numpy" in there
    assert "mixed_copy" not in there
    row = next(row for row in found.missing({"images": "500"}) if row.strategy == "list_to_list")
    declared = _registry.find_variant("selection", "list_to_list")
    assert (row.status, row.trials, row["time"]) == ("not measured", 0, None)
    assert (row.tier, row.label, row.source) == (declared.tier, declared.label, declared.source)
    assert {row.strategy for row in found.rows} == {"numpy_to_numpy", "mixed_copy"}


def test_a_strategy_is_missing_only_where_it_runs() -> None:
    case = {"work": "scalar"}
    found = comparison([record("native_4", 0, question="python_map", case=case, time=1.0)])
    runs = {name for name, each in _registry.variants("python_map").items() if each.runs_in(case)}
    assert runs < set(_registry.variants("python_map")), "some run in other cases only"
    assert {row.strategy for row in found.unmeasured} == runs - {"native_4"}


def test_the_document_holds_what_is_not_measured_yet_after_the_rows() -> None:
    found = comparison([record("numpy_to_numpy", 0, time=1.0)])
    rows: Any = document(found)["rows"]
    assert [row["status"] for row in rows] == ["ok"] + ["not measured"] * len(found.unmeasured)
    assert "unmeasured" not in document(found)
    assert rows[-1]["time"] is None


def _forked(strategy: str, index: int, start: float, **changes: Any) -> Record:
    metrics = Metrics(epoch_time=1.0, steady_time=0.5, start_time=start, first_batch_time=start + 0.1)
    return record(strategy, index, metrics=metrics, process="forked", **changes)


def test_start_comes_from_fresh_trials_only() -> None:
    fresh = [_forked("numpy_to_numpy", index, start=0.3) for index in (2, 3)]
    fresh = [msgspec.structs.replace(each, process="fresh") for each in fresh]
    forked = [_forked("numpy_to_numpy", index, start=0.9) for index in (0, 1)]
    (both,) = comparison([*forked, *fresh]).rows
    assert both["start"] is not None
    assert both["first_batch"] is not None
    assert both["steady"] is not None
    assert (both["start"].value, both["start"].count) == (pytest.approx(0.3), 2)
    assert (both["first_batch"].value, both["steady"].count) == (pytest.approx(0.4), 4)
    assert (both.forked, both.lacks_start) == ([0, 1], False)
    (row,) = comparison(forked).rows
    assert (row["start"], row["first_batch"], row.lacks_start) == (None, None, True)
    assert row["steady"] is not None
    assert {figure.field for figure in MEASURED.values() if figure.fresh_only} == {"start_time", "first_batch_time"}


def test_forked_trials_still_tell_whether_all_work_was_done_first() -> None:
    (row,) = comparison([_forked("numpy_to_numpy", index, start=30.0) for index in (0, 1)]).rows
    assert worked_first(row)
    (row,) = comparison([_forked("numpy_to_numpy", index, start=0.3) for index in (0, 1)]).rows
    assert not worked_first(row)


def test_records_from_before_there_was_a_server_are_fresh() -> None:
    encoded = msgspec.to_builtins(RECORD)
    del encoded["process"]
    assert msgspec.convert(encoded, Record).process == "fresh"


def test_no_ratio_joins_a_fresh_and_a_forked_trial() -> None:
    def of(strategy: str, index: int, time: float, process: str) -> Record:
        return record(strategy, index, time=time, peak=24 * time, process=process)

    records = [
        *(of("numpy_to_numpy", index, 1.0, process) for index, process in enumerate(("forked", "forked", "fresh"))),
        *(of("mixed_copy", index, 2.0, process) for index, process in enumerate(("forked", "forked", "fresh"))),
    ]
    planted = [*records, of("list_to_list", 0, 2.0, "forked"), of("list_to_list", 1, 50.0, "fresh")]
    found = rows(comparison(planted))["list_to_list"]
    for judged in (found.ratio, found.peak_ratio):
        assert judged is not None
        assert (judged.ratio.value, judged.ratio.count) == (pytest.approx(2.0), 1)
    assert found.times.keys() == found.peaks.keys() == {0}
    assert found["time"] is not None
    assert found["time"].count == 2, "its own figures count every trial"
    whole = rows(comparison(records))["mixed_copy"].ratio
    assert whole is not None
    assert whole.ratio.count == 3, "a round of its own kind is as good as another"
    without_baseline = [each for each in planted if each.strategy != "numpy_to_numpy" or each.round != 1]
    assert rows(comparison([*without_baseline, of("mixed_tolist", 1, 1.0, "forked")]))["list_to_list"].times.keys() == {
        0
    }


def test_the_baseline_says_how_a_round_started_whatever_most_did() -> None:
    others = ("mixed_copy", "list_to_list", "mixed_tolist")
    records = [record("numpy_to_numpy", 0, time=1.0, process="forked")]
    records += [record(name, 0, time=2.0, process="fresh") for name in others]
    found = rows(comparison(records))
    assert [name for name, row in found.items() if row.times] == ["numpy_to_numpy"]
    assert all(row.ratio is None for row in found.values())
    assert {row.strategy for row in comparison(records[1:]).rows if row.times} == set(others)


def test_a_law_joins_no_fresh_and_forked_trials() -> None:
    def of(data: str, samples: int, index: int, process: str) -> Record:
        metrics = Metrics(epoch_time=1.0, samples=samples, needed_memory=samples * MIB)
        case = {"data": data, "augment": "off"}
        return record("load_all", index, question="batching", case=case, metrics=metrics, process=process, run="r")

    amounts = (("x1", 40), ("x4", 160), ("x16", 640))
    same = [of(data, samples, index, "forked") for data, samples in amounts for index in range(3)]
    (law,) = [each.laws["load_all"] for each in comparison(same).laws]
    assert law.kind == "linear"
    mixed = [msgspec.structs.replace(each, process="fresh") if each.case["data"] == "x1" else each for each in same]
    (law,) = [each.laws["load_all"] for each in comparison(mixed).laws]
    assert (law.kind, law.why) == ("unknown", "no round covers every amount of data")


def test_what_was_never_in_a_round_with_the_fastest_is_not_called_so() -> None:
    shared = [
        record(name, index, time=time * (1 + index / 50))
        for index in range(3)
        for name, time in (("numpy_to_numpy", 2.0), ("mixed_copy", 1.0))
    ]
    alone = record("list_to_list", 7, time=1.5)
    found = rows(comparison([*shared, alone]))
    assert found["mixed_copy"].best is None
    best = found["list_to_list"].best
    assert best is not None
    assert (best.verdict, best.ratio.count, best.ratio.low) == ("undecided", 0, None)


def test_what_only_checked_trials_tell_is_of_them() -> None:
    told = Metrics(epoch_time=1.0, psnr=40.0, steps=[0, 1], walk=[1, 0], waiting_bytes=64)
    records = [record("numpy_to_numpy", 0, metrics=told, message="lost 1 of 9 samples")]
    records += [record("numpy_to_numpy", index, time=1.0, checked=False) for index in (1, 2)]
    (row,) = comparison(records).rows
    assert (row.status, row.psnr, row.walk) == ("ok: lost 1 of 9 samples", 40.0, [1, 0])
    assert row["time"] is not None
    assert row["time"].count == 3
    failed = [*records, record("numpy_to_numpy", 3, status="failed", message="no", checked=False)]
    (row,) = comparison(failed).rows
    assert row.status == "ok: lost 1 of 9 samples; failed in 1 of 4: no"


def test_a_case_that_a_question_no_longer_has_comes_last() -> None:
    *_, last = _registry.find_question("caching").cases
    records = [record("no_cache", 0, 1.0, question="caching", case=case) for case in ({"bogus": "1"}, last)]
    assert [case for case, _ in comparison(records).cases] == [last, {"bogus": "1"}]
