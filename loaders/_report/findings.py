"""What a comparison found, in sentences made from its figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from loaders._rows import Row
from loaders._words import amount, factor


def name_of(row: Row, rows: Sequence[Row]) -> str:
    """Return a strategy's name, with its tier where there are several: they do not deliver the same."""
    return f"{row.strategy} ({row.tier})" if len({each.tier for each in rows}) > 1 else row.strategy


def of_time(rows: Sequence[Row]) -> str:
    """Say which strategy is fastest, and by how much, if the intervals allow. ``rows`` stand fastest first."""
    timed = [row for row in rows if row.time]
    if not timed:
        return "No strategy was timed"
    best = timed[0]
    if best.is_baseline:
        return f"{best.strategy}, the baseline, is fastest"
    baseline = next((row.strategy for row in rows if row.is_baseline), "the baseline")
    if best.ratio is None or best.ratio.low is None:
        return f"{name_of(best, rows)} was fastest, but a single sample shows no difference"
    if not best.ratio.differs_from_one:
        return f"No difference in time between {best.strategy} and {baseline}"
    return f"{name_of(best, rows)} is fastest: {factor(1 / best.ratio.value)} faster than {baseline}"


def of_memory(rows: Sequence[Row]) -> str:
    """Say which strategies need least and most memory."""
    measured = sorted((row.peak.value, row.strategy) for row in rows if row.peak)
    if not measured:
        return "No strategy's memory was measured"
    (least, leanest), (most, fattest) = measured[0], measured[-1]
    return f"From {amount(least)} ({leanest}) to {amount(most)} ({fattest})"


def of_pairs(rows: Sequence[Row]) -> str:
    """Say what is left of a gap where two strategies deliver the same; nothing without such pairs."""
    said = []
    for row in rows:
        if row.pair is None or row.pair.low is None:
            continue
        ratio = row.pair.value
        less_or_more = f"{factor(1 / ratio)} faster than" if ratio < 1 else f"{factor(ratio)} slower than"
        differs = less_or_more if row.pair.differs_from_one else "no different in time from"
        said.append(f"{row.strategy} is {differs} {row.matches}")
    return f"With the same output: {'; '.join(said)}" if said else ""


def of(rows: Sequence[Row]) -> str:
    """Return all of it as one line."""
    memory = of_memory(rows)
    sentences = [of_time(rows), of_pairs(rows), f"Peak memory {memory[0].lower()}{memory[1:]}"]
    return ". ".join(filter(None, sentences)) + "."
