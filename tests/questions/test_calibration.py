from __future__ import annotations

import itertools
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders import _registry, _resolution
from loaders._cli.compare import every_question
from loaders._corpus import Corpus
from loaders._errors import WrongOutputError
from loaders._report import export, findings, page, sets
from loaders._resolution import INSTRUMENTS, Calibration, Reading, Resolution
from loaders._rows import comparison
from loaders._stats import estimate
from loaders._trial import Record, Trial, run_trial
from loaders._trial.drain import drain
from loaders._trial.growth import Growth, Verdict
from loaders._trial.metrics import Metrics
from loaders._trial.timing import epoch_time
from loaders._words import fatter, percent, promise, quantity, times
from loaders.questions import calibration
from tests.report.runs import run_of, write_log
from tests.test_rows import record, rows
from tests.trial.test_growth import decided

MIB = 2**20
Misread = Callable[[str, float], float]


def _metrics(truth: dict[str, float], misread: Misread, verdict: Verdict | None) -> Metrics:
    values = {metric: misread(metric, value) for metric, value in truth.items()}
    if "memory_growth" not in values:
        return Metrics(**values)  # type: ignore[arg-type]
    slope = values.pop("memory_growth")
    found = verdict or ("growing, in use" if truth["memory_growth"] else "flat")
    growth = Growth(found, slope, slope, slope, slope, 0, 100)
    return Metrics(**values, memory_growth=growth)  # type: ignore[arg-type]


def _read(
    misread: Misread = lambda _, truth: truth, rounds: int = 5, run: str = "c", verdict: Verdict | None = None
) -> list[Record]:
    """Return the records of a calibration whose instruments read the truth, misread."""
    known = _registry.variants("calibration")
    return [
        record(
            each.name,
            index,
            question="calibration",
            case={},
            run=run,
            planned=len(known),
            metrics=_metrics(dict(each.truth), misread, verdict),
        )
        for index in range(rounds)
        for each in known.values()
    ]


def _verdicts(found: Calibration, metric: str) -> dict[str, str]:
    return {each.strategy: each.verdict for each in found.readings if each.metric == metric}


def test_every_strategy_has_a_truth_that_an_instrument_reads() -> None:
    known = _registry.variants("calibration")
    for each in known.values():
        assert each.truth
        assert set(each.truth) <= INSTRUMENTS.keys()
    assert {metric for each in known.values() for metric in each.truth} == INSTRUMENTS.keys()
    quick = _registry.quick("calibration")
    assert {metric for name in quick for metric in known[name].truth} >= {"epoch_time", "sample_time", "peak_memory"}


def test_no_strategy_pays_for_tensorflow() -> None:
    for each in _registry.variants("calibration").values():
        assert not {"tensorflow", "cv2"} & _registry.imports_of(each.build).keys()


def test_it_is_run_before_the_others() -> None:
    names = [each.name for each in every_question()]
    assert names[0] == "calibration"
    assert sorted(names) == sorted(_registry.questions())


def test_output_that_is_not_the_numbers_is_wrong(corpus: Corpus, tmp_path: Path) -> None:
    asked, variant = _registry.find_question("calibration"), _registry.find_variant("calibration", "nothing")
    job = _registry.Job(corpus, asked.prepare(corpus, {}, 1), {}, 1)
    numbers = np.arange(400)
    asked.check(job, variant, [numbers[:100], numbers[100:]])
    for wrong in ([numbers[:399]], [numbers, numbers[:1]], [numbers[::-1]], []):
        with pytest.raises(WrongOutputError, match="missing or wrong"):
            asked.check(job, variant, wrong)


def test_exact_instruments_are_good_and_resolve_everything() -> None:
    found = _resolution.calibration(_read())
    assert {each.verdict for each in found.readings} == {"good"}
    for each in found.calibrated:
        resolution = each.resolution()
        assert resolution is not None
        assert {limit for _, limit in resolution.points} == {0.0}
    assert "Unreliable" not in findings.of_calibration(found)


def test_a_clock_that_is_two_percent_fast_is_reported() -> None:
    found = _resolution.calibration(_read(lambda metric, truth: truth * 1.02 if metric.endswith("_time") else truth))
    for metric in ("epoch_time", "sample_time"):
        verdicts = _verdicts(found, metric)
        assert {name for name, verdict in verdicts.items() if verdict == "off"} == verdicts.keys() - {"nothing"}
    assert set(_verdicts(found, "peak_memory").values()) == {"good"}
    said = findings.of_calibration(found)
    assert "Unreliable: time of an epoch of wait_100ms, off by 2.00 ms (2.0 %)" in said
    assert "time of an epoch (100 ms to 500 ms) within 2.0 %" in said


