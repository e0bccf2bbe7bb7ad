"""Every figure of the comparisons as one tidy CSV, and what a line of a trial log looks like as a JSON schema."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

import msgspec

from loaders._report.sets import ResultSet
from loaders._rows import Row
from loaders._stats import Estimate
from loaders._trial import Record

FIGURES = {
    "time": "s",
    "ratio": "times the baseline",
    "pair": "times the strategy it matches",
    "throughput": "samples/s",
    "first_batch": "s",
    "cpu": "s",
    "peak": "bytes",
    "peak_ratio": "times the baseline",
    "over_floor": "times the floor",
    "retained": "bytes",
    "peak_tree": "bytes",
    "held": "bytes",
    "level": "bytes",
    "level_held": "bytes",
    "convert_time": "s",
    "convert_memory": "bytes",
    "disk": "bytes",
    "saved": "s",
    "later": "s",
    "extra": "s",
    "in_flight": "bodies",
    "waiting": "elements",
    "waiting_bytes": "bytes",
    "epoch": "s",
    "code": "bytes",
}
"""The estimates of a ``Row`` with their units."""

COLUMNS = (
    *("machine", "size", "data", "question", "case", "strategy", "tier", "status", "commit", "python", "tensorflow"),
    *("figure", "unit", "value", "low", "high", "count", "resolved"),
)


def tidy(results: Sequence[ResultSet]) -> str:
    """Return CSV text: a line for each figure, with its 95 % interval and where it came from."""
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
            }
            for row in comparison.rows:
                writer.writerows({**origin, **line} for line in _lines(row))
    return text.getvalue()


def _lines(row: Row) -> Iterator[dict[str, object]]:
    case = " ".join(f"{axis}={value}" for axis, value in row.case.items())
    about: dict[str, object] = {"case": case, "strategy": row.strategy, "tier": row.tier, "status": row.status}
    measured = [(name, unit, getattr(row, name)) for name, unit in FIGURES.items()]
    present = [(name, unit, estimate) for name, unit, estimate in measured if isinstance(estimate, Estimate)]
    if not present:  # a strategy that has no figure has a status
        yield about
    for name, unit, estimate in present:
        yield {**about, "figure": name, "unit": unit, **msgspec.structs.asdict(estimate)}


def schema() -> str:
    """Return the JSON schema of a line of a trial log."""
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Record))).decode() + "\n"
