from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from loaders import _words
from loaders._contract import OrderQuality
from loaders._judge import Judged
from loaders._law import Law
from loaders._report import findings
from loaders._rows import Row, comparison, headline, loaders_of
from loaders._stats import Estimate
from loaders._trial.growth import Growth
from loaders._trial.metrics import MemoryTrace, Metrics
from loaders._trial.record import Record
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


def _all_of(*given: Any, **named: Any) -> str:
    return ". ".join(findings.sentences(*given, **named)) + "."


def _worst_of(rows: Sequence[Row], laws: Mapping[str, Law] | None = None) -> str:
    return findings._worst(rows, laws or {}).text


@pytest.mark.parametrize(
    ("judged", "words"),
    [
        (
            Judged("more", Estimate(1.04, 1.02, 1.06, 5), small=True),
            "1.04× slower (1.02 to 1.06) than other, by less than 10 %",
        ),
        (Judged("no difference", Estimate(1.0, 0.97, 1.04, 5)), "no difference (0.97 to 1.04) from other"),
        (
            Judged("undecided", Estimate(1.5, 0.87, 2.61, 5), rounds=14),
            "undecided (0.87 to 2.61) compared with other: 14 rounds would decide",
        ),
    ],
)
def test_what_qualifies_a_ratio_follows_the_name_it_is_compared_with(judged: Judged, words: str) -> None:
    assert findings._compared(judged, "other") == words


def test_the_fastest_are_those_that_no_other_is_shown_to_beat() -> None:
    clear = _rows(numpy_to_numpy=2.0, mixed_copy=1.0)
    assert findings.of_time(clear) == "mixed_copy is fastest"
    assert findings.of_time(_rows(numpy_to_numpy=1.0, mixed_copy=2.0)) == "numpy_to_numpy (the baseline) is fastest"
    alike = _rows(numpy_to_numpy=2.0, mixed_copy=1.0, list_to_list=1.0)
    assert findings.of_time(alike) == (
        "list_to_list and mixed_copy are fastest and cannot be told apart; every other loader is slower"
    )
    single = _rows(rounds=1, numpy_to_numpy=2.0, mixed_copy=1.0)
    assert findings.of_time(single) == "mixed_copy was fastest, but a single sample cannot show a difference"
    times = {"numpy_to_numpy": (1.0, 1.2), "mixed_copy": (1.1, 1.0)}
    noisy = comparison([record(name, index, time=each[index]) for name, each in times.items() for index in range(2)])
    assert findings.of_time(noisy.rows) == (
        "mixed_copy and numpy_to_numpy (the baseline) are fastest and cannot be told apart"
    ), "there is no other"
    assert findings.of_time([]) == "No strategy was timed"


def test_overlapping_ratios_to_a_third_strategy_make_nobody_fastest() -> None:
    drift = [1.0, 1.5, 0.7, 1.3]  # of the baseline alone, so both ratios to it are wide
    records = [
        record(name, index, time=time * (drift[index] if name == "numpy_to_numpy" else 1.0) * (1 + 0.001 * index))
        for index in range(4)
        for name, time in (("numpy_to_numpy", 3.0), ("mixed_copy", 1.0), ("list_to_list", 2.08))
    ]
    found = {row.strategy: row for row in comparison(records).rows}
    one, other = found["mixed_copy"].ratio, found["list_to_list"].ratio
    assert one is not None
    assert other is not None
    assert (one.ratio.high or 0.0) > (other.ratio.low or 1.0), "the intervals to the baseline overlap"
    assert [row.strategy for row in findings.leaders(list(found.values()))] == ["mixed_copy"]


def test_what_the_fastest_was_picked_from_is_said_where_some_failed() -> None:
    records = [
        record(name, index, time=time)
        for index in range(3)
        for name, time in (("mixed_copy", 1.0), ("list_to_list", 2.0))
    ]
    failed = record("mixed_tolist", 0, status="failed", message="x")
    assert findings.of_time(comparison([*records, failed]).rows) == "mixed_copy is fastest of the 2 timed (out of 3)"
    skipped = msgspec.structs.replace(failed, status="skipped")
    assert findings.of_time(comparison([*records, skipped]).rows) == "mixed_copy is fastest of the 2 timed (out of 3)"


