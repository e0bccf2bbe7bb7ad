"""The instrument against known truth, each in a process of its own as every trial is."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from loaders._trial import memory
from tests.conftest import EACH_START, Strategy

MIB = 2**20


def _off_by(size: int) -> float:
    """The promise: to within 1 MiB or 1 %."""
    return max(MIB, 0.01 * size)


@EACH_START
@pytest.mark.parametrize("mebibytes", [1, 16, 256])
def test_an_array_of_known_size_is_the_peak_and_is_retained_if_kept(strategy: Strategy, mebibytes: int) -> None:
    record = strategy(f"sys.path.append(np.ones({mebibytes} * 2**17))\nreturn right")
    assert record.status == "ok", record.message
    size = mebibytes * MIB
    assert record.metrics.peak_memory == pytest.approx(size, abs=_off_by(size))
    assert record.metrics.retained_memory == pytest.approx(size, abs=_off_by(size))


@EACH_START
@pytest.mark.parametrize("mebibytes", [16, 256])
def test_an_array_that_is_freed_is_in_the_peak_and_not_retained(strategy: Strategy, mebibytes: int) -> None:
    record = strategy(f"a = np.ones({mebibytes} * 2**17)\ndel a\nreturn right")
    size = mebibytes * MIB
    assert record.metrics.peak_memory == pytest.approx(size, abs=_off_by(size))
    assert record.metrics.retained_memory == pytest.approx(0, abs=MIB)


@EACH_START
def test_a_strategy_that_does_nothing_needs_nothing(strategy: Strategy) -> None:
    record = strategy("return right")
    assert record.metrics.peak_memory == pytest.approx(0, abs=MIB)
    assert record.metrics.retained_memory == pytest.approx(0, abs=MIB)


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what stands behind memory")


@EACH_START
@on_linux
@pytest.mark.parametrize("name", ["x.sorted", "libx.so"])
def test_a_mapped_file_is_in_the_peak_and_the_system_can_take_it_back(
    strategy: Strategy, tmp_path: Path, name: str
) -> None:
    """Whatever it is called: a user's own file is not the code of a library that the trial has mapped before."""
    file = tmp_path / name
    file.write_bytes(bytes(64 * MIB))
    record = strategy(
        "import mmap\n"
        f"with open({str(file)!r}, 'rb') as file:\n"
        "    sys.path.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))\n"
        "np.frombuffer(sys.path[-1], np.uint8)[::4096].max()\n"
        "sys.path.append(np.ones(16 * 2**17))\n"
        "return right"
    )
    assert record.status == "ok", record.message
    assert record.metrics.peak_memory == pytest.approx(80 * MIB, abs=2 * MIB)
    assert record.metrics.file_memory == pytest.approx(64 * MIB, abs=2 * MIB)
    assert record.metrics.anonymous_memory == pytest.approx(16 * MIB, abs=2 * MIB)
    assert record.metrics.needed_memory == pytest.approx(16 * MIB, abs=2 * MIB)


@EACH_START
@on_linux
def test_a_spike_before_a_file_is_mapped_is_needed(strategy: Strategy, tmp_path: Path) -> None:
    """What the file holds later is no part of it; it is seen from outside if it lasts some hundredths of a second."""
    file = tmp_path / "mapped"
    file.write_bytes(bytes(96 * MIB))
    record = strategy(
        "import mmap\n"
        "spike = np.ones(64 * 2**17)\ntime.sleep(0.2)\ndel spike\n"
        f"with open({str(file)!r}, 'rb') as file:\n"
        "    sys.path.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))\n"
        "np.frombuffer(sys.path[-1], np.uint8)[::4096].max()\n"
        "return right"
    )
    assert record.metrics.peak_memory == pytest.approx(96 * MIB, abs=2 * MIB)
    assert record.metrics.needed_memory == pytest.approx(64 * MIB, abs=2 * MIB)


