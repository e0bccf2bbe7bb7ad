"""What the README and the page open with: planted results in which the right advice is known."""

from __future__ import annotations

import functools
import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from loaders import _registry
from loaders._judge import TIME_MARGIN, holm
from loaders._law import Beyond, Law
from loaders._report import findings, opening, readme, sets
from loaders._rows import Comparison, comparison
from loaders._stats import Estimate
from loaders._trial import log
from loaders._trial.metrics import Metrics
from loaders._trial.record import Record
from tests.conftest import ROOT
from tests.report.test_findings import reads
from tests.test_rows import record

MIB = 2**20


def _measured(
    seconds: Mapping[str, float], memory: Mapping[str, float] | None = None, *, spread: float = 0.01, seed: int = 0
) -> Comparison:
    """Return six rounds of `selection` in which each strategy takes so many seconds and MiB."""
    return comparison(_rounds(seconds, memory, spread=spread, seed=seed))


def _rounds(
    seconds: Mapping[str, float], memory: Mapping[str, float] | None = None, *, spread: float, seed: int = 0
) -> list[Record]:
    noise = random.Random(seed)
    return [
        record(name, index, time=time * math.exp(noise.gauss(0, spread)), peak=(memory or {}).get(name, 24))
        for index in range(6)
        for name, time in seconds.items()
    ]


def _sized(
    seconds: Mapping[str, float],
    slopes: Mapping[str, float],
    first: Mapping[str, float],
    held: Mapping[str, float] = {},
) -> Comparison:
    """Return three rounds of `batching`: seconds an epoch of 160 samples, MiB a sample, seconds before the first.

    ``held`` is in MiB, however many samples there are; by default 20.
    """
    records = []
    for index in range(3):
        for data, count in (("x1", 40), ("x4", 160), ("x16", 640)):
            for name, time in seconds.items():
                wobble = 1 + 0.01 * ((index * 7 + len(name)) % 3 - 1)
                steady = time * count / 160 * wobble
                metrics = Metrics(
                    epoch_time=steady + first.get(name, 0.0),
                    steady_time=steady,
                    start_time=first.get(name, 0.0),
                    samples=count,
                    peak_memory=int((held.get(name, 20) + slopes.get(name, 0.0) * count) * MIB),
                    needed_memory=int((held.get(name, 20) + slopes.get(name, 0.0) * count) * MIB),
                )
                case = {"data": data, "augment": "off"}
                records.append(record(name, index, question="batching", case=case, metrics=metrics))
    return comparison(records)


def test_the_fastest_is_advised_with_its_reason() -> None:
    (line,) = opening.advice([_measured({"numpy_to_numpy": 1.0, "mixed_copy": 0.5, "list_to_list": 2.0})])
    assert line.strategy == "mixed_copy"
    assert line.when == _registry.find_question("selection").when
    assert line.because.startswith("2.0")
    assert "faster" in line.because
    assert "than `numpy_to_numpy`" in line.because


def test_where_nothing_beats_the_baseline_it_is_advised() -> None:
    (line,) = opening.advice([_measured({"numpy_to_numpy": 1.0, "mixed_copy": 1.5})])
    assert line.strategy == "numpy_to_numpy"
    assert line.because.startswith("`mixed_copy`, the only other with the same output of the 2 of")


def test_a_baseline_alone_is_no_answer() -> None:
    assert opening.advice([_measured({"numpy_to_numpy": 1.0})]) == []
    assert opening.advice([_measured({"mixed_copy": 1.0})]) == [], "nor is anything without it"


def test_of_those_that_cannot_be_told_apart_the_leanest_is_advised() -> None:
    memory = {"mixed_copy": 500.0, "permutation_index": 3.0, "generator_choice": 300.0}
    seconds = {"numpy_to_numpy": 1.0, **dict.fromkeys(memory, 0.2)}
    (line,) = opening.advice([_measured(seconds, memory, spread=0.05)])
    assert line.strategy == "permutation_index"
    assert "3.0 MiB of memory instead of 24.0 MiB" in line.because
    assert "the leanest of 3 that cannot be told apart" in line.because


@pytest.mark.parametrize(
    ("seconds", "spread", "advised"),
    [
        (1.0, 0.02, "numpy_to_numpy"),  # no different
        (0.95, 0.005, "numpy_to_numpy"),  # surely faster, and surely by less than matters
        (0.91, 0.02, ""),  # surely faster, and perhaps by as much as matters
        (0.6, 0.005, "permutation_index"),
    ],
)
def test_what_is_faster_by_less_than_matters_is_not_advised(seconds: float, spread: float, advised: str) -> None:
    times = {"numpy_to_numpy": 1.0, "permutation_index": seconds}
    (line,) = opening.advice([_measured(times, {"permutation_index": 3.0}, spread=spread)])
    assert line.strategy == advised
    assert (" by 10 % or more than " in line.because) == (not advised)
    assert line.because.endswith(" is not faster by as much as matters") == (advised == "numpy_to_numpy")


