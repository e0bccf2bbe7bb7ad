"""The recipes that run for hours, with stand-ins for what they call."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from asv.commands import make_argparser

from tests.conftest import ROOT

QUESTIONS = sorted(path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py"))


SCRIPT = """#!/bin/sh
echo "$LOADERS_FULL $LOADERS_SIZE {tool} $*" >> {told}
case "$*" in {fails}) exit {code} ;; esac
echo box
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory in which the environment is up to date."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / ".made").touch()
    return tmp_path


def _make(place: Path, target: str, failing: str = "", fails: str = "", code: int = 0) -> tuple[int, list[str]]:
    """Run a target, where a tool fails if its arguments match a pattern; return how its tools were called."""
    told = place / "told"
    for tool in ("python", "asv"):
        path = place / "venv" / ("Scripts" if os.name == "nt" else "bin") / tool
        path.parent.mkdir(exist_ok=True)
        pattern = fails if tool == failing else "nothing"
        path.write_text(SCRIPT.format(tool=tool, told=told, fails=pattern, code=code), "utf-8")
        path.chmod(0o755)
    variables = {"PATH": os.environ["PATH"], "HOME": str(place)}
    command = ["make", target, f"VENV={place / 'venv'}"]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    return done.returncode, told.read_text("utf-8").splitlines()


def _runs(lines: list[str]) -> list[str]:
    return [line for line in lines if " asv run " in line]


def test_the_full_suite_runs_every_question_with_options_that_asv_knows(place: Path) -> None:
    code, lines = _make(place, "full")
    assert code == 0
    assert len(_runs(lines)) == len(QUESTIONS) > 8
    parser, _ = make_argparser()
    for question, line in zip(QUESTIONS, _runs(lines), strict=True):
        assert line.startswith("1 full asv ")
        given = parser.parse_args(line.partition(" asv ")[2].split())
        assert (given.machine, given.bench, given.skip_existing_successful) == ("box", [rf"^{question}\."], True)
    assert "python -m benchmarks._ready" in lines[0]


@pytest.mark.parametrize(("code", "runs"), [(1, 1), (3, 1), (130, 1), (2, len(QUESTIONS))])
def test_the_full_suite_stops_at_an_error_and_goes_on_after_a_benchmark_that_failed(
    place: Path, code: int, runs: int
) -> None:
    ended, lines = _make(place, "full", "asv", f"*{QUESTIONS[0]}*", code)
    assert ended == 2, "what make says, whatever failed"
    assert len(_runs(lines)) == runs


def test_the_full_suite_does_not_begin_where_it_cannot_measure(place: Path) -> None:
    code, lines = _make(place, "full", "python", "*benchmarks._ready*", 1)
    assert (code, _runs(lines)) == (2, [])


@pytest.mark.parametrize(("code", "ended", "reports"), [(0, 0, True), (1, 0, True), (2, 2, False), (130, 2, False)])
def test_a_strategy_that_went_wrong_is_on_the_page_and_any_other_error_ends_bench(
    place: Path, code: int, ended: int, *, reports: bool
) -> None:
    found, lines = _make(place, "bench", "python", "*compare*", code)
    assert found == ended
    assert any("compare --minutes 4" in line for line in lines)
    assert any(line.endswith(" -m loaders report") for line in lines) == reports
