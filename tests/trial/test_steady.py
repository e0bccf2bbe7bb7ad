"""Steady epochs are enough, and run again where others had the processor; the choice favours no strategy."""

from __future__ import annotations

import contextlib
import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from loaders._trial import machine, steady, turns
from loaders._trial.machine import Activity
from loaders._trial.metrics import Disturbance
from loaders._trial.steady import REPEATS, Stretch, is_robbed, least_disturbed
from loaders._trial.timing import LONG, MOST_EPOCHS, Timeline, epoch_time, is_settled

BATCHES = 4


def _epoch(seconds: float) -> Timeline:
    at = [seconds * number / BATCHES for number in range(BATCHES + 1)]
    return Timeline(0.0, at[:-1], at[1:], seconds, [1] * BATCHES)


@dataclass
class Machine:
    """Runs epochs on two processors, of which a share is stolen, another one in each stretch; it slows them down."""

    shares: Sequence[float]
    seconds: float = LONG  # so that one is enough
    now: float = 0.0
    stolen: float = 0.0
    looked: int = 0
    ran: list[float] = field(default_factory=list)

    def look(self) -> Activity:
        self.looked += 1
        busy = 2 * self.now - self.stolen
        return Activity(total=2 * self.now, busy=busy, stolen=self.stolen, own=busy, swapped=None, throttled=None)

    def epochs(self) -> list[Timeline]:
        share = self.shares[min((self.looked - 1) // 2, len(self.shares) - 1)]
        self.ran.append(self.seconds * math.exp(3 * share))
        self.now += self.ran[-1]
        self.stolen += 2 * self.ran[-1] * share
        return [_epoch(self.ran[-1])]


def _measured(machine: Machine, epochs: Callable[[], list[Timeline]] | None = None) -> Stretch:
    first = Stretch()
    first.run(epochs or machine.epochs, machine.look)
    return least_disturbed(first, epochs or machine.epochs, machine.look)


@pytest.mark.parametrize(
    ("shares", "kept", "stretches"),
    [
        ([0.0], 0, 1),
        ([0.05, 0.0], 0, 1),
        ([0.3, 0.02], 1, 2),
        ([0.3, 0.2, 0.25, 0.0], 1, 3),  # at most two more
        ([0.2, 0.3, 0.25], 0, 3),
    ],
)
def test_the_least_disturbed_stretch_is_kept(shares: list[float], kept: int, stretches: int) -> None:
    machine = Machine(shares)
    found = _measured(machine)
    assert [epoch_time(each) for each in found.epochs] == pytest.approx([LONG * math.exp(3 * shares[kept])])
    assert len(machine.ran) == stretches == machine.looked / 2
    assert found.disturbance is not None
    assert found.disturbance.stolen == pytest.approx(shares[kept], abs=1e-4)


def test_short_epochs_are_repeated_until_they_are_enough_and_judged_together() -> None:
    machine = Machine([0.0], seconds=0.1)
    first = Stretch(machine.epochs(), [(machine.look(), machine.look())])
    found = least_disturbed(first, machine.epochs, machine.look)
    assert len(found.epochs) == 5
    assert len(found.looks) == 2
    robbed = Machine([0.5, 0.0], seconds=0.1)
    assert len(_measured(robbed).epochs) == 5, "another stretch is as long"


def test_where_the_system_tells_nothing_nothing_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "disturbance", lambda *_: None)
    robbed = Machine([0.5])
    assert len(_measured(robbed).epochs) == len(robbed.ran) == 1


@pytest.mark.parametrize(
    ("taken", "over", "robbed"),
    [
        (0.05, 1.0, False),
        (0.065, 1.0, False),
        (0.075, 1.0, True),
        (0.1, 0.2, False),
        (0.12, 0.2, True),
        (0.5, None, False),
    ],
)
def test_epochs_are_robbed_if_more_was_taken_than_a_step_of_the_kernels_accounts_can_pretend(
    taken: float, over: float | None, robbed: bool
) -> None:
    assert is_robbed(Disturbance(others=0.03, stolen=taken - 0.03, over=over)) == robbed
    assert not is_robbed(None)


def test_repeating_favours_no_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two strategies take equally long on a quiet machine; the second meets twice the disturbance."""
    draw = random.Random(1)

    def times(exposure: float) -> tuple[list[float], list[float]]:
        """Return the logarithms of the times, and what of them is not due to the disturbance."""
        found = []
        for _ in range(4000):
            noise: dict[int, float] = {}
            kept: list[Timeline] = []  # so that no two have one identity
            machine = Machine([min(0.5, exposure * draw.expovariate(1 / 0.03)) for _ in range(REPEATS + 1)])

            def epochs(
                machine: Machine = machine, noise: dict[int, float] = noise, kept: list[Timeline] = kept
            ) -> list[Timeline]:
                machine.seconds = 2 * LONG * math.exp(chance := draw.gauss(0, 0.05))
                (epoch,) = machine.epochs()
                noise[id(epoch)] = chance
                kept.append(epoch)
                return [epoch]

            (epoch,) = _measured(machine, epochs).epochs
            found.append((math.log(epoch_time(epoch)), noise[id(epoch)]))
        one, other = zip(*found, strict=True)
        return list(one), list(other)

    bias, spread = {}, {}
    for repeats in (0, REPEATS):
        monkeypatch.setattr(steady, "REPEATS", repeats)
        (one, one_noise), (two, two_noise) = times(1.0), times(2.0)
        # What a time owes to chance has no part in the choice: four standard errors.
        assert abs(statistics.fmean(one_noise)) < 4 * 0.05 / math.sqrt(4000)
        assert abs(statistics.fmean(two_noise)) < 4 * 0.05 / math.sqrt(4000)
        bias[repeats] = statistics.fmean(two) - statistics.fmean(one)
        spread[repeats] = statistics.stdev(one)
    assert 0 < bias[REPEATS] < 0.5 * bias[0]
    assert spread[REPEATS] < 0.8 * spread[0]


@dataclass
class Given:
    """Gives some turns, one after another, and notes how long each took, and how many epochs it had."""

    turns: int
    seconds: list[float] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)

    def ask(self, seconds: float, epochs: int) -> bool:
        self.seconds.append(seconds)
        self.epochs.append(epochs)
        return len(self.seconds) <= self.turns


def _in_turn(monkeypatch: pytest.MonkeyPatch, given: Given, machine: Machine) -> tuple[Stretch, Stretch]:
    first = Stretch([_epoch(9.0)], [(machine.look(), machine.look())])
    monkeypatch.setattr(turns, "taken", lambda _: contextlib.nullcontext(given.ask))
    return first, steady.in_turn(first, Path("there"), machine.epochs, machine.look)


def test_epochs_in_turn_replace_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    given, machine = Given(3), Machine([0.0], seconds=0.2)
    _, found = _in_turn(monkeypatch, given, machine)
    assert [epoch_time(each) for each in found.epochs] == [0.2] * 3, "one in each turn, not the one before them"
    assert given.seconds == [0.0, 0.2, 0.2, 0.2]
    assert len(found.looks) == 3, "around each: what the other trial does in between is no disturbance"


def test_a_turn_of_short_epochs_is_several_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    given, machine = Given(2), Machine([0.0], seconds=0.02)
    _, found = _in_turn(monkeypatch, given, machine)
    assert len(found.epochs) == 6
    assert given.seconds == pytest.approx([0.0, 0.06, 0.06])
    assert given.epochs == [0, 3, 3]
    shortest, tiny = Given(1), Machine([0.0], seconds=1e-4)
    assert len(_in_turn(monkeypatch, shortest, tiny)[1].epochs) == MOST_EPOCHS


def test_without_a_turn_as_many_epochs_count_as_without_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial that imports in its last turn is run again when turns are over."""
    machine = Machine([0.0], seconds=0.2)
    monkeypatch.setattr(turns, "taken", lambda _: contextlib.nullcontext(Given(0).ask))
    first = Stretch([_epoch(0.2)], [(machine.look(), machine.look())])
    assert not is_settled(first.epochs)
    assert is_settled(steady.in_turn(first, Path("there"), machine.epochs, machine.look).epochs)


def test_without_a_turn_the_epochs_before_count(monkeypatch: pytest.MonkeyPatch) -> None:
    first, found = _in_turn(monkeypatch, Given(0), Machine([0.0]))
    assert found is first
