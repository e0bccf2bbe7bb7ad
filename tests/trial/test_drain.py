from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from loaders._trial.drain import (
    PAGE,
    TRACE_POINTS,
    Slow,
    Tracer,
    _of_each_page,
    cpu_time,
    cpu_time_of_children,
    drain,
    touch,
)
from loaders._trial.memory import Held
from loaders._trial.timing import Timeline, epoch_time, first_batch_time

TICK = 0.02
"""Seconds: two steps of the kernel's accounts."""


class Clock:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_work_is_charged_wherever_a_strategy_does_it() -> None:
    clock = Clock()

    def eager() -> list[Any]:
        clock.now += 2.0  # all work in the call, none in the iteration
        return [np.zeros(3)]

    def lazy() -> Iterator[Any]:
        clock.now += 2.0
        yield np.zeros(3)

    for build in (eager, lazy):
        (timeline,), _ = drain(build, clock=clock)
        assert epoch_time(timeline) == 2.0
        assert first_batch_time(timeline) == 2.0


def test_what_happens_after_the_last_batch_is_charged() -> None:
    clock = Clock()

    def build() -> Iterator[Any]:
        yield np.zeros(2)
        clock.now += 5.0

    (timeline,), _ = drain(build, clock=clock)
    assert epoch_time(timeline) == 5.0
    assert (list(timeline.samples), len(timeline.asked)) == ([2], 1)


def test_what_dropping_the_iterator_takes_is_told_apart() -> None:
    """As of a data set of tf.data, whose iterator waits for a thread when it is dropped."""
    clock = Clock()

    class Waits(Iterator[Any]):
        def __init__(self) -> None:
            self.left = [np.zeros(2)]

        def __next__(self) -> Any:
            if not self.left:
                raise StopIteration
            clock.now += 1.0
            return self.left.pop()

        def __del__(self) -> None:
            clock.now += 3.0

    class Source:
        def __iter__(self) -> Iterator[Any]:
            return Waits()

    (first, second), _ = drain(Source, clock=clock, epochs=2)
    assert [(epoch_time(each), each.closing) for each in (first, second)] == [(1.0, 3.0)] * 2
    assert second.start == first.end + 3.0, "the next epoch begins when that is over"


def test_reading_memory_is_charged_to_nobody() -> None:
    clock = Clock()

    def slow(_step: int, _now: float) -> None:
        clock.now += 0.5

    (timeline,), _ = drain(lambda: [np.zeros(1)] * 4, slow, clock)
    assert (list(timeline.paused), epoch_time(timeline)) == ([0.5] * 4, 0.0)


def test_what_reading_memory_waits_for_is_not_taken_off_the_epoch() -> None:
    """Threads work meanwhile: of one that takes a tenth of a second, half was missing."""

    def waits() -> tuple[Held, int, int]:
        time.sleep(0.05)  # as for Python's lock, which a thread keeps
        return Held(), 0, 0

    def build() -> Iterator[Any]:
        with ThreadPoolExecutor(1) as pool:
            work = [pool.submit(time.sleep, 0.025) for _ in range(4)]
            yield np.zeros(1)  # after which memory is read
            for each in work:
                each.result()
                yield np.zeros(1)

    tracer = Tracer(waits)
    (timeline,), _ = drain(build, tracer)
    assert tracer.points, "it was read"
    assert epoch_time(timeline) >= 0.1 - TICK / 2


def test_a_batch_is_dropped_before_the_next_is_asked_for_unless_it_is_kept() -> None:
    import weakref

    alive: list[bool] = []

    def build() -> Iterator[Any]:
        batch = np.zeros(4)
        reference = weakref.ref(batch)
        yield batch
        del batch
        alive.append(reference() is not None)

    assert drain(build)[1] == []
    kept = drain(build, keep=True)[1]
    assert len(kept) == 1
    assert alive == [False, True]


def test_later_epochs_go_over_the_same_iterable_and_build_an_iterator_anew() -> None:
    built: list[str] = []

    def again() -> list[Any]:
        built.append("list")
        return [np.zeros(2), np.zeros(1)]

    def once() -> Iterator[Any]:
        built.append("generator")
        yield np.zeros(2)

    steps: list[int] = []
    timelines, _ = drain(again, lambda step, _: steps.append(step), epochs=3)
    assert [list(each.samples) for each in timelines] == [[2, 1]] * 3
    assert steps == [1, 2, 3, 4, 5, 6]
    timelines, _ = drain(once, epochs=3)
    assert [list(each.samples) for each in timelines] == [[2]] * 3
    assert built == ["list", "generator", "generator", "generator"]


def test_what_is_done_before_an_epoch_is_in_no_epoch() -> None:
    clock, begun = Clock(), list[int]()

    def begin(epoch: int) -> None:
        begun.append(epoch)
        clock.now += 5.0

    timelines, _ = drain(lambda: [np.zeros(2)] * 3, clock=clock, epochs=2, slow=Slow(lambda _: 0.0), begin=begin)
    assert begun == [0, 1, 2]
    assert [epoch_time(each) for each in timelines] == [0.0] * 3


def test_a_failing_strategy_fails_with_its_own_exception() -> None:
    def build() -> Iterator[Any]:
        yield np.zeros(1)
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        drain(build)


def test_touching_counts_samples_of_every_kind_of_batch() -> None:
    import tensorflow as tf

    assert touch(np.zeros((5, 4096))) == 5
    assert touch((np.zeros((3, 2)), np.zeros(3))) == 3
    assert touch([[1.0], [2.0]]) == 2
    assert touch(tf.zeros((7, 2))) == 7
    assert touch(np.array([b"a", b"b"], object)) == 2
    assert touch(np.zeros((6, 6))[:, ::2]) == 6


