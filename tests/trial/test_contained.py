"""Whatever a strategy does, it spoils its own record only: one status, one clear message, and the next trial runs."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from loaders._trial import group, watch
from loaders._trial.record import SAID
from tests.conftest import Strategy

MIB = 2**20


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Every process that a trial starts inherits a mark, and every file is made below one directory."""
    monkeypatch.setenv("LOADERS_TEST_MARK", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield
    assert not marked(str(tmp_path))
    assert not list(tmp_path.glob("loaders-trial-*"))


def marked(mark: str) -> list[psutil.Process]:
    """Return the processes, other than this one, that carry a mark in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get("LOADERS_TEST_MARK") == mark:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("while True:\n    time.sleep(1)", "timed_out", "not finished after 3 s; ended"),
        ("import signal\nos.kill(os.getpid(), signal.SIGSTOP)", "timed_out", "not finished after 3 s; ended"),
        ("raise SystemExit(3)", "failed", "SystemExit: 3"),
        ("raise GeneratorExit", "failed", "GeneratorExit"),
        ("os._exit(3)", "failed", "exit code 3"),
        ("os.abort()", "failed", "the interpreter was ended by SIGABRT"),
        ("ctypes.string_at(0)", "failed", "the interpreter was ended by SIGSEGV"),
        ("os.kill(os.getpid(), 40)", "failed", "the interpreter was ended by signal 40"),
        ("os.kill(os.getpid(), 15)", "failed", "the interpreter was ended by SIGTERM"),
        ("raise ValueError('x' * 10**7)", "failed", "ValueError: xxx"),
        ("raise ValueError(chr(0xdcff))", "failed", "ValueError: \\udcff"),
        ("import shutil\nshutil.rmtree(os.getcwd())\nos._exit(4)", "failed", "exit code 4"),
        ("sys.stderr.write('y' * 10**7)\nraise ValueError('after')", "failed", "ValueError: after"),
        ("os.chdir('/')\nreturn right", "ok", ""),
        ("sys.stdout.close()\nos.closerange(0, 100)\nreturn right", "ok", ""),
        ("if not os.fork():\n    return []\nos.wait()\nreturn right", "ok", ""),
        ("import threading\nthreading.Thread(target=time.sleep, args=[100]).start()\nreturn right", "ok", ""),
    ],
)
def test_a_record_says_in_one_message_what_a_strategy_did(
    strategy: Strategy, body: str, status: str, message: str
) -> None:
    record = strategy(body, deadline=3.0)
    assert (record.status, record.message.startswith(message)) == (status, True), record.message
    assert len(record.message) < SAID + 10
    assert (record.metrics.epoch_time is not None) == (status == "ok")
    assert strategy("return right").status == "ok"


def test_what_it_prints_does_not_fill_the_disk(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PRINTED", MIB)
    sizes = []
    truncate = os.truncate

    def noted(path: Path, length: int) -> None:
        sizes.append(path.stat().st_size)
        truncate(path, length)

    monkeypatch.setattr(os, "truncate", noted)
    body = "end = time.monotonic() + 2\nwhile time.monotonic() < end:\n    os.write(2, b'y' * 2**16)\nreturn right"
    assert strategy(body).status == "ok"
    assert len(sizes) > 10, "it starts anew whenever it is found too long"


@pytest.mark.parametrize("how", ["[np.ones(2**22)]", "[bytearray(b'x') * 2**25]"])
def test_allocating_without_end_is_over_budget(strategy: Strategy, how: str) -> None:
    record = strategy(f"a = []\nwhile True:\n    a += {how}", memory_limit=600 * MIB)
    assert record.status == "over_budget"
    assert "600 MiB allowed" in record.message
    assert record.limited_by in ("cgroup", "process tree")


def test_workers_that_allocate_without_end_are_over_budget(strategy: Strategy) -> None:
    worker = "a = []\n        while True:\n            a += [np.ones(2**17)]\n            time.sleep(0.01)"
    body = f"for _ in range(4):\n    if not os.fork():\n        {worker}\ntime.sleep(100)"
    record = strategy(body, memory_limit=600 * MIB)
    assert record.status == "over_budget"
    assert "600 MiB allowed" in record.message


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.parametrize("first", ["pass", "os.setsid()", "os.setpgid(0, 0)"])
def test_forking_without_end_is_over_budget(strategy: Strategy, monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    """The strategy itself stops at 200, so that a watcher that fails does not take the machine."""
    monkeypatch.setattr(watch, "PROCESSES", 60)
    body = f"for _ in range(200):\n    if not os.fork():\n        {first}\n        time.sleep(100)\ntime.sleep(100)"
    record = strategy(body, deadline=30.0)
    assert (record.status, "processes, 60 allowed; ended" in record.message) == ("over_budget", True), record.message


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.parametrize("first", ["", "os.setsid()"])
def test_a_tree_that_keeps_forking_while_it_is_ended_is_ended(
    strategy: Strategy, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """Each process forks one and ends, 20 chains at once: no list of them is true when it has been made.

    They end by themselves after 5 s, so that a watcher that fails does not take the machine.
    """
    body = (
        "end = time.monotonic() + 5\nfor _ in range(20):\n    if not os.fork():\n"
        f"        while time.monotonic() < end:\n            {first or 'pass'}\n"
        "            if os.fork():\n                os._exit(0)\n        os._exit(0)\n"
        "time.sleep(1)\nos._exit(5)"
    )
    started = time.monotonic()
    record = strategy(body, deadline=30.0)
    assert (record.status, record.message) == ("failed", "exit code 5")
    assert time.monotonic() - started < 5


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
        deadline=4.0,
    )
    assert record.status in ("ok", "failed", "timed_out")
    assert not psutil.pid_exists(int((tmp_path / "pid.whole").read_text()))


def test_a_record_says_what_held_the_trial_to_its_limits(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path | None] = []
    create = group._create

    def noted(*limits: str) -> Path | None:
        made.append(create(*limits))
        return made[-1]

    monkeypatch.setattr(group, "_create", noted)
    record = strategy("return right", memory_limit=2**31)
    assert record.limited_by == ("cgroup" if made[0] else "process tree")
    assert not (made[0] and made[0].exists())


class TestGroup:
    """The files of a control group, played by ordinary ones; a kernel that has none makes ``limited_by`` say so."""

    @pytest.fixture
    def place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        place = tmp_path / "cgroup" / "app.slice"
        (place / "terminal.scope").mkdir(parents=True)
        (tmp_path / "cgroup" / "cgroup.controllers").write_text("memory pids\n")
        own = tmp_path / "own"
        own.write_text("1:name=systemd:/elsewhere\n0::/app.slice/terminal.scope\n")
        monkeypatch.setattr(group, "ROOT", tmp_path / "cgroup")
        monkeypatch.setattr(group, "OWN", own)
        return place

    def test_it_lies_beside_our_own_and_holds_memory_swap_and_tasks(self, place: Path) -> None:
        with group.created(12345, 99) as made:
            assert made == place / f"loaders-{os.getpid()}"
            held = {file.name: file.read_text() for file in made.iterdir()}
        assert held == {"memory.max": "12345", "memory.oom.group": "1", "pids.max": "99", "memory.swap.max": "0"}

    def test_without_a_limit_memory_is_only_counted(self, place: Path) -> None:
        with group.created(None, 99) as made:
            assert made is not None
            assert (made / "memory.max").read_text() == "max"

    def test_there_is_none_where_the_kernel_has_none_or_does_not_hand_it_down(
        self, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(path: Path, text: str) -> int:
            raise PermissionError(13, "Permission denied")

        with monkeypatch.context() as patched:
            patched.setattr(Path, "write_text", refused)
            with group.created(1, 1) as made:
                assert made is None
        assert not (place / f"loaders-{os.getpid()}").exists()
        (group.ROOT / "cgroup.controllers").unlink()
        with group.created(1, 1) as made:
            assert made is None
        monkeypatch.setattr(group, "OWN", Path("/nowhere"))
        with group.created(1, 1) as made:
            assert made is None

    def test_the_kernel_tells_what_it_did(self, tmp_path: Path) -> None:
        (tmp_path / "cpu.stat").write_text("usage_usec 0\nuser_usec 0\n")
        (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\noom_group_kill 0\n")
        assert (group.held(tmp_path), group.out_of_memory(tmp_path)) == (False, False)
        (tmp_path / "cpu.stat").write_text("usage_usec 123\n")
        (tmp_path / "memory.events").write_text("oom 1\noom_kill 3\n")
        assert (group.held(tmp_path), group.out_of_memory(tmp_path)) == (True, True)


def test_the_system_would_rather_end_a_trial_than_anything_else(strategy: Strategy, tmp_path: Path) -> None:
    if not Path("/proc/self/oom_score_adj").exists():
        pytest.skip("only Linux can be told")
    said = tmp_path / "score"
    strategy(f"open({str(said)!r}, 'w').write(open('/proc/self/oom_score_adj').read())\nreturn right")
    assert said.read_text().strip() == "1000"


@pytest.mark.python
def test_the_process_is_what_python_m_would_have_made(strategy: Strategy, tmp_path: Path) -> None:
    """Workers that are spawned import ``__main__`` anew by its name."""
    said = tmp_path / "said"
    strategy(
        "import __main__\n"
        f"print(__main__.__spec__.name, sys.path[0] == os.getcwd(), file=open({str(said)!r}, 'w'))\nreturn right"
    )
    assert said.read_text().split() == ["loaders._trial.child", "True"]
