"""Every figure of the comparisons as one tidy CSV, and the JSON schema of a line in a trial log."""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from loaders import _durable
from loaders._figures import Figure
from loaders._judge import Judged
from loaders._report.sets import ResultSet
from loaders._rows import EPOCHS, FIGURES, Row
from loaders._stats import Estimate
from loaders._trial import Record, log
from loaders._words import AMONG_BEST

NAMES = {"total": f"total{EPOCHS}", "total_best": f"total{EPOCHS}_best"}
"""Names of totals in the file: they include the number of epochs."""

SCHEMA = "trial.schema.json"

PLAIN = re.compile(r"[A-Za-z0-9._-]{1,80}")
"""Names of machines that may be part of a file's name, and of an address."""

COLUMNS = (
    *("machine", "size", "data", "question", "case", "strategy", "tier", "status", "commit", "python", "tensorflow"),
    *("figure", "unit", "value", "low", "high", "count", "resolved", "verdict", "cpu", "schema", "ranked_by"),
    "process",
)
"""Intervals are 95 % intervals, not corrected for their number."""


def tidy(results: Sequence[ResultSet]) -> str:
    """Return CSV text: one line per figure, with its 95 % interval and its origin."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for found in results:
        for comparison in found.comparisons:
            environment = comparison.environment
            origin = {
                "machine": found.origin.machine,
                "size": found.origin.size,
                "data": found.origin.data,
                "question": comparison.question,
                "commit": environment.commit,
                "python": found.origin.python,
                "tensorflow": found.origin.tensorflow,
                "cpu": found.origin.cpu,
                "schema": found.origin.schema,
            }
            # What newer runs have replaced is never measured on.
            for row in [*comparison.rows, *(comparison.unmeasured if found.answers else ())]:
                writer.writerows({**origin, **line} for line in _lines(row))
    return text.getvalue()


def write_beside(page: Path, results: Sequence[ResultSet], root: Path) -> dict[str, str]:
    """Write what lies beside a page: the figures, the trials, and their schema; return what each name is.

    ``root`` is the folder with the results of each machine.
    """
    table = page.with_suffix(".csv")
    _durable.write(table, tidy(results))
    _durable.write(page.with_name(SCHEMA), schema())
    files = {table.name: "every figure as CSV", SCHEMA: "the schema of a trial"}
    for machine in dict.fromkeys(found.origin.machine for found in results):
        path = root / machine / log.NAME
        if PLAIN.fullmatch(machine) and path.is_file():
            name = f"trials-{machine}.jsonl"
            shutil.copyfile(path, page.with_name(name))
            files[name] = f"every trial of {machine}"
    return files


def _lines(row: Row) -> Iterator[dict[str, object]]:
    case = " ".join(f"{axis}={value}" for axis, value in row.case.items())
    about: dict[str, object] = {"case": case, "strategy": row.strategy, "tier": row.tier, "status": row.status}
    about["ranked_by"] = row.ranked_by
    present = [(figure, each) for figure in FIGURES.values() if (each := _found(row, figure))]
    if not present:  # a strategy without figures still has a status
        yield about
    for figure, each in present:
        verdict = _verdict(row, figure, each) if isinstance(each, Judged) else ""
        of: dict[str, object] = {"figure": NAMES.get(figure.name, figure.name), "unit": figure.unit, "verdict": verdict}
        of["process"] = "fresh" if figure.fresh_only else _processes(row)
        yield {**about, **of, **msgspec.structs.asdict(each.ratio if isinstance(each, Judged) else each)}


def _verdict(row: Row, figure: Figure, judged: Judged) -> str:
    """Return a judgement's verdict; a ratio to the fastest never says slower of what may be the fastest."""
    is_best = (figure.name == "best" and row.in_best) or (figure.name == "total_best" and row.in_best_total)
    return AMONG_BEST if is_best and judged.verdict == "more" else judged.verdict


def _processes(row: Row) -> str:
    """Return how the row's good trials started: ``fresh``, ``forked`` or both."""
    ways = {"fresh": len(row.forked) < row.samples, "forked": bool(row.forked)}
    return ", ".join(way for way, is_so in ways.items() if is_so)


def _found(row: Row, figure: Figure) -> Estimate | Judged | None:
    return getattr(row, figure.name) if figure.judged else row[figure.name]


def schema() -> str:
    """Return the JSON schema of one line of a trial log."""
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Record))).decode() + "\n"
