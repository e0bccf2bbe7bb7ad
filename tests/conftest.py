"""What the tests share. No test writes outside its own temporary directories or needs the network."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from loaders import _evidence, _registry
from loaders._compare import Plan
from loaders._corpus import Corpus, open_corpus
from loaders._evidence import Count, Experiment
from loaders._registry import declare, outside
from loaders._trial import Record, Trial, log, machine, pages, run_trial
from loaders._trial.forks import Forks
from loaders._trial.launch import Server
from tests.clusters import Start, shared

# No test depends on an absolute time; the gate tries the same examples each time, HYPOTHESIS_PROFILE=explore new ones.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

ROOT = Path(__file__).parents[1]

Command = Callable[..., "subprocess.CompletedProcess[str]"]
Strategy = Callable[..., Record]
Measure = Callable[[Plan, str, dict[str, str]], Record]


def git(root: Path, *arguments: str) -> str:
    """Run git as somebody, and return what it prints."""
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep corpora of the tests apart from the user's, and built once."""
    os.environ["LOADERS_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    for name in ("LOADERS_DATA", "LOADERS_WITH", "LOADERS_SIZE", "LOADERS_ROUNDS", "LOADERS_FULL", "LOADERS_LIST"):
        os.environ.pop(name, None)


@pytest.fixture(scope="session")
def corpus(_cache: None) -> Corpus:
    """The tiny corpus of photographs."""
    return open_corpus("tiny")


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A results directory of the test's own."""
    monkeypatch.setenv("LOADERS_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("LOADERS_MACHINE", "tested")
    monkeypatch.setenv("TMPDIR", tempfile.gettempdir())  # so that trials work there, wherever it lies
    return tmp_path / "results"


@pytest.fixture
def forget() -> Any:
    """Forget the strategies that a test registers."""
    _registry.questions()  # registers the package's own, once: what is forgotten of them would not come back
    known, loaded = declare._variants, outside._loaded_files
    before = {question: dict(strategies) for question, strategies in known.items()}
    files = set(loaded)
    yield
    loaded.clear()
    loaded.update(files)
    known.clear()
    known.update(before)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Run ``python -m loaders`` in a directory of the test's own."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "loaders", *arguments],
            cwd=tmp_path,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def measure() -> Iterator[Measure]:
    """Run a trial as a comparison does: in a fork where that can be, which spares each the import of TensorFlow."""
    with contextlib.ExitStack() as stack:
        forks: dict[str, Forks] = {}

        def run(plan: Plan, strategy: str, case: dict[str, str]) -> Record:
            trial = plan.trial(strategy, case, 1)
            if not (plan.forks and plan.may_fork(strategy)):
                return run_trial(trial, plan.corpus)
            if plan.question not in forks:
                forks[plan.question] = stack.enter_context(Forks(plan.groups))
            return forks[plan.question].run(trial, plan.corpus)

        yield run


@pytest.fixture(scope="session")
def clusters() -> Iterator[Start]:
    """What starts clusters that every test shares."""
    with shared() as start:
        yield start


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server | None]:
    """The server that trials are forked from, for tests that ask for ``EACH_START``; else they start fresh."""
    if getattr(request, "param", "fresh") == "fresh":
        yield None
        return
    if not pages.AVAILABLE:
        pytest.skip("the system cannot map a fork's pages")
    made = Server({"numpy": []})
    yield made
    made.end()


EACH_START = pytest.mark.parametrize("server", ["fresh", "forked"], indirect=True)
"""Runs a test with trials that start fresh, and with forked ones."""


DRAWN, INSTEAD = range(10, 90, 10), (170, 220, 280, 330, 371, 413, 450, 499)
"""Places in what is drawn from that are swapped, so that its first hundred images may have been drawn at random."""


@pytest.fixture
def strategy(tmp_path: Path, corpus: Corpus, server: Server | None) -> Strategy:
    """Run the body of a strategy of ``selection`` in a trial of its own.

    The body yields or returns batches; ``right`` is a correct selection that it may return. ``also`` is further code of
    its module, and ``declared`` what its declaration says besides.
    """

    def run(
        body: str,
        *,
        deadline: float = 60.0,
        memory_limit: int | None = None,
        still: float = 0.0,
        epochs: int = 1,
        turns: str = "",
        also: str = "",
        declared: str = "",
    ) -> Record:
        file = tmp_path / "planted.py"
        indented = "\n".join(f"    {line}" for line in body.strip().splitlines())
        file.write_text(
            "from loaders import Skip, variant\n"
            f'@variant(question="selection"{declared})\n'
            "def planted(job):\n"
            '    """Planted by a test."""\n'
            "    import ctypes, os, subprocess, sys, time\n"
            "    import numpy as np\n"
            "    images = job.inputs.images\n"
            "    if images[10, 0, 0, 0] == 10 / len(images):\n"  # nothing is swapped yet
            f"        images[[*{DRAWN}, *{INSTEAD}]] = images[[*{INSTEAD}, *{DRAWN}]]\n"
            "    right = [images[: job.inputs.draws]]  # no copy\n"
            f"{indented}\n"
            f"{also}\n"
        )
        trial = Trial(
            question="selection",
            strategy="planted",
            case={"images": "500"},
            corpus=str(corpus.root),
            seed=1,
            epochs=epochs,
            outside=[str(file)],
            deadline=deadline,
            memory_limit=memory_limit,
            still=still,
            turns=turns,
        )
        record = run_trial(trial, corpus, server=server)
        assert record.process == ("forked" if server else "fresh")
        return record

    return run


RESULTS = log.results_root() / machine.machine_name()
"""Where this machine's evidence is kept, read before a test puts directories of its own in place."""


def kept_as_evidence(name: str, kills: int, wrong: Mapping[str, int]) -> None:
    """Add what came of kills to this machine's evidence, if ``LOADERS_KILLS`` asks for more than the suite's."""
    if "LOADERS_KILLS" in os.environ:
        counts = [Count(what, count / kills, 0, kills, "at most", 0) for what, count in wrong.items()]
        here = machine.environment(threads={}, memory_method="").cpu
        started = datetime.now(UTC).isoformat(timespec="seconds")
        found = Experiment(name, started, machine.commit(), here, "tests", counts)
        log.append(RESULTS / _evidence.NAME, found)


def one_document(text: str) -> Any:
    """Return the JSON document that standard output must be, and nothing else."""
    return json.loads(text)
