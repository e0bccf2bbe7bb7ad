from __future__ import annotations

import csv
import io
import json
import math
import random
from pathlib import Path

import msgspec
import pytest

from loaders._judge import Judged
from loaders._report import export, sets
from loaders._rows import FIGURES, Row
from loaders._trial.metrics import Metrics
from tests.report.runs import run_of, write_log
from tests.test_rows import record


def _read(tmp_path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(export.tidy(sets.collect(tmp_path)))))


def test_every_figure_has_a_line_with_its_interval_and_origin(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"))
    lines = _read(tmp_path)
    (peak,) = [line for line in lines if (line["strategy"], line["figure"]) == ("numpy_to_list", "peak")]
    assert float(peak["value"]) == 1054 * 2**20
    assert (peak["unit"], peak["count"], peak["machine"], peak["case"]) == ("bytes", "2", "box", "images=500")
    assert {line["figure"] for line in lines if line["strategy"] == "numpy_to_list"} >= {"time", "ratio", "peak_ratio"}


def test_a_strategy_without_a_figure_keeps_its_status(tmp_path: Path) -> None:
    failed = record("mixed_copy", 0, status="failed", message='ValueError: a, "b"\nc', run="a")
    write_log(tmp_path, [*run_of("a"), failed])
    (line,) = [line for line in _read(tmp_path) if line["strategy"] == "mixed_copy"]
    assert line["status"] == 'failed: ValueError: a, "b"\nc'
    assert line["figure"] == ""


def test_every_judged_ratio_of_a_row_is_declared() -> None:
    judged = {field.name for field in msgspec.structs.fields(Row) if field.type == Judged | None}
    assert judged == {figure.name for figure in FIGURES.values() if figure.judged}


def test_a_ratio_goes_with_its_verdict_and_a_total_with_its_epochs(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"))
    found = {(line["strategy"], line["figure"]): line for line in _read(tmp_path)}
    assert found["numpy_to_list", "ratio"]["verdict"] == "more"
    assert found["numpy_to_list", "peak"]["verdict"] == ""
    assert found["numpy_to_list", "peak"]["schema"] == "2"
    steady = Metrics(epoch_time=2.0, steady_time=1.0)
    write_log(tmp_path, [record("numpy_to_numpy", 0, metrics=steady, run="b", started="2027-01-01T00:00:00+00:00")])
    (total,) = [line for line in _read(tmp_path) if line["figure"] == "total20"]
    assert float(total["value"]) == pytest.approx(21.0)


def test_the_schema_describes_a_record() -> None:
    schema = json.loads(export.schema())
    assert schema["$ref"].endswith("/Record")
    assert {"question", "strategy", "status", "metrics", "environment"} <= set(schema["$defs"]["Record"]["properties"])
    assert "epoch_time" in schema["$defs"]["Metrics"]["properties"]


def test_a_line_says_in_what_process_its_trials_ran(tmp_path: Path) -> None:
    metrics = Metrics(epoch_time=2.0, steady_time=1.0, start_time=0.5)
    ways = ("forked", "fresh")
    write_log(
        tmp_path,
        [
            *(record("numpy_to_numpy", index, metrics=metrics, process=way, run="a") for index, way in enumerate(ways)),
            record("mixed_copy", 0, metrics=metrics, process="forked", run="a"),
        ],
    )
    found = {(line["strategy"], line["figure"]): line["process"] for line in _read(tmp_path)}
    assert found["numpy_to_numpy", "steady"] == "fresh, forked"
    assert found["numpy_to_numpy", "start"] == "fresh"
    assert found["mixed_copy", "steady"] == "forked"
    assert ("mixed_copy", "start") not in found


def test_what_is_not_measured_yet_has_a_status_in_the_newest_set_only(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"), commit="a" * 40)
    write_log(tmp_path, run_of("b", "2027-01-01T00:00:00+00:00"), commit="b" * 40)
    assert len(sets.collect(tmp_path)) == 2
    lines = [line for line in _read(tmp_path) if line["status"] == "not measured"]
    assert {line["figure"] for line in lines} == {""}
    assert [line["strategy"] for line in lines].count("mixed_copy") == 1


def test_what_may_be_the_fastest_is_not_said_to_be_slower(tmp_path: Path) -> None:
    """As on the page: its own interval excludes that it is as fast, and not one for as many as it was picked from."""
    chance = random.Random(2)
    names = ("numpy_to_numpy", "mixed_copy", "numpy_to_list", "list_to_list", "mixed_tolist")
    records = [
        record(name, index, time=math.exp(0.05 * (place > 0) + chance.gauss(0, 0.02)), run="a")
        for index in range(6)
        for place, name in enumerate(names)
    ]
    write_log(tmp_path, records)
    (found,) = [each.comparisons[0] for each in sets.collect(tmp_path)]
    seeming = [row.strategy for row in found.rows if row.in_best and row.best and row.best.verdict == "more"]
    assert seeming, "the case that this is about"
    verdicts = {line["strategy"]: line["verdict"] for line in _read(tmp_path) if line["figure"] == "best"}
    assert {verdicts[name] for name in seeming} == {"among the best"}
