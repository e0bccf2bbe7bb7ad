"""The declaration of a figure: its unit, heading, scale and meaning, said once, on the field that holds it.

    wait_time: Annotated[Seconds | None, figure("s", "How long …", name="wait", heading="wait for a batch")] = None

adds a figure: with a name it is estimated over the trials of each strategy and is in the CSV file; with a heading it is
a column of the tables, in the terminal and on the page; with ``tracked`` asv keeps its history.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, get_type_hints

import msgspec

from loaders._stats import Scale

Unit = Literal[
    "s",
    "bytes",
    "samples/s",
    "samples",
    "batches",
    "epochs",
    "bodies",
    "elements",
    "readings",
    "dB",
    "grey levels",
    "times the baseline",
    "times the fastest",
    "times the fastest in total",
    "times the strategy it matches",
    "times the floor",
]

Shown = Literal["everywhere", "page"]
"""Where a figure with a heading has a column: in all tables, or on the page only, which is wider than a terminal."""

ASV_UNITS = {"s": "seconds", "bytes": "bytes"}
"""asv reads "larger" as "worse" in every unit, so it gets only these."""


class Figure(msgspec.Struct, frozen=True):
    """What there is to know about a figure.

    Attributes
    ----------
    name
        Its name in rows, in the CSV file and on the page; empty if it is not estimated over trials.
    unit, meaning
        As declared.
    heading
        Of its column; empty if it has none, or shares one with another figure.
    scale
        How trials vary: see ``loaders._stats``.
    shown
        Where the column is.
    tracked
        Whether asv keeps its history for every question.
    judged
        Whether it is a ratio with a verdict, an attribute of its own in a row.
    fresh_only
        Whether only trials in a fresh process count: in a fork of a process that has run imports, it would be another.
    field
        The field of ``Metrics`` that it is read from; empty if it comes from several trials.
    """

    name: str
    unit: Unit
    meaning: str
    heading: str = ""
    scale: Scale = "linear"
    shown: Shown = "everywhere"
    tracked: bool = False
    judged: bool = False
    fresh_only: bool = False
    field: str = ""


def figure(
    unit: Unit,
    meaning: str,
    *,
    name: str = "",
    heading: str = "",
    scale: Scale = "linear",
    shown: Shown = "everywhere",
    tracked: bool = False,
    fresh_only: bool = False,
) -> msgspec.Meta:
    """Declare a figure on its field; see ``Figure``.

    Raises
    ------
    ValueError
        If asv is to track a unit that it cannot.
    """
    if tracked and unit not in ASV_UNITS:
        raise ValueError(f"asv tracks only {' and '.join(ASV_UNITS)}, not {unit}")
    declared = Figure(name, unit, meaning, heading, scale, shown, tracked, fresh_only=fresh_only)
    return msgspec.Meta(title=heading or None, description=meaning, extra={"figure": declared})


def meaning(text: str) -> msgspec.Meta:
    """Declare a field that is no single figure: a trace, a verdict."""
    return msgspec.Meta(description=text)


@cache
def declared(struct: type[msgspec.Struct]) -> dict[str, Figure]:
    """Return the figures that a struct declares, by field, in their order."""
    found = {}
    for field, hint in get_type_hints(struct, include_extras=True).items():
        for each in getattr(hint, "__metadata__", ()):
            if isinstance(each, msgspec.Meta) and each.extra and "figure" in each.extra:
                found[field] = msgspec.structs.replace(each.extra["figure"], field=field)
    return found