def test_what_failed_in_some_trials_is_not_advised_however_fast_it_was_in_others() -> None:
    times = {"mixed_copy": 1.0, "list_to_list": 2.0, "numpy_to_numpy": 3.0}
    records = [record(name, index, time=time) for index in range(4) for name, time in times.items()]
    broken = [record("numpy_to_list", index, time=0.1) for index in range(4)]
    broken[2] = record("numpy_to_list", 2, status="wrong_output", message="x")
    rows = comparison([*records, *broken]).rows
    assert findings.of_time(rows) == "mixed_copy is fastest of the 3 timed without a failure (out of 4)"
    assert [row.strategy for row in loaders_of(rows) if row.in_best] == ["mixed_copy"]
    found = headline(rows)
    assert found
    assert "numpy_to_list" not in found.times


def test_a_baseline_that_failed_once_is_still_what_others_are_held_against() -> None:
    times = {"mixed_copy": 1.0, "numpy_to_numpy": 3.0}
    records = [record(name, index, time=time) for index in range(4) for name, time in times.items()]
    records[3] = record("numpy_to_numpy", 1, status="timed_out", message="x")
    found = headline(comparison(records).rows)
    assert found
    assert found.times.keys() == times.keys()


def test_where_everything_failed_nothing_is_fastest() -> None:
    times = {"mixed_copy": 1.0, "numpy_to_numpy": 3.0}
    records = [record(name, index, time=time) for index in range(3) for name, time in times.items()]
    records += [record(name, 3, status="failed", message="x") for name in times]
    assert findings.of_time(comparison(records).rows) == "Every strategy that was timed failed in some of its trials"


def test_what_nobody_may_take_does_not_count_among_those_that_were_timed() -> None:
    case = {"data": "x16", "augment": "off"}
    times = {"path_generator": 2.0, "path_generator_pool": 1.0, "opencv_pool": 0.5, "tf1_queue": 0.8}
    records = [
        record(name, index, time, question="batching", case=case) for index in range(3) for name, time in times.items()
    ]
    skipped = record("spdl_threads", 0, question="batching", case=case, status="skipped", message="x")
    said = findings.of_time(comparison([*records, skipped]).rows)
    assert said == "path_generator_pool is fastest of the 2 timed (out of 3)"


def test_sentences_are_corrected_for_their_number() -> None:
    sure, doubtful = findings._Said("sure", 0.001), findings._Said("doubtful", 0.03, "undecided")
    assert findings._corrected([doubtful]) == ["doubtful"]
    assert findings._corrected([sure, doubtful]) == ["sure", "doubtful"]
    assert findings._corrected([findings._Said("too", 0.04), doubtful]) == ["", "undecided"]
    assert findings._corrected([findings._Said("free"), doubtful]) == ["free", "doubtful"]


def test_a_ratio_in_the_opening_falls_with_the_correction() -> None:
    rows = _rows(rounds=3, numpy_to_numpy=2.0, mixed_copy=1.0)
    assert "mixed_copy is fastest. It is 2.00× faster" in _all_of(rows)
    unsure = [msgspec.structs.replace(row, p_values={"ratio": 0.06} if row.p_values else {}) for row in rows]
    assert "Whether mixed_copy is faster than numpy_to_numpy is undecided" in _all_of(unsure)


def test_the_fastest_of_many_must_be_surer_than_the_only_other_one() -> None:
    others = {"list_to_list": 1.5, "numpy_to_list": 1.6, "generator_choice": 1.7}
    for slower, is_said in (({}, True), (others, False)):
        rows = _rows(rounds=3, numpy_to_numpy=2.0, mixed_copy=1.0, **slower)
        unsure = [msgspec.structs.replace(row, p_values={"ratio": 0.02} if row.p_values else {}) for row in rows]
        assert ("It is 2.00× faster" in _all_of(unsure)) is is_said


