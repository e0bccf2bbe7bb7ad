"""``asv publish``, for real: a repository, asv's own site, and our page in it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from loaders._trial import log
from tests.conftest import ROOT, git
from tests.report.runs import run_of, write_log
from tests.report.test_page import Parsed
from tests.test_rows import record


def make_project(parent: Path) -> Path:
    """Make a repository with this suite's configuration, asv's list of benchmarks, and no results."""
    root = parent / "project"
    root.mkdir()
    shutil.copy(ROOT / "asv.conf.json", root)
    (root / "pyproject.toml").write_text("[build-system]\nrequires = []\n")
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "x"]):
        git(root, *command)
    results = root / "results"
    results.mkdir()
    shutil.copy(ROOT / "results" / "benchmarks.json", results)
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with results of one machine."""
    root = make_project(tmp_path)
    write_log(root / "results", run_of("a"))
    return root


def publish(project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "asv", "publish"], cwd=project, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_page_is_written_and_linked(project: Path) -> None:
    done = publish(project)
    assert done.returncode == 0, done.stdout + done.stderr
    site = project / ".asv" / "html"
    assert "numpy_to_list" in Parsed((site / "comparison.html").read_text("utf-8")).text
    assert 'href="comparison.html"' in (site / "index.html").read_text("utf-8")
    assert (site / "index.json").exists(), "asv's own site is whole"


def test_several_machines_have_a_page_each(project: Path) -> None:
    write_log(project / "results", run_of("b"), machine="other")
    done = publish(project)
    assert done.returncode == 0, done.stdout + done.stderr
    site = project / ".asv" / "html"
    assert 'href="comparison-other.html' in (site / "comparison.html").read_text("utf-8")
    assert 'data-machine="other"' in (site / "comparison-other.html").read_text("utf-8")


def test_files_that_are_not_results_are_named_and_left_out(project: Path) -> None:
    box = project / "results" / "box"
    (box / "machine.json").write_text('{"machine": "box", "version": 1}')
    (box / "abc-virtualenv-py3.11.json").write_text("this is not JSON")
    (box / "notes.txt").write_text("hello")
    with (box / log.NAME).open("ab") as file:
        file.write(b'{"question": "selection", "cut\n\xff\xff\n[]\n')
    done = publish(project)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "abc-virtualenv-py3.11.json" in said
    assert "left out lines" in said
    assert "Traceback" not in said
    assert "numpy_to_list" in (project / ".asv" / "html" / "comparison.html").read_text("utf-8")


def test_a_strategy_file_that_is_gone_does_not_break_the_site(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADERS_WITH", "nowhere.py")
    done = publish(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nowhere.py: no such file" in done.stdout + done.stderr
    assert (project / ".asv" / "html" / "index.json").exists()


def test_no_results_at_all_are_said_on_the_page(project: Path) -> None:
    shutil.rmtree(project / "results" / "box")
    done = publish(project)
    assert done.returncode == 0, done.stdout + done.stderr
    html = (project / ".asv" / "html" / "comparison.html").read_text("utf-8")
    assert "There are no results yet" in html
    assert 'id="code"' not in html, "nor any code"


def test_a_folder_of_everything_that_may_lie_in_it(project: Path) -> None:
    """A failure, a skip, a quick run, foreign files, and asv's results of a benchmark that has changed since."""
    results = project / "results"
    quick = [record(name, 0, time=1.0, run="q", question="read_order") for name in ("range_indexed", "interleave")]
    skipped = record(
        "interleave_jemalloc", 0, run="q", question="read_order", status="skipped", message="not installed"
    )
    failed = record("parallel_reads", 0, run="q", question="read_order", status="failed", message="planted")
    started = "2027-01-01T00:00:00+00:00"
    write_log(results, [msgspec.structs.replace(each, started=started) for each in [*quick, skipped, failed]])
    shutil.copytree(ROOT / "results" / "reference", results / "reference", ignore=shutil.ignore_patterns("*.jsonl"))
    (results / "reference" / "notes.json").write_text('{"version": 2, "results": []}')
    (results / "box" / "trials.csv").write_text("time\n1\n")
    done = publish(project)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "Traceback" not in said
    assert "left out what benchmarks of another version measured: read_order.Comparison.track_cpu_time" in said
    assert "notes.json" in said
    text = Parsed((project / ".asv" / "html" / "comparison.html").read_text("utf-8")).text
    assert "failed: planted" in text
    assert "skipped: not installed" in text
    assert re.search(r"sequential[^<>]*not measured yet", text)
    assert "single samples, no interval" in text
