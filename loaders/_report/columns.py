"""The columns of a ranking on the page, in their order. A figure that is not named here comes last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from loaders import _words
from loaders._judge import RESOLUTION, Judged
from loaders._report import charts
from loaders._rows import EPOCHS, FIGURES, Row
from loaders._stats import Estimate

Rows = Sequence[Row]


def _always(_rows: Rows, _tier: str) -> bool:
    return True


def _never(_rows: Rows, _tier: str) -> bool:
    return False


class Cell(NamedTuple):
    """A cell: its text, the number that it sorts by, and what a tooltip says."""

    text: str | Markup
    value: float | None = None
    tooltip: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a ranking.

    Attributes
    ----------
    heading
        Its heading, or what makes one from the rows of the case.
    cell
        Returns a row's cell.
    is_there
        Whether the column is shown, given all rows of the case and the tier of the table.
    is_main
        Whether it is among the columns that are shown before a reader asks for all: with the strategy's, seven at most.
    sorts
        Whether readers can sort by it.
    css, head_css
        Classes of its cells and of its heading.
    figure
        The figure that it shows; empty if it shows several, or none.
    name
        What the page's address calls it, if that is not its figure.
    """

    heading: str | Callable[[Rows], str]
    cell: Callable[[Row], Cell]
    is_there: Callable[[Rows, str], bool] = _always
    is_main: Callable[[Rows, str], bool] = _never
    sorts: bool = True
    css: str = ""
    head_css: str = ""
    figure: str = ""
    name: str = ""

    @property
    def key(self) -> str:
        """What the page's address calls it."""
        return self.figure or self.name

    @property
    def has_bar(self) -> bool:
        """Whether its cells show how their figure compares with the largest of the case: amounts, but no ratios."""
        return bool(self.figure) or self.name == "time"

    def head(self, rows: Rows) -> str:
        """Return the heading."""
        return self.heading if isinstance(self.heading, str) else self.heading(rows)


def of_table(rows: Rows, tier: str, *, brief: bool = False) -> list[Column]:
    """Return the columns of the table of one tier, given all rows of its case; if ``brief``, only the main ones."""
    there = [column for column in COLUMNS if column.is_there(rows, tier)]
    return [column for column in there if column.is_main(rows, tier)] if brief else there


def bars(column: Column, rows: Rows) -> dict[str, float]:
    """Return each strategy's share of the largest figure of a column, for a small bar in its cell."""
    found = {row.strategy: column.cell(row).value or 0.0 for row in rows} if column.has_bar else {}
    most = max(found.values(), default=0.0)
    return {name: max(0.0, value / most) for name, value in found.items()} if most > 0 else {}


def stacked(figure: str) -> Markup:
    """Put a figure's bracketed interval below it."""
    value, bracket, rest = figure.partition(" (")
    return Markup("{}<small>{}</small>").format(value, bracket.strip() + rest) if bracket else escape(value)


def _has(figure: str) -> Callable[[Rows, str], bool]:
    return lambda rows, _: any(row[figure] for row in rows)


def _of(name: str, by_round: Callable[[Row], Mapping[int, float]] | None = None, **changes: Any) -> Column:
    """Return the column of a figure, changed as said; with ``by_round``, a tooltip tells its rounds."""
    figure = FIGURES[name]
    unit = _words.UNITS.get(figure.unit, str)

    def cell(row: Row) -> Cell:
        words = _words.figure_in_words(figure, row)
        text = stacked(words) if figure.unit in _words.UNITS else words
        return Cell(text, _value(row[name]), _rounds(by_round(row), unit) if by_round and row[name] else "")

    return replace(Column(figure.heading, cell, _has(name), figure=name), **changes)


def _value(found: Estimate | None) -> float | None:
    return found.value if found else None


def _rounds(values: Mapping[int, float], unit: Callable[[float], str]) -> str:
    said = "; ".join(f"{index + 1}: {unit(value)}" for index, value in sorted(values.items()))
    return f"round {said}" if said else ""


def _label(text: str) -> Markup:
    return Markup('<span class="label">{}</span>').format(text)


def _time(row: Row) -> Cell:
    words = stacked(_words.estimated(row["time"], _words.duration))
    if row["throughput"]:
        words += Markup("<small>{} samples/s</small>").format(_words.rate(row["throughput"].value))
    return Cell(words, row.ranked_at, _rounds(row.times, _words.duration))


def _against_baseline(judged: Judged | None, row: Row, words: Callable[[Judged | None], str]) -> Cell:
    if row.is_baseline:
        return Cell("baseline", 1)
    return Cell(stacked(words(judged)), judged.ratio.value if judged else None)


