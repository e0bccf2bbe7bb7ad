"""The recipes that run for hours, with stand-ins for what they call."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

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


@pytest.mark.parametrize("code", [0, 2])
def test_the_full_suite_is_one_command_which_make_terminates_with_itself(place: Path, code: int) -> None:
    """GNU make passes SIGTERM on to what it has begun, and a shell between the two would keep it."""
    ended, lines = _make(place, "full", "python", "*_full*", code)
    assert (ended, lines) == (code, ["  python -m benchmarks._full"])


@pytest.mark.parametrize(("code", "ended", "reports"), [(0, 0, True), (1, 0, True), (2, 2, False), (130, 2, False)])
def test_a_strategy_that_went_wrong_is_on_the_page_and_any_other_error_ends_bench(
    place: Path, code: int, ended: int, *, reports: bool
) -> None:
    found, lines = _make(place, "bench", "python", "*compare*", code)
    assert found == ended
    assert any("compare --minutes 4" in line for line in lines)
    assert any(line.endswith(" -m loaders report") for line in lines) == reports
