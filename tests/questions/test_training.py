from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from loaders import _registry
from loaders._corpus import Corpus
from loaders._trial.drain import busy, drain
from loaders._trial.timing import step_wait


def test_every_loader_is_that_of_batching() -> None:
    known = _registry.variants("batching")
    for name, each in _registry.variants("training").items():
        assert each.build is known[name].build
        assert (each.tier, each.optional, each.convert) == (known[name].tier, known[name].optional, known[name].convert)
    assert _registry.baseline("training").name == "path_generator"


def test_a_step_keeps_a_core_busy_for_its_length() -> None:
    times, used = [], []
    for _ in range(9):
        began, before = time.perf_counter(), time.thread_time()
        busy(0.02)
        times.append(time.perf_counter() - began)
        used.append(time.thread_time() - before)
    assert 0.02 <= statistics.median(times) < 0.03
    assert max(used) > 0.015, "where nothing else runs, it is on the processor all the time"


def test_who_works_ahead_makes_no_step_wait_and_who_does_not_makes_each_wait(corpus: Corpus) -> None:
    """Batches that take 10 ms, without and with a thread that makes them while the step is under way."""
    from concurrent.futures import ThreadPoolExecutor

    def alone() -> Iterator[list[int]]:
        for _ in range(8):
            time.sleep(0.01)
            yield [0]

    def ahead() -> Iterator[list[int]]:
        with ThreadPoolExecutor(1) as pool:
            under_way = pool.submit(time.sleep, 0.01)
            for _ in range(8):
                under_way.result()
                under_way = pool.submit(time.sleep, 0.01)
                yield [0]

    waits = {}
    for build in (alone, ahead):
        timelines, _ = drain(build, epochs=3, step_time=0.03, spend=busy)
        found = step_wait(timelines[1:])
        assert found is not None
        assert found.p99 >= found.p50
        waits[build.__name__] = found.p50
    assert waits["alone"] >= 0.01
    assert waits["ahead"] < 0.005
