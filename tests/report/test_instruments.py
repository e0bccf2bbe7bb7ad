from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from loaders._contract import Cause
from loaders._report import asv_files, instruments, sets
from loaders._report.asv_files import AsvResult, Reading
from loaders._report.instruments import Instruments, held_against, may_be_median
from loaders._rows import Comparison, Row, comparison
from loaders._stats import Estimate, estimate
from loaders._trial import log as trial_log
from loaders._trial.log import PUBLISHED
from loaders._trial.metrics import Metrics
from loaders._trial.record import Environment, Record
from tests.conftest import ROOT
from tests.report.test_page import EVIL
from tests.test_rows import record

MIB = 2**20
COMMIT = "c0ffee00" + 32 * "1"
OTHER = "deadbeef" + 32 * "2"


def _record(strategy: str, round_: int, seconds: float, mebibytes: float, **changes: Any) -> Record:
    commit = changes.pop("commit", COMMIT)
    made = record(strategy, round_, time=seconds, peak=mebibytes, run="a", **changes)
    environment = Environment(machine="box", commit=commit, packages={"numpy": "9.9"}, python="3.11.9")
    return msgspec.structs.replace(made, environment=environment)


def _log(**strategies: tuple[float, float]) -> list[Record]:
    """Three rounds of each strategy, a percent apart: seconds, MiB."""
    return [
        _record(name, index, seconds * (1 + 0.01 * index), mebibytes)
        for index in range(3)
        for name, (seconds, mebibytes) in strategies.items()
    ]


LOG = _log(numpy_to_numpy=(1.0, 24), numpy_to_list=(2.0, 1054), mixed_copy=(1.0, 23))


def _asv(commit: str = COMMIT, python: str = "3.11", **benchmarks: dict[tuple[str, ...], Reading]) -> AsvResult:
    named = {f"selection.{name.replace('__', '.')}": cells for name, cells in benchmarks.items()}
    return AsvResult("box", commit, python, named)


def _medians(records: list[Record]) -> dict[tuple[str, ...], Reading]:
    """What asv keeps as ``track_epoch_time``."""
    found: dict[tuple[str, ...], Reading] = {}
    for name in {each.strategy for each in records}:
        values = [each.metrics.epoch_time or 0.0 for each in records if each.strategy == name]
        found[(name, "images 500")] = Reading(statistics.median(values), count=len(values))
    return found


def _times(**seconds: float | None) -> dict[tuple[str, ...], Reading]:
    return {
        (name,): Reading(value, value and value * 0.95, value and value * 1.05, count=3)
        for name, value in seconds.items()
    }


def _peaks(**mebibytes: float | None) -> dict[tuple[str, ...], Reading]:
    return {(name,): Reading(value and value * MIB) for name, value in mebibytes.items()}


def _held(records: list[Record], *results: AsvResult) -> Instruments:
    found = held_against(comparison(records), results)
    assert found is not None
    return found


def _verdicts(found: Instruments, figure: str) -> dict[str, str]:
    pairs = {each.strategy: getattr(each, figure) for each in found.beside}
    return {name: pair.note for name, pair in pairs.items() if pair}


# What agrees, what is explained, what is flagged.


def test_two_instruments_that_agree_say_so() -> None:
    times = _times(numpy_to_numpy=1.02, numpy_to_list=2.0, mixed_copy=0.98)
    peaks = _peaks(numpy_to_numpy=77, numpy_to_list=1107, mixed_copy=76.5)
    medians = _medians(LOG)
    found = _held(LOG, _asv(Drain__time_epoch=times, Drain__peakmem_epoch=peaks, Comparison__track_epoch_time=medians))
    assert set(_verdicts(found, "time").values()) == set(_verdicts(found, "memory").values()) == {"agree"}
    assert found.medians == (3, 3)
    assert found.missing == []
    assert found.finding == "6 of 6 figures agree; 3 of the 3 medians of the trials that asv stores agree"
    (pair,) = [each.memory for each in found.beside if each.strategy == "numpy_to_list"]
    assert pair is not None
    assert (pair.beyond, pair.apart) == (53 * MIB, 0)