def test_a_memory_reading_that_is_off_by_2_mib_is_reported() -> None:
    found = _resolution.calibration(_read(lambda metric, truth: truth + 2 * MIB * (metric == "peak_memory")))
    verdicts = _verdicts(found, "peak_memory")
    assert verdicts["nothing"] == verdicts["array_1_kept"] == verdicts["array_16_freed"] == "off"
    assert verdicts["array_256_kept"] == "good", "that is 0.8 % of it"
    assert set(_verdicts(found, "epoch_time").values()) == {"good"}
    assert "peak memory of nothing, off by 2.0 MiB" in findings.of_calibration(found)
    resolution = found.resolution("peak_memory")
    assert resolution is not None
    assert resolution.of(8 * MIB) == pytest.approx(2 * math.sqrt(2) * MIB)


def test_trials_that_differ_too_much_decide_nothing() -> None:
    late = itertools.cycle([0.0, 0.0, 0.03, 0.001, 0.0])  # each of four strategies meets all of them in five rounds
    found = _resolution.calibration(_read(lambda metric, truth: truth + (next(late) if metric == "epoch_time" else 0)))
    assert set(_verdicts(found, "epoch_time").values()) == {"undecided"}
    said = findings.of_calibration(found)
    assert "the machine busy?" in said
    assert "time of an epoch (" not in said, "no error is quoted that the trials do not show"


def test_an_error_is_quoted_with_its_interval() -> None:
    off = itertools.cycle([0.1, -0.1, 0.006, 0.0, 0.0])
    found = _resolution.calibration(
        _read(lambda metric, truth: truth * (1 + next(off)) if metric == "sample_time" else truth)
    )
    (each,) = [each for each in found.calibrated if each.metric == "sample_time"]
    furthest = max(
        max(abs(reading.error.low or 0.0), abs(reading.error.high or 0.0)) / reading.truth
        for reading in each.readings
        if reading.truth
    )
    assert furthest > 0.05
    assert f"time of a sample (250 µs to 1.25 ms) within {percent(furthest)}" in findings.of_calibration(found)


def test_what_the_clock_cannot_tell_from_the_fastest_is_among_the_best() -> None:
    blunt = _resolution.calibration(_read(lambda metric, truth: truth + 0.1 * (metric == "epoch_time")))
    records = [
        record(name, index, seconds * (1 + index / 1000), 24)
        for name, seconds in (("numpy_to_numpy", 1.1), ("mixed_copy", 1.0), ("list_to_list", 2.0))
        for index in range(2)
    ]
    best = {
        calibrated is blunt: {name for name, row in rows(comparison(records, calibrated)).items() if row.in_best}
        for calibrated in (None, blunt)
    }
    assert best == {False: {"mixed_copy"}, True: {"mixed_copy", "numpy_to_numpy"}}


def test_one_round_shows_no_spread_and_marks_nothing() -> None:
    found = _resolution.calibration(_read(rounds=1))
    assert found.resolution("epoch_time") is None
    assert found.resolution("no_such_metric") is None


@pytest.mark.parametrize(("verdict", "misjudged"), [("flat", "leak_malloc"), ("growing, in use", "steady")])
def test_a_leak_that_was_missed_and_one_that_was_made_up_are_reported(verdict: Verdict, misjudged: str) -> None:
    found = _resolution.calibration(_read(verdict=verdict))
    verdicts = _verdicts(found, "memory_growth")
    assert verdicts[misjudged] == "off"
    assert f"growth of memory of {misjudged}, misjudged: {verdict} in 5 of 5" in findings.of_calibration(found)


def test_a_verdict_that_is_left_open_is_no_reading() -> None:
    found = _resolution.calibration(_read(verdict="undecided"))
    assert not _verdicts(found, "memory_growth")


def test_what_failed_or_is_not_known_any_more_is_no_reading() -> None:
    failed = [msgspec.structs.replace(each, status="failed") for each in _read(lambda *_: 7e9)]
    gone = [msgspec.structs.replace(each, strategy="of_yesterday") for each in _read()]
    assert _resolution.calibration([*failed, *gone, *_read()]).calibrated == _resolution.calibration(_read()).calibrated


def test_the_newest_whole_run_counts() -> None:
    old, new, broken = _read(run="old"), _read(run="new"), _read(run="broken")[:3]
    dated = [
        msgspec.structs.replace(each, started=started)
        for run, started in ((old, "2026-01-01"), (new, "2026-02-01"), (broken, "2026-03-01"))
        for each in run
    ]
    found = _resolution.newest([*dated, *run_of("other"), *_read(run="")])
    assert found is not None
    assert found.started == "2026-02-01"
    assert _resolution.newest(run_of("other")) is None


samples = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=8)


