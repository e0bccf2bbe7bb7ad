"""The process that runs one side's trials, with real servers and cheap strategies."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import psutil
import pytest

from loaders import _compare
from loaders._check import serve, sides, trials
from loaders._check.serve import Asked, Order, Round
from loaders._corpus import Corpus
from loaders._errors import InputError
from loaders._trial import Record, Trial, forks, launch, log, turns
from loaders._trial.forks import Forks
from loaders._trial.imports import is_found
from loaders._trial.launch import LostServerError
from loaders._trial.timing import MOST_EPOCHS
from tests.check.conftest import STUCK, WRONG, await_trial, left, needs_forks
from tests.conftest import ROOT
from tests.trial.test_log import RECORD

TRIAL = Trial("selection", "quick", {}, "", 1)
CORPUS: Any = None


class Servers:
    """Servers that are lost in these of their trials, counted from 0."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *lost: int, reason: str = "", before: bool = False) -> None:
        self.started, self.ended, self.trials = 0, 0, 0
        self.lost, self.reason, self.before = lost, reason, before
        monkeypatch.setattr(forks, "Server", self.server)
        monkeypatch.setattr(forks, "run_trial", self.run_trial)

    def server(self, modules: Any) -> Any:
        self.started += 1

        def end() -> None:
            self.ended += 1

        return SimpleNamespace(reason=self.reason, is_lost=False, end=end)

    def run_trial(self, trial: Trial, corpus: Corpus, *, server: Any, **_: object) -> Record:
        self.trials += 1
        server.is_lost = self.trials - 1 in self.lost
        if server.is_lost and (self.before or self.trials % 2):  # before the fork, or after it
            raise LostServerError
        return msgspec.structs.replace(RECORD, seed=self.trials, status="failed" if server.is_lost else "ok")


@pytest.mark.skipif(not is_found("torch"), reason="an engine is not installed")
def test_a_rounds_servers_have_imported_what_its_trials_import(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each trial of a round that needs no TensorFlow would import it, as all of a question's trials do."""
    started: list[dict[str, Any]] = []

    def start(modules: dict[str, Any]) -> Any:
        started.append(modules)
        return SimpleNamespace(reason="", is_lost=False, end=lambda: None)

    monkeypatch.setattr(forks, "Server", start)
    asked = {"batching": ["load_all", "torch_dataloader_0"]}
    serving = serve.Serving(Asked(asked, "tiny"), corpus)
    assert len(started) == 2, "one for each group"
    for name in asked["batching"]:
        started.clear()
        assert serving.begin([f"batching.{name}"]).forks == ["batching.load_all", "batching.torch_dataloader_0"]
        (imported,) = started
        assert imported == _compare.plan("batching", corpus).trial(name, {}, 1).ahead
        assert ("tensorflow" in imported, "torch.utils.data" in imported) == (name == "load_all", name != "load_all")


def test_a_server_serves_until_the_next_round(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Servers(monkeypatch)
    with Forks({}) as served:
        for _ in range(2):
            served.begin()
            served.run(TRIAL, CORPUS)
            served.run(TRIAL, CORPUS)
        assert (servers.started, servers.ended, servers.trials) == (2, 1, 4)
    assert servers.ended == 2


def test_a_trial_is_forked_from_the_server_of_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork holds what its server has imported: workers that it forks in turn would start later, and seem fatter."""
    Servers(monkeypatch)
    monkeypatch.setattr(
        forks, "Server", lambda modules: SimpleNamespace(reason="", is_lost=False, end=list, of=modules)
    )
    seen = []

    def run_trial(trial: Trial, corpus: Corpus, *, server: Any) -> Record:
        seen.append((trial.strategy, *server.of))
        return RECORD

    monkeypatch.setattr(forks, "run_trial", run_trial)
    trials = [
        msgspec.structs.replace(TRIAL, question="batching", strategy=name)
        for name in ("torch_dataloader_2", "load_all")
    ]
    with Forks({(): {"tensorflow": []}, ("torch",): {"torch": []}}) as served:
        served.begin()
        for each in (*trials, TRIAL):
            served.run(each, CORPUS)
    assert seen == [("torch_dataloader_2", "torch"), ("load_all", "tensorflow"), ("quick", "tensorflow")]


@pytest.mark.parametrize("first", [0, 1])
def test_a_trial_whose_server_is_lost_runs_once_more(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    servers = Servers(monkeypatch, first)
    with Forks({}) as served:
        for _ in range(first):
            served.run(TRIAL, CORPUS)
        assert served.run(TRIAL, CORPUS).seed == first + 2, "the record of the lost one is none"
    assert servers.started == servers.ended == 2


@pytest.mark.parametrize("first", [0, 1])
def test_a_trial_that_ends_its_server_twice_has_failed(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    """The second time before the trial is forked, or after it: what the first said stays."""
    Servers(monkeypatch, first, first + 1)
    with Forks({}) as served:
        for _ in range(first):
            served.run(TRIAL, CORPUS)
        assert served.run(TRIAL, CORPUS).status == "failed"


def test_servers_that_keep_ending_are_an_error_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    Servers(monkeypatch, 1, 2, before=True)
    with Forks({}) as served:
        served.run(TRIAL, CORPUS)
        with pytest.raises(InputError, match="finished trials are kept, and the same command goes on; --fresh"):
            served.run(TRIAL, CORPUS)


def test_a_server_that_cannot_fork_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    Servers(monkeypatch, reason="its imports have started 3 threads")
    with Forks({}) as served, pytest.raises(InputError, match="its imports have started 3 threads; --fresh, which"):
        served.run(TRIAL, CORPUS)


NAMES = ["planted_quick", "planted_slow", "planted_set"]


class Process:
    """``trial --serve``, asked through its pipes."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "loaders", "trial", "--serve", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=variables,
            start_new_session=True,
        )

    def tell(self, line: msgspec.Struct) -> None:
        assert self.process.stdin
        self.process.stdin.write(msgspec.json.encode(line) + b"\n")
        self.process.stdin.flush()

    def ask(self, line: msgspec.Struct) -> dict[str, Any]:
        assert self.process.stdout
        self.tell(line)
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def servers(self) -> list[psutil.Process]:
        """Return its servers that run; it starts git too, for the commit of a record."""
        found = []
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.Error):
                if "loaders._trial.server" in child.cmdline():
                    found.append(child)
        return found


