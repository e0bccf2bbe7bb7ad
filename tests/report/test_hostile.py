"""Anybody's results become a page, a table and a CSV file, whatever they hold, and never a wrong figure."""

from __future__ import annotations

import copy
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaders import _terminal
from loaders._report import asv_files, export, page, sets
from loaders._report.sets import ResultSet
from loaders._trial import log
from loaders._trial.metrics import Disturbance, Metrics
from loaders._trial.record import Record
from tests.report.runs import run_of, write_log
from tests.report.test_asv_files import _file
from tests.report.test_findings import reads
from tests.report.test_instruments import COMMIT, LOG
from tests.report.test_page import Parsed
from tests.test_rows import record

MIB = 2**20


def _runs() -> list[Record]:
    """A run of every question whose records have parts of their own."""
    walked = [
        msgspec.structs.replace(each.metrics, steps=list(range(20)), walk=list(range(0, 200, 10))) for each in reads()
    ]
    swept = Metrics(
        epoch_time=0.5,
        peak_memory=44 * MIB,
        bodies_in_flight=2,
        waiting=3,
        waiting_bytes=5,
        disturbance=Disturbance(0.3, 0.1, 5, 1),
    )
    return [
        *run_of("selection"),
        *(msgspec.structs.replace(each, run="r", metrics=more) for each, more in zip(reads(), walked, strict=True)),
        *(
            record(f"py_function_{at}", index, run="p", question="python_map", case={"work": "array"}, metrics=swept)
            for index in range(2)
            for at in "18"
        ),
        *(
            record(
                strategy,
                index,
                run="b",
                question="batching",
                case={"data": data, "augment": "off"},
                metrics=Metrics(epoch_time=1.0, samples=count, peak_memory=count * MIB),
            )
            for index in range(2)
            for strategy in ("load_all", "path_generator")
            for data, count in (("x1", 40), ("x4", 160))
        ),
        *(
            record(
                strategy,
                index,
                run="f",
                question="record_format",
                case={"page_cache": "warm"},
                metrics=Metrics(epoch_time=1.0 + index, convert_time=1.0, disk_bytes=9, peak_memory=MIB, psnr=40.0),
            )
            for index in range(2)
            for strategy in ("encoded_bytes", "float32_tensor")
        ),
    ]


def _shown(root: Path) -> tuple[list[ResultSet], str, list[str]]:
    """Collect, render, export and print what is below a directory; return sets, page and what was said."""
    said: list[str] = []
    found = sets.collect(root, said.append)
    held = asv_files.read(root, said.append)
    html = page.render(found, held)
    for text in (html, export.tidy(found)):
        text.encode()  # a file can hold it
    for each in found:
        for comparison in each.comparisons:
            _terminal.show_comparison(comparison)
    parsed = Parsed(html)
    assert parsed.open == []
    for _, attributes in parsed.elements:
        assert math.isfinite(float(attributes.get("data-value") or 0))
        for data in ("data-times", "data-peaks", "data-parts", "data-spread", "data-resolutions"):
            assert not re.search("NaN|Infinity", attributes.get(data) or "")
    assert all(each.isprintable() for each in said)
    return found, html, said


ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 2**63, -(2**60), 2**60, 10**12, 10**300, 1e9, 1e-12, 5e-324, 0.5, -0.5, 1e15, math.nan),
    *(math.inf, "", "nan", "\x00", "\x1b[2J", "<b>&\"'</b>", "{{7*7}}", "]]>", "\u202e", "\ud800", "a\nb"),
    *("x" * 100_000, "É" * 400, [], {}, [1], [[]], {"a": "b"}, "ok", "failed", "9999-01-01T00:00:00+00:00"),
)


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    return [at, *(place for key, each in inner for place in _places(each, (*at, key)))]