def test_a_lone_chance_hit_among_many_that_show_nothing_is_not_said() -> None:
    """What shows nothing was asked as well, and is said whatever becomes of the others."""
    hit = findings._Said("a hit", 0.03, "undecided")
    assert findings._corrected([hit]) == ["a hit"]
    assert findings._corrected([hit, findings._asked("nothing is shown")]) == ["undecided", "nothing is shown"]
    alike = [
        record(
            name, index, question="resize", case={"scale": "224x224"}, metrics=Metrics(steady_time=3.0 * (1 + index))
        )
        for index in range(3)
        for name in ("skimage_linear_float", "opencv_linear_float")
    ]
    (pair,) = findings._pairs(comparison(alike).rows)
    assert (pair.p_value, pair.otherwise) == (1.0, pair.text)
    assert "no difference" in pair.text
    assert findings._against(_rows(rounds=3, numpy_to_numpy=1.0, mixed_copy=0.9999)).p_value == 1.0
    assert findings._worst(_rows(rounds=3, numpy_to_numpy=1.0, mixed_copy=1.0), {}).p_value == 1.0


def test_memory_goes_from_least_to_most() -> None:
    rows = comparison([record("numpy_to_numpy", 0, 1.0, 24), record("numpy_to_list", 0, 1.0, 1054)]).rows
    assert findings.of_memory(rows) == "Peak memory ranges from 24.0 MiB (numpy_to_numpy) to 1054 MiB (numpy_to_list)"
    assert findings.of_memory([]) == "No strategy's memory was measured"
    (row,) = comparison([record("mixed_copy", 0, 1.0, 24)]).rows
    untold = msgspec.structs.replace(row, figures={"time": row.figures["time"]})
    assert findings.of_memory([*rows, untold]).endswith("(numpy_to_list), of the 2 of 3 whose memory is known")
    assert findings.sentences(rows)[-1] == findings.of_memory(rows), "of these no trial told what was needed"


def test_what_is_said_of_memory_is_the_figure_that_the_tables_show() -> None:
    """A mapped file's pages are in the peak and not in what is needed; a slow consumer fills buffers."""
    records = [
        record(name, 0, metrics=Metrics(epoch_time=1.0, peak_memory=peak * MIB, needed_memory=needed * MIB))
        for name, peak, needed in (("numpy_to_numpy", 90, 20), ("numpy_to_list", 30, 70))
    ]
    said = findings.sentences(comparison(records).rows)[-1]
    assert said == "Needed memory ranges from 20.0 MiB (numpy_to_numpy) to 70.0 MiB (numpy_to_list)"


def test_what_is_fat_beyond_doubt_and_not_faster_is_to_be_avoided() -> None:
    def found(fat: tuple[float, float], time: float, peaks: tuple[float, float] = (24, 24)) -> str:
        records = [
            record(name, index, seconds * (1 + index), mebibytes[index])
            for index in range(2)
            for name, seconds, mebibytes in [("numpy_to_numpy", 1.0, peaks), ("numpy_to_list", time, fat)]
        ]
        return _worst_of(comparison(records).rows)

    assert found((1054, 1054), 4.0) == (
        "Avoid numpy_to_list (Mixed: append data[i], a view that keeps the whole old array alive, to a list): "
        "a peak of 1054 MiB, 43.9× fatter (43.8 to 44.0) than numpy_to_numpy, and 4.00× slower (3.99 to 4.01)"
    )
    assert found((1054, 1054), 1.0) == "", "not slower"
    assert found((47, 47), 4.0) == "", "less than twice as much"
    assert found((1054, 30), 4.0) == "", "not beyond doubt"
    often = [record("numpy_to_list", index, 4.0, 1054) for index in range(2)]
    failed = record("numpy_to_list", 2, status="timed_out", message="x")
    usual = [record("numpy_to_numpy", index, 1.0, 24) for index in range(3)]
    rows = comparison([*often, failed, *usual]).rows
    assert "Avoid numpy_to_list" in _worst_of(rows), "that it failed too is no reason to take it"
    assert "to 1054 MiB (numpy_to_list)" in findings.of_memory(rows)
    assert found((2.6, 2.6), 4.0, peaks=(1.2, 1.2)) == "", "twice as much by what the instrument cannot tell"
    assert _worst_of([]) == ""


def test_what_delivers_more_is_not_to_be_avoided_for_taking_longer() -> None:
    def found(samples: int) -> str:
        counts = {"numpy_to_numpy": (1.0, 24, 100), "numpy_to_list": (4.0, 1054, samples)}
        records = [
            record(name, index, metrics=Metrics(epoch_time=time, peak_memory=peak * MIB, samples=count))
            for index in range(2)
            for name, (time, peak, count) in counts.items()
        ]
        return _worst_of(comparison(records).rows)

    assert "Avoid numpy_to_list" in found(100)
    assert found(400) == ""


