"""How a trial's process comes to be and is ended, without anybody who watches it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace

import msgspec
import psutil
import pytest

from loaders._corpus import Corpus
from loaders._errors import InputError
from loaders._trial import Trial, launch, pagecache
from loaders._trial.launch import Server
from loaders._trial.record import Outcome, Progress
from tests.conftest import EACH_START, ROOT

TASKS = 1000


def _planted(corpus: Corpus, tmp_path: Path, body: str, variables: dict[str, str] | None = None) -> Trial:
    file = tmp_path / "planted.py"
    file.write_text(
        'from loaders import variant\n@variant(question="selection")\ndef planted(job):\n    "Planted by a test."\n'
        f"    import os, subprocess, tempfile, time\n    {body}\n"
    )
    case = {"images": "500"}
    return Trial("selection", "planted", case, str(corpus.root), 1, outside=[str(file)], variables=variables or {})


def _launched(trial: Trial, place: launch.Place, server: Server | None) -> AbstractContextManager[launch.Running]:
    return launch.forked(trial, place, server) if server else launch.fresh(trial, place)


@EACH_START
@pytest.mark.usefixtures("nothing_is_left")
def test_a_process_is_heard_through_its_place_and_ends_by_itself(
    corpus: Corpus, tmp_path: Path, server: Server | None
) -> None:
    body = "print(tempfile.gettempdir(), os.environ['TMPDIR'], os.getcwd(), flush=True)"
    draws = "np.random.default_rng(1).choice(job.inputs.images, job.inputs.draws, replace=False)"
    trial = _planted(corpus, tmp_path, f"import numpy as np; {body}; return [{draws}]")
    with launch.place(None, TASKS) as place:
        with _launched(trial, place, server) as running:
            assert running.wait(60)
        assert running.code == 0
        first, *_, last = place.report.read_bytes().splitlines()
        assert msgspec.json.decode(first, type=Progress).environment.variables["OMP_NUM_THREADS"] == "1"
        assert msgspec.json.decode(last, type=Outcome).status == "ok"
        assert place.printed.read_text().splitlines()[0] == " ".join([str(place.directory)] * 3)
    assert not place.directory.exists()


@EACH_START
@pytest.mark.usefixtures("nothing_is_left")
def test_a_process_that_is_no_longer_wanted_is_ended_with_all_that_it_started(
    corpus: Corpus, tmp_path: Path, server: Server | None
) -> None:
    trial = _planted(corpus, tmp_path, "subprocess.Popen(['sleep', '100']); time.sleep(100)")
    with launch.place(None, TASKS) as place, _launched(trial, place, server) as running:
        family: list[psutil.Process] = []
        deadline = time.monotonic() + 60
        while len(family) < 2 or family[1].name() != "sleep":  # a fork has its parent's name at first
            assert time.monotonic() < deadline
            assert not running.wait(0.02)
            family = running.family()
        assert Path(family[0].cwd()) == place.directory
    assert running.code != 0
    assert not any(each.is_running() for each in family)


def test_a_process_finds_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "theirs")
    variables = launch._variables({"OMP_NUM_THREADS": "3"})
    assert variables["PYTHONPATH"] == os.pathsep.join([str(ROOT), "theirs"])
    assert variables["OMP_NUM_THREADS"] == "3", "a strategy's own variables count more than the pinned ones"
    assert variables["OPENBLAS_NUM_THREADS"] == "1"


@pytest.mark.skipif(sys.platform == "win32", reason="has no such directory")
@pytest.mark.parametrize(
    ("system", "base", "started"),
    [("win32", "C:/python.exe", "C:/python.exe"), ("win32", "venv", "venv"), ("linux", "/usr/bin/python", "venv")],
)
def test_a_trial_in_a_virtual_environment_on_windows_is_no_worker_of_another(
    monkeypatch: pytest.MonkeyPatch, system: str, base: str, started: str
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(sys, "executable", "venv")
    monkeypatch.setattr(sys, "_base_executable", base)
    found, variables = launch.interpreter()
    assert found == started
    assert variables == ({} if started == "venv" else {"__PYVENV_LAUNCHER__": "venv"})


def test_without_room_for_a_place_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="name another directory in TMPDIR"), launch.place(None, TASKS):
        pass


def test_opencv_has_one_thread_in_processes_that_a_trial_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENCV_FOR_THREADS_NUM", raising=False)
    asked = [sys.executable, "-c", "import cv2; print(cv2.getNumThreads())"]
    done = subprocess.run(asked, env=launch._variables({}), capture_output=True, text=True, check=True)
    assert int(done.stdout) == 1
    assert "OPENCV_FOR_THREADS_NUM" not in launch._variables({}, pinned=False)


@pytest.mark.parametrize(
    ("in_memory", "named", "room", "where"),
    [
        ((), "", 2**40, "usual"),
        (("usual",), "", 2**40, "disk"),
        (("usual",), "TMPDIR", 2**40, "usual"),
        (("usual",), "TMP", 2**40, "usual"),
        (("usual",), "", 2**20, "usual"),
        (("usual", "disk"), "", 2**40, "usual"),
    ],
)
def test_trials_work_on_disk_where_temporary_files_lie_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: tuple[str, ...], named: str, room: int, where: str
) -> None:
    for name in ("usual", "disk"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "usual"))
    monkeypatch.setattr(launch, "ON_DISK", str(tmp_path / "disk"))
    monkeypatch.setattr(pagecache, "is_in_memory", lambda path: Path(path).name in in_memory)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=2**41, free=room))
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    if named:
        monkeypatch.setenv(named, str(tmp_path / "usual"))
    with launch.place(None, 99) as place:
        assert place.directory.parent == tmp_path / where
    room = 2**41 - room  # which fills, or is freed, meanwhile
    assert launch.scratch() == str(tmp_path / where), "one run keeps to one disk"