def test_a_time_that_differs_is_flagged_with_the_factor_either_way() -> None:
    found = _held(LOG, _asv(Drain__time_epoch=_times(numpy_to_numpy=3.13, numpy_to_list=0.505)))
    assert _verdicts(found, "time") == {
        "numpy_to_numpy": "flagged: differs by a factor of 3.10, unexplained",
        "numpy_to_list": "flagged: differs by a factor of 4.00, unexplained",
    }
    assert found.finding == "0 of 2 figures agree, 2 unexplained"


def test_an_interval_that_includes_the_trials_agrees_and_one_that_hides_a_factor_of_two_decides_nothing() -> None:
    trial = Estimate(1.0, 0.95, 1.05, 6)
    overlapping = instruments.time_pair(Reading(1.4, 0.9, 1.9, count=3), trial)
    blunt = instruments.time_pair(Reading(1.4, -0.5, 3.3, count=3), trial)
    assert (overlapping.verdict, overlapping.note) == ("agree", "agree: the intervals overlap")
    assert blunt.note == "undecided: the intervals allow ratios from 0.00× to 3.47×"
    assert instruments.time_pair(Reading(1.4, count=3), trial).verdict == "flagged", "without an interval"


def test_a_checked_cause_explains_as_much_as_was_checked() -> None:
    trial, cause = Estimate(1.0, 0.95, 1.05, 6), Cause(0.25, 1.0, "why")
    explained = [instruments.time_pair(Reading(each, each, each), trial, checked=cause) for each in (0.36, 0.2, 1.3)]
    assert [each.verdict for each in explained] == ["explained", "flagged", "flagged"]
    assert explained[0].note == "explained: why"


@given(
    asv=st.floats(1e-6, 1e3),
    spread=st.floats(0, 3),
    trial=st.floats(1e-6, 1e3),
    wide=st.floats(1, 5),
)
def test_every_time_has_one_verdict_that_its_figures_carry(
    asv: float, spread: float, trial: float, wide: float
) -> None:
    reading = Reading(asv, asv * (1 - spread), asv * (1 + spread), count=3)
    pair = instruments.time_pair(reading, Estimate(trial, trial / wide, trial * wide, 6))
    assert pair.ratio is not None
    assert pair.ratio.low is not None
    assert pair.ratio.high is not None
    assert 0 <= pair.ratio.low <= pair.ratio.value * (1 + 1e-9)
    assert pair.note.startswith(pair.verdict)
    apart = asv * (1 + spread) < trial / wide or asv * (1 - spread) > trial * wide
    near = 1 / instruments.TIME_TOLERANCE <= asv / trial <= instruments.TIME_TOLERANCE
    assert (pair.verdict in ("flagged", "explained")) == (apart and not near)


def _row(strategy: str, mebibytes: float, *, half: float = 0.1, tree: bool = False) -> Row:
    peak = Estimate(mebibytes * MIB, (mebibytes - half) * MIB, (mebibytes + half) * MIB, 3)
    template = comparison(LOG).rows[0]
    return msgspec.structs.replace(
        template, strategy=strategy, figures={"peak": peak, **({"peak_tree": peak} if tree else {})}
    )


def _notes(*group: tuple[Row, float], converting: frozenset[str] = frozenset()) -> dict[str, str]:
    readings = [(row, Reading(mebibytes * MIB)) for row, mebibytes in group]
    return {name: pair.note for name, pair in instruments.memory_pairs(readings, converting).items()}


def test_memory_beyond_the_trials_must_be_alike() -> None:
    assert _notes((_row("a", 100), 150), (_row("b", 50), 100), (_row("c", 10), 75)) == {
        "a": "agree",
        "b": "agree",
        "c": "flagged: asv reads 15.0 MiB more, unexplained",
    }
    assert _notes((_row("a", 100), 150), (_row("b", 50), 100), (_row("c", 40), 60))["c"] == (
        "flagged: asv reads 30.0 MiB less, unexplained"
    )


