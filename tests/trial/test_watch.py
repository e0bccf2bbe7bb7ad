"""Whatever a strategy does, it spoils its own record only: one status, one clear message, and the next trial runs."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loaders._errors import InputError
from loaders._trial import group, launch, turns, watch
from loaders._trial.metrics import Disturbance, Metrics
from loaders._trial.record import SAID, Outcome, Record
from loaders._trial.steady import REPEATS, TURN
from loaders._trial.timing import MOST_EPOCHS
from tests.conftest import EACH_START, Strategy
from tests.trial.test_log import RECORD

MIB = 2**20

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@EACH_START
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


@EACH_START
def test_a_strategy_that_hangs_is_ended_at_its_deadline(strategy: Strategy) -> None:
    started = time.monotonic()
    record = strategy("time.sleep(60)\nreturn right", deadline=2.0)
    assert time.monotonic() - started < 10
    assert (record.status, record.metrics.epoch_time) == ("timed_out", None)
    assert "2 s" in record.message


@EACH_START
@pytest.mark.parametrize(
    ("work", "works"),
    [
        ("time.sleep(10)", False),
        ("sum(range(10**5))", True),
        ("subprocess.run([sys.executable, '-c', 'sum(range(10**6))'])", True),  # none of them lives long
    ],
)
def test_a_strategy_that_stands_still_is_ended_long_before_its_deadline(
    strategy: Strategy, monkeypatch: pytest.MonkeyPatch, work: str, works: bool
) -> None:
    monkeypatch.setattr(watch, "STILL", 3.0)
    monkeypatch.setattr(watch, "IDLE", 0.1)  # a busy machine may give one that works less than half a second in three
    started = time.monotonic()
    begin = "import subprocess, sys\nend = time.monotonic() + 6\nwhile time.monotonic() < end:"
    record = strategy(f"{begin}\n    {work}\nreturn right", deadline=60.0)
    assert time.monotonic() - started < 30
    assert (record.status, record.message) == (("ok", "") if works else ("timed_out", "stood still for 3 s; ended"))


def test_a_trial_with_long_steps_may_stand_still_for_longer(
    strategy: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "STILL", 2.0)
    for still, status in ((0.0, "timed_out"), (60.0, "ok")):
        assert strategy("time.sleep(6)\nreturn right", deadline=60.0, still=still).status == status


@pytest.mark.slow
@pytest.mark.skipif(not turns.AVAILABLE, reason="this system has no named pipes")
@EACH_START
def test_a_trial_that_waits_for_its_turn_does_not_stand_still(
    strategy: Strategy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(watch, "STILL", 6.0)
    given, (answering, answers) = turns.Turns(tmp_path / "turns"), os.pipe()
    with contextlib.closing(given), ThreadPoolExecutor(1) as pool:
        run = pool.submit(strategy, "return np.split(right[0], 4)", epochs=2, turns=str(given.directory))
        run.add_done_callback(lambda _: os.write(answers, b"x"))
        assert given.is_asked(answering)
        time.sleep(14)
        given.give()
        assert given.is_asked(answering), run.result()
        given.end()
        record = run.result()
    assert (record.status, record.message) == ("ok", "")
    assert record.metrics.steady_epochs == given.epochs, "of the one turn"
    assert given.epochs == MOST_EPOCHS or given.spent >= TURN, "of which others may have taken most"


@EACH_START
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


@EACH_START
@pytest.mark.parametrize("whose", ["its own", "a worker's"])
@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_the_limit_holds_after_memory_has_been_measured(strategy: Strategy, tmp_path: Path, whose: str) -> None:
    """Of epochs that are repeated for their time, and of the check, no figure is kept."""
    count = tmp_path / "epochs"
    again = (
        "class Again:\n"
        "    def __iter__(self):\n"
        f"        with open({str(count)!r}, 'a+') as file:\n"
        "            file.write('x')\n"
        "            epoch = file.tell()\n"
        f"        if epoch > 6 and {'True' if whose == 'its own' else 'not os.fork()'}:\n"
        "            sys.path.append(np.ones(2**26))\n"
        "            time.sleep(20)\n"
        "            os._exit(0)\n"
        "        if epoch > 6:\n"
        "            time.sleep(15)\n"
        "        return iter(np.split(right[0], 4))\n"
        "return Again()"
    )
    record = strategy(again, epochs=2, memory_limit=450 * MIB, deadline=60.0)
    assert count.stat().st_size == 7
    assert record.status == "over_budget", record.message
    assert "450 MiB allowed" in record.message
    assert (record.metrics.peak_memory or 0) < 300 * MIB, "what follows is in no figure"


def test_what_the_kernel_ends_at_its_limit_is_over_budget(
    strategy: Strategy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In most places a test may not have a control group of its own."""
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    (tmp_path / "cgroup.procs").touch()
    monkeypatch.setattr(group, "created", lambda *_: contextlib.nullcontext(tmp_path))
    record = strategy("os.kill(os.getpid(), 9)", memory_limit=2**30)
    assert record.status == "over_budget", record.message
    assert "1024 MiB allowed; ended by the kernel" in record.message
    # Memory may run out elsewhere: on the machine, or in a group above that holds others too.
    (tmp_path / "memory.events").write_text("low 0\noom 0\noom_kill 1\n")
    record = strategy("os.kill(os.getpid(), 9)", memory_limit=2**30)
    assert (record.status, record.message) == ("failed", watch.ELSEWHERE)