def test_what_learns_late_that_an_epoch_is_over_is_not_to_be_avoided_for_that() -> None:
    counts = {"local": (1.0, 24), "service_2": (4.0, 1054), "service_2_refreshed": (3.0, 1000)}
    rows = comparison(
        [
            record(name, index, time, peak, question="service", case={"storage": "local"})
            for index in range(3)
            for name, (time, peak) in counts.items()
        ]
    ).rows
    said = _worst_of(rows)
    assert "Avoid service_2_refreshed" in said
    assert said.endswith(" (also more than 2× as fat, but not judged, as their epochs end late: service_2)")
    late = next(row for row in rows if row.strategy == "service_2")
    assert _words.of_times(late) == ["epochs end up to 1.00 s late"]


def test_what_is_to_be_avoided_is_so_by_the_memory_that_its_table_shows() -> None:
    """What the system can reclaim is no reason."""

    def found(needed: int) -> str:
        counts = {"numpy_to_numpy": (1.0, 24), "numpy_to_list": (4.0, needed)}
        records = [
            record(name, index, metrics=Metrics(epoch_time=time, peak_memory=2**30, needed_memory=most * MIB))
            for index in range(2)
            for name, (time, most) in counts.items()
        ]
        return _worst_of(comparison(records).rows)

    assert "240 MiB needed, 10.0× fatter (9.98 to 10.0) than numpy_to_numpy" in found(240)
    assert found(24) == ""


def test_a_multiple_that_depends_on_the_amount_of_data_comes_after_the_slope_and_names_the_amount() -> None:
    def of(name: str, index: int, data: str, count: int, time: float, per_image: float) -> Record:
        needed = int((20 + per_image * count) * MIB)
        metrics = Metrics(epoch_time=time, samples=count, peak_memory=needed, needed_memory=needed)
        return record(name, index, question="batching", case={"data": data, "augment": "off"}, metrics=metrics)

    found = comparison(
        [
            of(name, index, data, count, time, per_image)
            for index in range(3)
            for data, count in (("x16", 640), ("x4", 160), ("x1", 40))
            for name, time, per_image in (("path_generator", 1.0, 0.0), ("load_all", 2.0, 0.5))
        ]
    )
    _, rows = found.cases[0]
    said = _worst_of(rows, found.laws[0].laws)
    slope, size, multiple = (
        said.find("512 KiB"),
        said.find("340 MiB needed with 640 samples"),
        said.find("17.0× fatter"),
    )
    assert 0 < slope < size < multiple
    assert findings.of_laws(found.laws[0]).startswith("load_all needs 512 KiB (")
    assert findings.of_laws(found.laws[0]).endswith("more per sample; level: path_generator")


def test_what_is_to_be_avoided_is_as_sure_as_the_fattest_of_so_many_can_be() -> None:
    """Twice the memory is the limit, not as much; of more strategies, the fattest is fatter by chance."""

    def measured(fat: float) -> list[Row]:
        wobble = (0.95, 1.0, 1.05, 1.0)
        records = [
            record(name, index, seconds * (1 + index), peak * wobble[(index + place) % 4])
            for index in range(4)
            for place, (name, seconds, peak) in enumerate([("numpy_to_numpy", 1.0, 24), ("numpy_to_list", 4.0, fat)])
        ]
        return comparison(records).rows

    def p_value(rows: Sequence[Row]) -> float:
        found = findings._worst(rows, {}).p_value
        assert found is not None
        return found

    near, far = measured(60), measured(600)
    assert 0 < 10 * p_value(far) < p_value(near) < 1
    assert p_value(near) > 1e-3, "2.5 times is near the limit, and far from as much"
    another = msgspec.structs.replace(near[0], strategy="another", is_baseline=False, peaks={}, figures={})
    assert p_value([*near, another]) == pytest.approx(2 * p_value(near))