@pytest.fixture
def served(variables: dict[str, str]) -> Iterator[Process]:
    """The process, which leaves nothing behind."""
    process = Process(variables)
    with process.process:
        yield process
        process.process.kill()
    assert left(variables) == []


ASKED = Asked({"selection": NAMES}, "tiny")


def _order(name: str, seed: int = 1, *, forked: bool = True, checked: bool = True) -> Order:
    return Order(["selection", name, "--size", "tiny", "--seed", str(seed)], forked=forked, checked=checked)


@needs_forks
def test_trials_are_forked_or_fresh_as_ordered(served: Process) -> None:
    offer = served.ask(ASKED)
    assert offer == {
        "forks": ["selection.planted_quick", "selection.planted_slow"],
        "reason": "",
        "by_group": True,
        "turns": turns.AVAILABLE,
    }
    forked = served.ask(_order("planted_quick"))
    assert (forked["status"], forked["process"], forked["message"]) == ("ok", "forked", "")
    assert served.ask(Round()) == offer
    fresh = served.ask(_order("planted_set", forked=False))
    assert (fresh["status"], fresh["process"]) == ("ok", "fresh")
    wrong = served.ask(_order("planted_quick", seed=WRONG))
    assert wrong["status"] == "wrong_output"
    unchecked = served.ask(_order("planted_quick", seed=WRONG, checked=False))
    assert (unchecked["status"], unchecked["checked"]) == ("ok", False)
    unknown = served.ask(_order("planted_nowhere"))
    assert unknown["status"] == "failed"
    assert "planted_nowhere" in unknown["message"]
    option = served.ask(Order(["selection", "planted_quick", "--later"], forked=True, checked=True))
    assert (option["status"], "--later" in option["message"]) == ("failed", True)
    assert served.process.stdin
    served.process.stdin.close()
    assert served.process.wait(20) == 0, "it ends with its input"


@needs_forks
def test_what_must_be_fresh_is_not_offered(served: Process) -> None:
    assert served.ask(msgspec.structs.replace(ASKED, fresh=True)) == {
        "forks": [],
        "reason": "",
        "by_group": True,
        "turns": turns.AVAILABLE,
    }


