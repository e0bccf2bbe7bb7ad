"""asv's own result files. They are untrusted: nothing in them is executed, and no bad file stops the page."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from loaders._stats import Estimate
from loaders._words import one_line

MOST_CELLS = 100_000
"""Limit on one benchmark's parameter combinations; a file that claims more was not written by asv."""

NOT_RESULTS = {"machine.json", "benchmarks.json"}
"""Files that asv keeps beside its results."""


class Reading(msgspec.Struct, frozen=True):
    """asv's figure for one benchmark and one combination of parameters, in seconds or bytes.

    Attributes
    ----------
    value
        The median; ``None`` for asv's "failed", NaN for "not applicable".
    low, high
        The ends of asv's 99 % interval of the median; ``None`` if the file lacks it or it is unbounded.
    count
        The number of samples; 1 where asv reads only once, as for memory.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    count: int = 1

    @property
    def estimate(self) -> Estimate:
        """The median with its interval, clipped at zero: with few samples asv's interval may extend below it."""
        low = None if self.low is None else max(0.0, self.low)
        return Estimate(self.value or 0.0, low, self.high, self.count)

    @property
    def measured(self) -> float | None:
        """The value; ``None`` if the benchmark failed or does not apply."""
        return self.value if self.value is not None and math.isfinite(self.value) else None


class AsvResult(msgspec.Struct, frozen=True):
    """One asv result file.

    ``benchmarks`` maps a benchmark's name to its readings, keyed by parameter values; ``python`` is the version that
    asv ran under, such as ``3.11``.
    """

    machine: str
    commit: str
    python: str
    benchmarks: dict[str, dict[tuple[str, ...], Reading]]


def read(root: Path, say: Callable[[str], None] = lambda _: None) -> list[AsvResult]:
    """Return asv's results below ``root``, in path order. Nothing in a file is executed.

    A file that is not a result, or that this version of asv cannot read, is left out, as are benchmarks whose version
    differs from the one in ``benchmarks.json``; ``say`` gets one line about each such file.
    """
    found = []
    current = _versions(root / "benchmarks.json")
    for path in sorted(root.glob("*/*.json")):
        if path.name in NOT_RESULTS:
            continue
        try:
            result, old = _load(path, current)
            found.append(result)
            if old:
                say(f"{one_line(str(path))}: left out what benchmarks of another version measured: {', '.join(old)}")
        except _FOREIGN as error:
            why = one_line(str(error)) if isinstance(error, _Unreadable) else "not a result file of asv"
            say(f"{one_line(str(path))}: left out: {why}")
    return found


class _Unreadable(Exception):  # noqa: N818 - it never leaves this module
    """A result file cannot be read; says why."""


# asv's reader takes a file's shape for granted, so a foreign file may raise any of these.
_FOREIGN = (_Unreadable, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)


def _versions(path: Path) -> dict[str, str]:
    """Return the version of each benchmark that asv knows; empty if its list is missing or unreadable."""
    try:
        held = msgspec.json.decode(path.read_bytes(), type=dict[str, object])
        return {name: msgspec.convert(each, _Versioned).version for name, each in held.items() if name != "version"}
    except (OSError, msgspec.DecodeError):
        return {}


class _Versioned(msgspec.Struct):
    version: str


def _load(path: Path, current: Mapping[str, str]) -> tuple[AsvResult, list[str]]:
    """Return a result, and the names of its benchmarks whose version has changed since."""
    from asv.results import Results
    from asv.util import UserError

    try:
        results = Results.load(str(path))
    except UserError as error:
        raise _Unreadable(str(error).replace(f"{path.absolute()} ", "")) from error
    except OSError as error:
        raise _Unreadable(error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise _Unreadable(f"not UTF-8: {error.reason} at byte {error.start}") from error
    benchmarks = {}
    versions = dict(results.benchmark_version)
    names = sorted(results.get_all_result_keys())
    old = [one_line(name) for name in names if name in current and versions.get(name) != current[name]]
    for name in names:
        params = msgspec.convert(results.get_result_params(name), list[list[str]])
        if math.prod(map(len, params)) > MOST_CELLS:
            raise _Unreadable(f"{name} has more than {MOST_CELLS} combinations of parameters")
        values = results.get_result_value(name, params)
        stats = results.get_result_stats(name, params)
        cells = zip(itertools.product(*params), values, stats, strict=True)
        benchmarks[name] = {
            tuple(_name(each) for each in cell): _reading(value, about or {}) for cell, value, about in cells
        }
    described = {
        "machine": results.params["machine"],
        "commit": results.commit_hash,
        "python": results.params.get("python") or "",
    }
    kept = {name: cells for name, cells in benchmarks.items() if one_line(name) not in old}
    return AsvResult(**msgspec.convert(described, dict[str, str]), benchmarks=kept), old


def _reading(value: object, stats: Mapping[str, object]) -> Reading:
    about = {name: msgspec.convert(stats.get(name), float | None) for name in ("ci_99_a", "ci_99_b")}
    bounded = {name: each if each is not None and math.isfinite(each) else None for name, each in about.items()}
    return Reading(
        msgspec.convert(value, float | None),
        bounded["ci_99_a"],
        bounded["ci_99_b"],
        msgspec.convert(stats.get("repeat") or 1, int),
    )


def _name(written: str) -> str:
    """Return the string that asv wrote as ``repr``; anything that is not a string is returned as written."""
    try:
        value = ast.literal_eval(written)
    except (ValueError, SyntaxError, MemoryError):
        return written
    return value if isinstance(value, str) else written