def test_pairs_say_what_is_left_of_the_gap() -> None:
    records = [
        record(
            name, index, question="resize", case={"scale": "224x224"}, metrics=Metrics(steady_time=time * (1 + index))
        )
        for index in range(2)
        for name, time in [
            ("skimage_resize_astype", 100.0),
            ("opencv_linear", 1.0),
            ("skimage_linear_float", 60.0),
            ("opencv_linear_float", 3.0),
        ]
    ]
    found = _all_of(comparison(records).rows)
    assert found.startswith(
        "With the same output: opencv_linear_float: 20.0× faster (20.0 to 20.0) than skimage_linear_float. "
        "opencv_linear (as typed) is fastest. It is 100× faster"
    ), "what delivers the same comes before what does not"


def _read(
    strategy: str, index: int, time: float, peak: float, held: float, tail: float = 0.0, bound: float | None = None
) -> Record:
    growth = Growth("plateau", 0, 0, 0, 0, peak * MIB, 400, held=held * MIB, in_use_bound=bound)
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
    return record(strategy, index, question="read_order", case={"record": "tensor", "data": "x16"}, metrics=metrics)


def reads() -> list[Record]:
    """Two rounds of interleaved reads that need 600 MiB, with a lean and slow cure and one that is no cure."""
    return [
        each
        for index in range(2)
        for each in (
            _read("range_indexed", index, 2.0, 20, 1),
            _read("interleave", index, 1.0, 600, 380, bound=MIB / 2),
            _read("interleave_mmap_threshold", index, 3.0, 210, 0),
            _read("interleave_trim", index, 1.0, 500, 280),
        )
    ]


def test_memory_beyond_the_floor_is_the_allocators_and_a_cure_has_its_price() -> None:
    found = comparison(reads()).rows
    assert findings.of_growth(found) == (
        "interleave holds 600 MiB from step to step, 3.00× its floor, and 380 MiB of it was freed but is held by "
        "the allocator: no leak, as memory in use grows by at most 0.5 MiB per 1000 steps; its peak is 3.00× (3.00× to "
        "3.00×). MALLOC_MMAP_THRESHOLD_=131072 brings its peak down to 1.05× the floor, and it is then 3.00× slower "
        "(3.00 to 3.00)"
    )
    worse = [
        msgspec.structs.replace(row, figures={**row.figures, "over_floor": Estimate(1.01, 1.0, 1.1, 2)})
        for row in found
    ]
    assert findings.of_cures(worse) == [], "there is nothing to bring down"
    ((ill, healed),) = findings.cures_of(found)
    assert ill.strategy == "interleave"
    assert [row.strategy for row in healed] == ["interleave_mmap_threshold", "interleave_trim"]
    assert findings.of_growth(found[:1]) == ""
    unbounded = [msgspec.structs.replace(row, in_use_bound=None) for row in found]
    assert "no leak" not in findings.of_growth(unbounded)


def test_an_order_that_ends_with_one_file_is_named() -> None:
    records = [_read("parallel_reads", 0, 1.0, 1, 0, tail=1.0), _read("interleave", 0, 1.0, 1, 0, tail=0.0)]
    found = comparison([*records, _read("range_indexed", 0, 2.0, 1, 0)]).rows
    said = findings.of_order(found)
    assert said.startswith("Ends with one file, in order: parallel_reads")
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
    said = findings.of_ceiling(found)
    assert said == "path_generator_pool reaches 90% (90% to 90%) of the speed of the best bare pool, opencv_pool"
    assert findings.of_time(found) == "memory_map (once converted) is fastest", "a ceiling wins nothing"
    assert findings.of_ceiling([row for row in found if not row.ceiling]) == ""


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
    typed = [
        msgspec.structs.replace(row, tier="as typed" if row.strategy == "list_to_list" else row.tier) for row in found
    ]
    assert len(findings.frontier(typed)) == 4, "another output is not beaten by this one"
    vague = Estimate(20 * MIB, 5 * MIB, 35 * MIB, 2)
    unsure = [
        msgspec.structs.replace(row, figures={**row.figures, "peak": vague}) if row.strategy == "list_to_list" else row
        for row in found
    ]
    assert len(findings.frontier(unsure)) == 4, "its memory may be less"
    once = comparison([record(name, 0, time=2.0, peak=50) for name in ("mixed_copy", "numpy_to_numpy")]).rows
    assert findings.frontier(once) == [], "a single sample beats nothing, and is not beaten"
    single = [row for row in once if row.strategy == "mixed_copy"]
    others = [row for row in found if row.strategy != "mixed_copy"]
    assert [row.strategy for row in findings.frontier([*others, *single])] == [
        *("numpy_to_numpy", "list_to_list", "numpy_to_list")
    ]


