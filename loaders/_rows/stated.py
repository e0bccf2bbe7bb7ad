"""What the ratios of a question's first answer are taken of: a steady epoch, or many epochs with what comes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loaders._rows.figures import total
from loaders._rows.values import Row, advisable, differs_at_first, loaders_of, worked_first


class Headline(NamedTuple):
    """The strategies that a first answer may name.

    Attributes
    ----------
    baseline
        What they are held against, one of them.
    rows
        Those with the baseline's output that may be named (``loaders_of``), and the baseline, even if it has failed.
    times
        Their times by round.
    over_all
        Whether the times are totals over many epochs, because some of the strategies do work that later epochs skip.
    """

    baseline: Row
    rows: list[Row]
    times: dict[str, Mapping[int, float]]
    over_all: bool


def headline(rows: Sequence[Row]) -> Headline | None:
    """Return what a first answer about one case rests on.

    ``None`` where the baseline, or all else, has no known time or another output than is asked for; then it may rest on
    pairs (``paired``).
    """
    baseline = next((row for row in rows if row.is_baseline), None)
    if baseline is None or baseline.tier != "identical":
        return None
    able = [row for row in advisable(rows) if row is baseline or not row.failed]
    same = [row for row in able if row["time"] and row.tier == baseline.tier]
    over_all = any(row.converts or worked_first(row) or differs_at_first(row) for row in same)
    times: dict[str, Mapping[int, float]] = {row.strategy: row.times for row in same}
    if over_all:
        same = [row for row in same if row.parts]
        times = {row.strategy: {index: total(parts) for index, parts in row.parts.items()} for row in same}
    return Headline(baseline, same, times, over_all) if baseline in same and len(same) > 1 else None


def paired(rows: Sequence[Row]) -> list[Row]:
    """Return the strategies with a pair: what they gain over it may be a first answer."""
    return [row for row in loaders_of(rows) if row.pair and row.pair.ratio.low is not None]