@pytest.mark.slow
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_whatever_stands_in_a_log_becomes_a_page(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    root, chosen = tmp_path_factory.mktemp("results"), random.Random(seed)
    write_log(root, _runs())
    path = root / "box" / log.NAME
    documents = [json.loads(line) for line in path.read_bytes().splitlines()]
    for _ in range(chosen.randint(1, 12)):
        changed = chosen.choice(documents)
        *parents, last = chosen.choice(_places(changed)[1:])
        for key in parents:
            changed = changed[key]
        if isinstance(changed, dict) and chosen.random() < 0.2:
            del changed[last]
        else:
            changed[last] = copy.deepcopy(chosen.choice(ODD))
    path.write_text("\n".join(map(json.dumps, chosen.sample(documents, chosen.randint(1, len(documents))))))
    _shown(root)


def _alone(root: Path, **changes: Any) -> str:
    """Return the page's text of a run whose second strategy is changed."""
    write_log(root, run_of("a"))
    path = root / "box" / log.NAME
    records = log.read(path)
    path.unlink()
    for each in records:
        log.append(path, msgspec.structs.replace(each, **changes) if each.strategy == "numpy_to_list" else each)
    return Parsed(_shown(root)[1]).text


def test_a_run_without_one_good_trial_is_a_page_of_reasons(tmp_path: Path) -> None:
    failed = [
        msgspec.structs.replace(each, status="failed", message="ValueError: no", metrics=Metrics()) for each in _runs()
    ]
    write_log(tmp_path, failed)
    text = Parsed(_shown(tmp_path)[1]).text
    assert "failed: ValueError: no" in text
    assert "No strategy was timed" in text


def test_good_trials_without_a_figure_are_a_page(tmp_path: Path) -> None:
    write_log(tmp_path, [msgspec.structs.replace(each, metrics=Metrics()) for each in _runs()])
    assert "No strategy was timed" in Parsed(_shown(tmp_path)[1]).text


def test_times_further_apart_than_any_clock_tells_are_no_ratio(tmp_path: Path) -> None:
    write_log(
        tmp_path, [record("numpy_to_numpy", index, time=time, run="a") for index, time in enumerate((5e-324, 1.0))]
    )
    found, _, _ = _shown(tmp_path)
    (row,) = found[0].comparisons[0].rows
    assert row["time"] is not None
    assert (row["time"].value, row["time"].count) == (1.0, 1)


@pytest.mark.parametrize("case", [{"bogus": "1"}, {"data": "x1", "augment": "off", "bogus": "1"}, {}])
def test_a_case_that_the_question_does_not_have_is_a_row(tmp_path: Path, case: dict[str, str]) -> None:
    metrics = Metrics(epoch_time=1.0, samples=40, peak_memory=MIB)
    write_log(tmp_path, [record("load_all", 0, run="a", question="batching", case=case, metrics=metrics)])
    found, _, _ = _shown(tmp_path)
    assert [row.case for row in found[0].comparisons[0].rows] == [case]


def test_amounts_of_data_that_no_two_rounds_share_have_no_law(tmp_path: Path) -> None:
    write_log(
        tmp_path,
        [
            record(
                "load_all",
                index,
                run="a",
                question="batching",
                case={"data": data, "augment": "off"},
                metrics=Metrics(epoch_time=1.0, samples=count, peak_memory=MIB, needed_memory=MIB),
            )
            for index, data, count in ((0, "x1", 40), (0, "x4", 160), (1, "x1", 41), (1, "x4", 161))
        ],
    )
    found, _, _ = _shown(tmp_path)
    (laws,) = found[0].comparisons[0].laws
    assert laws.laws["load_all"].kind == "unknown"


def test_a_message_without_end_is_cut_and_its_end_is_kept(tmp_path: Path) -> None:
    text = _alone(tmp_path / "long", status="failed", message="begin " + "x" * 100_000 + " end")
    assert "failed: begin xxx" in text
    assert "xxx end" in text
    assert len(text) < len(_alone(tmp_path / "short", status="failed", message="begin end")) + 5_000


def test_two_questions_and_two_machines_under_one_name_are_kept_apart(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"))
    write_log(tmp_path, run_of("a"), machine="another")
    write_log(tmp_path, [record("no_cache", 0, time=1.0, run="a", question="caching", case={})])
    found, _, _ = _shown(tmp_path)
    assert {each.origin.machine: {one.question for one in each.comparisons} for each in found} == {
        "box": {"selection", "caching"},
        "another": {"selection"},
    }
    assert {row.samples for each in found for one in each.comparisons for row in one.rows} == {1, 2}


def test_an_unknown_question_is_said_once_however_often_it_stands_there(tmp_path: Path) -> None:
    write_log(tmp_path, [record("x", index, time=1.0, run="a", question="un\nknown") for index in range(5)])
    assert _shown(tmp_path)[2] == ["left out 5 trials of 'un\\nknown', a question that this version does not have"]


@pytest.mark.parametrize("odd", ["\ud800", "\x00", "\u202e<b>", "\n"])
def test_asvs_names_of_any_letters_can_be_written(tmp_path: Path, odd: str) -> None:
    params = [[f"'new{odd}'", "'numpy_to_numpy'"]]
    results = {f"selection.Drain.{name}": [[1.0, 2.0], params, "1"] for name in ("time_epoch", f"peakmem{odd}")}
    _file(tmp_path, results=results, params={"machine": "box", "python": f"3.9{odd}"})
    _file(tmp_path, "other.json", results=results, commit_hash=COMMIT)
    write_log(tmp_path, LOG)
    path = tmp_path / "box" / log.NAME
    path.unlink()
    for each in LOG:
        log.append(path, each)
    assert "Two instruments" in Parsed(_shown(tmp_path)[1]).text
