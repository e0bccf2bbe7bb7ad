"""The short set of tests: on which Pythons it runs, in an environment of its own for each."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
VERSIONS = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with a shell, no Python, and a ``make`` that only says what it was asked for."""
    (tmp_path / "bin").mkdir()
    for tool in ("bash", "dirname", "sed"):
        found = shutil.which(tool)
        if found is None:
            pytest.skip(f"{tool} is not installed")
        (tmp_path / "bin" / tool).symlink_to(found)
    _plant(tmp_path / "bin" / "make", 'echo "make $*"')
    return tmp_path


def _plant(path: Path, does: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{does}\n", "utf-8")
    path.chmod(0o755)


def _others(machine: Path, used: str = VERSIONS[0]) -> tuple[int, list[str]]:
    variables = {"PATH": str(machine / "bin"), "PYENV_ROOT": str(machine / "pyenv")}
    command = [str(machine / "bin" / "bash"), str(ROOT / ".ci" / "others"), used]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def _left_out(version: str) -> str:
    return f"Python {version} is not on this machine: its short set of tests is left out"


def test_every_version_that_is_named_is_tested_by_the_workflow() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    listed = ", ".join(f'"{each}"' for each in VERSIONS)
    assert VERSIONS
    assert f"python: [{listed}]" in workflow


def test_a_python_that_is_not_there_is_said_and_left_out(machine: Path) -> None:
    _plant(machine / "bin" / "python3.12", "exit 127")  # as pyenv's do, where another version is chosen
    assert _others(machine) == (0, [_left_out("3.12"), _left_out("3.13")])
    assert _others(machine, "3.13") == (0, [_left_out("3.11"), _left_out("3.12")])


def test_a_python_is_found_by_its_name_or_below_pyenv(machine: Path) -> None:
    _plant(machine / "bin" / "python3.12", "exit 127")
    _plant(machine / "pyenv" / "versions" / "3.12.1" / "bin" / "python", "exit 0")
    _plant(machine / "bin" / "python3.13", "exit 0")
    assert _others(machine) == (
        0,
        [
            f"make test-short PYTHON={machine}/pyenv/versions/3.12.1/bin/python",
            "make test-short PYTHON=python3.13",
        ],
    )


def test_a_python_that_fails_fails_the_gate(machine: Path) -> None:
    _plant(machine / "bin" / "python3.12", "exit 0")
    _plant(machine / "bin" / "make", "exit 2")
    assert _others(machine)[0] == 2


def test_each_python_has_an_environment_of_its_own() -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    command = ["make", "--dry-run", "--always-make", "test-short", f"PYTHON={sys.executable}"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"-m venv .venv-{version}\n" in said
    assert re.search(rf"^\.venv-{version}/\w+/python -m pytest +-m 'python'$", said, re.MULTILINE)