def test_a_peak_that_varies_may_differ_by_as_much() -> None:
    assert _notes((_row("a", 100), 150), (_row("b", 50, half=6), 112))["b"] == "agree"
    assert "unexplained" in _notes((_row("a", 100), 150), (_row("b", 50, half=1), 112))["b"]


def test_the_leanest_show_what_set_up_held() -> None:
    high = [(_row("a", 100), 150.0), (_row("b", 50), 100.0), (_row("e", 60), 110.0)]
    said = "explained: asv's peak is that of set-up, which used more memory than this strategy adds"
    two = _notes(*high, (_row("c", 2), 58), (_row("d", 3), 58.5))
    assert (two["c"], two["d"]) == (said, said)
    assert "unexplained" in _notes(*high, (_row("c", 2), 58))["c"], "one alone shows no floor"
    many = [(_row(name, 2), 58.0) for name in "ghij"]
    assert [each for each in _notes(*high, *many).values() if each == "agree"] == ["agree"] * 3, "the high ones decide"


def test_worker_processes_and_conversions_are_known_causes() -> None:
    group = [(_row("a", 100), 150.0), (_row("b", 90), 140.0)]
    assert (
        _notes(*group, (_row("w", 500, tree=True), 120))["w"]
        == "explained: asv's peak does not include worker processes"
    )
    assert "unexplained" in _notes(*group, (_row("w", 500), 120), (_row("x", 400), 450), (_row("y", 300), 350))["w"]
    workers = [(_row(name, 500, tree=True), 120.0) for name in "uvw"]
    assert _notes(*group, *workers)["a"] == "agree", "what asv does not see does not set the measure"
    converted = _notes(*group, (_row("c", 50), 120), converting=frozenset({"c"}))
    assert converted["c"] == "explained: asv converts in the same process, before the epoch"


def test_strategies_that_import_otherwise_are_not_held_against_each_other() -> None:
    log = _log(numpy_to_numpy=(1.0, 24), list_to_list=(1.0, 99))
    found = _held(log, _asv(Drain__peakmem_epoch=_peaks(numpy_to_numpy=77, list_to_list=500)))
    assert all(note.startswith("undecided: no other strategy imports") for note in _verdicts(found, "memory").values())


# What one holds and the other does not.


def test_what_the_log_lacks_and_what_asv_lacks_is_said() -> None:
    medians = {**_medians(LOG), ("boolean_mask", "images 500"): Reading(1.0), ("gone", "images 500"): Reading(1.0)}
    del medians[("mixed_copy", "images 500")]
    found = _held(LOG, _asv(Comparison__track_epoch_time=medians))
    assert found.missing == [
        "asv's medians at commit c0ffee00, but not the trial log, have 2 strategies: boolean_mask, gone",
        "The trial log, but not asv's medians at commit c0ffee00, has 1 strategy: mixed_copy",
        "asv's own benchmarks, time_epoch and peakmem_epoch, have no result at commit c0ffee00",
    ]


def test_long_lists_are_counted() -> None:
    medians = _medians(LOG)
    medians.update({(f"s{index:02}", "images 500"): Reading(1.0) for index in range(20)})
    (said, _) = _held(LOG, _asv(Comparison__track_epoch_time=medians)).missing
    assert said.endswith("20 strategies: s00, s01, s02, s03, s04, s05 and 14 more")


def test_a_question_without_any_result_of_asv_is_one_sentence() -> None:
    log = [*LOG, *(_record("list_to_list", 0, 1.0, 1.0, commit=OTHER) for _ in range(2))]
    found = _held(log, _asv(commit="0" * 40))
    assert found.missing == [
        "The trial log has selection at commits c0ffee00 and deadbeef, but asv does not: it was run with "
        "python -m loaders compare, or asv was stopped before it saved"
    ]
    assert found.finding == "No figure was measured by both"


def test_without_results_of_the_machine_there_is_nothing_to_say() -> None:
    assert held_against(comparison(LOG), []) is None
    assert held_against(comparison(LOG), [msgspec.structs.replace(_asv(), machine="another")]) is None


