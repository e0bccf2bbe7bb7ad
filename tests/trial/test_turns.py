"""Two trials take turns: with threads in place of trials, through real pipes."""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loaders._trial import turns
from loaders._trial.turns import Turns

pytestmark = pytest.mark.skipif(not turns.AVAILABLE, reason="this system has no named pipes")


class Player:
    """A trial that takes turns of some length, at most so many before it ends; it may hang in one of them.

    Several lengths come one after the other, again and again. A commit that is ``old`` does not tell its epochs.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        log: list[str],
        *seconds: float,
        ends_after: int = 10**6,
        hangs_in: int = 0,
        epochs: int = 1,
        old: bool = False,
    ) -> None:
        self.given = Turns(directory / name)
        self.answering, self._answers = os.pipe()
        self.turns = 0
        self._released = threading.Event()

        def play() -> None:
            with turns.taken(self.given.directory) as ask:
                told = (0.0, 0)
                while self.turns < ends_after and ask(*told):
                    log.append(name)
                    told = seconds[self.turns % len(seconds)], 0 if old else epochs
                    self.turns += 1
                    if self.turns == hangs_in:
                        self._released.wait()
            os.write(self._answers, b"x")

        self.thread = threading.Thread(target=play)
        self.thread.start()

    def close(self) -> None:
        self._released.set()
        if turns.are_on(self.given.directory):
            self.given.end()
        self.thread.join(10)
        assert not self.thread.is_alive()
        self.given.close()
        for each in (self.answering, self._answers):
            os.close(each)


@pytest.fixture
def players(tmp_path: Path) -> Iterator[Callable[..., Player]]:
    with contextlib.ExitStack() as closing:

        def player(name: str, *arguments: object, **more: object) -> Player:
            made = Player(name, tmp_path, *arguments, **more)  # type: ignore[arg-type]
            closing.callback(made.close)
            return made

        yield player


def _give(*both: Player) -> None:
    for each in both:
        assert each.given.is_asked(each.answering)
    turns.give([each.given for each in both], [each.answering for each in both])


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ((0.25, 0.25), 6),  # an even number, of 1.2 s at least
        ((0.5, 0.6), 4),  # the least
        ((0.01, 0.01), turns.MOST),
        ((1.5, 0.8), 4),  # the quicker side's time counts
        ((2.5, 2.0), 2),  # long ones are enough sooner
    ],
)
def test_turns_alternate_a_b_b_a_until_they_are_enough(
    players: Callable[..., Player], seconds: tuple[float, float], expected: int
) -> None:
    log: list[str] = []
    a, b = players("a", log, seconds[0]), players("b", log, seconds[1])
    _give(a, b)
    assert (a.turns, b.turns) == (expected, expected)
    assert "".join(log) == "abba" * (expected // 2)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ((0.1, 0.101), 12),  # they are sure after 1.2 s
        ((0.08, 0.12), 20),  # a fast moment and a slow one: they go on for two seconds
        ((0.095, 0.1, 0.105, 0.1), 14),  # or until they are sure
    ],
)
def test_turns_go_on_while_their_ratio_is_unsure(
    players: Callable[..., Player], seconds: tuple[float, ...], expected: int
) -> None:
    a, b = players("a", [], 0.1), players("b", [], *seconds)
    _give(a, b)
    assert (a.turns, b.turns) == (expected, expected)


def test_of_a_trial_that_tells_no_epochs_the_least_is_enough(players: Callable[..., Player]) -> None:
    a, b = players("a", [], 0.25, old=True), players("b", [], 0.2, 0.4)
    _give(a, b)
    assert (a.turns, b.turns) == (6, 6)
    assert turns.compared([a.given, b.given]) == []


def test_what_is_compared_is_turn_with_turn(players: Callable[..., Player]) -> None:
    """Of two alike, each median would jump between fast and slow moments; an odd last turn has no partner."""
    a, b = players("a", [], 0.2, 0.4, epochs=2), players("b", [], 0.3, 0.6, epochs=3)
    _give(a, b)
    found = turns.compared([a.given, b.given])
    assert found == pytest.approx([math.sqrt(0.1 * 0.2)] * 2)
    assert a.given.epochs == 2 * a.turns
    b.given.times.pop()
    a.given.times[-2:] = [9.0, 9.0]
    assert turns.compared([a.given, b.given]) == pytest.approx(found)


@pytest.mark.parametrize("which", [0, 1])
def test_turns_end_when_either_trial_does(players: Callable[..., Player], which: int) -> None:
    log: list[str] = []
    lengths = [10**6, 10**6]
    lengths[which] = 3
    a, b = (players(name, log, 0.01, ends_after=each) for name, each in zip("ab", lengths, strict=True))
    _give(a, b)
    assert (a, b)[which].turns == 3
    assert (a, b)[1 - which].turns in (2, 3)


def test_a_trial_that_ends_before_it_asks_is_no_partner(players: Callable[..., Player]) -> None:
    player = players("a", [], 0.01, ends_after=0)
    assert not player.given.is_asked(player.answering)


def test_turns_end_when_one_trial_hangs_in_its_own(players: Callable[..., Player]) -> None:
    a, b = players("a", [], 0.01, hangs_in=1), players("b", [], 0.01)
    for each in (a, b):
        assert each.given.is_asked(each.answering)
    turns.give([each.given for each in (a, b)], [each.answering for each in (a, b)], patience=0.05)
    b.given.end()
    b.thread.join(10)
    assert not b.thread.is_alive(), "the other one goes on"
    assert not turns.are_on(b.given.directory)
    assert a.thread.is_alive()
    assert turns.are_on(a.given.directory)


def test_once_turns_are_over_a_trial_that_is_run_again_has_none(tmp_path: Path) -> None:
    given = Turns(tmp_path / "a")
    assert turns.are_on(given.directory)
    given.end()
    assert not turns.are_on(given.directory)
    with turns.taken(given.directory) as ask:
        assert not ask(0.0, 0)
    given.close()


def test_a_trial_whose_giver_is_gone_goes_on_without_turns(tmp_path: Path) -> None:
    given, told = Turns(tmp_path / "a"), list[bool]()

    def ask() -> None:
        with turns.taken(given.directory) as asked:
            told.append(asked(0.0, 0))

    waiting = threading.Thread(target=ask)
    waiting.start()
    assert given.is_asked(given._goes)
    given.close()
    waiting.join(10)
    assert told == [False]
