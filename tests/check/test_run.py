from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from loaders._check.judge import LOOKS
from loaders._check.run import Outcome, Subject, run

MIB = 2**20


class Clock:
    """Advances by one second with each trial."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ran: list[tuple[str, str, int]] = []

    def __call__(self) -> float:
        return self.now

    def trial(
        self, name: str, side: str, time: float, peak: float = 10, **record: Any
    ) -> Callable[[int], dict[str, Any]]:
        def ran(seed: int) -> dict[str, Any]:
            self.now += 1
            self.ran.append((name, side, seed))
            metrics = {"epoch_time": time, "peak_memory": int(peak * MIB)}
            return {"status": "ok", "message": "", "metrics": metrics, **record}

        return ran

    def subject(self, name: str, a: float, b: float, **of_b: Any) -> Subject:
        return Subject(name, "epoch_time", self.trial(name, "a", a), self.trial(name, "b", b, **of_b))


def _run(clock: Clock, *subjects: Subject, seconds: float = 1e6) -> dict[str, Outcome]:
    return {each.name: each for each in run(subjects, seconds, clock=clock)}


def test_blocks_are_a_b_b_a_and_both_sides_draw_alike() -> None:
    clock = Clock()
    found = _run(clock, clock.subject("x", 1.0, 1.2))
    assert [side for _, side, _ in clock.ran] == list("abba") * LOOKS[0]
    assert [seed for _, _, seed in clock.ran] == [index // 4 + 1 for index in range(4 * LOOKS[0])]
    assert found["x"].time
    assert found["x"].time.verdict == "slower"
    assert found["x"].is_regression
    assert found["x"].memory
    assert found["x"].memory.verdict == "no difference"


def test_memory_of_worker_processes_counts() -> None:
    clock = Clock()
    tree = {"metrics": {"epoch_time": 1.0, "peak_memory": 10 * MIB, "peak_memory_tree": 90 * MIB}}
    found = _run(clock, clock.subject("x", 1.0, 1.0, **tree))
    assert found["x"].memory
    assert found["x"].memory.verdict == "fatter"


def test_what_is_decided_is_not_measured_on_and_the_rest_is() -> None:
    clock = Clock()
    times = iter([1.0, 1.3, 0.8, 1.1, 0.9] * 100)
    noisy = clock.trial("noisy", "b", 1.0)

    def wobbling(seed: int) -> dict[str, Any]:
        record = noisy(seed)
        record["metrics"]["epoch_time"] = next(times)
        return record

    open_ = Subject("noisy", "epoch_time", clock.trial("noisy", "a", 1.0), wobbling)
    found = _run(clock, open_, clock.subject("clear", 1.0, 1.5))
    assert found["clear"].time
    assert found["noisy"].time
    assert (found["clear"].time.blocks, found["noisy"].time.blocks) == (LOOKS[0], LOOKS[-1])
    assert found["noisy"].time.verdict == "inconclusive"


def test_time_up_leaves_what_is_there() -> None:
    clock = Clock()
    found = _run(clock, clock.subject("x", 1.0, 1.5), clock.subject("y", 1.0, 1.5), seconds=5)
    assert sorted(bool(each.time) for each in found.values()) == [True, True] or len(clock.ran) == 8
    none = _run(Clock(), Clock().subject("x", 1.0, 1.5), seconds=0)
    assert none["x"].message == "not measured: the time was up"
    assert not none["x"].is_regression


def test_an_interruption_has_told_what_is_there() -> None:
    clock = Clock()
    good, told = clock.trial("x", "b", 1.5), list[list[Outcome]]()

    def stopped(seed: int) -> dict[str, Any]:
        if len(clock.ran) == 10:
            raise KeyboardInterrupt
        return good(seed)

    with pytest.raises(KeyboardInterrupt):
        run([Subject("x", "epoch_time", clock.trial("x", "a", 1.0), stopped)], 1e6, told=told.append, clock=clock)
    (found,) = told[-1]
    assert found.time
    assert (found.time.blocks, found.time.verdict) == (2, "inconclusive")


def test_what_fails_on_the_new_side_only_is_a_regression() -> None:
    clock = Clock()
    failing: dict[str, Any] = {"status": "wrong_output", "message": "delivered 3 samples"}
    found = _run(clock, clock.subject("x", 1.0, 1.0, **failing))
    assert (found["x"].is_regression, found["x"].message) == (True, "B wrong output: delivered 3 samples")
    assert len(clock.ran) == 4, "given up"
    both = Subject("y", "epoch_time", clock.trial("y", "a", 1.0, **failing), clock.trial("y", "b", 1.0, **failing))
    mended = Subject("z", "epoch_time", clock.trial("z", "a", 1.0, **failing), clock.trial("z", "b", 1.0))
    again = _run(clock, both, mended)
    assert not again["y"].is_regression
    assert not again["z"].is_regression


def test_a_single_failure_costs_its_block_only() -> None:
    clock = Clock()
    good = clock.trial("x", "b", 1.0)

    def once(seed: int) -> dict[str, Any]:
        record = good(seed)
        return {**record, "status": "timed_out"} if len(clock.ran) == 3 else record

    found = _run(clock, Subject("x", "epoch_time", clock.trial("x", "a", 1.0), once))
    assert found["x"].time
    assert found["x"].time.verdict == "no difference"
    assert found["x"].message == "B timed out"
    assert len(clock.ran) == 4 * (LOOKS[0] + 1)
