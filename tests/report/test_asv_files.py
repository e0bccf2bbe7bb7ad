from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders._report import asv_files
from loaders._report.asv_files import Reading
from loaders._report.instruments import held_against
from loaders._rows import comparison
from tests.report.test_instruments import COMMIT, LOG


def _file(root: Path, name: str = "c0ffee00-virtualenv-py3.11.json", **changes: Any) -> Path:
    """Write a result file as asv does."""
    columns = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25"]
    data = {
        "commit_hash": COMMIT,
        "env_name": "virtualenv-py3.11",
        "date": 1,
        "params": {"machine": "box", "python": "3.11"},
        "python": "3.11",
        "requirements": {},
        "env_vars": {},
        "result_columns": [*columns, "stats_q_75", "stats_number", "stats_repeat", "samples", "profile"],
        "results": {
            "selection.Drain.time_epoch": [
                [0.5, None, math.nan],
                [["'numpy_to_numpy'", "'numpy_to_list'", "'mixed_copy'"]],
                *("1", 1, 2.5, [-math.inf, None, None], [0.6, None, None], [0.45, None, None], [0.55, None, None]),
                *([1, None, None], [3, None, None]),
            ],
            "selection.Drain.peakmem_epoch": [None, [["'a'", "'b'"]], "1"],
        },
        "durations": {},
        "version": 2,
        **changes,
    }
    path = root / "box" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def _said(root: Path) -> list[str]:
    said: list[str] = []
    assert asv_files.read(root, said.append) == []
    assert all("\n" not in each for each in said)
    return said


def test_a_file_is_read_with_intervals_failures_and_what_does_not_apply(tmp_path: Path) -> None:
    _file(tmp_path)
    (tmp_path / "box" / "machine.json").write_text('{"machine": "box", "version": 1}')
    said: list[str] = []
    (found,) = asv_files.read(tmp_path, said.append)
    assert said == []
    assert (found.machine, found.commit, found.python) == ("box", COMMIT, "3.11")
    times = found.benchmarks["selection.Drain.time_epoch"]
    assert times[("numpy_to_numpy",)] == Reading(0.5, None, 0.6, 3), "an interval's end may be unbounded"
    assert times[("numpy_to_list",)].value is None
    assert math.isnan(times[("mixed_copy",)].value or 0.0)
    assert times[("mixed_copy",)].measured is None
    assert [each.value for each in found.benchmarks["selection.Drain.peakmem_epoch"].values()] == [None, None]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"this is not JSON", "Error parsing JSON"),
        (b'{"version": 2, "results": {"selection', "Error parsing JSON"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b"", "Error parsing JSON"),
        (b"[]", "No version"),
        (b"{}", "No version"),
        (b"3.5", "not a result file of asv"),
        (b"null", "not a result file of asv"),
        (b'{"version": "x"}', "not a result file of asv"),
        (b'{"version": 1}', "old file format"),
        (b'{"version": 99}', "newer than"),
        (b'{"version": 2}', "missing key"),
        (b"[" * 100_000, "not a result file of asv"),
    ],
)
def test_a_foreign_file_is_named_in_one_line_and_left_out(tmp_path: Path, content: bytes, why: str) -> None:
    path = _file(tmp_path)
    path.write_bytes(content)
    (said,) = _said(tmp_path)
    assert said.startswith(f"{path}: left out: ")
    assert why in said


@pytest.mark.parametrize(
    "changes",
    [
        {"results": []},
        {"results": {"a": 3}},
        {"results": {"a": ["x", [["'a'"]]]}},
        {"results": {"a": [["x"], [["'a'"]]]}},
        {"results": {"a": [[1.0], [[1]]]}},
        {"results": {"a": [[1.0], "no list"]}},
        {"results": {"a": [[1.0], [["'a'"] * 1000] * 9]}},
        {"results": {"a": [[10**400], [["'a'"]]]}},
        {"result_columns": ["unheard of"]},
        {"params": {}},
        {"params": []},
        {"params": {"machine": 3}},
        {"commit_hash": 3},
    ],
)
def test_a_result_of_the_wrong_shape_is_named_and_left_out(tmp_path: Path, changes: dict[str, Any]) -> None:
    _file(tmp_path, **changes)
    (said,) = _said(tmp_path)
    assert "left out: " in said


def test_one_bad_file_costs_itself_only(tmp_path: Path) -> None:
    _file(tmp_path, "a.json").write_text("cut")
    (tmp_path / "box" / "directory.json").mkdir()
    _file(tmp_path, "z.json")
    said: list[str] = []
    (found,) = asv_files.read(tmp_path, said.append)
    assert found.commit == COMMIT
    assert [("a.json" in said[0], "directory.json" in said[1]), len(said)] == [(True, True), 2]
    assert asv_files.read(tmp_path / "nowhere") == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(key=st.sampled_from(["results", "params", "result_columns", "commit_hash", "durations", "env_vars"]), value=JSON)
def test_whatever_a_file_holds_ends_in_a_result_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: Any
) -> None:
    root = tmp_path_factory.mktemp("results")
    _file(root, **{key: value})
    said: list[str] = []
    found = asv_files.read(root, said.append)
    assert len(found) + len(said) == 1
    for each in found:
        held_against(comparison(LOG), [msgspec.structs.replace(each, machine="box", commit=COMMIT)])
    shutil.rmtree(root)


@given(benchmark=JSON)
def test_whatever_a_benchmark_holds_is_held_against_the_log_without_an_error(
    tmp_path_factory: pytest.TempPathFactory, benchmark: Any
) -> None:
    root = tmp_path_factory.mktemp("results")
    names = ("Drain.time_epoch", "Drain.peakmem_epoch", "Comparison.track_epoch_time")
    params = [["'numpy_to_numpy'", "'numpy_to_list'"]]
    _file(root, results={f"selection.{name}": [benchmark, params, "1"] for name in names})
    for each in asv_files.read(root):
        assert held_against(comparison(LOG), [each]) is not None
    shutil.rmtree(root)


def test_parameters_are_read_and_not_executed(tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    code = f"'a' if open({str(planted)!r}, 'w') else 'b'"
    _file(tmp_path, results={"selection.Drain.time_epoch": [[1.0, 2.0, 3.0], [[code, "'it\\'s'", "1"]], "1"]})
    (found,) = asv_files.read(tmp_path)
    assert set(found.benchmarks["selection.Drain.time_epoch"]) == {(code,), ("it's",), ("1",)}
    assert not planted.exists()


def test_what_a_benchmark_of_another_version_measured_is_left_out_and_said(tmp_path: Path) -> None:
    _file(tmp_path)
    for version, found in (("1", 2), ("2", 1)):
        known = {"selection.Drain.time_epoch": {"version": version}, "version": 2}
        (tmp_path / "benchmarks.json").write_text(json.dumps(known))
        said: list[str] = []
        (result,) = asv_files.read(tmp_path, said.append)
        assert len(result.benchmarks) == found
        assert ["another version measured: selection.Drain.time_epoch" in each for each in said] == [True] * (2 - found)


@pytest.mark.parametrize("content", [b"cut", b"[]", b'{"a": 3}', b'{"a": {"version": 1}}', b"\xff"])
def test_a_broken_list_of_benchmarks_rules_nothing_out(tmp_path: Path, content: bytes) -> None:
    _file(tmp_path)
    (tmp_path / "benchmarks.json").write_bytes(content)
    (found,) = asv_files.read(tmp_path)
    assert len(found.benchmarks) == 2
