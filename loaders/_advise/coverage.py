"""Which of the project's machines answers a question: the one that has measured most of it.

README, page and ``advise`` all go by this, so that they say the same to a stranger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from loaders._compare.plans import LEAST_ROUNDS
from loaders._corpus import OWN
from loaders._trial.log import PUBLISHED
from loaders._trial.record import Environment

OURS = "reference"
"""How the names of the project's own machines begin; nobody else can hand in results under such a name."""

SIZE = "full"
"""The size of data at which results are published; less of it answers nothing for a stranger."""

T = TypeVar("T")


class Coverage(NamedTuple):
    """How much of a question a machine has measured, and when.

    Attributes
    ----------
    machine
        Its name.
    started
        When, in ISO 8601.
    versions
        Of Python and TensorFlow.
    strategies
        The number of those with a result.
    rounds
        Of the middle one of them. Only as many count as every strategy gets: more of them go to what is still open,
        and a noisy machine would win.
    is_closed
        Whether its epochs end when their iterators are gone; those of older trials end at the last batch.
    """

    machine: str
    started: str
    versions: tuple[str, str]
    strategies: int
    rounds: int
    is_closed: bool


def of(rounds: Iterable[int], environment: Environment, started: str, *, is_closed: bool) -> Coverage:
    """Return the coverage of strategies that have so many rounds each."""
    counts = sorted(rounds)
    middle = min(counts[len(counts) // 2], LEAST_ROUNDS) if counts else 0
    versions = environment.python, environment.packages.get("tensorflow", "")
    return Coverage(environment.machine, started, versions, len(counts), middle, is_closed)


def most(found: Iterable[T], covers: Callable[[T], Coverage]) -> T | None:
    """Return what covers most, in strategies times rounds.

    Of several alike it is what ``is_closed``, then that of the published machine, then the newest.
    Other versions are no match: those of the published machine count, or else the newest.
    """
    known = [(covers(each), each) for each in found]
    if not known:
        return None
    versions = max(known, key=lambda pair: _precedence(pair[0]))[0].versions
    alike = [pair for pair in known if pair[0].versions == versions]
    return max(alike, key=lambda pair: (_amount(pair[0]), pair[0].is_closed, *_precedence(pair[0])))[1]


def _amount(coverage: Coverage) -> int:
    return coverage.strategies * coverage.rounds


def _precedence(coverage: Coverage) -> tuple[bool, str]:
    return coverage.machine == PUBLISHED, coverage.started


def is_ours(machine: str) -> bool:
    """Whether a machine is one of the project's."""
    return machine.startswith(OURS)


def may_answer(machine: str, size: str, data: str) -> bool:
    """Whether a result answers a stranger: of a machine of ours, on all of the photographs that everybody has."""
    return is_ours(machine) and size == SIZE and not data.startswith(OWN)