@EACH_START
@on_linux
def test_shared_memory_is_told_apart_and_cannot_be_taken_back(strategy: Strategy) -> None:
    record = strategy(
        "import mmap\nsys.path.append(mmap.mmap(-1, 32 * 2**20))\nsys.path[-1].write(bytes(32 * 2**20))\nreturn right"
    )
    assert record.metrics.shared_memory == pytest.approx(32 * MIB, abs=2 * MIB)
    assert record.metrics.needed_memory == pytest.approx(record.metrics.peak_memory, abs=2 * MIB)


@on_linux
def test_the_code_of_libraries_is_mapped_before_anything_is_measured() -> None:
    """What the first call of a library would map is there already; without the call, megabytes of it come later."""
    code = (
        "import cv2, numpy as np, sys\n"
        "from loaders._trial import memory\n"
        "if len(sys.argv) > 1: memory.map_code()\n"
        "before = memory.held().file\n"
        "cv2.imdecode(cv2.imencode('.jpg', np.zeros((64, 64, 3), np.uint8))[1], cv2.IMREAD_COLOR)\n"
        "print(memory.held().file - before)\n"
    )
    mapped = [
        int(subprocess.run([sys.executable, "-c", code, *more], capture_output=True, check=True, text=True).stdout)
        for more in ([], ["first"])
    ]
    assert mapped[0] > MIB / 4
    assert mapped[1] < MIB / 16


@pytest.mark.slow
@EACH_START
@on_linux
def test_workers_that_leak_are_seen_in_the_tree(strategy: Strategy) -> None:
    """64 KiB a step in another process: nothing of it shows in the process that reads."""
    worker = "import sys\nkept = []\nfor line in sys.stdin: kept.append(bytes([1]) * 2**16); print(flush=True)"
    body = (
        "global worker\n"
        "if 'worker' not in globals():\n"
        f"    worker = subprocess.Popen([sys.executable, '-S', '-c', {worker!r}], stdin=-1, stdout=-1, text=True)\n"
        "for place in range(100):\n"
        "    worker.stdin.write('next\\n'); worker.stdin.flush(); worker.stdout.readline()\n"
        "    time.sleep(0.015)\n"
        "    yield right[0][place : place + 1]\n"
    )
    record = strategy(body, epochs=7)
    assert record.status == "ok", record.message
    trace, growth = record.metrics.memory_trace, record.metrics.memory_growth
    assert trace is not None
    assert growth is not None
    assert trace.tree
    assert growth.verdict == "growing", growth
    assert growth.slope == pytest.approx(2**16, rel=0.25)  # a tree is looked at some ten times a second


@pytest.mark.slow
@EACH_START
@on_linux
def test_workers_that_come_and_go_leave_no_hole_in_the_tree(strategy: Strategy) -> None:
    """Each shares 128 MiB with the process that forks it, for a moment."""
    body = (
        "global kept\n"
        "kept = np.ones(2**24)\n"
        "for place in range(100):\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        time.sleep(0.06)\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "    time.sleep(0.005)\n"
        "    yield right[0][place : place + 1]\n"
    )
    trace = strategy(body).metrics.memory_trace
    assert trace is not None
    assert trace.tree
    assert trace.file is not None
    # Without files: the share of libraries' code follows whatever else on the machine uses them.
    own = [held - file for held, file in zip(trace.resident, trace.file, strict=True)]
    assert min(own) == pytest.approx(128 * MIB, rel=0.1)


@EACH_START
def test_memory_that_was_never_touched_is_not_counted(strategy: Strategy) -> None:
    record = strategy("sys.path.append(np.empty(512 * 2**17))\nreturn right")
    assert record.metrics.peak_memory == pytest.approx(0, abs=2 * MIB)


@EACH_START
def test_a_second_trial_finds_nothing_of_the_first(strategy: Strategy) -> None:
    body = "a = np.ones(64 * 2**17)\nreturn right"
    first, second = strategy(body), strategy(body)
    assert first.metrics.peak_memory == pytest.approx(64 * MIB, abs=MIB)
    assert second.metrics.peak_memory == pytest.approx(first.metrics.peak_memory, abs=MIB)


