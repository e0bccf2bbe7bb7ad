"""The probe on real pipelines: planted truths are found, sound ones raise no alarm, and bad input is one message."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from loaders._cli import probe as probing
from loaders._errors import InputError
from loaders._probe import asked, target, words
from loaders._probe.found import found
from loaders._probe.pair import Pair
from loaders._trial.steady import REPEATS
from tests.conftest import ROOT
from tests.probe import made, truths
from tests.trial.test_log import RECORD

pytestmark = pytest.mark.usefixtures("results")

ALL = os.environ.get("LOADERS_PROBES") == "all"
"""Whether to probe everything that is planted, and pairs twenty times: ``make evidence``."""

QUICK = [
    *("plain.py:leak_malloc", "plain.py:raises", "plain.py:uneven", "plain.py:closes_late"),
    *("tfdata.py:slow_stage", "tfdata.py:given_back"),
]
"""Planted pipelines that the suite runs."""

SOUND = ["plain.py:sound_dicts", "tfdata.py:sound", "keras_sets.py:sound", "torch_loaders.py:sound_workers"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*truths.PLANTED, *truths.SOUND] if ALL else [*QUICK, *SOUND])
def test_the_planted_truth_is_found(name: str) -> None:
    truth = {**truths.PLANTED, **truths.SOUND}[name]
    if truth.package and importlib.util.find_spec(truth.package) is None:
        pytest.skip(f"{truth.package} is not installed")
    if truth.gives_back and sys.platform != "linux":
        pytest.skip("the threshold is one of glibc")
    plan = truths.asked(name, truth)
    trials = asked.TRIALS if truth.bottleneck != "not asked" else 1  # a single one has no interval
    result = found(plan, [asked.run(plan, index) for index in range(trials)])
    print(f"{name}: {words.answer(result)}")  # noqa: T201 - with -s, the table of truths and verdicts
    assert truths.wrong(result, truth) == []


def test_the_table_of_truths_names_every_planted_pipeline() -> None:
    named = {*truths.PLANTED, *truths.SOUND}
    for name in named:
        place, _, function = name.partition(":")
        text = (truths.HERE / place).read_text()
        assert f"def {function}(" in text or f"class {function}:" in text
    assert len(truths.PLANTED) >= 20


@pytest.mark.slow
def test_the_first_verdict_takes_the_import_and_ten_epochs(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\n"
        "def say(what):\n    with open(__file__ + '.log', 'a') as file:\n        file.write(what)\n"
        "say('import ')\n"
        "def make():\n    say('epoch ')\n    for _ in range(19):\n        time.sleep(0.02)\n        yield [0.0] * 32\n"
    )
    for _ in range(2):  # the first run may find out what must be imported beforehand
        (tmp_path / "slow.py.log").unlink(missing_ok=True)
        record = asked.run(asked.Asked(target.Target("slow.py", "make", {}, str(tmp_path))), grows=False)
    assert record.metrics.memory_growth is not None
    said = Counter((tmp_path / "slow.py.log").read_text().split())
    assert said["import"] == 1
    assert record.metrics.steady_epochs is not None
    again = REPEATS * record.metrics.steady_epochs  # as many more where the machine was not quiet
    assert 2 <= said["epoch"] <= 10 + again


@pytest.mark.skipif(not ALL, reason="an hour; make evidence runs it")
@pytest.mark.parametrize(("more", "verdicts"), [(0, {"no difference", "undecided"}), (10, {"slower"})])
def test_of_twenty_pairs_nearly_all_are_judged_right(more: int, verdicts: set[str]) -> None:
    """Pairs count whose trials spread by 7 % or less: what a noisier machine leaves open is told by the interval."""
    found: list[str] = []
    for _ in range(40):
        verdict, spread = _paired(more)
        found += [verdict] * (spread <= 0.07)
        if len(found) == 20:
            break
    print(f"{more} % more: {Counter(found)}")  # noqa: T201 - with -s, the count
    assert len(found) == 20, "the machine is too noisy"
    assert sum(verdict in verdicts for verdict in found) >= (20 if more == 0 else 19)


def _paired(more: int) -> tuple[str, float]:
    """Return the verdict on a pipeline and itself with so many per cent more work, and the larger spread of trials."""
    one, other = (
        asked.Asked(target.Target(str(truths.HERE / "plain.py"), "work", given, str(truths.HERE)))
        for given in ({}, {"more": more})
    )
    pair, seconds = Pair(one, other), {"a": list[float](), "b": list[float]()}

    def trial(side: str, seed: int, run: Any = pair.trial) -> Any:
        found = run(side, seed)
        seconds[side].append(math.log(found["metrics"]["steady_time"]))
        return found

    pair.trial = trial  # type: ignore[method-assign]
    judged = pair.run(120.0).time
    assert judged is not None
    return judged.verdict, max(statistics.stdev(each) for each in seconds.values())


@pytest.fixture
def probe(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command in a folder of the user's own, with this file there as ``train.py``."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}

    def run(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "train.py").write_text(text)
        command = [sys.executable, "-m", "loaders", "probe", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)

    return run


Probe = Callable[..., subprocess.CompletedProcess[str]]

NUMBERS = """
import time
import numpy as np
kept = []
def make(leak=0):
    for step in range(100):
        time.sleep(0.002)
        if leak:
            kept.append(np.ones(leak * 128))
        yield np.full((8, 64), step)