def test_a_line_that_advises_the_baseline_is_corrected_with_the_others() -> None:
    """That the other gains too little is shown, but not beyond the doubt of twenty such lines."""
    found = _measured({"numpy_to_numpy": 1.0, "permutation_index": 0.97}, {"permutation_index": 3.0}, spread=0.035)
    (alone,) = opening.advice([found])
    assert (alone.strategy, alone.do) == ("numpy_to_numpy", "`numpy_to_numpy`. " + _label("numpy_to_numpy"))
    many = opening.advice([found] * 20)
    assert {line.do for line in many} == {opening.UNDECIDED}
    assert many[0].because.startswith(
        "whether `permutation_index` is faster by 10 % or more than `numpy_to_numpy` with "
    )
    assert findings.DOUBTED in many[0].because


def _label(strategy: str) -> str:
    return _registry.find_variant("selection", strategy).label


def test_a_baseline_that_two_gain_too_little_over_is_not_called_one_of_them() -> None:
    times = {"numpy_to_numpy": 1.0, "permutation_index": 0.95, "mixed_copy": 0.95}
    (line,) = opening.advice([_measured(times, spread=0.005)])
    assert line.strategy == "numpy_to_numpy"
    assert line.because.startswith("none of the 2 others with the same output of the 3 of ")
    assert line.because.endswith(" is faster by as much as matters")


def test_a_baseline_that_fails_is_not_advised() -> None:
    times = {"numpy_to_numpy": 1.0, "permutation_index": 1.0}
    failed = record("numpy_to_numpy", 6, status="failed", message="no")
    (line,) = opening.advice([comparison([*_rounds(times, {"permutation_index": 3.0}, spread=0.02), failed])])
    assert (line.strategy, line.do) == ("", opening.UNDECIDED)


def test_a_baseline_that_none_beats_is_no_answer_while_another_strategy_is_open() -> None:
    """The leanest of the fastest is no different; the other may be faster by as much as matters."""
    alike = _rounds({"numpy_to_numpy": 1.0, "permutation_index": 1.0}, {"permutation_index": 3.0}, spread=0.01)
    unsure = _rounds({"mixed_copy": 1.0}, spread=0.2)
    assert opening.advice([comparison(alike)])[0].strategy == "numpy_to_numpy"
    (line,) = opening.advice([comparison([*alike, *unsure])])
    assert (line.strategy, line.do) == ("", opening.UNDECIDED)
    assert line.because.startswith("whether `mixed_copy` is faster than `numpy_to_numpy`")


def test_none_is_called_the_leaner_of_two_if_the_memory_of_one_is_unknown() -> None:
    found = _measured({"numpy_to_numpy": 1.0, "mixed_copy": 0.2, "permutation_index": 0.2}, spread=0.05)
    rows = [
        msgspec.structs.replace(row, figures={**row.figures, "peak": None}) if row.strategy == "mixed_copy" else row
        for row in found.rows
    ]
    (line,) = opening.advice([msgspec.structs.replace(found, rows=rows)])
    assert line.strategy == "permutation_index"
    assert "; one of 2 that cannot be told apart in time" in line.because


def _read(seconds: Mapping[str, float], kind: str) -> Comparison:
    """Return six rounds of `read_order`: seconds an epoch of records of a kind."""
    return comparison(
        [
            record(
                name,
                index,
                question="read_order",
                case={"record": kind, "data": "x16"},
                metrics=Metrics(epoch_time=each, steady_time=each * (1 + 0.01 * (index % 3)), peak_memory=MIB),
            )
            for index in range(6)
            for name, each in seconds.items()
        ]
    )


def test_what_may_lose_samples_is_never_advised_nor_called_the_fastest() -> None:
    """``parallel_reads_ignore_errors`` leaves damaged records out without a word."""
    losing = "parallel_reads_ignore_errors"
    assert _registry.find_variant("read_order", losing).may_lose
    found = _read({"range_indexed": 1.0, "interleave_sequential": 0.5, losing: 0.1}, "jpeg")
    (line,) = opening.advice([found])
    assert line.strategy == "interleave_sequential"
    assert [row.strategy for row in findings.leaders(found.rows)] == ["interleave_sequential"]


def test_a_pair_among_others_does_not_stand_for_the_question() -> None:
    """Of ``read_order`` an allocator's setting is held against its pair, and all else against the baseline."""
    (line,) = opening.advice([_read({"range_indexed": 1.0, "interleave": 0.5, "interleave_trim": 0.55}, "tensor")])
    assert line.strategy == "interleave"
    assert "than `range_indexed` with record tensor" in line.because


def test_a_pair_that_gains_nothing_does_not_hide_those_that_gain() -> None:
    pairs = {
        "skimage_linear_float": 1.0,
        "opencv_linear_float": 0.1,
        "skimage_antialiased_float": 1.0,
        "opencv_antialiased_float": 1.0,
        "skimage_resize_astype": 1.0,
    }
    (line,) = opening.advice([_resized(pairs)])
    assert line.strategy == "opencv_linear_float"
    assert line.because.endswith("with the same output; 1 more is not shown to gain as much as matters")
    (line,) = opening.advice([_resized({**pairs, "opencv_linear_float": 1.0})])
    assert (line.strategy, line.do) == ("", opening.UNDECIDED)
    assert "_float` with scale 224x224: no difference" in line.because