@EACH_START
@pytest.mark.skipif(not memory.Malloc().available, reason="mallinfo2 is glibc's (2.33 and later)")
def test_what_malloc_keeps_is_told_from_what_is_in_use(strategy: Strategy) -> None:
    """Fragmentation: 64 MiB in pieces below the mmap threshold, of which all but the last are freed."""
    record = strategy(
        "libc = ctypes.CDLL(None)\n"
        "libc.malloc.restype = ctypes.c_void_p\n"
        "pieces = [libc.malloc(65536) for _ in range(1024)]\n"
        "for each in pieces: ctypes.memset(each, 1, 65536)\n"
        "for each in pieces[:-1]: libc.free(ctypes.c_void_p(each))\n"
        "return right"
    )
    # What is allocated afterwards, until it is read, may be taken from what was freed.
    assert record.metrics.allocator_held == pytest.approx(64 * MIB, abs=4 * MIB)
    assert record.metrics.retained_memory == pytest.approx(64 * MIB, abs=2 * MIB)


def test_a_sleep_of_known_length_is_timed_to_one_percent(strategy: Strategy, tmp_path: Path) -> None:
    """The body says how long it slept: a busy machine may let it oversleep, and the instrument must say so too.

    One in three must be exact: others may have the processor while the body says it.
    """
    slept = tmp_path / "slept"
    errors = []
    for _ in range(3):
        record = strategy(
            "before = time.perf_counter()\ntime.sleep(0.5)\n"
            f"open({str(slept)!r}, 'w').write(str(time.perf_counter() - before))\nreturn right"
        )
        assert record.metrics.cpu_time == pytest.approx(0.0, abs=0.1)
        assert record.metrics.epoch_time is not None
        errors.append(abs(record.metrics.epoch_time / float(slept.read_text()) - 1))
    assert min(errors) < 0.01


def test_cpu_time_of_known_length_is_counted_children_included(strategy: Strategy) -> None:
    spin = "end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
    alone = strategy(spin + "return right")
    assert alone.metrics.cpu_time == pytest.approx(0.3, abs=0.06)
    child = "import time; end = time.process_time() + 0.3\\nwhile time.process_time() < end: pass"
    with_child = strategy(f'subprocess.run([sys.executable, "-S", "-c", "{child}"], check=True)\nreturn right')
    assert with_child.metrics.cpu_time is not None
    assert with_child.metrics.cpu_time > 0.28


@EACH_START
def test_a_process_tree_of_known_size_is_counted(strategy: Strategy) -> None:
    """Three children of 64 MiB each beside the strategy's own nothing."""
    child = "import time; a = bytearray(64 * 2**20); a[::4096] = b'x' * len(a[::4096]); time.sleep(1.5)"
    record = strategy(
        f'children = [subprocess.Popen([sys.executable, "-S", "-c", "{child}"]) for _ in range(3)]\n'
        "for each in children: each.wait()\n"
        "return right"
    )
    assert record.metrics.peak_memory is not None
    assert record.metrics.peak_memory < 4 * MIB
    interpreters = 3 * 9 * MIB  # each child's own, shared pages divided
    assert record.metrics.peak_memory_tree == pytest.approx(3 * 64 * MIB + interpreters, abs=30 * MIB)


@EACH_START
@pytest.mark.parametrize("delivers", ["yield right[0]", "return right"])
def test_workers_that_live_shorter_than_they_are_looked_for_are_read(strategy: Strategy, delivers: str) -> None:
    body = (
        "if not (child := os.fork()):\n"
        "    filled = np.ones(64 * 2**17)\n"
        "    time.sleep(0.08)\n"
        "    os._exit(0)\n"
        f"os.waitpid(child, 0)\n{delivers}"
    )
    metrics = strategy(body).metrics
    assert metrics.anonymous_memory is not None
    assert metrics.peak_memory_tree is not None
    assert (
        24 * MIB <= metrics.peak_memory_tree < 90 * MIB
    )  # it may be read while it fills, which busy processors stretch
    assert metrics.peak_memory is not None
    assert metrics.peak_memory < 4 * MIB