def test_failed_in_one_and_measured_in_the_other_is_said_both_ways() -> None:
    log = [
        *LOG,
        *(_record("mixed_tolist", index, 1, 1, status="failed", message="ValueError: x") for index in range(2)),
    ]
    times = _times(numpy_to_numpy=None, numpy_to_list=2.0, mixed_copy=1.0, mixed_tolist=1.0)
    found = _held(log, _asv(Drain__time_epoch=times))
    assert found.missing == [
        "asv reports that time_epoch failed at commit c0ffee00, but the trial log has samples of 1 strategy: "
        "numpy_to_numpy",
        "asv's own benchmarks at commit c0ffee00 have figures for which the trial log has no sample: "
        "mixed_tolist (failed: ValueError: x)",
    ]
    assert set(_verdicts(found, "time")) == {"numpy_to_list", "mixed_copy"}


def test_not_applicable_is_neither_a_figure_nor_a_failure() -> None:
    times = {**_times(numpy_to_numpy=1.0, numpy_to_list=2.0), ("mixed_copy",): Reading(math.nan)}
    found = _held(LOG, _asv(Drain__time_epoch=times))
    assert found.missing == [
        "asv's own benchmarks at commit c0ffee00 are marked as not applicable, but the trial log has samples of "
        "1 strategy: mixed_copy"
    ]
    assert set(_verdicts(found, "time")) == {"numpy_to_numpy", "numpy_to_list"}


@pytest.mark.parametrize("older", [(), ("500",), ("500", "warm")])
def test_other_parameters_than_todays_are_left_out_in_words(older: tuple[str, ...]) -> None:
    medians = {(params[0], *older): reading for params, reading in _medians(LOG).items()}
    times: dict[tuple[str, ...], Reading] = {
        (name, "images 500"): Reading(99.0) for name in ("numpy_to_numpy", "numpy_to_list")
    }
    found = _held(LOG, _asv(Comparison__track_epoch_time=medians, Drain__time_epoch=times))
    assert (found.medians, found.beside) == ((0, 0), [])
    assert found.missing == [
        "asv's medians at commit c0ffee00 have other parameters than today and are left out",
        "asv's own benchmarks at commit c0ffee00 have other parameters than today and are left out",
    ]


def test_only_results_of_the_same_commit_and_python_are_held_against_trials() -> None:
    wrong = {name: Reading(99.0, 98, 100) for name in _times(numpy_to_numpy=1, numpy_to_list=1)}
    found = _held(LOG, _asv(commit=OTHER, Drain__time_epoch=wrong), _asv(python="3.12", Drain__time_epoch=wrong))
    assert found.beside == []
    assert found.missing == ["asv's results at commit c0ffee00 are from Python 3.12, the trial log's from 3.11.9"]


def test_a_row_is_held_against_the_commit_of_its_own_trials() -> None:
    newer = [_record("numpy_to_list", index, 9.0, 1054, commit=OTHER, case={"images": "2000"}) for index in range(3)]
    old = {**_medians(LOG), ("numpy_to_list", "images 2000"): Reading(4.0)}
    found = _held([*LOG, *newer], _asv(Comparison__track_epoch_time=old))
    assert found.medians == (3, 3), "the one of the other commit is not counted"
    assert not [each for each in found.missing if "but not the trial log" in each]
    assert found.missing[0] == (
        "asv's medians at commit c0ffee00 are not compared where the trial log has a newer run: "
        "1 case: numpy_to_list images 2000"
    )


# Medians that asv keeps of the same trials.


def test_a_median_that_contradicts_the_log_is_flagged() -> None:
    medians = {**_medians(LOG), ("numpy_to_list", "images 500"): Reading(2.5, count=3)}
    found = _held(LOG, _asv(Comparison__track_epoch_time=medians))
    assert found.medians == (3, 2)
    assert found.missing[0] == (
        "asv's track_epoch_time cannot be the median of the trial log's samples: "
        "numpy_to_list images 500 (asv 2.50 s, n=3; log 2.02 s, n=3)"
    )