def test_what_needs_an_installation_gives_way_to_what_needs_none_unless_it_is_faster() -> None:
    memory = {"path_generator": 0.0, "path_generator_pool": 0.0, "pool_simplejpeg": 0.0}
    for seconds, taken in ((0.5, "path_generator_pool"), (0.3, "pool_simplejpeg")):
        times = {"path_generator": 1.0, "path_generator_pool": 0.501, "pool_simplejpeg": seconds}
        (line,) = opening.advice([_sized(times, memory, {})])
        assert line.strategy == taken


def test_none_is_called_the_leanest_where_memory_cannot_be_told_apart_either() -> None:
    """2.3 MiB are not leaner than 2.7, nor 102 than 100: then the fastest of them is advised."""
    for little, more in ((2.3, 2.7), (100.0, 102.0)):
        memory = {"mixed_copy": 500.0, "permutation_index": little, "generator_choice": more}
        seconds = {"numpy_to_numpy": 1.0, "mixed_copy": 0.2, "permutation_index": 0.2, "generator_choice": 0.199}
        fastest = set()
        for seed in range(2, 10):
            found = _measured(seconds, memory, spread=0.05, seed=seed)
            (line,) = opening.advice([found])
            assert "; one of 3 that cannot be told apart" in line.because
            times = {row.strategy: row["time"].value for row in found.rows if row["time"]}
            assert line.strategy == min(("permutation_index", "generator_choice"), key=lambda name: times[name])
            fastest.add(line.strategy)
        assert len(fastest) == 2, "either one, not always the one whose mean is the lowest"


def test_of_memory_that_varies_more_than_it_differs_none_is_the_leanest() -> None:
    seconds = {"numpy_to_numpy": 1.0, "mixed_copy": 0.199, "permutation_index": 0.2}
    chance = random.Random(1)
    for spread, said in ((0.01, "the leaner of 2"), (20.0, "one of 2")):
        records = [
            record(
                name,
                index,
                time=time * math.exp(chance.gauss(0, 0.05)),
                peak={"numpy_to_numpy": 90, "mixed_copy": 60}.get(name, 55) + spread * (-1) ** index,
            )
            for index in range(6)
            for name, time in seconds.items()
        ]
        (line,) = opening.advice([comparison(records)])
        assert said in line.because


def test_memory_is_held_against_the_baselines_where_the_difference_is_shown_and_matters() -> None:
    for spread, needs in (
        (0.1, "but needs 94.0 MiB of memory instead of 82.0 MiB"),
        (20.0, ", 94.0 MiB of memory;"),
    ):
        records = [
            record(name, index, time=time * (1 + index / 100), peak=peak + spread * (-1) ** index)
            for index in range(6)
            for name, time, peak in (("numpy_to_numpy", 1.0, 82), ("mixed_copy", 0.2, 94))
        ]
        (line,) = opening.advice([comparison(records)])
        assert needs in line.because


@pytest.mark.parametrize("written", [None, 50 * MIB])
def test_what_writes_is_not_said_to_convert_nothing_and_how_much_it_writes_is_said(written: int | None) -> None:
    slopes = {"cache_after_decode": 0.5, "cache_to_file": 0.0, "no_cache": 0.0}
    seconds = {"no_cache": 1.0, "cache_after_decode": 0.1, "cache_to_file": 0.3}
    records = [
        record(
            name,
            index,
            question="caching",
            case={"data": data, "onednn": "default"},
            metrics=Metrics(
                epoch_time=(each := time * count / 160 * (1 + 0.01 * index)) + 0.5,
                steady_time=each,
                samples=count,
                needed_memory=int((20 + slopes[name] * count) * MIB),
                disk_bytes=written if name == "cache_to_file" else None,
            ),
        )
        for index in range(3)
        for data, count in (("x1", 40), ("x4", 160), ("x16", 640))
        for name, time in seconds.items()
    ]
    _, line = opening.advice([comparison(records)])
    assert line.strategy == "cache_to_file"
    assert line.when.endswith(opening.CACHED if written else opening.ANY + opening.UNWRITTEN)
    said = "80.0 KiB on disk a sample (781 MiB for 10000; timed with 640, still in memory as just written)"
    assert (said in line.because) is bool(written)


def test_what_was_just_written_is_advised_for_what_memory_holds() -> None:
    """How fast a disk delivers more than memory holds, nobody has measured."""
    found = _sized({"path_generator": 1.0, "memory_map": 0.1, "path_generator_pool": 0.5}, {}, {})
    disk = Estimate(640 * 600_000.0, None, None, 3)
    written = [
        msgspec.structs.replace(row, figures={**row.figures, "disk": disk}) if row.strategy == "memory_map" else row
        for row in found.rows
    ]
    mapped, pool = opening.advice([msgspec.structs.replace(found, rows=written)])
    assert (mapped.strategy, pool.strategy) == ("memory_map", "path_generator_pool")
    assert mapped.when.endswith(opening.CACHED)
    assert "timed with 640, still in memory as just written)" in mapped.because
    assert pool.when.endswith(opening.ANY + opening.UNWRITTEN)


