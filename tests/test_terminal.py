from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from loaders import _registry, _rows, _terminal, _words
from loaders._advise import words
from loaders._advise.choose import Candidate, Settings
from loaders._compare.schedule import Open
from loaders._contract import OrderQuality, Promise
from loaders._rows import comparison
from loaders._trial.metrics import Disturbance, MemoryTrace, Metrics
from tests.test_rows import record


def test_a_trial_shows_every_figure_that_it_has_and_none_that_it_has_not(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = Metrics(
        epoch_time=0.5,
        order_quality=OrderQuality(0.33, 1.1, 0.2),
        memory_trace=MemoryTrace([1], [0.1], [5], None),
        steps=[1, 2],
        walk=[7, 8],
        disturbance=Disturbance(others=0.25),
        cpu_by_role={"client": 0.5},
        memory_by_role={"dispatcher": 300 * 2**20},
        delivery=Promise().held([1, 1]),
    )
    _terminal.show_trial(msgspec.structs.replace(record("numpy_to_numpy", 0), metrics=metrics))
    shown = {tuple(line.split()) for line in capsys.readouterr().out.splitlines()}
    assert shown >= {
        ("epoch_time", "500", "ms"),
        ("order_quality", "displacement", "0.33"),
        ("disturbance", "others", "0.25"),
        ("cpu_by_role", "client", "0.5"),
        ("memory_by_role", "dispatcher", "300", "MiB"),
        ("delivery", "verdict", "kept"),
    }
    assert not {"tail_monotony", "stolen", "steps", "walk", "memory_trace"} & {word for line in shown for word in line}


def test_a_comparison_on_a_busy_machine_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    busy = Metrics(epoch_time=1.0, disturbance=Disturbance(others=0.5))
    _terminal.show_comparison(comparison([record("numpy_to_numpy", 0, metrics=busy)]))
    assert "The machine was not quiet: in 1 of 1 trials" in capsys.readouterr().out


def test_two_times_and_what_is_needed_stand_in_columns_where_they_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = Metrics(epoch_time=0.9, steady_time=0.5, start_time=0.1, needed_memory=20 * 2**20)
    _terminal.show_comparison(comparison([record("numpy_to_numpy", 0, metrics=metrics)]))
    shown = capsys.readouterr().out
    assert all(each in shown for each in ("start", "20 epochs", "10.4 s", "needed", "20.0 MiB"))
    assert "not corrected for multiple comparisons" in shown.replace("\n", " ")
    assert "was not recorded for any trial" in shown
    _terminal.show_comparison(comparison([record("numpy_to_numpy", 0, time=1.0, schema=1)]))
    shown = capsys.readouterr().out
    assert "20 epochs" not in shown
    assert "no conclusion rests on them" in shown


def test_what_is_not_measured_yet_is_a_row_with_the_command_that_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    measured = comparison([record("numpy_to_numpy", 0, time=1.0, size="small")])
    _terminal.show_comparison(measured)
    shown = capsys.readouterr().out
    lines = [line for line in shown.splitlines() if line.strip().startswith("mixed_copy")]
    assert len(lines) == 1
    assert lines[0].rstrip().endswith("not measured yet")
    assert "not measured yet: make bench, or python -m loaders compare selection --size small" in shown
    _terminal.show_comparison(msgspec.structs.replace(measured, unmeasured=[]))
    assert "not measured yet" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("question", "strategy", "case", "is_named"),
    [
        ("resize", "opencv_area", {"scale": "224x224"}, True),
        ("resize", "opencv_area", {"scale": "2.0"}, False),  # it runs default cases
        ("service", "local", {}, False),  # and the questions that need not be named
    ],
)
def test_make_bench_is_named_where_it_measures_what_is_not_measured_yet(
    question: str, strategy: str, case: dict[str, str], is_named: bool
) -> None:
    whole = {**_registry.find_question(question).default_case, **case}
    made = _rows.comparison([record(strategy, 0, question=question, case=whole, time=1.0, size="small")])
    assert made.unmeasured
    assert (_words.measure_on(made)[0] == "make bench") is is_named


def test_make_bench_is_named_at_its_own_size_only(capsys: pytest.CaptureFixture[str]) -> None:
    others: list[dict[str, Any]] = [{"size": "full"}, {"size": "small", "data": "own folder, 3 images, abc"}]
    for changes in others:
        _terminal.show_comparison(comparison([record("numpy_to_numpy", 0, time=1.0, **changes)]))
        shown = capsys.readouterr().out
        assert f"not measured yet: python -m loaders compare selection --size {changes['size']}" in shown


def test_what_is_missing_in_another_case_needs_all_cases(capsys: pytest.CaptureFixture[str]) -> None:
    _terminal.show_comparison(comparison([record("numpy_to_numpy", 0, time=1.0, case={"images": "2000"})]))
    assert "compare selection --size tiny --all-cases" in capsys.readouterr().out


def test_a_missing_start_has_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = Metrics(epoch_time=0.9, steady_time=0.5, start_time=0.1)
    forked = record("numpy_to_numpy", 0, metrics=metrics, process="forked")
    _terminal.show_comparison(comparison([forked]))
    assert "python -m loaders compare selection --fresh" in capsys.readouterr().out
    _terminal.show_comparison(comparison([msgspec.structs.replace(forked, process="fresh")]))
    assert "--fresh" not in capsys.readouterr().out


def test_what_needs_more_rounds_is_named_by_case_with_their_number(capsys: pytest.CaptureFixture[str]) -> None:
    few, many = {"images": "500"}, {"images": "2000"}
    found = [Open(few, f"s{index}", "b", "time", index / 10, 10 * index) for index in range(1, 6)]
    found.append(Open(many, "new", "b", "memory", math.inf, None))
    _terminal.show_open("selection", found)
    first, second = capsys.readouterr().out.splitlines()
    assert first == (
        "selection images 500 needs more rounds: time of s5 against b (± 50%; 50 rounds in total), time of s4 against "
        "b (± 40%; 40 rounds in total), time of s3 against b (± 30%; 30 rounds in total), and 2 more"
    )
    assert second == "selection images 2000 needs more rounds: memory of new against b (measured once)"
    _terminal.show_open("selection", [])
    assert capsys.readouterr().out == ""


def test_brackets_in_what_a_strategy_says_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    said = "[/tmp/x] [bold] [node a] :smile: failed"
    failed = record("numpy_to_numpy", 0, status="failed", message=said)
    _terminal.show_trial(failed)
    _terminal.show_comparison(comparison([failed]))
    asked = Candidate("planted", problem=f"failed: {said}")
    _terminal.show_answer(words.answer("selection", {}, [asked], Settings(2**30), None, ""))
    shown = capsys.readouterr().out
    assert shown.count("[/tmp/x]") == 3
    assert shown.count("[node a]") == 3
    assert shown.count(":smile:") == 3