def test_what_is_fastest_over_many_epochs_is_said_where_the_first_is_another() -> None:
    def of(strategy: str, index: int, first: float, steady: float) -> Record:
        metrics = Metrics(epoch_time=first, steady_time=steady, start_time=0.0)
        return record(strategy, index, question="caching", case={}, metrics=metrics)

    names = {"no_cache": (0.6, 0.6), "cache_after_decode": (0.7, 0.05)}
    found = comparison([of(name, index, *each) for index in range(3) for name, each in names.items()]).rows
    said = findings.of_total(found)
    assert said.startswith("Over 20 epochs, cache_after_decode is fastest: 1.65 s (")
    assert "no_cache takes 12.0 s (" in said
    alike = comparison([of(name, index, 0.6, 0.6) for index in range(3) for name in names]).rows
    assert findings.of_total(alike) == "", "all epochs do the same"
    assert findings.of_total(_rows(numpy_to_numpy=1.0)) == ""
    assert "cache_after_decode (after the first epoch) is fastest" in findings.of_time(found)
    assert findings._against(found).text == "", "how fast it hands out what it keeps says nothing of loading"


def _law(kind: str) -> Law:
    return Law(kind, "", [])  # type: ignore[arg-type]


def test_what_is_fastest_without_growth_names_what_may_be_faster_and_is_not_known_to_be_bounded() -> None:
    times = {"path_generator": 2.0, "keras_pydataset_1": 1.5, "path_generator_pool": 1.0, "memory_map": 0.1}
    case = {"data": "x16", "augment": "off"}
    rows = comparison(
        [
            record(name, index, time * (1 + index / 100), question="batching", case=case)
            for name, time in times.items()
            for index in range(3)
        ]
    ).rows
    level = {name: _law("level") for name in ("path_generator", "keras_pydataset_1")}
    said = findings.of_plain(rows, {**level, "path_generator_pool": _law("unknown")})
    assert "keras_pydataset_1 is fastest of the 2 that are known not to grow: 1.51 s" in said
    assert said.endswith("; path_generator_pool may be faster, but how its memory grows is unknown")
    said = findings.of_plain(rows, {**level, "path_generator_pool": _law("linear")})
    assert said.startswith("If nothing may be converted")
    assert "keras_pydataset_1 is fastest: 1.51 s" in said
    assert "unknown" not in said


def test_what_is_kept_for_readers_is_never_named_first() -> None:
    rows = [
        msgspec.structs.replace(row, historic=row.strategy == "mixed_copy")
        for row in _rows(rounds=3, numpy_to_numpy=2.0, mixed_copy=1.0)
    ]
    assert all(row.strategy != "mixed_copy" for row in findings.frontier(rows))
    assert loaders_of(rows) == [row for row in rows if not row.historic]


def test_the_fastest_of_some_is_the_fastest_of_so_many_so_far() -> None:
    found = comparison(
        [
            record(name, index, time=time * (1 + index / 50))
            for index in range(3)
            for name, time in (("numpy_to_numpy", 2.0), ("mixed_copy", 1.0))
        ]
    )
    every = loaders_of([*found.rows, *found.unmeasured])
    so_far = f"mixed_copy is fastest of the 2 of {len(every)} measured so far"
    assert findings.of_time(found.rows, found.unmeasured) == so_far
    assert f"{so_far}. It is 2.00× faster" in _all_of(found.rows, missing=found.unmeasured)
    single = [row for row in found.unmeasured if row.strategy == "list_to_list"]
    alike = _rows(rounds=3, numpy_to_numpy=2.0, mixed_copy=1.0, list_to_list=1.0)
    assert findings.of_time(alike, found.unmeasured[:1]) == (
        "list_to_list and mixed_copy are fastest of the 3 of 4 measured so far and cannot be told apart; every other "
        "one of these is slower"
    )
    ceiling = [msgspec.structs.replace(row, ceiling=True) for row in single]
    assert findings.of_time(found.rows, single) == "mixed_copy is fastest of the 2 of 3 measured so far"
    assert findings.of_time(found.rows, ceiling) == "mixed_copy is fastest", "nobody may choose it anyway"