@EACH_START
def test_the_limit_counts_child_processes(strategy: Strategy) -> None:
    child = "import time; a = bytearray(300 * 2**20); a[::4096] = b'x' * len(a[::4096]); time.sleep(60)"
    record = strategy(
        f'subprocess.run([sys.executable, "-S", "-c", "{child}"])\nreturn right', memory_limit=250 * MIB, deadline=30
    )
    assert record.status == "over_budget"
    assert record.metrics.peak_memory_tree is not None
    assert record.metrics.peak_memory_tree > 100 * MIB


@EACH_START
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
    record = strategy(body, deadline=3.0 if status == "timed_out" else 60.0)
    assert (record.status, record.message.startswith(message)) == (status, True), record.message
    assert len(record.message) < SAID + 10
    assert (record.metrics.epoch_time is not None) == (status == "ok")
    assert strategy("return right").status == "ok"


@EACH_START
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


@EACH_START
@pytest.mark.parametrize("how", ["[np.ones(2**22)]", "[bytearray(b'x') * 2**25]"])
def test_allocating_without_end_is_over_budget(strategy: Strategy, how: str) -> None:
    record = strategy(f"a = []\nwhile True:\n    a += {how}", memory_limit=600 * MIB)
    assert record.status == "over_budget"
    assert "600 MiB allowed" in record.message
    assert record.limited_by in ("cgroup", "process tree")


@EACH_START
def test_workers_that_allocate_without_end_are_over_budget(strategy: Strategy) -> None:
    worker = "a = []\n        while True:\n            a += [np.ones(2**17)]\n            time.sleep(0.01)"
    body = f"for _ in range(4):\n    if not os.fork():\n        {worker}\ntime.sleep(100)"
    record = strategy(body, memory_limit=600 * MIB)
    assert record.status == "over_budget"
    assert "600 MiB allowed" in record.message


@EACH_START
@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.parametrize("first", ["pass", "os.setsid()", "os.setpgid(0, 0)"])
def test_forking_without_end_is_over_budget(strategy: Strategy, monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    """The strategy itself stops at 200, so that a watcher that fails does not take the machine."""
    monkeypatch.setattr(watch, "PROCESSES", 60)
    body = f"for _ in range(200):\n    if not os.fork():\n        {first}\n        time.sleep(100)\ntime.sleep(100)"
    record = strategy(body, deadline=30.0)
    assert (record.status, "processes, 60 allowed; ended" in record.message) == ("over_budget", True), record.message


@EACH_START
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


def _run(taken: float, status: Any = "ok", **metrics: Any) -> watch._Tried:
    """Return a run of which a part of its second of processor time was taken."""
    found = Disturbance(others=taken / 4, stolen=taken * 3 / 4, over=1.0) if status == "ok" else None
    return watch._Tried(Outcome(status, metrics=Metrics(disturbance=found, **metrics)), watch._Seen())


@pytest.mark.parametrize(
    ("runs", "kept", "tries"),
    [
        ([_run(0.02)], 0, 1),
        ([_run(0.3), _run(0.02)], 1, 2),
        ([_run(0.3), _run(0.2), _run(0.25)], 1, 3),  # at most two repeats
        ([_run(0.2), _run(0.3), _run(0.25)], 0, 3),
        ([_run(0.0, "failed")], 0, 1),
        ([_run(0.3, steady_time=1.0)], 0, 1),  # it has repeated its steady epochs itself
        ([_run(0.3), _run(0.0, "wrong_output")], 1, 2),  # a failure is not hidden
    ],
)
def test_the_least_disturbed_of_three_runs_is_kept(runs: list[watch._Tried], kept: int, tries: int) -> None:
    ahead = iter(runs)
    found, made = watch.least_disturbed(lambda: next(ahead), REPEATS)
    assert (runs.index(found), made) == (kept, tries)
    assert next(ahead, None) is None


@pytest.mark.parametrize("error", [InputError("no room is left"), launch.LostServerError()])
def test_what_was_measured_stays_where_no_repeat_can_be_run(error: Exception) -> None:
    robbed = _run(0.5)
    ahead: list[watch._Tried | Exception] = [robbed, error]

    def run() -> watch._Tried:
        found = ahead.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    assert watch.least_disturbed(run, REPEATS) == (robbed, 1)
    ahead.append(error)
    with pytest.raises(type(error)):
        watch.least_disturbed(run, REPEATS)


def test_without_repeats_the_first_run_is_kept() -> None:
    robbed = _run(0.5)
    assert watch.least_disturbed(lambda: robbed, 0) == (robbed, 1)


def test_repeats_of_a_comparison_are_bounded_where_the_machine_is_never_quiet() -> None:
    records: list[Record] = []
    for _ in range(200):
        _, tries = watch.least_disturbed(lambda: _run(0.5), watch.repeats_left(records))
        records.append(msgspec.structs.replace(RECORD, tries=tries))
    assert [each.tries for each in records[:2]] == [3, 1]
    assert sum(each.tries for each in records) <= 1.5 * len(records) + REPEATS
    assert watch.repeats_left([RECORD] * 50) == REPEATS
