"""A trial ends with a record whatever its strategy does, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.conftest import ROOT, Strategy

MIB = 2**20


def _gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def test_a_good_strategy_is_ok_and_says_where_it_ran(strategy: Strategy) -> None:
    record = strategy("return right")
    assert (record.status, record.message) == ("ok", "")
    assert (record.metrics.samples, record.metrics.batches) == (100, 1)
    assert record.environment.machine == "tested"
    assert record.environment.packages["tensorflow"]
    assert record.environment.threads["BLAS"] == 1
    assert record.environment.page_cache is None or 0 <= record.environment.page_cache <= 1
    assert record.environment.variables["OMP_NUM_THREADS"] == "1"
    assert record.metrics.disturbance is not None
    assert 0 <= record.metrics.disturbance.others <= 1
    assert record.data.startswith("photographs of scikit-image, 48 images, ")


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("return [job.inputs.images[:99]]", "wrong_output", "delivered 99 samples instead of 100"),
        ("return [job.inputs.images[[0] * 100]]", "wrong_output", "more often than it exists"),
        ("return [job.inputs.images[:100].astype('f4')]", "wrong_output", "got float32[32, 32, 3], expected float64"),
        ("return [job.inputs.images[:100] + 1e-9]", "wrong_output", "with other values"),
        ("job.inputs.images[:] = 0\nreturn [job.inputs.images[:100]]", "wrong_output", "with other values"),
        ("return []", "wrong_output", "delivered 0 samples instead of 100"),
        ("raise ValueError('mine')", "failed", "ValueError: mine (planted.py, line 8, in planted)"),
        ("import no_such_module", "failed", "No module named 'no_such_module'"),
        ("raise Skip('jemalloc is not installed')", "skipped", "jemalloc is not installed"),
        ("raise SystemExit(0)", "failed", "SystemExit: 0"),
        ("raise KeyboardInterrupt", "failed", "KeyboardInterrupt"),
        ("os._exit(7)", "failed", "exit code 7"),
        ("ctypes.string_at(0)", "failed", "ended by SIGSEGV"),
        ("os.kill(os.getpid(), 9)", "failed", "ended by SIGKILL"),
        ("return 5", "failed", "TypeError: 'int' object is not iterable"),
        ("return np.empty(2**50)", "failed", "Unable to allocate"),
    ],
)
def test_what_goes_wrong_is_said_in_words(strategy: Strategy, body: str, status: str, message: str) -> None:
    record = strategy(body)
    assert (record.status, message in record.message) == (status, True), record.message
    assert record.metrics.epoch_time is None, "a strategy that went wrong must never have a time"


def test_what_a_strategy_prints_closes_or_changes_does_not_spoil_the_record(strategy: Strategy) -> None:
    record = strategy(
        "print('x' * 5_000_000)\nsys.stderr.write('y' * 5_000_000)\n"
        "os.chdir('/')\nsys.stdout.close()\nos.close(1)\nreturn right"
    )
    assert (record.status, record.message) == ("ok", "")


def test_a_strategy_that_hangs_is_ended_at_its_deadline(strategy: Strategy) -> None:
    started = time.monotonic()
    record = strategy("time.sleep(60)\nreturn right", deadline=2.0)
    assert time.monotonic() - started < 10
    assert (record.status, record.metrics.epoch_time) == ("timed_out", None)
    assert "2 s" in record.message


def test_a_strategy_that_takes_too_much_is_ended_and_its_peak_stands_in_the_record(strategy: Strategy) -> None:
    limit = 400 * MIB
    record = strategy(
        "while True:\n    sys.path.append(np.ones(2**17))\n    time.sleep(0.002)", memory_limit=limit, deadline=30
    )
    assert record.status == "over_budget"
    assert "400 MiB allowed" in record.message
    assert record.metrics.peak_memory is not None
    # The peak is above the baseline, the limit is not: the interpreter holds some 60 to 100 MiB itself.
    assert limit - 150 * MIB < record.metrics.peak_memory < limit + 60 * MIB


def test_the_limit_counts_child_processes(strategy: Strategy) -> None:
    child = "import time; a = bytearray(300 * 2**20); a[::4096] = b'x' * len(a[::4096]); time.sleep(60)"
    record = strategy(
        f'subprocess.run([sys.executable, "-S", "-c", "{child}"])\nreturn right', memory_limit=250 * MIB, deadline=30
    )
    assert record.status == "over_budget"
    assert record.metrics.peak_memory_tree is not None
    assert record.metrics.peak_memory_tree > 100 * MIB


@pytest.mark.parametrize("end", ["return right", "raise ValueError", "time.sleep(60)", "os._exit(1)"])
def test_no_child_process_outlives_its_trial(strategy: Strategy, tmp_path: Path, end: str) -> None:
    """A child that detached itself from its parent, the hardest kind, included."""
    pids = tmp_path / "pids"
    record = strategy(
        f"for _ in range(2):\n"
        f"    child = subprocess.Popen(['sleep', '100'])\n"
        f"    print(child.pid, file=open({str(pids)!r}, 'a'))\n"
        f"subprocess.run('sleep 100 & echo $! >> {pids}', shell=True)\n{end}",
        deadline=3.0,
    )
    assert record.status in ("ok", "failed", "timed_out")
    started = [int(line) for line in pids.read_text().split()]
    assert len(started) >= 3
    assert all(map(_gone, started))


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
