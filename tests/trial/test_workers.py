"""Epochs are run until a trial's tree has been read often enough, and only of one that has workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from loaders._trial import workers
from loaders._trial.drain import children_ended

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")


def test_without_workers_no_epoch_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[int] = []
    monkeypatch.setattr(psutil.Process, "children", lambda _: [])  # other tests may have left some here
    assert not workers.run_until_read(tmp_path / "report", children_ended(), lambda: run.append(1))
    assert not run


@needs_fork
@pytest.mark.parametrize("readings", [0, 4, workers.READINGS])
def test_workers_that_have_ended_are_noticed_and_epochs_run_until_there_are_readings(
    tmp_path: Path, readings: int
) -> None:
    report, before, run = tmp_path / "report", children_ended(), []
    workers.told(report).write_bytes(b"." * readings)
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)

    def epoch() -> None:
        run.append(1)
        with workers.told(report).open("ab") as file:
            file.write(b"..")

    assert workers.run_until_read(report, before, epoch)
    assert len(run) == (workers.READINGS - readings) // 2


def test_workers_that_live_on_are_noticed_and_epochs_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[int] = []
    lives = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert workers.run_until_read(tmp_path / "report", children_ended(), lambda: run.append(1))
        assert len(run) == workers.MOST
        monkeypatch.setattr(workers, "SECONDS", 0.0)
        assert workers.run_until_read(tmp_path / "report", children_ended(), lambda: run.append(1))
        assert len(run) == workers.MOST
    finally:
        lives.communicate(b"\n")