def _to_fastest(row: Row) -> Cell:
    value = row.best.ratio.value if row.best else 1 if row.in_best else None
    return Cell(stacked(_words.to_fastest(row)), value)


def _to_pair(row: Row) -> Cell:
    if not row.matches:
        return Cell(_words.ABSENT)
    words = stacked(_words.times(row.pair)) + _label(f"than {row.matches}")
    return Cell(words, row.pair.ratio.value if row.pair else None)


def _parts_of_memory(row: Row) -> Cell:
    if not row["anonymous"]:
        return Cell(_words.ABSENT)
    in_files = row["file"]
    said = Markup("{}, {}").format(
        _words.amount(row["anonymous"].value), _words.amount(in_files.value) if in_files else _words.ABSENT
    )
    if in_files and in_files.value > RESOLUTION:
        said += _label("the system can take the file-backed pages back")
    return Cell(said)


def _quality(row: Row) -> Cell:
    said = Markup("")
    if row.psnr is not None:
        said += "exact" if row.psnr >= _words.EXACT else f"{row.psnr:.1f} dB"
    if row.max_difference is not None:
        said += _label(f"differs by at most {row.max_difference:.2g} of 255")
    return Cell(said, row.psnr)


def _has_pairs(rows: Rows, tier: str) -> bool:
    return tier == "identical" and any(row.matches for row in rows)


_has_conversion, _has_needed, _has_flight = _has("convert_time"), _has("needed"), _has("in_flight")


def _in_words(name: str, said: Callable[[Any], str]) -> Column:
    """Return the column of a row's field that is put into words; it is there if any row has that."""
    return Column(
        name.replace("_", " "),
        lambda row: Cell(said(getattr(row, name))),
        lambda rows, _: any(getattr(row, name) for row in rows),
        sorts=False,
        css="words",
        name=name,
    )


_PLACED: tuple[Column, ...] = (
    Column(charts.time_name, _time, is_main=_always, name="time"),
    _of("start"),
    _of("closing"),
    _of("first_batch", heading="until the first batch", is_there=lambda rows, tier: not _has("start")(rows, tier)),
    _of("total", heading=f"time of {EPOCHS} epochs", css="total", head_css="epochs", is_main=_always),
    Column(
        "against the baseline",
        lambda row: _against_baseline(row.ratio, row, _words.times),
        css="ratio",
        is_main=_always,
        name="ratio",
    ),
    Column("against the fastest", _to_fastest, css="to-fastest", is_main=_always, name="best"),
    Column("against its pair", _to_pair, _has_pairs, is_main=_always, name="pair"),
    _of(
        "peak",
        lambda row: row.peaks,
        heading="peak memory",
        is_there=_always,
        is_main=lambda rows, tier: not _has_needed(rows, tier),
    ),
    _of("peak_slow", is_there=_has_needed),
    _of("needed", lambda row: row.needs, is_main=_always),
    Column("anonymous, file-backed", _parts_of_memory, _has_needed, sorts=False, css="words", name="kinds"),
    _of("peak_tree"),
    Column(
        "memory against the baseline",
        lambda row: _against_baseline(row.peak_ratio, row, _words.fatter),
        css="peak-ratio",
        name="peak-ratio",
    ),
    _of("over_floor"),
    _of("retained"),
    _of("held"),
    Column(
        "memory over the steps",
        lambda row: Cell(_words.over_steps(row), _value(row["level"])),
        lambda rows, _: any(row.growth for row in rows),
        css="words",
        name="growth",
    ),
    _of("disk"),
    _of("convert_time"),
    _of("convert_memory", is_there=_has_conversion),
    _of(
        "saved",
        cell=lambda row: Cell(_words.figure_in_words(FIGURES["saved"], row)),
        is_there=_has_conversion,
        sorts=False,
        css="words",
    ),
    Column("asked for", lambda row: Cell(row.at or _words.ABSENT), _has_flight, name="at"),
    _of("in_flight", is_main=lambda rows, tier: not _has_pairs(rows, tier)),
    _of("waiting"),
    Column("quality (worst)", _quality, lambda rows, _: any(row.psnr is not None for row in rows), name="quality"),
    _in_words("order", _words.ordered),
    _in_words("odd_files", _words.odd),
    _in_words("delivery", _words.delivered),
    _of("cpu"),
)

_NAMES = {column.figure for column in _PLACED}

COLUMNS = (
    *_PLACED,
    *(_of(figure.name) for figure in FIGURES.values() if figure.heading and figure.name not in _NAMES),
)