def test_results_of_other_data_are_held_against_nothing() -> None:
    medians = {params: Reading(10 * (each.value or 0)) for params, each in _medians(LOG).items()}
    found = _held(LOG, _asv(Comparison__track_epoch_time=medians, Drain__time_epoch=_times(numpy_to_numpy=10.0)))
    assert (found.medians, found.beside) == ((3, 0), [])
    (said,) = found.missing
    assert said.startswith("3 of the 3 medians that asv stores are not those of the trial log's samples")


def test_the_peak_of_a_process_tree_is_not_the_one_that_asv_tracks() -> None:
    log = [
        msgspec.structs.replace(each, metrics=Metrics(epoch_time=1.0, peak_memory=MIB, peak_memory_tree=900 * MIB))
        for each in LOG
        if each.strategy == "mixed_copy"
    ]
    found = _held(log, _asv(Comparison__track_peak_memory={("mixed_copy", "images 500"): Reading(float(MIB))}))
    assert found.medians == (0, 0)


SAMPLES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=12)


@given(values=SAMPLES, logarithmic=st.booleans())
def test_the_median_of_the_samples_is_always_possible(values: list[float], logarithmic: bool) -> None:
    mean = estimate(values, "ratio" if logarithmic else "linear")
    assert may_be_median(statistics.median(values), mean, logarithmic=logarithmic)


@given(values=SAMPLES, logarithmic=st.booleans(), factor=st.floats(1.01, 100))
def test_a_median_beyond_all_samples_by_their_range_is_not(
    values: list[float], logarithmic: bool, factor: float
) -> None:
    mean = estimate(values, "ratio" if logarithmic else "linear")
    beyond = max(values) * max(values) / min(values) if logarithmic else 2 * max(values) - min(values)
    assume(math.isfinite(beyond))
    assert not may_be_median(beyond * factor, mean, logarithmic=logarithmic)


def test_hostile_names_stay_on_their_line_and_are_left_to_the_template_to_escape() -> None:
    name = f"{EVIL}\nnext\r\u2028line"
    medians = {**_medians(LOG), (name, "images 500"): Reading(1.0)}
    times = {(name,): Reading(1.0), **_times(numpy_to_numpy=1.0)}
    found = _held(LOG, _asv(Comparison__track_epoch_time=medians, Drain__time_epoch=times))
    said = [each for each in found.missing if EVIL in each]
    assert len(said) == 2
    assert all(len(each.splitlines()) == 1 for each in found.missing)


# The committed results.


def _published(name: str, root: Path = ROOT / "results") -> Comparison:
    """Return what is published of a question, whatever a reader has measured beside it."""
    found = [
        comparison
        for each in sets.collect(root)
        if each.origin.machine == PUBLISHED and each.origin.size == "full" and each.answers
        for comparison in each.comparisons
        if comparison.question == name
    ]
    if not found:
        pytest.skip(f"{name} of {PUBLISHED} is not published")
    return found[0]


@pytest.mark.parametrize("question", ["selection", "resize"])
def test_nothing_that_is_published_differs_unexplained(question: str) -> None:
    results = [each for each in asv_files.read(ROOT / "results") if each.machine == PUBLISHED]
    if not results:
        pytest.skip(f"asv has measured nothing on {PUBLISHED}")
    found = _published(question)
    held = held_against(found, results)
    assert held
    assert held.beside, f"{found.question} is held by both"
    assert not [pair.note for pair in held.pairs if pair.verdict == "flagged"]
    assert held.medians[0] == held.medians[1] > 0


def test_a_readers_own_results_are_not_taken_for_the_published_ones(tmp_path: Path) -> None:
    for machine, started in ((PUBLISHED, "2026-01-01"), ("local", "2027-01-01")):
        for each in LOG:
            environment = msgspec.structs.replace(each.environment, machine=machine)
            made = msgspec.structs.replace(
                each, environment=environment, started=f"{started}T00:00:00+00:00", size="full", run=machine
            )
            trial_log.append(tmp_path / machine / trial_log.NAME, made)
    found = _published("selection", tmp_path)
    assert found.environment.machine == PUBLISHED
    assert sets.collect(tmp_path)[0].origin.machine == "local", "the page opens on the newest"
