from __future__ import annotations

from loaders._contract import OrderQuality
from loaders._report import findings
from loaders._rows import Row, comparison
from loaders._trial.growth import Growth
from loaders._trial.record import MemoryTrace, Metrics, Record
from tests.test_rows import record

MIB = 2**20


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
    assert (
        findings.of_time(_rows(numpy_to_numpy=1.0, mixed_copy=2.0))
        == "No strategy is faster than numpy_to_numpy, the baseline"
    )
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


def test_what_is_fat_beyond_doubt_and_not_faster_is_to_be_avoided() -> None:
    def found(fat: tuple[float, float], time: float, peaks: tuple[float, float] = (24, 24)) -> str:
        records = [
            record(name, index, seconds * (1 + index), mebibytes[index])
            for index in range(2)
            for name, seconds, mebibytes in [("numpy_to_numpy", 1.0, peaks), ("numpy_to_list", time, fat)]
        ]
        return findings.of_worst(comparison(records).rows)

    assert found((1054, 1054), 4.0) == (
        "Avoid numpy_to_list (Mixed: append data[i], a view that keeps the whole old array alive, to a list): "
        "1054 MiB, 43.9× fatter (43.9 to 43.9) than numpy_to_numpy, and 4.00× slower (4.00 to 4.00)"
    )
    assert found((1054, 1054), 1.0) == "", "not slower"
    assert found((47, 47), 4.0) == "", "less than twice as much"
    assert found((1054, 30), 4.0) == "", "not beyond doubt"
    assert findings.of_worst([]) == ""


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


def _read(strategy: str, index: int, time: float, peak: float, held: float, tail: float = 0.0) -> Record:
    growth = Growth("plateau", 0, 0, 0, 0, peak * MIB, 400, held=held * MIB)
    steps = list(range(1, 61))
    flat = [int(peak * MIB)] * 60
    metrics = Metrics(
        epoch_time=time,
        peak_memory=int(peak * MIB),
        memory_floor=200 * MIB,
        memory_growth=growth,
        memory_trace=MemoryTrace(steps, [float(each) for each in steps], flat, flat, [int(held * MIB)] * 60),
        order_quality=OrderQuality(0.3, 1.0, 0.2, tail),
    )
    return record(strategy, index, question="read_order", case={"record": "tensor"}, metrics=metrics)


def reads() -> list[Record]:
    """Two rounds of interleaved reads that need 600 MiB, with a lean and slow cure and one that is no cure."""
    return [
        each
        for index in range(2)
        for each in (
            _read("range_indexed", index, 2.0, 20, 1),
            _read("interleave", index, 1.0, 600, 380),
            _read("interleave_mmap_threshold", index, 3.0, 210, 0),
            _read("interleave_trim", index, 1.0, 500, 280),
        )
    ]


def test_memory_beyond_the_floor_is_the_allocators_and_a_cure_has_its_price() -> None:
    found = comparison(reads()).rows
    assert findings.of_growth(found) == (
        "interleave holds 600 MiB, 3.00× its floor, and 380 MiB of it was freed and is held by the allocator: no leak. "
        "MALLOC_MMAP_THRESHOLD_=131072 brings its peak to 1.05× the floor, 3.00× slower (3.00 to 3.00)"
    )
    ((ill, healed),) = findings.cures_of(found)
    assert ill.strategy == "interleave"
    assert [row.strategy for row in healed] == ["interleave_mmap_threshold", "interleave_trim"]
    assert findings.of_growth(found[:1]) == ""


def test_an_order_that_ends_with_one_file_is_named() -> None:
    records = [_read("parallel_reads", 0, 1.0, 1, 0, tail=1.0), _read("interleave", 0, 1.0, 1, 0, tail=0.0)]
    found = comparison([*records, _read("range_indexed", 0, 2.0, 1, 0)]).rows
    said = findings.of_order(found)
    assert said.startswith("parallel_reads end with one file, in order")
    assert "interleave" in said.partition(";")[2]


def test_the_ceiling_is_held_against_what_does_the_same_work() -> None:
    def of(strategy: str, index: int, time: float, convert: float | None = None) -> Record:
        metrics = Metrics(epoch_time=time, convert_time=convert)
        case = {"data": "x16", "augment": "off"}
        return record(strategy, index, question="batching", case=case, metrics=metrics)

    found = comparison(
        [
            each
            for index in range(2)
            for each in (
                of("opencv_pool", index, 0.9),
                of("path_generator_pool", index, 1.0),
                of("path_generator", index, 2.0),
                of("memory_map", index, 0.1, convert=2.0),
            )
        ]
    ).rows
    said = findings.of_ceiling(found, "opencv_pool")
    assert said == "path_generator_pool keeps 90% (90% to 90%) of what opencv_pool reaches"
    assert findings.of_ceiling(found, "") == ""


def test_only_what_is_beaten_in_both_time_and_memory_is_off_the_frontier() -> None:
    found = comparison(
        [
            record(name, index, time=time, peak=peak)
            for index in range(2)
            for name, time, peak in (
                ("numpy_to_numpy", 1.0, 30),
                ("mixed_copy", 2.0, 10),
                ("list_to_list", 3.0, 20),
                ("numpy_to_list", 4.0, 5),
            )
        ]
    ).rows
    assert [row.strategy for row in findings.frontier(found)] == ["numpy_to_numpy", "mixed_copy", "numpy_to_list"]


def test_later_epochs_have_a_sentence_of_their_own() -> None:
    def of(strategy: str, index: int, later: float) -> Record:
        metrics = Metrics(epoch_time=1.0, later_epoch_time=later)
        return record(strategy, index, question="caching", case={}, metrics=metrics)

    names = {"no_cache": 0.6, "cache_after_decode": 0.05}
    found = comparison([of(name, index, later) for index in range(2) for name, later in names.items()]).rows
    assert findings.of_later(found) == "In later epochs cache_after_decode takes 50.0 ms, the baseline 600 ms"
    assert findings.of_later(_rows(numpy_to_numpy=1.0)) == ""