def slower():
    for step in range(100):
        time.sleep(0.004)
        yield np.full((8, 64), step)
if __name__ == "__main__":
    raise SystemExit("it was run as a script")
"""


@pytest.mark.slow
def test_a_sound_pipeline_keeps_its_limits_and_the_files_are_written(probe: Probe, tmp_path: Path) -> None:
    limits = ["--fail-on", "growing", "--fail-on", "uneven", "--max-peak", "1GiB", "--min-rate", "10"]
    done = probe(NUMBERS, "train.py:make", "--json", *limits, "--markdown", "said.md", "--report", "page.html")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert [each["state"] for each in document["gates"]] == ["kept"] * 4
    assert document["found"]["samples"] == 800
    assert document["found"]["delivered"]["same_order"]
    assert "Memory does not grow" in document["answer"]
    assert "| --max-peak 1024 MiB | kept |" in (tmp_path / "said.md").read_text()
    page = (tmp_path / "page.html").read_text()
    assert "train.py:make" in page
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    left = sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__")
    assert left == ["page.html", "said.md", "train.py"]


def test_a_leak_breaks_its_limit(probe: Probe) -> None:
    done = probe(NUMBERS, "train.py:make", "--arg", "leak=64", "--fail-on", "growing", "--trials", "1")
    assert done.returncode == 1, done.stderr
    assert "Memory grows, in use: 6" in done.stdout
    assert "--fail-on growing: broken" in done.stdout


def test_what_cannot_be_decided_is_exit_code_3(probe: Probe) -> None:
    done = probe(NUMBERS, "train.py:make", "--trials", "1", "--min-rate", "1")
    assert done.returncode == 3, done.stdout


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        (NUMBERS, ["train.py"], "write FILE.py:FUNCTION"),
        (NUMBERS, ["nothing.py:make"], "nothing.py: no such file"),
        (NUMBERS, ["train.py:other"], "train.py has no function 'other'; there are make, slower"),
        ("def make(folder):\n    return []", ["train.py:make"], "train.py:make needs arguments: --arg folder=…"),
        ("def make():\n    return 3", ["train.py:make"], "train.py:make returns a int, and not an iterable"),
        ("def make():\n    return []", ["train.py:make"], "train.py:make delivers no batch"),
        ("def make():\n    return [object()]", ["train.py:make"], "whose samples cannot be counted"),
        ("import itertools\nmake = itertools.count", ["train.py:make", "--deadline", "4"], "if it never ends, give"),
        ("import time\ntime.sleep(60)", ["train.py:make", "--deadline", "3"], "does it train when it is imported?"),
        ("raise ValueError('no data')", ["train.py:make"], "cannot be imported (line 1): ValueError: no data"),
    ],
)
def test_bad_input_is_one_message(probe: Probe, text: str, arguments: list[str], said: str) -> None:
    done = probe(text, *arguments)
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_trial_that_hangs_when_others_have_ended_is_a_failure_and_no_bad_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metrics = msgspec.structs.replace(RECORD.metrics, peak_memory=1)
    hung = msgspec.structs.replace(RECORD, status="timed_out", message="stood still for 60 s", metrics=metrics)
    monkeypatch.setattr(asked, "run_trial", lambda *_, **__: hung)
    plan = asked.Asked(target.Target("train.py", "make", {}, "."))
    with pytest.raises(InputError, match=r"if it never ends, give the length of an epoch: --steps N$"):
        asked.run(plan)  # more time would not help
    assert asked.run(plan, 2, first=False) is hung
    pair = Pair(plan, plan)
    pair.first["a"] = RECORD
    assert pair.trial("a", 3)["status"] == "timed_out"
    with pytest.raises(InputError, match="if it never ends"):
        pair.trial("b", 3)


def test_a_later_trial_that_cannot_be_run_does_not_lose_the_earlier_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("def make():\n    return []\n")
    ahead: list[Any] = []

    def run(*_: Any, **__: Any) -> Any:
        found = ahead.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(asked, "run", run)
    for good in (1, 0):
        ahead[:] = [*[made.record()] * good, InputError("no room is left")]
        done = CliRunner().invoke(probing.command, [f"{tmp_path / 'mine.py'}:make", "--json"])
        assert isinstance(done.exception, InputError), done.output
        assert ('"gates"' in done.stdout) is bool(good)


def test_what_it_raises_is_said_with_what_was_measured_until_then(probe: Probe) -> None:
    text = "def make():\n    for step in range(100):\n        if step == 37:\n            raise ValueError('damaged')\n"
    done = probe(text + "        yield [float(step)] * 8\n", "train.py:make")
    assert done.returncode == 1, done.stderr
    assert "It failed: ValueError: damaged (train.py, line 4, in make), after 37 batches." in done.stdout
    assert "peak memory" in done.stdout


@pytest.mark.slow
def test_two_pipelines_are_held_against_each_other(probe: Probe) -> None:
    done = probe(NUMBERS, "train.py:make", "train.py:slower", "--steps", "25", "--json", "--minutes", "4")
    assert done.returncode == 1, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["outcome"]["time"]["verdict"] == "slower"
    assert document["samples"] == "Both deliver the same 200 samples."
