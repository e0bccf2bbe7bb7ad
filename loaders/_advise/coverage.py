"""Which of the project's machines answers a question: the published one, unless another has measured more of it.

README, page and ``advise`` all go by this, so that they say the same to a stranger.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from loaders._compare.plans import LEAST_ROUNDS
from loaders._trial.record import Environment

OURS = "reference"
"""How the names of the project's own machines begin; nobody else can hand in results under such a name."""


class Coverage(NamedTuple):
    """How much of a question a machine has measured.

    Attributes
    ----------
    strategies
        Those with a result.
    rounds
        Of the middle one of them. Only as many count as every strategy gets: more of them go to what is still open,
        and a noisy machine would win.
    versions
        Of Python and TensorFlow.
    """

    strategies: int
    rounds: int
    versions: tuple[str, str]

    def exceeds(self, other: Coverage) -> bool:
        """Whether it has as many strategies and rounds, and more of either; other versions are no match."""
        if self.versions != other.versions or self.strategies < other.strategies or self.rounds < other.rounds:
            return False
        return self[:2] != other[:2]


def of(rounds: Iterable[int], environment: Environment) -> Coverage:
    """Return the coverage of strategies that have so many rounds each."""
    counts = sorted(rounds)
    middle = min(counts[len(counts) // 2], LEAST_ROUNDS) if counts else 0
    return Coverage(len(counts), middle, (environment.python, environment.packages.get("tensorflow", "")))


def is_ours(machine: str) -> bool:
    """Whether a machine is one of the project's."""
    return machine.startswith(OURS)
