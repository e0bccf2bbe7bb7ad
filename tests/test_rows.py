from __future__ import annotations

from typing import Any

import msgspec
import pytest

from loaders._contract import OrderQuality
from loaders._rows import Comparison, Row, comparison
from loaders._trial.growth import Growth, Verdict
from loaders._trial.record import Metrics, Record
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