def test_buffers_that_are_full_already_are_not_said_to_fill_later() -> None:
    found = _sized({"path_generator": 1.0, "torch_dataloader_4": 0.1}, {}, {})
    for capacity, said in ((320, "however many there are"), (1280, "and more until 1280 samples fill its buffers")):
        laws = {
            name: msgspec.structs.replace(law, kind="saturating", capacity=capacity) if name[0] == "t" else law
            for name, law in found.laws[0].laws.items()
        }
        changed = msgspec.structs.replace(found, laws=[msgspec.structs.replace(found.laws[0], laws=laws)])
        (line,) = opening.advice([changed])
        assert line.strategy == "torch_dataloader_4"
        assert said in line.because
        assert ("buffers" in line.because) is (capacity > 640)


def test_what_may_be_chance_is_undecided() -> None:
    (line,) = opening.advice([_measured({"numpy_to_numpy": 1.0, "mixed_copy": 0.97}, {"mixed_copy": 3}, spread=0.3)])
    assert (line.strategy, line.do) == ("", opening.UNDECIDED)
    assert line.because.startswith("whether `mixed_copy` is faster than `numpy_to_numpy` with images 500: ")


@pytest.mark.parametrize("seed", range(5))
def test_strategies_that_do_not_differ_are_seldom_advised(seed: int) -> None:
    """Twenty questions in which nothing differs: the lines are corrected together."""
    alike = {"numpy_to_numpy": 1.0, "mixed_copy": 1.0, "permutation_index": 1.0, "generator_choice": 1.0}
    memory = {"numpy_to_numpy": 500.0}
    lines = opening.advice([_measured(alike, memory, spread=0.1, seed=100 * seed + each) for each in range(20)])
    assert sum(line.strategy not in ("", "numpy_to_numpy") for line in lines) <= 1


def test_another_output_is_never_advised() -> None:
    """``resized_uint8`` delivers fewer pixels, in a hundredth of the time."""
    times = {"encoded_bytes": 1.0, "raw_pixels": 0.5, "resized_uint8": 0.01}
    case = {"page_cache": "warm", "data": "x16"}
    found = comparison(
        [
            record(
                name,
                index,
                question="record_format",
                case=case,
                metrics=Metrics(epoch_time=each + 0.1, steady_time=each, peak_memory=MIB, convert_time=0.1),
            )
            for index in range(4)
            for name, each in times.items()
        ]
    )
    (line,) = opening.advice([found])
    assert line.strategy == "raw_pixels"
    assert "resized_uint8" not in line.do + line.because


def test_historic_strategies_and_ceilings_are_never_advised() -> None:
    found = _sized({"path_generator": 1.0, "tf1_queue": 0.1, "opencv_pool": 0.05, "path_generator_pool": 0.5}, {}, {})
    (line,) = opening.advice([found])
    assert line.strategy == "path_generator_pool"
    assert "however many there are" in line.because


def test_what_grows_with_the_data_has_a_condition_and_an_alternative() -> None:
    seconds = {"load_all": 0.01, "path_generator": 1.0, "path_generator_pool": 0.5}
    everything, batches = opening.advice([_sized(seconds, {"load_all": 0.5}, {"load_all": 1.0})])
    assert (everything.strategy, batches.strategy) == ("load_all", "path_generator_pool")
    assert everything.when.endswith(opening.FITS)
    assert batches.when.endswith(opening.ANY + opening.UNWRITTEN)
    assert "512 KiB of memory a sample (5000 MiB for 10000)" in everything.because
    assert "over 20 epochs" in everything.because, "in one epoch it takes longer"


def test_a_strategy_that_loads_first_is_judged_over_all_epochs() -> None:
    """It hands out what it has in no time, after a start as long as a hundred epochs."""
    seconds = {"load_all": 0.001, "path_generator": 1.0, "path_generator_pool": 0.5}
    lines = opening.advice([_sized(seconds, {"load_all": 0.5}, {"load_all": 400.0})])
    assert [line.strategy for line in lines] == ["path_generator_pool"]


def _resized(seconds: Mapping[str, float]) -> Comparison:
    """Return four rounds of `resize`: seconds a photograph."""
    return comparison(
        [
            record(
                name,
                index,
                question="resize",
                case={"scale": "224x224"},
                metrics=Metrics(steady_time=each * (1 + 0.01 * ((index + len(name)) % 3)), peak_memory=MIB),
            )
            for index in range(4)
            for name, each in seconds.items()
        ]
    )