def test_the_sampler_sees_what_lasts_and_forgets_when_reset() -> None:
    sampler = memory.SampledPeak()
    sampler.reset()
    before = sampler.read()
    big = bytearray(64 * MIB)
    big[::4096] = b"x" * len(big[::4096])
    time.sleep(0.05)
    del big
    assert sampler.read() - before == pytest.approx(64 * MIB, abs=4 * MIB)
    sampler.reset()
    assert sampler.read() - before < 8 * MIB
    assert "sampled" in sampler.method


def test_a_sample_that_was_begun_before_a_reset_does_not_undo_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler, begun, go_on = memory.SampledPeak(), threading.Event(), threading.Event()
    sampler._peak, sampler._thread = 1000, threading.Thread()

    def resident() -> int:
        if not begun.is_set():
            begun.set()
            go_on.wait(10)
        return 10

    monkeypatch.setattr(memory, "resident", resident)
    reading = threading.Thread(target=sampler.read)
    reading.start()
    assert begun.wait(10)
    resetting = threading.Thread(target=sampler.reset)
    resetting.start()
    resetting.join(0.2)  # it waits for the sample
    go_on.set()
    reading.join()
    resetting.join()
    assert sampler.read() == 10


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel keeps a peak that can be reset on Linux only")
def test_the_kernel_keeps_the_peak() -> None:
    assert isinstance(memory.peak_instrument(), memory.KernelPeak)


def test_what_the_system_tells_is_known_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    status, rollup = Path("/proc/self/status"), Path("/proc/self/smaps_rollup")
    assert memory.tells_kinds(tree=False) == (status.exists() and "RssAnon:" in status.read_text())
    assert memory.tells_kinds(tree=True) == (rollup.exists() and "Pss_Anon:" in rollup.read_text())
    for name, is_tree in (("KINDS", False), ("SHARES", True)):
        monkeypatch.setattr(memory, name, (b"NoSuchField:",))
        assert not memory.tells_kinds(tree=is_tree)


def test_a_process_that_is_gone_holds_nothing() -> None:
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", "print(flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()  # it has started
    watched = psutil.Process(process.pid)
    assert memory.tree_memory(watched, [])[0].total > MIB
    process.communicate(b"\n")
    assert memory.tree_memory(watched, []) == (memory.Held(), {watched.pid})
    assert memory.tree_memory(watched, [watched]) == (memory.Held(), {watched.pid})


class TestAboveBaseline:
    """A process that holds 10 bytes of each kind at its baseline, and malloc 7 in use and 3 held."""

    @pytest.fixture
    def now(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        now: dict[str, Any] = {"held": memory.Held(10, 10, 10), "malloc": (7, 3), "peak": 30}
        monkeypatch.setattr(memory, "held", lambda: now["held"])
        monkeypatch.setattr(memory, "resident", lambda: now["held"].total)
        return now

    def _made(self, now: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *, available: bool) -> memory.AboveBaseline:
        malloc, peak = memory.Malloc(), memory.SampledPeak()
        monkeypatch.setattr(malloc, "available", available)
        monkeypatch.setattr(malloc, "in_use_and_held", lambda: now["malloc"])
        monkeypatch.setattr(peak, "read", lambda: now["peak"])
        return memory.AboveBaseline(malloc, peak)

    def test_every_reading_is_above_it(self, now: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        above = self._made(now, monkeypatch, available=True)
        now.update(held=memory.Held(15, 8, 10), malloc=(8, 5), peak=100)
        assert above.read() == (memory.Held(5, -2, 0), 1, 2)
        assert (above.peak(), above.resident(), above.allocator_held()) == (70, 3, 2)

    def test_the_most_of_each_kind_is_kept(self, now: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        above = self._made(now, monkeypatch, available=True)
        for held in (memory.Held(15, 8, 10), memory.Held(11, 13, 9)):
            now["held"] = held
            above.read()
        assert above.most == memory.Held(5, 3, 0)

    def test_what_malloc_keeps_is_unknown_where_it_cannot_be_asked(
        self, now: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert self._made(now, monkeypatch, available=False).allocator_held() is None
