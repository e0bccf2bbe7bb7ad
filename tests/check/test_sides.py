"""Two real commits, each with its own trials, through the command line."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from loaders._check import sides
from loaders._check.sides import WORKING_TREE, Side, differing, side
from loaders._errors import InputError
from loaders._trial import log, machine
from tests.check.conftest import await_trial, left, needs_forks
from tests.conftest import ROOT, git


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This package in a repository of its own, with a commit that makes one strategy slower, and one that does not."""
    root = tmp_path_factory.mktemp("repository")
    shutil.copytree(ROOT / "loaders", root / "loaders", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    git(root, "init", "-q", "-b", "main")
    (root / ".gitignore").write_text("__pycache__\n.asv\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "base")
    git(root, "checkout", "-q", "-b", "older")
    command = root / "loaders" / "_cli" / "trial.py"
    command.write_text(command.read_text("utf-8").replace('"--serve"', '"--later"'))
    git(root, "commit", "-qam", "without a process that serves trials")
    git(root, "checkout", "-q", "main")
    path = root / "loaders" / "questions" / "selection.py"
    text = path.read_text("utf-8")
    path.write_text(text + "\n# A comment.\n")
    git(root, "commit", "-qam", "comment")
    git(root, "tag", "comment")
    body = '"""One permutation and one fancy index; nothing is deleted."""\n'
    assert body in text
    path.write_text(text.replace(body, f"{body}    import time\n\n    time.sleep(0.05)\n    held = bytes(2**26)\n"))
    git(root, "commit", "-qam", "slow")
    return root


def _check(repository: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "loaders", "check", *arguments],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": str(repository), **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_a_planted_slow_down_is_confirmed_and_nothing_else_is_measured(repository: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    done = _check(repository, "HEAD~1", "--size", "tiny", "--minutes", "2", "--markdown", str(summary))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 confirmed regression: selection.permutation_index." in done.stdout
    assert "slower: +" in done.stdout
    assert f"{WORKING_TREE} against HEAD~1" in done.stderr
    text = summary.read_text("utf-8")
    assert "| selection.permutation_index |" in text
    assert "mixed_copy" not in text
    assert not (repository / "results").exists(), "published results are left alone"


def test_a_comment_is_nothing_to_measure(repository: Path) -> None:
    done = _check(repository, "main~2", "comment")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the change affects no strategy" in done.stderr
    assert "No confirmed regression." in done.stdout


@pytest.mark.slow
def test_no_change_is_no_regression_where_it_is_measured_nevertheless(repository: Path) -> None:
    only = ("--only", "selection.generator_choice", "--size", "tiny", "--minutes", "0.1")
    done = _check(repository, "main~2", "comment", *only)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "selection.generator_choice" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-commit"], "git knows no commit 'no-such-commit'"),
        (["--", "--output=x"], "git knows no commit '--output=x'"),
        (
            ["HEAD", "--only", "selection.nothing"],
            "--only selection.nothing: not on both sides; there are boolean_mask,",
        ),
        (["HEAD", "--only", "nothing"], "--only nothing: not on both sides; there are batching,"),
    ],
)
def test_bad_input_is_named(repository: Path, arguments: list[str], message: str) -> None:
    done = _check(repository, *arguments)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


def test_no_check_begins_while_a_comparison_runs(repository: Path) -> None:
    with log.exclusive(machine.machine_name()):
        done = _check(repository, "HEAD~1", "--only", "selection.generator_choice", "--size", "tiny")
    assert (done.returncode, "another comparison is under way" in done.stderr) == (2, True), done.stderr


def test_versions_that_differ_between_the_sides_are_named(tmp_path: Path) -> None:
    a, b = (
        cast(Side, SimpleNamespace(python=versions, versions=lambda versions=versions: versions))
        for versions in ({"Python": "3.11.7", "torch": "2.8"}, {"Python": "3.11.7", "numpy": "2.1"})
    )
    assert differing(a, b) == "numpy none in A and 2.1 in B, torch 2.8 in A and none in B"
    own = Side("own", ROOT, Path(sys.executable), tmp_path)
    assert own.versions() == {"Python": platform.python_version(), **machine.packages()}
    assert differing(own, own) == ""


def test_a_side_with_other_dependencies_has_an_environment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "repository"
    (root / "loaders").mkdir(parents=True)
    (root / "loaders" / "__init__.py").touch()
    git(tmp_path, "init", "-q", "-b", "main", str(root))
    for version in ("2.20", "2.21"):
        (root / "pyproject.toml").write_text(f'[project]\nname = "x"\ndependencies = ["tensorflow>={version}"]\n')
        git(root, "add", ".")
        git(root, "commit", "-qm", version)
    monkeypatch.setattr(sides, "_environment", lambda root: root / "own")
    older, newer = (side(commit, root, tmp_path / "laid out") for commit in ("HEAD~1", "HEAD"))
    assert older.python == older.root / "own"
    assert newer.python == Path(sys.executable)