@pytest.mark.slow
@pytest.mark.skipif(not turns.AVAILABLE, reason="this system has no named pipes")
@pytest.mark.parametrize("fresh", [True, pytest.param(False, marks=needs_forks)])
def test_trials_of_two_sides_take_turns(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, *, fresh: bool
) -> None:
    """With real processes. A trial that fails is no partner, and the other side ends all the same."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    side = sides.side(None, ROOT, Path(variables["LOADERS_RESULTS"]).parent)
    chosen = {"batching": ["load_all", "memory_map", "tfdata_paths_2"]}  # the last needs TensorFlow, so all fork
    with trials.trials((side, side), chosen, "small", pytest.fail, fresh=fresh) as found:
        in_turn = found.of("batching", "memory_map", "load_all").in_turn
        assert in_turn
        a, b = in_turn(1)
        assert (a["strategy"], a["status"], b["strategy"], b["status"]) == ("memory_map", "ok", "load_all", "ok")
        assert {each["process"] for each in (a, b)} == {"fresh" if fresh else "forked"}
        assert min(each["metrics"]["steady_epochs"] for each in (a, b)) > MOST_EPOCHS, "several in each of many turns"
        unknown = found.of("batching", "memory_map", "planted_nowhere").in_turn
        assert unknown
        assert [each["status"] for each in unknown(1)] == ["ok", "failed"]
    assert left(variables) == []


PARENT = """
import sys
from pathlib import Path
from loaders._check.serve import Asked
from loaders._check.sides import Side
from loaders._check.trials import Served
from tests.check.test_serve import ASKED, _order
root = Path({root!r})
served = Served(Side("A", root, Path(sys.executable), root / "results"), ASKED)
served.start()
print("told", flush=True)
print(served.trial(_order("planted_slow", seed={STUCK}, forked={forked})), flush=True)
"""


@needs_forks
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("forked", [True, False])
def test_whoever_is_killed_nothing_isleft(
    variables: dict[str, str], tmp_path: Path, how: signal.Signals, *, forked: bool
) -> None:
    code = PARENT.format(root=str(ROOT), forked=forked, STUCK=STUCK)
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=variables, stdout=subprocess.PIPE, start_new_session=True
    )
    assert parent.stdout
    assert parent.stdout.readline() == b"told\n"
    await_trial(tmp_path)
    parent.send_signal(how)
    parent.communicate(timeout=20)
    assert left(variables) == []


@needs_forks
def test_a_server_that_is_killed_costs_only_time(served: Process, tmp_path: Path) -> None:
    served.ask(ASKED)
    served.tell(_order("planted_slow", seed=STUCK))
    await_trial(tmp_path)
    (server,) = served.servers()
    server.kill()
    end = time.monotonic() + 60
    while not (again := [each for each in served.servers() if each != server]):
        assert time.monotonic() < end
        time.sleep(0.05)
    again[0].kill()
    assert served.process.stdout
    record = json.loads(served.process.stdout.readline())
    assert record["status"] == "failed"
    assert "forked from has ended" in record["message"] or "cannot be forked" in record["message"]
    assert served.ask(_order("planted_quick"))["status"] == "ok", "the next trial has a new server"


@pytest.mark.parametrize("cause", ["the log", "the trial", "a server"])
def test_a_full_disk_is_no_failure_of_a_strategy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, corpus: Corpus, cause: str
) -> None:
    def no_room(*_: object, **__: object) -> Record:
        raise InputError("no room")

    monkeypatch.setenv("LOADERS_RESULTS", str(tmp_path))
    monkeypatch.setattr(serve, "run_trial", (lambda *_: RECORD) if cause == "the log" else no_room)
    monkeypatch.setattr(launch, "is_full", lambda: cause == "the trial")
    if cause == "the log":
        monkeypatch.setattr(log, "append", no_room)
    serving = serve.Serving(Asked({}, "tiny"), corpus)
    said = serving.ordered(_order("x", forked=False), lambda _, own: own.run(TRIAL))
    assert said == {"status": "failed" if cause == "a server" else "unusable", "message": "no room"}