def test_of_pairs_the_one_that_gains_least_is_advised() -> None:
    pairs = {
        "skimage_linear_float": 1.0,
        "opencv_linear_float": 0.1,
        "skimage_antialiased_float": 1.0,
        "opencv_antialiased_float": 0.5,
        "skimage_resize_astype": 1.0,
    }
    found = _resized(pairs)
    (line,) = opening.advice([found])
    assert line.strategy == "opencv_antialiased_float"
    assert (
        "than `skimage_antialiased_float` with scale 224x224, with the same output; "
        "1 more such pair gains as much or more" in line.because
    )


def test_a_cure_is_advised_with_its_price() -> None:
    lines = opening.advice([comparison([msgspec.structs.replace(each, run="r", planned=4) for each in reads()])])
    cure = lines[-1]
    assert cure.do.startswith("Set `MALLOC_")
    assert cure.when.startswith("use `interleave`")
    assert "whose peak is " in cure.when
    assert "need, and it is then 3.00× slower" in cure.because


def _cached(
    memory: Mapping[str, float], seconds: Mapping[str, float], spread: float = 0.05, seed: int = 1
) -> Comparison:
    """Return eight rounds of `caching` in which each strategy takes so many MiB and seconds wherever it runs."""
    noise = random.Random(seed)
    known = _registry.variants("caching")
    found = []
    cases = _registry.find_question("caching").cases
    for index, case, (name, mebibytes) in itertools.product(range(8), cases, memory.items()):
        if known[name].runs_in(case):
            bytes_ = int(mebibytes * MIB * math.exp(noise.gauss(0, spread)))
            time = seconds.get(name, 1.0) * math.exp(noise.gauss(0, 0.01))
            metrics = Metrics(
                epoch_time=time, steady_time=time, peak_memory=bytes_, needed_memory=bytes_, samples=300, batches=10
            )
            found.append(record(name, index, question="caching", case=case, metrics=metrics))
    return comparison(found)


def test_a_setting_that_makes_a_strategy_much_leaner_is_advised_with_its_price() -> None:
    memory = {"no_cache": 120, "no_cache_onednn": 60, "no_cache_without_onednn": 121, "cache_paths": 118}
    *_, line = opening.advice([_cached(memory, {})])
    assert line.strategy == "no_cache_onednn"
    assert line.when.startswith("use `no_cache`, which needs 1")
    assert line.do.startswith("Set `TF_ENABLE_ONEDNN_OPTS=1`. With oneDNN")
    assert re.fullmatch(
        r"it then needs (5[89]|6[01])\.\d MiB, 0\.\d+× \(0\.\d+× to 0\.\d+×\) of that, "
        r"and its time shows no difference \(0\.\d+ to 1\.\d+\)",
        line.because,
    )
    *_, dear = opening.advice([_cached(memory, {"no_cache_onednn": 2.0})])
    assert re.search(r"and it is then (1\.9|2\.0)\d× slower", dear.because)


def test_the_leanest_of_two_settings_must_be_twice_as_sure_as_the_only_one() -> None:
    rows = _cached({"no_cache": 120, "no_cache_onednn": 80}, {}).cases[-1][1]
    (one,) = findings.leaner_of(rows)
    another = msgspec.structs.replace(one.row, strategy="another", needs={})
    (of_two,) = findings.leaner_of([*rows, another])
    assert 0 < one.p_value < 0.5
    assert of_two.p_value == pytest.approx(2 * one.p_value)


def test_a_price_that_may_be_chance_is_undecided_and_one_below_the_resolution_has_no_direction() -> None:
    rows = _cached({"no_cache": 120, "no_cache_onednn": 60}, {"no_cache_onednn": 1.3}).rows
    row = next(each for each in rows if each.strategy == "no_cache_onednn")
    assert findings.price_of(row, 1).startswith("it is then 1.3")
    unsure = msgspec.structs.replace(row, p_values={"pair": 0.02})
    assert re.fullmatch(
        r"its price in time is undecided: 1\.\d+× slower \(.*\), which does not survive the correction",
        findings.price_of(unsure, 1),
    )
    sure_of_one = msgspec.structs.replace(row, p_values={"pair": 0.004})
    assert findings.price_of(sure_of_one, 1).startswith("it is then")
    assert findings.price_of(sure_of_one, 2).startswith("its price in time is undecided")
    assert row.pair is not None
    ratio = msgspec.structs.replace(row.pair.ratio, resolved=False)
    blurred = msgspec.structs.replace(row, pair=msgspec.structs.replace(row.pair, verdict="undecided", ratio=ratio))
    assert findings.price_of(blurred, 1).startswith("its price in time is below resolution (")


@pytest.mark.parametrize(
    ("memory", "spread"),
    [
        ({"no_cache": 120, "no_cache_onednn": 119, "no_cache_without_onednn": 121}, 0.05),  # no difference
        ({"no_cache": 120, "no_cache_onednn": 108, "no_cache_without_onednn": 121}, 0.01),  # a small one
        ({"no_cache": 120, "no_cache_onednn": 90, "no_cache_without_onednn": 121}, 1.0),  # not shown
        ({"no_cache": 60, "no_cache_onednn": 60, "no_cache_without_onednn": 120}, 0.05),  # the other way round
        ({"no_cache": 120, "cache_paths": 60}, 0.05),  # no setting
    ],
)
def test_a_setting_that_is_not_surely_much_leaner_is_not_advised(memory: dict[str, float], spread: float) -> None:
    found = _cached(memory, {}, spread)
    assert not any("Set `" in line.do for line in opening.advice([found]))


