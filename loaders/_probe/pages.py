"""How many new pages of memory an epoch takes where ``Dataset.from_generator`` has malloc give memory back."""

from __future__ import annotations

import msgspec

from loaders._malloc import HIGHEST, has_threshold, set_threshold_back
from loaders._probe.adapt import Batches
from loaders._probe.stages import Stages
from loaders._trial import drain
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
    """Read two more epochs of a pipeline that calls a generator; ``None`` of any other, or if it fails meanwhile."""
    calls = batches.is_keras or (stages and any(each.name == GENERATOR for each in stages.stages))
    if not calls or not has_threshold():
        return None
    given_back, spent = _of_epoch(batches)
    set_threshold_back(HIGHEST)
    kept, less = _of_epoch(batches)
    return None if batches.failed else NewPages(given_back, kept, max(0.0, spent - less))


GENERATOR = "Generator"
"""The stage of a generator, as ``stages`` names it."""


def _of_epoch(batches: Batches) -> tuple[int, float]:
    pages, seconds = drain.new_pages()
    for _ in batches:
        pass
    more, later = drain.new_pages()
    return more - pages, later - seconds