def _reading(truth: float, values: list[float]) -> Reading:
    return Reading("epoch_time", "x", truth, estimate(values, "linear"), statistics.stdev(values))


@given(st.floats(0, 1e3), samples, st.floats(-1e3, 1e3))
def test_the_error_does_not_depend_on_where_the_truth_is(truth: float, errors: list[float], shift: float) -> None:
    one, other = (_reading(each, [each + error for error in errors]) for each in (truth, abs(truth + shift)))
    assert one.error.value == pytest.approx(other.error.value, abs=1e-6)
    assert one.resolution() == pytest.approx(other.resolution(), abs=1e-5)


@given(samples)
def test_more_trials_resolve_more_but_never_less_than_the_mean_error(errors: list[float]) -> None:
    reading = _reading(0.0, errors)
    limits = [reading.resolution(count) or 0.0 for count in (1, 2, 5, 100)]
    assert limits == sorted(limits, reverse=True)
    assert limits[-1] >= math.sqrt(2) * abs(reading.error.value) - 1e-9


@given(
    st.dictionaries(st.floats(0, 1e6), st.floats(0, 1e6), min_size=1, max_size=5),
    st.floats(0, 2e6),
)
def test_a_resolution_is_interpolated_and_grows_beyond_the_largest_truth(known: dict[float, float], at: float) -> None:
    resolution = Resolution(sorted(known.items()))
    for truth, limit in known.items():
        assert resolution.of(truth) == pytest.approx(limit)
    largest = max(known)
    if at > largest:
        assert resolution.of(at) == pytest.approx(known[largest] * (at / largest if largest else 1.0))
    else:
        slack = 1e-6 * max(known.values())
        assert min(known.values()) - slack <= resolution.of(at) <= max(known.values()) + slack


@pytest.mark.parametrize("count", [1, 5])
def test_two_means_of_the_same_differ_by_more_than_the_resolution_in_one_of_twenty_at_most(count: int) -> None:
    random = np.random.default_rng(0)
    beyond = 0
    for _ in range(2000):
        limit = _reading(0.0, list(random.normal(0, 1, 5))).resolution(count) or 0.0
        one, other = random.normal(0, 1, (2, count)).mean(axis=1)
        beyond += abs(one - other) > limit
    assert beyond / 2000 < 0.05


def _compared(peak: float, seconds: float, calibrated: Calibration | None) -> tuple[str, str]:
    """Return the words, without intervals, for a strategy beside a baseline of 24 MiB and 1 s."""
    records = [record("numpy_to_numpy", index, 1.0, 24) for index in range(2)]
    records += [record("mixed_copy", index, seconds, peak) for index in range(2)]
    row = rows(comparison(records, calibrated))["mixed_copy"]
    said = times(row.ratio), fatter(row.peak_ratio)
    return said[0].partition(" (")[0], said[1].partition(" (")[0]


def test_what_the_instruments_cannot_tell_apart_is_below_resolution() -> None:
    good = _resolution.calibration(_read())
    blunt = _resolution.calibration(
        _read(lambda metric, truth: truth + {"epoch_time": 0.1, "peak_memory": 4 * MIB}.get(metric, 0))
    )
    assert _compared(24.9, 1.1, None) == ("1.10× slower", "below resolution")
    assert _compared(24.9, 1.1, good) == ("1.10× slower", "below resolution")
    assert _compared(28.0, 1.1, good)[1] == "1.17× fatter"
    assert _compared(28.0, 1.1, blunt) == ("below resolution", "below resolution")
    assert _compared(48.0, 2.0, blunt) == ("2.00× slower", "2.00× fatter")
    assert _compared(24.0, 1.0, blunt)[0] == "no difference"


def test_memory_that_is_below_what_a_blunt_instrument_resolves_has_no_ratio() -> None:
    blunt = _resolution.calibration(_read(lambda metric, truth: truth + 4 * MIB * (metric == "peak_memory")))
    assert _compared(3.0, 1.0, blunt)[1] == "–"
    assert _compared(3.0, 1.0, None)[1] == "8.00× leaner"


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (0, "bytes", "0"),
        (0.00031, "s", "310 µs"),
        (4096, "bytes", "4.00 KiB"),
        (-2 * MIB, "bytes", "-2.0 MiB"),
        (2**18, "bytes a step", "256 KiB"),
        (2, "count", "2"),
    ],
)
def test_quantities(value: float, unit: _resolution.Unit, words: str) -> None:
    assert quantity(value, unit) == words


def test_a_promise_names_what_it_is_measured_by() -> None:
    found = {(each.metric, each.strategy): promise(each) for each in _resolution.calibration(_read()).readings}
    assert found["epoch_time", "nothing"] == "within 1.00 ms"
    assert found["epoch_time", "wait_500ms"] == "within 1 %"
    assert found["bodies_in_flight", "two_bodies"] == "exact"


