"""Two trials that are alive at the same time and run their epochs in turn: A B B A.

How fast a machine is changes within seconds, so epochs that come right after each other differ less than whole trials
do. On a quiet virtual machine with two cores, steady times of four loaders of ``batching`` spread by 2.2 to 3.5 % from
trial to trial, and their ratio in two trials that took turns by 0.7 to 1.8 % (12 pairs of each, six turns).

On one whose neighbours slow it down by half for some seconds at a time, ratios of two turns spread by 9 to 13 % (29
pairs of trials of seven loaders). The mean of their logarithms spread by 5.5, 4.0, 3.2 and 3.0 % over 6, 12, 16 and 24
turns; the ratio of both sides' medians by 6.7, 5.0, 5.2 and 4.5 %, as each side's median jumps between fast and slow.
So the means of logarithms are compared, and turns go on while they are unsure.

Each trial has a directory with two named pipes. In one it asks for a turn, and says how long the last one took and how
many epochs it had; from the other it reads whether there is one. Whoever ordered the trials gives the turns.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ASKS, GOES = "asks", "goes"
GO, ENOUGH = b"g", b"e"

AVAILABLE = hasattr(os, "mkfifo")
"""Whether the system has named pipes that can be waited for."""

FEW, SECONDS, MOST = 4, 1.2, 80
"""Each trial gets this many turns at least, unless they take ``LONG``, and at most; in between, turns end when both
have run for so long in them, and their ratio is known to ``PRECISE``. Six turns of a quarter of a second told more for
their time than three or ten where it was quiet."""

PRECISE = 0.01
"""Standard error of the mean logarithm of the turns' ratios: about as much as layouts of addresses add from one pair of
trials to the next."""

PATIENCE, TIMES = 60.0, 10
"""A trial that hangs must not take the other one down with it, which waits and has a deadline of its own. The other
waits for it this many seconds, and this many times as long as it took itself until it asked for its first turn."""

LONG = 2.0
"""Seconds of turns after which they are enough, however few they are and however unsure their ratio is.

A verdict needs four pairs of trials, and after that long another pair tells more than turns that go on: in ten minutes,
19 strategies of ``batching``, compared with themselves once each way, had 71 pairs with 4 s, and three strategies fewer
than four; with 2 s they had 85, and none fewer. Three quarters of the pairs differed by less than 1.8 and 1.5 %, half
by less than 0.8 and 0.9 %. That machine was quiet: on the other one above, 8 turns would spread by about 5 %."""


@contextlib.contextmanager
def taken(directory: Path) -> Iterator[Callable[[float, int], bool]]:
    """Yield what asks for a turn in a trial, with the seconds and epochs of the last one; it waits, false is no more.

    If whoever gives turns has ended, there are no more either; nor if they are over, and the trial is run once more.
    """
    with contextlib.ExitStack() as opened:
        try:
            asks = opened.enter_context((directory / ASKS).open("wb", 0))
            goes = opened.enter_context((directory / GOES).open("rb", 0))
        except FileNotFoundError:
            yield lambda *_: False
            return

        def ask(seconds: float, epochs: int) -> bool:
            asks.write(b"%.9f %d\n" % (seconds, epochs))
            return goes.read(1) == GO

        yield ask


def are_on(directory: Path) -> bool:
    """Whether a trial may be waiting for a turn, because they are not over."""
    return (directory / ASKS).exists()


class Turns:
    """The turns of one trial, in the process that gives them.

    Attributes
    ----------
    directory
        What the trial is told.
    spent
        The seconds that its turns have taken.
    times
        The seconds of an epoch in each turn; none if the trial's commit is too old to say how many epochs it ran.
    epochs
        How many epochs it ran in all turns.
    """

    def __init__(self, directory: Path) -> None:
        self.directory, self.spent, self.epochs = directory, 0.0, 0
        self.times: list[float] = []
        directory.mkdir()
        for name in (ASKS, GOES):
            os.mkfifo(directory / name)
        # With both ends open here, neither side waits for the other to open its own.
        self._asks, self._goes = (os.open(directory / name, os.O_RDWR | os.O_NONBLOCK) for name in (ASKS, GOES))

    def close(self) -> None:
        """Close the pipes; a trial that still waits is told that there are no more turns."""
        for each in (self._asks, self._goes):
            os.close(each)

    def is_asked(self, answer: int, patience: float | None = None) -> bool:
        """Wait until the trial asks for a turn, at most so many seconds.

        False if it does not, or ends without, which makes the file ``answer`` readable.
        """
        if self._asks not in select.select([self._asks, answer], [], [], patience)[0]:
            return False
        seconds, *epochs = os.read(self._asks, 2**10).splitlines()[-1].split()
        self.spent += float(seconds)
        if epochs and (count := int(epochs[0])) and float(seconds):
            self.times.append(float(seconds) / count)
            self.epochs += count
        return True

    def give(self) -> None:
        """Let the trial run an epoch."""
        os.write(self._goes, GO)

    def end(self) -> None:
        """Tell the trial that there are no more turns, and one that is run in its place."""
        os.write(self._goes, ENOUGH)
        for name in (ASKS, GOES):
            (self.directory / name).unlink()


def give(both: Sequence[Turns], answers: Sequence[int], patience: float | None = None) -> None:
    """Give turns to two trials that have asked for their first one, until they have enough or one of them ends.

    One that keeps the other waiting for longer than ``patience`` ends them too.
    """
    given, order = 0, [0, 1]
    while not _is_enough(given, both):
        for side in order:
            both[side].give()
            if not both[side].is_asked(answers[side], patience):
                return
        given += 1
        order.reverse()


def compared(both: Sequence[Turns]) -> list[float]:
    """Return each side's seconds of an epoch, whose ratio is what the turns show; empty if they show nothing.

    They are the geometric means over the turns that both had, an even number: A B alone would leave a drift with B.
    """
    count = min(len(each.times) for each in both) // 2 * 2
    return [statistics.geometric_mean(each.times[:count]) for each in both] if count else []


def _is_enough(given: int, both: Sequence[Turns]) -> bool:
    if given % 2:
        return False  # see ``compared``
    seconds = min(each.spent for each in both)
    if given >= MOST or (given > 0 and seconds >= LONG):
        return True
    return given >= FEW and seconds >= SECONDS and _error([each.times for each in both]) <= PRECISE


def _error(times: Sequence[Sequence[float]]) -> float:
    """Return the standard error of the mean logarithm of the ratios; 0 if nobody says what they are."""
    ratios = [math.log(one / other) for one, other in zip(*times, strict=False)]
    return statistics.stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else 0.0