def test_settings_that_are_just_not_much_leaner_are_seldom_advised() -> None:
    """All need 0.8 times as much, which is the limit. Ten comparisons are read at a time, and none should be named.

    Each named whose own interval allows it, one of them would be in every fifth reading.
    """
    memory = {"no_cache": 120.0, "no_cache_onednn": 96.0, "no_cache_without_onednn": 96.0}
    runs = [_cached(memory, {}, seed=seed) for seed in range(400)]
    readings = [opening.advice(runs[first : first + 10]) for first in range(0, 400, 10)]
    assert sum(any("Set `" in line.do for line in lines) for lines in readings) <= 3


def test_every_setting_that_was_asked_about_counts_in_the_correction(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[float]] = []

    def spy(p_values: Sequence[float]) -> list[bool]:
        asked.append(list(p_values))
        return holm(p_values)

    monkeypatch.setattr(opening, "holm", spy)
    memory = {"no_cache": 120.0, "no_cache_onednn": 119.0, "cache_paths": 118.0}
    opening.advice([_cached(memory, {})])
    opening.advice([_cached({name: each for name, each in memory.items() if name != "no_cache_onednn"}, {})])
    assert len(asked[0]) == len(asked[1]) + 1


def test_of_two_settings_the_leaner_one_is_advised_and_a_setting_takes_nobodys_place() -> None:
    """Pairs decide the first answer where strategies do the same in two ways, not where a process is set otherwise."""
    memory = {"no_cache": 120, "no_cache_onednn": 60, "no_cache_without_onednn": 40, "cache_after_decode": 300}
    found = _cached(memory, {"cache_after_decode": 0.1})
    said = [each for _, rows in found.cases for each in findings.sentences(rows)]
    assert sum(each.startswith("TF_ENABLE_ONEDNN_OPTS=0 makes no_cache need 0.3") for each in said) == 1
    assert not any("With the same output" in each for each in said)
    first, line = opening.advice([found])
    assert first.strategy == "cache_after_decode"
    assert line.strategy == "no_cache_without_onednn"
    assert "onednn" not in first.because, "what is left as it is by default"
    assert re.match(r"use `no_cache`, which needs 1\d\d MiB of memory by default", line.when)


@pytest.mark.parametrize(
    ("per_sample", "said"),
    [
        (Estimate(600 * 1024, 590 * 1024, 610 * 1024, 8), "it grows by 600 KiB a sample from 300 to 1200 of them, and"),
        (Estimate(600 * 1024, -1.0, 1200 * 1024, 8), "how that grows is unknown"),
        (None, "how that grows is unknown"),
    ],
)
def test_where_no_law_is_known_what_was_seen_of_growth_is_said(per_sample: Estimate | None, said: str) -> None:
    points = [(count, Estimate(1.0, 1.0, 1.0, 8)) for count in (75, 300, 1200)]
    found = opening._growing(_cached({"no_cache": 120}, {}), Law("unknown", "", points, per_sample))
    assert found.startswith(said)


def test_what_is_published_follows_from_the_raw_trials() -> None:
    """Held against the trials themselves: the strategy's geometric mean is below that of what it is compared with."""
    results = sets.collect(ROOT / "results")
    published = readme.published(results)
    assert published
    comparisons = {each.question: each for each in readme.most_measured(results)}
    lines = opening.advice(list(comparisons.values()))
    read = functools.cache(lambda machine: log.read(ROOT / "results" / machine / log.NAME))
    assert 6 <= len(lines) <= 13
    assert max(Counter(line.question for line in lines).values()) <= 2, "a reader has time for two of a question"
    for line in lines:
        if not line.strategy or line.do.startswith("Set "):
            continue
        comparison_ = comparisons[line.question]
        needs = next(row.optional for row in comparison_.rows if row.strategy == line.strategy)
        assert needs or line.strategy in _registry.quick(line.question), "`make bench` begins with what is advised"
        records = read(comparison_.environment.machine)
        case, rows = comparison_.cases[0]
        row = next(each for each in rows if each.strategy == line.strategy)
        reference = (
            row.matches if row.pair and row.matches else next(each.strategy for each in rows if each.is_baseline)
        )
        if line.strategy == reference:
            continue
        assert _mean(records, comparison_, case, line.strategy) * TIME_MARGIN < _mean(
            records, comparison_, case, reference
        )


