"""The steady epochs of a trial: enough of them, and once more if others had the processor meanwhile; or in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loaders._trial import machine, timing, turns
from loaders._trial.machine import Activity
from loaders._trial.metrics import Disturbance
from loaders._trial.timing import Timeline

ROBBED = 0.06
"""Steady epochs that lost a larger share of the processor time to other processes and other guests are run again. Of
1085 published trials on a virtual machine 16 % lost more, and 40 % of those that came next did so too. Without them a
strategy's trials spread by 14 % instead of 17 %. With 0.03 it is 14 % as well, and 40 % are repeated; with 0.1 it is
16 %, and 6 % are."""

TICK = 0.01
"""Seconds of processor time in one step of the kernel's accounts; it may be missing from what was lost, or too much."""

REPEATS = 2
"""They are run again at most so often: where the machine is never quiet, repeating does not help."""


def is_robbed(found: Disturbance | None) -> bool:
    """Whether so much processor time went to others that it is worth repeating."""
    return found is not None and found.over is not None and (found.taken - ROBBED) * found.over > TICK


TURN = 0.05
"""Seconds. A turn of shorter epochs is several of them: the first one finds the processor's caches full of the other
trial's data. Of ``load_all``, an epoch of 0.16 ms took 0.46 ms in a turn of its own."""


@dataclass
class Stretch:
    """Steady epochs that are judged together, and pairs of looks at the machine, around all of them."""

    epochs: list[Timeline] = field(default_factory=list)
    looks: list[tuple[Activity, Activity]] = field(default_factory=list)

    @property
    def disturbance(self) -> Disturbance | None:
        """What else the machine did meanwhile."""
        return machine.disturbance(self.looks[0][0], self.looks[-1][1], self.looks)

    def run(self, epochs: Callable[[], Sequence[Timeline]], look: Callable[[], Activity]) -> None:
        """Run one or several epochs at a time until they are enough."""
        before = look()
        self.epochs += epochs()
        while not timing.is_settled(self.epochs):
            self.epochs += epochs()
        self.looks.append((before, look()))


def least_disturbed(
    first: Stretch, epochs: Callable[[], Sequence[Timeline]], look: Callable[[], Activity] = machine.activity
) -> Stretch:
    """Complete a stretch, run others if it was robbed, and return the least disturbed one.

    The choice rests on the disturbance alone, never on a time, so it favours no strategy: what other guests and
    processes do does not depend on the strategy's code. A strategy that runs longer or uses more cores meets more of
    it, but is slowed down by it as well, so ratios come nearer to those of a quiet machine. Work that the kernel's
    threads do for a strategy, as in writing files, counts as disturbance too: the stretch with the least of it is kept.
    """
    if not timing.is_settled(first.epochs):
        first.run(epochs, look)
    stretches = [first]
    while len(stretches) <= REPEATS and is_robbed(stretches[-1].disturbance):
        another = Stretch()
        another.run(epochs, look)
        stretches.append(another)
    return min(stretches, key=lambda each: found.taken if (found := each.disturbance) else 0.0)


def in_turn(
    first: Stretch,
    directory: Path,
    epochs: Callable[[], Sequence[Timeline]],
    look: Callable[[], Activity] = machine.activity,
) -> Stretch:
    """Run an epoch, or several short ones, in each turn that is given; without any turn, see ``least_disturbed``.

    The other trial runs between them, so what the machine did is looked at around each turn, and none is repeated.
    """
    stretch, seconds, more = Stretch(), 0.0, list[Timeline]()
    with turns.taken(directory) as ask:
        while ask(seconds, len(more)):
            before, more = look(), [*epochs()]
            while (seconds := sum(map(timing.epoch_time, more))) < TURN and len(more) < timing.MOST_EPOCHS:
                more += epochs()
            stretch.looks.append((before, look()))
            stretch.epochs += more
    return stretch if stretch.epochs else least_disturbed(first, epochs, look)
