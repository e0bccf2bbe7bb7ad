"""The workflows are well-formed, ask for no more than they need, and use the words of the Makefile."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
WRITES = {
    "ci": {"pages", "id-token"},
    "compare": set[str](),
    "full": {"contents", "pages", "id-token"},
    "pages": {"pages", "id-token"},
}
"""What each may write; all else is read or nothing. A workflow that calls another grants what that one needs."""

INJECTED = """
on: pull_request
permissions: {}
jobs:
  job:
    runs-on: ubuntu-latest
    timeout-minutes: 5
    steps:
      - run: echo ${{ github.head_ref }}
"""


def _tool(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def _run(*command: str | Path) -> tuple[int, str]:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def _audit(*files: Path) -> tuple[int, str]:
    return _run(_tool("zizmor"), "--offline", "--no-config", "--min-severity", "medium", *files)


def test_actionlint_finds_nothing() -> None:
    assert _run(_tool("actionlint"), *WORKFLOWS) == (0, "")


@pytest.mark.parametrize("schema", ["vendor.github-workflows", "custom.github-workflows-require-timeout"])
def test_each_follows_the_schema_and_each_job_has_a_time_limit(schema: str) -> None:
    code, said = _run(_tool("check-jsonschema"), "--builtin-schema", schema, *WORKFLOWS)
    assert code == 0, said


def test_none_injects_untrusted_input_or_asks_for_too_much() -> None:
    code, said = _audit(*WORKFLOWS)
    assert code == 0, said


def test_an_injection_would_be_found(tmp_path: Path) -> None:
    path = tmp_path / ".github" / "workflows" / "bad.yml"
    path.parent.mkdir(parents=True)
    path.write_text(INJECTED, "utf-8")
    code, said = _audit(path)
    assert code != 0
    assert "template-injection" in said


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_each_writes_only_what_it_must(path: Path) -> None:
    text = path.read_text("utf-8")
    assert "\npermissions: {}\n" in text
    assert set(re.findall(r"^ +([a-z-]+): write\b", text, re.MULTILINE)) == WRITES[path.stem]
    assert "write-all" not in text
    assert "pull_request_target" not in text


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_each_word_of_make_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    said = set(re.findall(r"\bmake (?:--silent )?([a-z-]+)", path.read_text("utf-8")))
    assert said <= targets


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_each_action_is_pinned_to_a_commit(path: Path) -> None:
    used = re.findall(r"uses: (\S+)", path.read_text("utf-8"))
    assert all(re.search(r"@[0-9a-f]{40}$", each) for each in used if not each.startswith("./"))
