from __future__ import annotations

from typing import Any

import msgspec
import pytest

from loaders._contract import OrderQuality
from loaders._rows import Comparison, Disturbed, Row, comparison, disturbed
from loaders._trial.growth import Growth, Verdict
from loaders._trial.record import Disturbance, Metrics, Record
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
    assert (mixed.ratio.low, mixed.ratio.high) == (pytest.approx(4.0), pytest.approx(4.0))
    assert mixed.peak_ratio is not None
    assert mixed.peak_ratio.value == pytest.approx(1054 / 24)
    assert (baseline.is_baseline, baseline.ratio, baseline.peak_ratio) == (True, None, None)
    assert mixed.time is not None
    assert mixed.time.low is not None
    assert mixed.time.low < 2 < mixed.time.value, "the time itself is as uncertain as the machine's drift"


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
    assert half.ratio.count == 1
    assert (none.samples, none.time, none.ratio) == (0, None, None)
    assert none.status == "over budget: held 900 MiB"
    assert none.peak is not None
    assert none.peak.value == 850 * MIB, "how far it came is shown"
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
    assert found["mixed_copy"].peak is not None


def test_cases_are_compared_within_themselves() -> None:
    found = comparison(
        [
            record(name, 0, time=factor * scale, case={"images": images})
            for images, scale in [("500", 1.0), ("2000", 10.0)]
            for name, factor in [("numpy_to_numpy", 1.0), ("mixed_copy", 2.0)]
        ]
    )
    ratios = [row.ratio.value for row in found.rows if row.ratio]
    assert ratios == [pytest.approx(2.0), pytest.approx(2.0)]


def test_a_pair_is_compared_with_what_it_matches() -> None:
    records = [
        record(name, index, question="resize", case={"scale": "0.5"}, metrics=Metrics(sample_time=time * (1 + index)))
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
    assert found.pair.value == pytest.approx(1 / 20)
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(3 / 100)


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
    assert comparison([judged(0, "undecided")]).rows[0].growth is None
    assert comparison([record("numpy_to_numpy", 0, time=1.0)]).rows[0].growth is None


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
    saved = found["encoded_bytes"].saved
    assert saved is not None
    assert (saved.value, saved.low, saved.high) == (pytest.approx(0.5), pytest.approx(0.5), pytest.approx(0.5))
    assert found["separate_files"].saved is None


def test_a_peak_is_held_against_its_floor_and_a_level_says_who_holds_it() -> None:
    growth = Growth("plateau", 0, 0, 0, 0, 300 * MIB, 400, held=180 * MIB)
    metrics = _metrics(epoch_time=1.0, peak_memory=400 * MIB, memory_floor=200 * MIB, memory_growth=growth)
    case = {"record": "tensor"}
    found = comparison(
        [record("interleave", index, question="read_order", case=case, metrics=metrics) for index in range(2)]
    ).rows[0]
    assert found.over_floor is not None
    assert found.over_floor.value == pytest.approx(2.0)
    assert found.level is not None
    assert found.level_held is not None
    assert (found.level.value, found.level_held.value) == (300 * MIB, 180 * MIB)


@pytest.mark.parametrize("per_image", [0.0, 0.5])
def test_memory_over_the_data_is_a_slope_with_its_interval(per_image: float) -> None:
    records = [
        record(
            "load_all",
            index,
            question="batching",
            case={"data": data, "augment": augment},
            metrics=_metrics(epoch_time=1.0, samples=count, peak_memory=int((20 + index + per_image * count) * MIB)),
        )
        for index in range(3)
        for data, count in (("x1", 40), ("x4", 160), ("x16", 640))
        for augment in (("off", "on") if data == "x4" else ("off",))
    ]
    (scaling,) = comparison(records).scaling
    assert scaling.per_sample.value == pytest.approx(per_image * MIB, abs=1)
    assert scaling.per_sample.low == pytest.approx(per_image * MIB, abs=1)
    assert [count for count, _ in scaling.points] == [40, 160, 640]
    assert (scaling.largest.value > 2) == (per_image > 0)


def test_what_a_cache_costs_in_the_first_epoch_and_saves_in_the_later_ones() -> None:
    def of(strategy: str, index: int, first: float, later: float) -> Record:
        metrics = _metrics(epoch_time=first, later_epoch_time=later)
        return record(strategy, index, question="caching", case={}, metrics=metrics)

    found = rows(
        comparison(
            [
                each
                for index in range(2)
                for each in (of("no_cache", index, 1.0, 1.0), of("cache_to_file", index, 1.6, 0.4))
            ]
        )
    )
    cached = found["cache_to_file"]
    assert cached.extra is not None
    assert cached.saved is not None
    assert (cached.extra.value, cached.saved.value) == (pytest.approx(0.6), pytest.approx(0.6))
    assert found["no_cache"].extra is None


QUIET, BUSY = Disturbance(others=0.02, stolen=0.01, swapped=0), Disturbance(others=0.3, stolen=0.04)


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        ([], None),
        ([QUIET] * 20, None),
        ([QUIET] * 18 + [BUSY] * 2, None),
        ([QUIET] * 17 + [BUSY] * 3, Disturbed(20, 3, 0.3, 0.04, 0, 0, 0)),
        ([Disturbance(others=0.06, stolen=0.05)], Disturbed(1, 1, 0.06, 0.05, 0, 0, 0)),
        ([QUIET] * 20 + [Disturbance(others=0.0, swapped=MIB)], None),
        ([QUIET] * 20 + [Disturbance(others=0.0, swapped=9 * MIB)], Disturbed(21, 0, 0.02, 0.01, 1, 9 * MIB, 0)),
        ([QUIET] * 20 + [Disturbance(others=0.0, throttled=2)], Disturbed(21, 0, 0.02, 0.01, 0, 0, 1)),
    ],
)
def test_a_comparison_that_was_disturbed_says_in_how_many_trials(
    seen: list[Disturbance], found: Disturbed | None
) -> None:
    silent = record("numpy_to_numpy", 0, status="timed_out")  # a trial that was ended tells nothing
    told = [record("numpy_to_numpy", index, metrics=Metrics(disturbance=each)) for index, each in enumerate(seen)]
    assert disturbed([silent, *told]) == found
