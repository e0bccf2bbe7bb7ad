"""From trial records to the rows of a comparison: one row for each strategy and case. Pure."""

from loaders._rows.build import about, comparison, disturbed
from loaders._rows.declared import EPOCHS, FIGURES, MEASURED
from loaders._rows.figures import total
from loaders._rows.stated import Headline, headline, paired
from loaders._rows.values import (
    BUSY,
    About,
    CaseLaws,
    Comparison,
    Disturbed,
    Row,
    advisable,
    differs_at_first,
    document,
    loaders_of,
    plain,
    unprepared,
    worked_first,
)

__all__ = [
    "BUSY",
    "EPOCHS",
    "FIGURES",
    "MEASURED",
    "About",
    "CaseLaws",
    "Comparison",
    "Disturbed",
    "Headline",
    "Row",
    "about",
    "advisable",
    "comparison",
    "differs_at_first",
    "disturbed",
    "document",
    "headline",
    "loaders_of",
    "paired",
    "plain",
    "total",
    "unprepared",
    "worked_first",
]