def test_what_was_never_in_a_round_with_the_fastest_does_not_count_as_slower() -> None:
    shared = [
        record(name, index, time=time * (1 + index / 50))
        for index in range(3)
        for name, time in (("numpy_to_numpy", 2.0), ("mixed_copy", 1.0))
    ]
    found = comparison([*shared, record("list_to_list", 7, time=1.5)]).rows
    assert [row.strategy for row in findings.leaders(found)] == ["mixed_copy"]
    assert findings.of_time(found) == "mixed_copy is fastest of the 2 of 3 measured so far"


def test_a_single_sample_among_several_rounds_is_not_called_faster() -> None:
    several = [record("numpy_to_numpy", index, time=2.0 + index / 50) for index in range(3)]
    several += [record("list_to_list", index, time=3.0 + index / 50) for index in range(3)]
    said = _all_of(comparison([*several, record("mixed_copy", 0, time=0.1)]).rows)
    assert "mixed_copy was fastest, but a single sample cannot show a difference" in said
    assert "faster than" not in said


def test_over_many_epochs_too_the_fastest_of_some_says_so() -> None:
    def of(name: str, index: int, first: float, steady: float) -> Record:
        metrics = Metrics(epoch_time=first, steady_time=steady, start_time=0.0)
        return record(name, index, metrics=metrics)

    times = {"numpy_to_numpy": (1.0, 0.5), "mixed_copy": (3.0, 0.1)}
    found = comparison([of(name, index, *each) for index in range(3) for name, each in times.items()])
    of_all = len(loaders_of([*found.rows, *found.unmeasured]))
    words = f"mixed_copy is fastest of the 2 of {of_all} measured so far: "
    assert words in findings.of_total(found.rows, found.unmeasured)
    assert "mixed_copy is fastest: " in findings.of_total(found.rows)


def test_a_start_known_from_forks_alone_is_not_taken_for_work_of_the_first_epoch() -> None:
    def of(name: str, index: int, start: float) -> Record:
        metrics = Metrics(epoch_time=0.5 + start, steady_time=0.5, start_time=start)
        return record(name, index, metrics=metrics, process="forked")

    found = comparison([of(name, index, 0.4) for index in range(3) for name in ("numpy_to_numpy", "mixed_copy")])
    assert findings.of_total(found.rows) == ""


def test_an_order_that_differs_with_the_threads_is_found_and_one_that_does_not_is_said_to_hold() -> None:
    """Two decoders that change places on all cores, one that stays behind; and the same without the change."""

    def found(swap: bool) -> list[str]:
        records = []
        for threads, times in (("1", (1.0, 1.5, 3.0)), ("all", (1.2, 0.8, 2.0) if swap else (0.8, 1.2, 2.0))):
            for index in range(5):
                for name, time in zip(("opencv_imread", "pillow", "skimage_imread"), times, strict=True):
                    case = {"photographs": "own", "to": "full", "threads": threads}
                    metrics = Metrics(epoch_time=time, steady_time=time * (1 + 0.01 * (index % 3)))
                    records.append(record(name, index, question="decode", case=case, metrics=metrics))
        return findings.of_threads(comparison(records))

    decided = "With photographs own to full: the order of 3 of 3 pairs is shown on one thread and on all cores"
    assert found(swap=False) == [f"{decided}; none differs"]
    assert found(swap=True) == [f"{decided}; 1 differs: opencv_imread is faster than pillow on one thread only"]


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (490.0, 510.0, "as many as"),
        (380.0, 420.0, "20 % less than"),
        (590.0, 620.0, "21 % more than"),
        (300.0, 900.0, "not shown to differ from"),
        (None, None, "a single sample against"),
    ],
)
def test_a_wide_interval_is_no_agreement_with_a_prediction(low: float | None, high: float | None, said: str) -> None:
    rate = Estimate(500.0 if low is None or high is None else (low + high) / 2, low, high, 8)
    assert findings._off(rate, 500.0, Estimate(1.0, 0.99, 1.01, 8)) == said


def test_a_prediction_is_no_better_known_than_what_it_rests_on() -> None:
    assert (
        findings._off(Estimate(400.0, 390.0, 410.0, 8), 500.0, Estimate(1.0, 0.7, 1.4, 8)) == "not shown to differ from"
    )
