from __future__ import annotations

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
    """As busy as a loop that looks at the clock, run in turn with it: other threads and processes take from both."""

    def spin(seconds: float) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    times, used = [], {busy: 0.0, spin: 0.0}
    for _ in range(25):
        for step in (busy, spin):
            began, before = time.perf_counter(), time.thread_time()
            step(0.02)
            used[step] += time.thread_time() - before
            times.append(time.perf_counter() - began)
    assert all(each >= 0.02 for each in times)
    assert min(times) < 0.03
    assert used[busy] > 0.6 * used[spin], "it does not sleep"


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
