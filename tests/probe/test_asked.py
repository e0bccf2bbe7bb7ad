"""How many epochs a verdict on memory is given."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from loaders._probe import asked, target
from loaders._probe.asked import LONGEST, MORE, MOST_GROWN, MOST_STEPS, _epochs
from loaders._trial.growth import MIN_POINTS
from loaders._trial.metrics import MemoryTrace
from loaders._trial.record import Record, Trial
from tests.probe.made import MIB, PLAN, grown, record


def _trace(points: int = 100, last: int = 100, rise: int = 0) -> MemoryTrace:
    steps = [round(last * number / points) for number in range(1, points + 1)]
    resident = [rise * number // (points - 1) for number in range(points)]
    return MemoryTrace(steps, [0.0] * points, resident, None)


@pytest.mark.parametrize(
    ("verdict", "trace", "epoch", "times"),
    [
        ("flat", _trace(), 0.1, 1),
        ("growing, in use", _trace(), 0.1, 1),
        ("growing, held by the allocator", _trace(), 0.1, MORE),
        ("undecided", _trace(), 0.1, MORE),
        ("undecided", _trace(points=8), 0.1, math.ceil(4 * MIN_POINTS / 8)),
        ("undecided", _trace(points=8), 1.0, LONGEST / PLAN.epochs),
        ("undecided", _trace(), LONGEST, 1),
        ("undecided", _trace(rise=512 * MIB), 0.1, MOST_GROWN / (512 * MIB)),
        ("undecided", _trace(rise=4096 * MIB), 0.1, 1),
        ("undecided", _trace(last=MOST_STEPS // 3), 0.1, 3),
    ],
)
def test_an_open_verdict_gets_more_epochs_within_time_steps_and_memory(
    verdict: str, trace: MemoryTrace, epoch: float, times: float
) -> None:
    given: dict[str, Any] = {"memory_growth": grown(verdict), "memory_trace": trace, "epoch_time": epoch}
    assert _epochs(record(**given), PLAN) == int(times * PLAN.epochs)


@pytest.mark.parametrize(("deadline", "times"), [(600.0, MORE), (12.0, 1 + 5 / PLAN.epochs), (2.0, 1)])
def test_more_epochs_leave_a_trial_within_its_deadline(deadline: float, times: float) -> None:
    """It took two seconds with epochs of one; half of what is left is for what a trial does besides."""
    given: dict[str, Any] = {"memory_growth": grown("undecided"), "memory_trace": _trace(), "epoch_time": 1.0}
    first = msgspec.structs.replace(record(**given), seconds=2.0)
    plan = msgspec.structs.replace(PLAN, deadline=deadline)
    assert _epochs(first, plan) == int(times * PLAN.epochs)


def test_without_a_trace_or_after_a_failure_it_gets_none() -> None:
    assert _epochs(record(memory_trace=None), PLAN) == PLAN.epochs
    unread = record(memory_trace=MemoryTrace([], [], [], None), memory_growth=grown("undecided"))
    assert _epochs(unread, PLAN) == PLAN.epochs, "its worker processes were read too late"
    assert _epochs(record("failed", memory_trace=_trace()), PLAN) == PLAN.epochs


def test_a_long_step_is_slept_through_and_no_standstill() -> None:
    for step, still in ((None, 0.0), (0.05, 0.2), (30.0, 120.0)):
        made = asked.Asked(target.Target("slow.py", "make", {}, "."), step=step)
        assert made.trial().still == pytest.approx(still)


def test_a_later_trial_whose_verdict_is_open_gets_more_epochs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[int] = []

    def run_trial(trial: Trial, *_: object, **__: object) -> Record:
        run.append(trial.epochs)
        verdict = "undecided" if len(run) == 2 else "flat"  # a busy machine: the second trace is too short
        made = record(memory_growth=grown(verdict), memory_trace=_trace(), epoch_time=0.1)
        return msgspec.structs.replace(made, epochs=trial.epochs)

    monkeypatch.setattr(asked, "run_trial", run_trial)
    found = list(asked.rounds(PLAN, 3, lambda _: None))
    assert run == [PLAN.epochs, PLAN.epochs, MORE * PLAN.epochs, MORE * PLAN.epochs]
    assert [each.epochs for each in found] == [PLAN.epochs, MORE * PLAN.epochs, MORE * PLAN.epochs]


@pytest.mark.parametrize(
    ("status", "message", "kept"),
    [
        ("timed_out", "not finished after 40 s; ended", "ok"),
        ("timed_out", "stood still for 60 s; ended", "timed_out"),
        ("over_budget", "", "over_budget"),
        ("failed", "", "failed"),
    ],
)
def test_epochs_that_nobody_asked_for_are_no_failure_if_they_run_into_the_deadline(
    monkeypatch: pytest.MonkeyPatch, status: str, message: str, kept: str
) -> None:
    def run_trial(trial: Trial, *_: object, **__: object) -> Record:
        made = record(memory_growth=grown("undecided"), memory_trace=_trace(), epoch_time=0.1)
        return made if trial.epochs == PLAN.epochs else record(status, message)

    monkeypatch.setattr(asked, "run_trial", run_trial)
    found = asked.run(PLAN)
    assert found.status == kept
    assert bool(found.metrics.memory_trace) == (kept == "ok")