def test_the_page_shows_the_instruments_and_does_not_offer_them_as_loaders(tmp_path: Path) -> None:
    made = [*run_of("a"), *_read(lambda _, truth: truth * 1.03)]
    write_log(
        tmp_path,
        [msgspec.structs.replace(each, metrics=msgspec.structs.replace(each.metrics, throughput=1.0)) for each in made],
    )
    collected = sets.collect(tmp_path)
    html = page.render(collected)
    assert "How far to trust the instruments" in html
    assert "off by 3.00 ms (3.0 %)" in html
    assert all(each.question != "calibration" for each in collected[0].choices)
    assert "calibration" not in collected[0].lacks
    assert [each.question for each in collected[0].comparisons] == ["selection", "calibration"]
    assert "calibration,,wait_100ms" in export.tidy(collected)


def test_a_set_is_judged_by_the_calibration_of_its_machine_and_no_other(tmp_path: Path) -> None:
    blunt = _read(lambda metric, truth: truth + 5.0 * (metric == "epoch_time"))
    write_log(tmp_path, [*run_of("a"), *(msgspec.structs.replace(each, size="small") for each in blunt)])
    write_log(tmp_path, run_of("b"), machine="other")
    found = {(each.origin.machine, each.origin.size): each for each in sets.collect(tmp_path)}
    judged, unknown = found["box", "tiny"], found["other", "tiny"]
    ratios = [rows(each.comparisons[0])["numpy_to_list"].ratio for each in (judged, unknown)]
    assert [ratio and ratio.ratio.resolved for ratio in ratios] == [False, True]
    assert unknown.calibration is None
    assert "They have not been calibrated on other" in page.render([unknown])
    assert "python -m loaders compare calibration" in page.render([unknown])


@pytest.mark.parametrize("strategy", ["wait_first", "wait_500ms"])
def test_known_times_are_read_within_one_percent(monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    """Held against what the waits took by the strategy's own account: a busy machine may wake them late."""
    waited: list[float] = []
    wait = calibration._wait

    def witnessed(seconds: float) -> None:
        before = time.monotonic()
        wait(seconds)
        waited.append(time.monotonic() - before)

    monkeypatch.setattr(calibration, "_wait", witnessed)
    errors = []
    for _ in range(5):
        waited.clear()
        job = _registry.Job(None, calibration.Work(np.arange(400)), {}, 1)  # type: ignore[arg-type]
        (timeline,), _ = drain(lambda job=job: getattr(calibration, strategy)(job))  # type: ignore[misc]
        errors.append(epoch_time(timeline) / sum(waited) - 1)
        assert sum(waited) >= _registry.find_variant("calibration", strategy).truth["epoch_time"]
    assert abs(statistics.median(errors)) < 0.01


def _trials(corpus: Corpus, strategy: str, count: int = 3) -> list[Record]:
    made = [run_trial(Trial("calibration", strategy, {}, str(corpus.root), 1), corpus) for _ in range(count)]
    assert [each.status for each in made] == ["ok"] * count, made[0].message
    assert "TensorFlow" not in made[0].environment.threads
    return made


@pytest.mark.parametrize(
    "strategy",
    ["array_256_kept", "array_256_freed", "child_process", "two_bodies", "file_of_1_mib", "freed_and_held_64"],
)
def test_known_sizes_are_read_within_one_percent(corpus: Corpus, strategy: str) -> None:
    if sys.platform != "linux":
        pytest.skip("elsewhere peaks are sampled, and malloc is not asked")
    truths = _registry.find_variant("calibration", strategy).truth

    def read() -> dict[str, float]:
        made = _trials(corpus, strategy)
        return {metric: statistics.median(getattr(each.metrics, metric) for each in made) for metric in truths}

    right = {metric: pytest.approx(truth, rel=0.01, abs=MIB / 16) for metric, truth in truths.items()}
    # A process tree holds its share of the files that it maps: if a stranger with the same files ends, that grows.
    assert read() == right or read() == right


@pytest.mark.parametrize(
    ("strategy", "verdict"),
    [
        ("leak_objects", "growing, in use"),
        ("leak_malloc", "growing, in use"),
        ("warm_up", "plateau"),
        ("steady", "flat"),
    ],
)
def test_planted_leaks_are_found_with_their_slope_and_controls_are_not(
    corpus: Corpus, strategy: str, verdict: str
) -> None:
    growth = decided(lambda: _trials(corpus, strategy, 1)[0])
    assert growth.verdict == verdict
    truth = _registry.find_variant("calibration", strategy).truth["memory_growth"]
    assert growth.slope == pytest.approx(truth, rel=0.15, abs=4096)