def test_touching_reads_every_page_of_a_lazy_array(tmp_path: Any) -> None:
    from loaders._trial import memory

    path = tmp_path / "big.npy"
    np.save(path, np.ones((64, 2**18), np.uint8))  # 16 MiB
    mapped = np.load(path, mmap_mode="r")
    before = memory.resident()
    touch(mapped)
    assert memory.resident() - before > 15 * 2**20


def test_touching_copies_no_view_whose_axes_are_in_another_order() -> None:
    """As torchvision's pictures are: the copy would count as its own time, three times what it takes to decode."""
    import tracemalloc

    picture = np.ones((3, 512, 1024), np.uint8).transpose(1, 2, 0)
    tracemalloc.start()
    try:
        assert touch(picture) == 512
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < picture.nbytes / 4


VIEWS = {
    "a crop": lambda picture: picture[64:448, 128:896],
    "mirrored": lambda picture: picture[:, ::-1],
    "other channels": lambda picture: picture[..., ::-1],
}
"""Of pictures of 512 by 1024 pixels."""


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_touching_copies_no_part_of_another_array(view: Callable[[Any], Any]) -> None:
    """What ``to=crop`` delivers where all is decoded: the copy would count as the loader's time."""
    import tracemalloc

    picture = view(np.ones((512, 1024, 3), np.uint8))
    touch(picture)  # what is made once
    tracemalloc.start()
    try:
        assert touch(picture) == len(picture)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < picture.nbytes / 16


@pytest.mark.parametrize("view", [*VIEWS.values(), lambda picture: picture.transpose(2, 0, 1)], ids=[*VIEWS, "turned"])
def test_touching_reads_a_value_of_every_page(view: Callable[[Any], Any]) -> None:
    """Each value tells the page that it lies in, as a line of the picture is three pages."""
    picture = np.arange(512 * 1024 * 3, dtype=np.int32).reshape(512, 1024, 3) * 4 // PAGE
    touched = _of_each_page(view(picture))
    assert set(touched.flat) == set(view(picture).flat)
    assert touched.size < picture.size / 100


def test_reading_memory_costs_two_percent_at_most() -> None:
    clock = Clock()
    reads = 0

    def read() -> tuple[Held, int, int]:
        nonlocal reads
        reads += 1
        clock.now += 0.001
        return Held(1), 1, 1

    tracer = Tracer(read, clock)
    start = clock.now
    for step in range(20_000):
        clock.now += 0.0005
        tracer(step, clock.now)
    assert reads * 0.001 / (clock.now - start) < 0.0205
    assert reads > 10


def test_one_slow_reading_leaves_no_hole_in_the_trace() -> None:
    clock = Clock()

    def read() -> tuple[Held, int, int]:
        clock.now += 0.5 if len(tracer.points) == 20 else 0.0001
        return Held(), 0, 0

    tracer = Tracer(read, clock)
    for step in range(3000):
        clock.now += 0.001
        tracer(step, clock.now)
    assert np.diff([point[0] for point in tracer.points]).max() < 30


def test_a_long_trace_keeps_an_even_bounded_number_of_points() -> None:
    tracer = Tracer(lambda: (Held(), 0, 0), lambda: 0.0)
    for step in range(1, 100_001):
        tracer(step, float(step))
    steps = [point[0] for point in tracer.points]
    assert TRACE_POINTS / 2 - 1 <= len(steps) <= TRACE_POINTS
    assert len(set(np.diff(steps))) == 1
    assert steps[-1] > 99_000


def test_a_slow_consumer_comes_last_and_takes_what_it_wants() -> None:
    asked: list[float] = []

    def step_time(last: Timeline) -> float:
        asked.append(len(last.received))
        return 0.001

    timelines, _ = drain(lambda: [np.zeros(2)] * 5, epochs=2, slow=Slow(step_time, lambda _: 3))
    assert [len(each.received) for each in timelines] == [5, 5, 3]
    assert asked == [5]
    assert timelines[2].end - timelines[2].start >= 0.003
    assert (
        min(after - before for before, after in zip(timelines[2].received, timelines[2].asked[1:], strict=False))
        > 0.001
    )


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin a process to a core")
def test_a_training_step_is_work_and_takes_longer_on_a_core_that_others_use() -> None:
    code = """
import os, threading, time
from loaders._trial.drain import busy
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
threads = [threading.Thread(target=busy, args=(0.2,)) for _ in range(2)]
begun = time.perf_counter()
for each in threads:
    each.start()
for each in threads:
    each.join()
print(time.perf_counter() - begun)
"""
    took = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(took.stdout) > 0.38


def test_what_a_consumer_sleeps_is_no_cost_of_reading_memory() -> None:
    clock = Clock()

    def read() -> tuple[Held, int, int]:
        clock.now += 0.0001
        return Held(), 0, 0

    tracer = Tracer(read, clock)
    for step in range(1, 21):
        came = clock.now
        clock.now += 0.1  # the consumer's own step
        tracer(step, came)
    assert len(tracer.points) > 15


def test_the_processor_time_of_a_worker_that_is_still_alive_counts() -> None:
    """As that of torch's persistent workers does, which the system tells only once they have ended."""
    work = "import sys, time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\nsys.stdin.read()"
    before, ended = cpu_time_of_children(), cpu_time()
    with subprocess.Popen([sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        assert worker.stdin is not None
        worker.stdout.readline()
        assert cpu_time_of_children() - before >= 0.3 - TICK
        worker.stdin.close()
        worker.wait()
    assert cpu_time_of_children() - before < 0.3, "it has ended"
    assert cpu_time() - ended >= 0.3 - TICK, "then it is in the time of the children that have"
