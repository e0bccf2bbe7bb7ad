"""How far tf.data service scales, from what a few workers were measured to cost. Pure.

An image costs the client, the dispatcher and the workers processor time, and bytes on the wire; and one worker delivers
so many images a second. Workers add up until something is used up: on one machine the cores that all share, on several
the client's cores, its link, or the dispatcher's one core. What a second worker does not shorten, such as the start of
an epoch, more of them do not either. Measured epochs are short, so that this shows in what is predicted of them; in a
long epoch it is little, and what is projected counts all of a worker's time as work that can be shared out.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loaders._rows import Row
from loaders._stats import Estimate

LINK = 10e9 / 8
"""Bytes a second of the link that a projection assumes: 10 Gbit/s."""

FROM = (1, 2)
"""The numbers of workers that costs are taken from; larger ones are predicted."""

SERIES = "workers"
"""The series of strategies that differ in the number of their workers and in nothing else."""


@dataclass(frozen=True)
class Costs:
    """Of one image.

    Attributes
    ----------
    each
        Seconds that one worker takes for it while nothing else limits it.
    client, dispatcher, workers
        Seconds of processor time.
    wire
        Bytes.
    once
        Seconds of ``each`` that a second worker did not shorten: what an epoch costs once, or cores that are used up.
    """

    each: float
    client: float
    dispatcher: float
    workers: float
    wire: float
    once: float = 0.0

    def here(self, count: int, cores: int) -> float:
        """Return the images a second of so many workers that share the cores of one machine with all others."""
        taken = self.once + (self.each - self.once) / count
        return min(count / self.each, 1 / taken, cores / (self.client + self.dispatcher + self.workers))

    def elsewhere(self, count: int, cores: int) -> float:
        """Return the images a second of so many workers, if every process has a machine of its own."""
        return min(count / self.each, *self.limits(cores).values())

    def most(self, cores: int) -> int:
        """Return after how many workers more would add nothing, if every process has a machine of its own."""
        return math.ceil(min(self.limits(cores).values(), default=0.0) * self.each)

    def apart(self, cores: int) -> Costs:
        """Return the costs if every worker has so many cores to itself, and is limited by nothing else."""
        return dataclasses.replace(self, each=self.workers / cores, once=0.0)

    def limits(self, cores: int) -> dict[str, float]:
        """Return the images a second at which each part is used up, if every process has a machine of its own.

        What ends first comes first. The client has so many cores; the dispatcher works on one.
        """
        costs = {
            "the client's processors": self.client / cores,
            "a link of 10 Gbit/s": self.wire / LINK,
            "the dispatcher": self.dispatcher,
        }
        return {name: 1 / each for name, each in sorted(costs.items(), key=lambda cost: -cost[1]) if each > 0}

    def needed(self, rate: float, cores: int) -> int | None:
        """Return how many workers deliver so many images a second; ``None`` if something else is used up before."""
        if rate > min(self.limits(cores).values(), default=math.inf):
            return None
        return max(1, math.ceil(rate * self.each * (1 - 1e-9)))  # two are two, however they are rounded


def costs(rows: Sequence[Row]) -> Costs | None:
    """Return what an image costs, from the measured rows of one and two workers; ``None`` if these are not there."""
    by_count = by_workers(rows)
    if any(count not in by_count for count in FROM):
        return None
    one, two = (by_count[count] for count in FROM)
    time, halved, wire, images = one["time"], two["time"], two["wire"], two.delivered
    if not (time and halved and wire and images and {"client", "dispatcher", "workers"} <= two.roles.keys()):
        return None
    of_roles: Mapping[str, float] = {name: seconds / images for name, seconds in two.roles.items()}
    return Costs(
        each=time.value / images,
        client=of_roles["client"],
        dispatcher=of_roles["dispatcher"],
        workers=of_roles["workers"],
        wire=wire.value,
        once=min(max(0.0, 2 * halved.value - time.value), time.value) / images,
    )


def rate(row: Row) -> Estimate | None:
    """Return the images a second of a measured row."""
    time, images = row["time"], row.delivered
    if not (time and images):
        return None
    low, high = (None if end is None or end <= 0 else images / end for end in (time.high, time.low))
    return Estimate(images / time.value, low, high, time.count)


def by_workers(rows: Sequence[Row]) -> dict[int, Row]:
    """Return the measured rows of the series by their number of workers."""
    found = {int(row.at): row for row in rows if row.series == SERIES and row["time"]}
    return dict(sorted(found.items()))