def test_an_older_tree_that_lacks_a_strategy_says_so(repository: Path, tmp_path: Path) -> None:
    found = side("HEAD", repository, tmp_path)
    assert "selection" in found.strategies()
    record = found.trial(["selection", "not_there", "--size", "tiny"])
    assert record["status"] == "absent"
    assert "not_there" in record["message"]
    assert side("HEAD", repository, tmp_path).root == found.root, "laid out once"
    assert found.variables["ASV_COMMIT"] == found.root.name, "its trials are of that commit, not of the checkout's"
    assert "ASV_COMMIT" not in side(None, repository, tmp_path).variables


def test_a_commit_is_laid_out_whole_or_not_at_all(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        side("HEAD^{tree}", repository, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_commit_too_old_to_fork_makes_both_start_fresh(repository: Path) -> None:
    only = ("--only", "selection.generator_choice", "--size", "tiny", "--minutes", "0.05", "--json")
    done = _check(repository, "older", "comment", *only)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cannot fork its trials, so all start in fresh processes" in done.stderr
    (outcome,) = json.loads(done.stdout)
    assert outcome["start"] == "fresh"
    assert outcome["time"]["blocks"] >= 1


@pytest.mark.slow
@needs_forks
@pytest.mark.parametrize(("option", "start"), [((), "forked"), (("--fresh",), "fresh")])
def test_both_sides_fork_unless_asked_not_to(
    repository: Path, variables: dict[str, str], option: tuple[str, ...], start: str
) -> None:
    only = ("--only", "selection.planted_quick", "--size", "tiny", "--minutes", "0.15", "--json")
    done = _check(repository, "HEAD", *only, *option, **{**variables, "PYTHONPATH": str(repository)})
    assert done.returncode == 0, done.stdout + done.stderr
    (outcome,) = json.loads(done.stdout)
    assert (outcome["start"], outcome["message"]) == (start, "")
    assert outcome["time"]["blocks"] >= 1
    logged = (repository / ".asv" / "check" / "results").glob("*/trials.jsonl")
    records = [json.loads(line) for file in logged for line in file.read_text("utf-8").splitlines()]
    assert {each["process"] for each in records if each["strategy"] == "planted_quick"} >= {start}
    assert left(variables) == []


@needs_forks
def test_an_interrupted_check_leaves_nothing_behind(
    repository: Path, variables: dict[str, str], tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "loaders", "check", "HEAD", "--only", "selection.planted_long", "--size", "tiny"],
        cwd=repository,
        env={**variables, "PYTHONPATH": str(repository)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    await_trial(tmp_path)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert left(variables) == []


def test_a_side_whose_code_is_edited_meanwhile_ends_a_check() -> None:
    """New servers would import what is there then, and both would be in one verdict; but what no trial runs."""
    own, other = "loaders/questions/a.py", "loaders/_report/page.py"
    every, command, orders = "loaders/questions/b.py", "loaders/_cli/output.py", "loaders/_compare/running.py"
    texts = [
        {own: "def one():\n    return 1\n", other: "1", every: "x = 1", command: "x = 1", orders: "x = 1"}
        for _ in range(2)
    ]
    both = [cast("Side", SimpleNamespace(sources=lambda each=each: dict(each))) for each in texts]
    begin = sides.unchanged(both, lambda names: f"why not {' '.join(names)}")
    assert begin(["a"]) == "why not a"
    texts[1][other] = "x = 2"
    texts[1][every] += "  # a comment"
    assert begin(["a"]) == "why not a"
    for path, edited in [
        (own, "def one():\n    return 2\n"),
        (own, ""),
        *((each, "half (") for each in (own, every, command, orders)),
    ]:
        before = texts[1][path]
        texts[1][path] = edited
        with pytest.raises(InputError, match="the code has changed since the check began"):
            begin(["a"])
        texts[1][path] = before


@pytest.mark.parametrize(("archive", "said"), [(None, "git archive abc fails"), (b"junk", "cannot lay out abc")])
def test_a_commit_that_cannot_be_laid_out_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archive: bytes | None, said: str
) -> None:
    monkeypatch.setattr(machine, "git", lambda *_: archive)
    with pytest.raises(InputError, match=said):
        sides._lay_out(ROOT, "abc", tmp_path / "abc")
    assert not (tmp_path / "abc").exists()


def test_a_commit_without_listed_dependencies_needs_none(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[build-system]\nrequires = []\n")
    assert sides._dependencies(tmp_path) == []


def test_the_log_of_another_processor_is_no_reason_not_to_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing reads it; each trial refused to be logged there, and a check that measured nothing passed."""
    monkeypatch.setenv("LOADERS_RESULTS", str(tmp_path / sides.RESULTS))
    path = log.log_path(machine.machine_name())
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    sides.begin_log(tmp_path)
    assert not path.exists()
    sides.begin_log(tmp_path)