def _mean(records: list[Record], found: Comparison, case: Mapping[str, str], name: str) -> float:
    """Return the geometric mean of a strategy's time over 20 epochs, from its newest trials."""

    def seconds(metrics: Any) -> float:
        once: float = metrics.epoch_time
        return once + 19 * metrics.steady_time + (metrics.convert_time or 0.0) if metrics.steady_time else once

    known = [
        each
        for each in records
        if (each.question, each.strategy, each.case, each.status) == (found.question, name, case, "ok")
        and each.started >= found.started
    ]
    assert known
    return math.exp(sum(math.log(seconds(each.metrics)) for each in known) / len(known))


def test_one_round_decides_nothing() -> None:
    records = [record(name, 0, time=each, peak=24) for name, each in {"numpy_to_numpy": 1.0, "mixed_copy": 0.1}.items()]
    (line,) = opening.advice([comparison(records)])
    assert (line.strategy, line.do) == ("", opening.UNDECIDED)


def test_where_the_law_of_memory_is_unknown_it_says_so() -> None:
    """One amount of data, as after a comparison of the default case alone."""
    found = _sized({"load_all": 0.01, "path_generator": 1.0}, {"load_all": 0.5}, {"load_all": 1.0})
    only = [row for row in found.rows if row.case["data"] == "x16"]
    (line,) = opening.advice([msgspec.structs.replace(found, rows=only, laws=[])])
    assert line.strategy == "load_all"
    assert "340 MiB of memory instead of 20.0 MiB with 640 samples (how that grows is unknown)" in line.because
    assert line.when.endswith(" (up to 640 samples)")


def test_where_one_amount_was_measured_the_laws_are_those_of_the_same_loaders() -> None:
    """``training`` has one amount of data; how memory grows, ``batching`` tells, if it was measured on that machine."""
    seconds = {"load_all": 1.0, "path_generator": 4.0, "path_generator_pool": 2.0}
    slopes = {"load_all": 0.5}
    trained = comparison(
        [
            record(
                name,
                index,
                question="training",
                case={"step": "20ms"},
                metrics=Metrics(
                    epoch_time=each,
                    steady_time=each * (1 + 0.01 * index),
                    samples=640,
                    peak_memory=int((20 + slopes.get(name, 0.0) * 640) * MIB),
                    step_wait=each / 1000,
                ),
            )
            for index in range(4)
            for name, each in seconds.items()
        ]
    )
    sized = _sized(seconds, slopes, {})
    fits, pool = (line for line in opening.advice([trained, sized]) if line.question == "training")
    assert (fits.strategy, pool.strategy) == ("load_all", "path_generator_pool")
    assert fits.when.endswith(opening.FITS)
    assert pool.when.endswith(opening.ANY + opening.UNWRITTEN)
    assert "MiB for 10000) (as in `batching`)" in fits.because
    assert "however many there are (as in `batching`)" in pool.because
    words = r"a step takes 10\d ms \([\d.]+ to 10\d\) instead of 20\d ms \(\d+ to 20\d\)"
    assert re.search(words, pool.because), "a loader that takes the step's core slows the step, without a wait"
    elsewhere = msgspec.structs.replace(sized, environment=msgspec.structs.replace(sized.environment, machine="other"))
    assert opening.advice([trained, elsewhere])[:2] == [fits, pool], "laws of another machine will do"
    fatter = msgspec.structs.replace(_sized(seconds, {"load_all": 5.0}, {}), environment=elsewhere.environment)
    assert opening.advice([trained, fatter])[0] != fits
    assert opening.advice([trained, fatter, sized])[0] == fits, "and of the same machine are better"
    fuller = _sized(seconds, slopes, {}, held={"path_generator_pool": 90.0})
    *_, full = (line for line in opening.advice([trained, fuller]) if line.question == "training")
    assert (" 20.0 MiB of memory," in pool.because, " 90.0 MiB of memory instead of" in full.because) == (True, True)
    (only,) = opening.advice([trained])
    assert only.strategy == "load_all"
    assert only.when.endswith(" (up to 640 samples)")
    assert "(how that grows is unknown)" in only.because


