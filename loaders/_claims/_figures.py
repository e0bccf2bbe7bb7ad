"""Helpers shared by the rules of several questions: tests of two strategies' figures, and their wording."""

from __future__ import annotations

from collections.abc import Sequence

from loaders._claims._declare import Found
from loaders._claims._evidence import (
    IN_SECONDS,
    Figure,
    Figures,
    Part,
    Shown,
    Test,
    above,
    gain,
    known,
    less_than,
    margin_of_two,
    no_gain,
    part_of,
    ratio_of,
)
from loaders._judge import RESOLUTION, TIME_MARGIN
from loaders._law import Law
from loaders._words import amount, duration, estimated, multiple, small_amount

MIB = 2**20
NOTICEABLE = 1.1
"""A factor: a claim of faster, leaner or growing must amount to at least 10 %."""

PICTURE_BYTES = 224 * 224 * 3 * 4
"""Size of a float32 picture in ``caching`` and ``batching``, in bytes."""

PICTURES = 10_000
"""The number of pictures that the write-ups' readers had."""


def ratio(
    figures: Figures, question: str, one: str, other: str, figure: Figure, test: Test, **case: str
) -> tuple[Part, str]:
    """Test the ratio of two strategies' figures, and put it into words."""
    first, second = figures.row(question, one, **case), figures.row(question, other, **case)
    part = part_of(figures.ratio(question, one, other, figure, **case), test)
    name = {"times": "time", "cpus": "cpu"}.get(figure, "peak")
    said = [estimated(row[name], duration if figure in IN_SECONDS else amount) for row in (first, second)]
    times = multiple(ratio_of(part.difference)) if part.difference else ""
    return part, f"{one} {said[0]}, {other} {said[1]}: {times}"


def leaner(figures: Figures, question: str, one: str, other: str, **case: str) -> tuple[Part, str]:
    rows = [figures.row(question, each, **case) for each in (one, other)]
    first, second = (known(row["peak"]).value for row in rows)
    test = gain if abs(first - second) >= RESOLUTION else no_gain
    return ratio(figures, question, one, other, "peaks", test(margin_of_two(*rows)), **case)


def faster(figures: Figures, question: str, one: str, other: str, **case: str) -> tuple[Part, str]:
    return ratio(figures, question, one, other, "times", gain(TIME_MARGIN), **case)


def joined(found: Sequence[tuple[Part, str]], *named: str) -> Found:
    names = [f"{each}: " for each in named] or [""] * len(found)
    said = "; ".join(f"{name}{each}" for name, (_, each) in zip(names, found, strict=True))
    return [part for part, _ in found], said


def at_readers_amount(law: Law, memory: float) -> tuple[Part, str]:
    """Test whether, by the law, ``PICTURES`` pictures need more than an amount of memory."""
    needed = law.at(PICTURES)
    if needed is None:
        return Part(Shown()), f"with {PICTURES:,} pictures unknown ({law.why})"
    each = f"{estimated(law.per_sample, small_amount)} a picture, " if law.per_sample else ""
    said = f"{each}so {estimated(needed, gigabytes)} with {PICTURES:,}"
    away = less_than(needed, memory)
    return Part(above()(away), away), said  # a prediction's interval does not end at 0, however many rounds there are


def gigabytes(count: float) -> str:
    return f"{count / 1e9:.1f} GB"
