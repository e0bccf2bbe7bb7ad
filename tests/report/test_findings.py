from __future__ import annotations

from loaders._report import findings
from loaders._rows import Row, comparison
from loaders._trial.record import Metrics
from tests.test_rows import record


def _rows(rounds: int = 2, **seconds: float) -> list[Row]:
    return comparison(
        [
            record(name, index, time=time * (1 + index), peak=24)
            for index in range(rounds)
            for name, time in seconds.items()
        ]
    ).rows


def test_the_fastest_is_named_only_where_the_interval_allows() -> None:
    clear = _rows(numpy_to_numpy=2.0, mixed_copy=1.0)
    assert findings.of_time(clear) == "mixed_copy is fastest: 2.00× faster than numpy_to_numpy"
    assert findings.of_time(_rows(numpy_to_numpy=1.0, mixed_copy=2.0)) == "numpy_to_numpy, the baseline, is fastest"
    single = _rows(rounds=1, numpy_to_numpy=2.0, mixed_copy=1.0)
    assert findings.of_time(single) == "mixed_copy was fastest, but a single sample shows no difference"
    times = {"numpy_to_numpy": (1.0, 1.2), "mixed_copy": (1.1, 1.0)}
    noisy = comparison([record(name, index, time=each[index]) for name, each in times.items() for index in range(2)])
    assert findings.of_time(noisy.rows) == "No difference in time between mixed_copy and numpy_to_numpy"
    assert findings.of_time([]) == "No strategy was timed"


def test_memory_goes_from_least_to_most() -> None:
    rows = comparison([record("numpy_to_numpy", 0, 1.0, 24), record("numpy_to_list", 0, 1.0, 1054)]).rows
    assert findings.of_memory(rows) == "From 24.0 MiB (numpy_to_numpy) to 1054 MiB (numpy_to_list)"
    assert findings.of_memory([]) == "No strategy's memory was measured"


def test_pairs_say_what_is_left_of_the_gap() -> None:
    records = [
        record(name, index, question="resize", case={"scale": "0.5"}, metrics=Metrics(sample_time=time * (1 + index)))
        for index in range(2)
        for name, time in [
            ("skimage_resize_astype", 100.0),
            ("opencv_linear", 1.0),
            ("skimage_linear_float", 60.0),
            ("opencv_linear_float", 3.0),
        ]
    ]
    found = findings.of(comparison(records).rows)
    assert found.startswith("opencv_linear (as typed) is fastest: 100× faster than skimage_resize_astype. ")
    assert "With the same output: opencv_linear_float is 20.0× faster than skimage_linear_float. " in found