def test_lines_say_what_other_machines_have_measured_of_the_same() -> None:
    def on(machine: str, seconds: float, name: str = "mixed_copy") -> Comparison:
        found = _measured({"numpy_to_numpy": 1.0, name: seconds})
        return msgspec.structs.replace(found, environment=msgspec.structs.replace(found.environment, machine=machine))

    own = on("own", 0.5)
    lines = opening.advice([own])

    def said(*others: Comparison) -> str:
        (line,) = opening.repeated(lines, [own], [own, *others])
        assert line.because.startswith(lines[0].because)
        return line.because.removeprefix(lines[0].because)

    assert said() == said(on("a", 0.4, "list_to_list")) == ""
    assert said(msgspec.structs.replace(on("a", 0.4), not_closed=True)) == "", "of an instrument that leaves some out"
    assert re.fullmatch(r"; on a 2\.5\d*× faster \(2\.\d+ to 2\.\d+\)", said(on("a", 0.4)))
    assert re.fullmatch(r"; on 2 other machines 2\.5\d× to 4\.\d\d× as fast", said(on("a", 0.4), on("b", 0.25)))
    doubtful = said(on("b", 1.25), on("a", 0.4), on("c", 0.96))
    doubt = r"not shown to be 10 % faster on b, c"
    assert re.fullmatch(rf"; on 3 other machines 0\.80× to 2\.5\d× as fast, {doubt}", doubtful), doubtful
    assert re.fullmatch(r"; on b no difference \(.*?\), not shown to be 10 % faster", said(on("b", 1.0)))

    def failing(machine: str) -> Comparison:
        there = on(machine, 0.1)
        rows = [
            msgspec.structs.replace(row, failed=True) if row.strategy == "mixed_copy" else row for row in there.rows
        ]
        return msgspec.structs.replace(there, rows=rows)

    assert said(failing("b"), on("b", 0.4)) == "; some of its trials failed on b", "also where an older run is sound"
    both = said(on("a", 0.4), failing("c"), failing("b"))
    assert re.fullmatch(r"; on a 2\.5\d*× faster \(.*?\); some of its trials failed on b, c", both)
    pairs = {"skimage_resize_astype": 1.0, "skimage_linear_float": 0.6, "opencv_linear_float": 0.01}
    here, there = (_resized(pairs | {"opencv_linear_float": each}) for each in (0.01, 0.06))
    there = msgspec.structs.replace(there, environment=msgspec.structs.replace(there.environment, machine="there"))
    (line,) = opening.repeated(opening.advice([here]), [here], [there])
    assert "; on there 10.0× faster (" in line.because, "than what it was paired with"
    other = [msgspec.structs.replace(row, case={"scale": "0.5"}) for row in there.rows]
    elsewhere = msgspec.structs.replace(there, rows=other)
    (line,) = opening.repeated(opening.advice([here]), [here], [elsewhere])
    assert "on there" not in line.because, "which has measured another case"


def test_what_handing_arrays_over_takes_is_said_where_it_was_measured() -> None:
    seconds = {"load_all": 1.0, "load_all_from_tensor_slices": 30.0, "path_generator": 4.0}
    seconds |= {"path_generator_pool": 2.0, "pool_from_generator": 4.0}
    found = _sized(seconds, {}, {})
    pool = r"an epoch of `pool_from_generator` takes 2\.\d+× \(\d.*? to 2\.\d+×\) that of `path_generator_pool`"
    whole = r"an epoch of `load_all_from_tensor_slices` takes \d\d\.\d× \(.*?×\) that"
    there = msgspec.structs.replace(found, environment=msgspec.structs.replace(found.environment, machine="here"))
    assert re.search(f"TensorFlow: {pool} and {whole} of `load_all` \\(on here\\)\\. Memory", opening.matters([there]))
    del seconds["load_all_from_tensor_slices"]
    assert "of `load_all`" not in opening.matters([_sized(seconds, {}, {})])
    assert "TensorFlow, which can take longer than that. Memory" in opening.matters([])


def test_a_line_says_what_its_arrays_take_as_tensors_and_that_images_stay_as_they_are() -> None:
    """Handed over, the pool is slower than its baseline, and all in memory needs three times as much."""
    seconds = {"load_all": 0.01, "path_generator": 1.0, "path_generator_pool": 0.5}
    plain = opening.advice([_sized(seconds, {"load_all": 0.5}, {"load_all": 1.0})])
    assert [opening.UNCHANGED in line.when for line in plain] == [True, False]
    assert "tensors" not in "".join(line.because for line in plain), "it was not measured"
    seconds |= {"load_all_from_tensor_slices": 0.3, "pool_from_generator": 1.5}
    slopes = {"load_all": 0.5, "load_all_from_tensor_slices": 1.5}
    everything, batches = opening.advice([_sized(seconds, slopes, {"load_all": 1.0})])
    assert re.search(
        r"as tensors \(`load_all_from_tensor_slices`\) \S+ slower \(.*?\) than that, 980 MiB", everything.because
    )
    assert re.search(r"as tensors \(`pool_from_generator`\) \S+ slower \(.*?\) than that, 20\.0 MiB", batches.because)


def test_a_rise_that_the_resolution_hides_is_not_however_many_there_are() -> None:
    beyond = Beyond(20.0 * MIB, 0.0, (0.0, 0.0, 0.0), 0.0, 2.0, 4000.0, 4.0, None)
    hidden = Law("level", "", [], beyond=beyond)
    assert not hidden.is_bounded
    assert msgspec.structs.replace(hidden, beyond=msgspec.structs.replace(beyond, bend=0.0)).is_bounded


def test_outputs_as_typed_are_not_compared() -> None:
    found = _resized({"skimage_resize_astype": 1.0, "opencv_linear": 0.01})
    assert opening.advice([found]) == []


def test_no_p_value_is_zero_for_lack_of_rivals() -> None:
    found = _sized({"load_all": 0.01, "path_generator": 1.0, "path_generator_pool": 0.99}, {"load_all": 0.5}, {})
    drafts = list(opening._drafts(found, opening._laws(found, [found])))
    assert all(draft.p_value is None or draft.p_value > 0 for draft in drafts)
