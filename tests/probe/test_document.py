"""What docs/probe.md tells people to copy runs as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.test_workflows import _run, _tool

DOCUMENT = (ROOT / "docs" / "probe.md").read_text("utf-8")

TRAIN = """
import time

def make_dataset(leak=0):
    kept = []
    for step in range(100):
        time.sleep(0.002)
        kept.append(bytes(leak))
        yield [float(step)] * 8
"""


def _block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    return str(found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def _ended(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    variables = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


def test_the_workflow_follows_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "probe.yml"
    path.write_text(_block("yaml"))
    code, said = _run(_tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", path)
    assert code == 0, said


@pytest.mark.slow
@pytest.mark.usefixtures("results")
def test_the_workflow_s_commands_run(folder: Path) -> None:
    install, *steps = re.findall(r"\brun: (.*)", _block("yaml"))
    assert install.startswith("pip install ")
    for each in steps:
        ended = _ended(folder, "bash", "-ec", each)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "--fail-on growing | kept" in (folder / "summary.md").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("results")
@pytest.mark.parametrize(("leak", "code"), [(0, 0), (2**16, 1)])
def test_the_test_passes_without_a_leak_and_fails_with_one(folder: Path, leak: int, code: int) -> None:
    (folder / "train.py").write_text(
        TRAIN.replace("leak=0", f"leak={leak}")
        .replace("    kept = []\n", "")
        .replace("def make", "kept = []\n\ndef make")
    )
    (folder / "test_pipeline.py").write_text(_block("python"))
    ended = _ended(folder, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_pipeline.py")
    assert ended.returncode == code, ended.stdout + ended.stderr
