"""When a trial ends, or whoever asked for it, no process of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from loaders._trial import keeper
from tests.conftest import EACH_START, ROOT, Strategy

EACH_END = pytest.mark.parametrize("end", ["return right", "raise ValueError", "time.sleep(60)", "os._exit(1)"])


def _gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


@EACH_START
@EACH_END
def test_no_child_process_outlives_its_trial(strategy: Strategy, tmp_path: Path, end: str) -> None:
    """A child that detached itself from its parent, the hardest kind, included."""
    pids = tmp_path / "pids"
    record = strategy(
        f"for _ in range(2):\n"
        f"    child = subprocess.Popen(['sleep', '100'])\n"
        f"    print(child.pid, file=open({str(pids)!r}, 'a'))\n"
        f"subprocess.run('sleep 100 & echo $! >> {pids}', shell=True)\n{end}",
        deadline=10.0,
    )
    assert record.status in ("ok", "failed", "timed_out")
    started = [int(line) for line in pids.read_text().split()]
    assert len(started) >= 3
    assert all(map(_gone, started))


@pytest.mark.skipif(keeper.children_of(os.getpid()) is None, reason="the kernel does not list children")
def test_children_are_found_though_a_thread_ends_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: ["4194304999", *listed(path)])
    child = subprocess.Popen(["sleep", "100"])
    try:
        assert child.pid in (keeper.children_of(os.getpid()) or [])
    finally:
        child.kill()
        child.wait()
    assert keeper.children_of(child.pid) is None


@EACH_START
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a keeper")
@EACH_END
def test_no_shared_memory_outlives_its_trial(strategy: Strategy, tmp_path: Path, end: str) -> None:
    """Python's resource tracker removes it, if it is left the time; a worker that uses it too keeps it waiting."""
    names = tmp_path / "names"
    record = strategy(
        f"from multiprocessing import get_context, shared_memory\n"
        f"held = shared_memory.SharedMemory(create=True, size=2**20)\n"
        f"get_context('fork').Process(target=time.sleep, args=[100]).start()\n"
        f"print(held.name, file=open({str(names)!r}, 'a'))\n{end}",
        deadline=10.0,
    )
    assert record.status in ("ok", "failed", "timed_out"), record.message
    made = names.read_text().split()
    assert made
    assert not [each for each in made if Path("/dev/shm", each).exists()]  # noqa: S108 - the kernel's own name


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_trial_ends_with_whoever_asked_for_it(tmp_path: Path, how: signal.Signals) -> None:
    if how == signal.SIGKILL and sys.platform != "linux":
        pytest.skip("only Linux ends a child with its killed parent")
    file, pid_file = tmp_path / "endless.py", tmp_path / "pid"
    file.write_text(
        'from loaders import variant\n@variant(question="selection")\ndef endless(job):\n    "Sleeps."\n'
        f"    import os, time\n    open({str(pid_file)!r}, 'w').write(str(os.getpid()))\n    time.sleep(100)\n"
    )
    command = [sys.executable, "-m", "loaders", "trial", "selection", "endless", "--with", str(file), "--size", "tiny"]
    asked = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (pid_file.exists() and pid_file.read_text()):
        assert time.monotonic() < deadline, "the trial did not begin"
        time.sleep(0.05)
    os.kill(asked.pid, how)
    _, errors = asked.communicate(timeout=30)
    assert _gone(int(pid_file.read_text()))
    if how != signal.SIGKILL:
        assert asked.returncode == 130
        assert "interrupted" in errors
        assert "Traceback" not in errors


@EACH_START
@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.parametrize("first", ["", "os.setsid()"])
def test_a_tree_that_keeps_forking_while_it_is_ended_is_ended(
    strategy: Strategy, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """Each process forks one and ends, 20 chains at once: no list of them is true when it has been made.

    They end by themselves after 30 s, so that a watcher that fails does not take the machine.
    """
    body = (
        "end = time.monotonic() + 30\nfor _ in range(20):\n    if not os.fork():\n"
        f"        while time.monotonic() < end:\n            {first or 'pass'}\n"
        "            if os.fork():\n                os._exit(0)\n        os._exit(0)\n"
        "time.sleep(1)\nos._exit(5)"
    )
    started = time.monotonic()
    record = strategy(body, deadline=60.0)
    assert (record.status, record.message) == ("failed", "exit code 5")
    assert time.monotonic() - started < 30


@pytest.mark.slow
@EACH_START
@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.skipif(sys.platform != "linux", reason="needs a subreaper")
@pytest.mark.parametrize("end", ["return right", "os._exit(1)", "time.sleep(60)"])
def test_a_process_that_has_left_its_session_its_parent_and_its_environment_is_ended(
    strategy: Strategy, tmp_path: Path, end: str
) -> None:
    pid = tmp_path / "pid"
    record = strategy(
        "if not os.fork():\n    os.setsid()\n    if not os.fork():\n"
        f"        with open({str(pid)!r}, 'w') as file:\n            file.write(str(os.getpid()))\n"
        f"        os.rename({str(pid)!r}, {str(pid)!r} + '.whole')\n"
        "        os.execve('/bin/sleep', ['sleep', '100'], {})\n    os._exit(0)\n"
        f"os.wait()\nwhile not os.path.exists({str(pid)!r} + '.whole'):\n    time.sleep(0.01)\n{end}",
        deadline=10.0,
    )
    assert record.status in ("ok", "failed", "timed_out")
    assert not psutil.pid_exists(int((tmp_path / "pid.whole").read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_descendants_are_found_with_the_kernels_list_of_children_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = subprocess.Popen(["sh", "-c", "sh -c 'sleep 100 & sleep 100 & wait' & wait"], start_new_session=True)
    try:
        deadline = time.monotonic() + 30
        while len(psutil.Process(shell.pid).children(recursive=True)) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        below = {each.pid for each in psutil.Process(shell.pid).children(recursive=True)}
        assert keeper.below(shell.pid) == below
        monkeypatch.setattr(keeper, "children_of", lambda _: None)
        assert keeper.below(shell.pid) == below
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()


@EACH_START
def test_the_system_would_rather_end_a_trial_than_anything_else(strategy: Strategy, tmp_path: Path) -> None:
    if not Path("/proc/self/oom_score_adj").exists():
        pytest.skip("only Linux can be told")
    said = tmp_path / "score"
    strategy(f"open({str(said)!r}, 'w').write(open('/proc/self/oom_score_adj').read())\nreturn right")
    assert said.read_text().strip() == "1000"


@EACH_START
@pytest.mark.python
def test_the_process_is_what_python_m_would_have_made(strategy: Strategy, tmp_path: Path) -> None:
    """Workers that are spawned import ``__main__`` anew by its name."""
    said = tmp_path / "said"
    strategy(
        "import __main__\n"
        f"print(__main__.__spec__.name, sys.path[0] == os.getcwd(), file=open({str(said)!r}, 'w'))\nreturn right"
    )
    assert said.read_text().split() == ["loaders._trial.child", "True"]


def test_with_a_safe_path_a_fresh_trial_runs_the_same_package(
    strategy: Strategy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the one that may be installed: what is measured is what the record names."""
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    said = tmp_path / "said"
    record = strategy(f"print(*sys.path, sep='\\n', file=open({str(said)!r}, 'w'))\nreturn right")
    assert record.status == "ok", record.message
    assert said.read_text().splitlines()[0] == str(ROOT)
