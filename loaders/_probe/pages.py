"""How many new pages of memory an epoch takes where ``Dataset.from_generator`` has malloc give memory back."""

from __future__ import annotations

import msgspec

from loaders._malloc import HIGHEST, set_threshold_back
from loaders._probe.adapt import Batches
from loaders._probe.stages import Stages
from loaders._units import Count, Seconds


class NewPages(msgspec.Struct, frozen=True):
    """Pages that the system had to clear for an epoch: as it was, and with malloc's threshold set back.

    Attributes
    ----------
    spent
        How much more processor time the system used in the former.
    """

    given_back: Count
    kept: Count
    spent: Seconds


def read(batches: Batches, stages: Stages | None) -> NewPages | None:
    """Read three more epochs of a pipeline that calls a generator; ``None`` of any other.

    The one between the two that count is the first with the threshold set back, in which memory grows to what is kept.
    """
    if not (batches.is_keras or (stages and any(each.name == GENERATOR for each in stages.stages))):
        return None
    given_back, spent = _of_epoch(batches)
    if not set_threshold_back(HIGHEST):
        return None
    _of_epoch(batches)
    kept, less = _of_epoch(batches)
    return NewPages(given_back, kept, max(0.0, spent - less))


GENERATOR = "Generator"
"""The stage of a generator, as ``stages`` names it."""


def _of_epoch(batches: Batches) -> tuple[int, float]:
    """Return the new pages of an epoch, and the seconds of processor time that the system used for it."""
    import resource  # where there is a threshold to be set back, there is this

    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in batches:
        pass
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_minflt - before.ru_minflt, after.ru_stime - before.ru_stime
