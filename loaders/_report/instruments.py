"""Two instruments on the same question: asv's own results compared with the trial log. Pure.

asv holds two kinds of figures. ``track_*`` are the medians of a comparison's own trials, so they must agree with the
log. ``time_epoch`` and ``peakmem_epoch`` are asv's own measurements, in the default case. They differ from a trial's:

* its time is the first epoch of one fresh process, which a trial's may be, or of a fork (``Row.forked``);
* ``timeit`` switches Python's garbage collector off while it measures; a trial leaves it as users have it;
* ``peakmem_epoch`` is one reading of ``ru_maxrss``: the whole process since its start, with the interpreter, imports,
  inputs and the code of libraries, without child processes. A trial's peak is above a baseline that is read after
  imports and inputs. The difference between the two is what asv counts in addition, and it must be about the same for
  all strategies that import the same modules. That difference is compared, not the figures themselves;
* set-up may have used more memory than is left when the epoch begins. ``ru_maxrss`` cannot fall below that, so the
  leanest strategies of a question may all show the same figure;
* asv's loop holds a batch while the next one is made; a trial drops it first. ``MEMORY_TOLERANCE`` covers this if
  batches are small.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal

import msgspec

from loaders._contract import Cause
from loaders._figures import ASV_UNITS
from loaders._judge import RESOLUTION
from loaders._report.asv_files import AsvResult, Reading
from loaders._rows import MEASURED, Comparison, Row
from loaders._stats import Estimate, quantile
from loaders._words import UNITS, amount, case_in_words, duration, factor, one_line

Verdict = Literal["agree", "explained", "flagged", "undecided"]

TIME_TOLERANCE = 1.1
"""A factor. Times whose intervals do not overlap still pass if they are within 10 %: asv and the trials ran at
different times, and the reference machine drifts by as much between them."""

MEMORY_TOLERANCE = 2 * RESOLUTION
"""In bytes, in addition to the intervals: each of the two instruments is accurate to 1 MiB."""

BLUNT = 2.0
"""A factor. An interval that extends beyond it in both directions agrees with everything, so it decides nothing."""

SAME = 1e-6
"""As a share: two printed forms of one number differ only by rounding."""

NAMED = 6
"""Names listed in a sentence; the rest are counted."""


class Pair(msgspec.Struct, frozen=True):
    """One figure of one strategy, measured by both instruments.

    Attributes
    ----------
    asv, trial
        In seconds for a time, in bytes for memory.
    ratio
        For times: asv's over the trial's, with bounds from the ends of both intervals.
    beyond
        For memory: bytes that asv counts and the trial does not.
    apart
        For memory: by how many bytes ``beyond`` differs from that of the strategies that import the same modules.
    """

    asv: Reading
    trial: Estimate
    verdict: Verdict
    note: str
    ratio: Estimate | None = None
    beyond: float | None = None
    apart: float | None = None


class Beside(msgspec.Struct, frozen=True):
    """Both instruments on one strategy in the default case."""

    strategy: str
    time: Pair | None
    memory: Pair | None


class Instruments(msgspec.Struct, frozen=True):
    """Both instruments on one question.

    Attributes
    ----------
    case
        The case that asv's own benchmarks run.
    medians
        How many ``track_*`` medians were compared with the log, and how many of them agree.
    missing
        Plain-text sentences: what only one of the two holds, and where they contradict each other.
    """

    question: str
    case: dict[str, str]
    beside: list[Beside]
    medians: tuple[int, int]
    missing: list[str]

    @property
    def pairs(self) -> list[Pair]:
        """Every figure that both instruments hold."""
        return [pair for each in self.beside for pair in (each.time, each.memory) if pair]

    @property
    def finding(self) -> str:
        """The counts of the verdicts, as a title."""
        said = []
        if self.pairs:
            counts = [(sum(pair.verdict == verdict for pair in self.pairs), verdict) for verdict in _VERDICTS]
            first = f"{counts[0][0]} of {len(self.pairs)} figures agree"
            said.append(", ".join([first, *(f"{count} {_VERDICTS[name]}" for count, name in counts[1:] if count)]))
        if self.medians[0]:
            said.append(f"{self.medians[1]} of the {self.medians[0]} medians of the trials that asv stores agree")
        return "; ".join(said) or "No figure was measured by both"


_VERDICTS: dict[Verdict, str] = {
    "agree": "agree",
    "explained": "explained",
    "flagged": "unexplained",
    "undecided": "undecided",
}


def held_against(comparison: Comparison, results: Sequence[AsvResult]) -> Instruments | None:
    """Check asv's results against a comparison of the same machine, commit and Python version.

    ``None`` if asv has no results at all for the machine.
    """
    here = [each for each in results if each.machine == comparison.environment.machine]
    if not here:
        return None
    default_case = comparison.about.default_case
    held = _Held(comparison, here)
    own = [row for row in comparison.rows if row.case == default_case]
    compared, agreeing, contradictions = _medians(held, comparison)
    missing = _missing(held, comparison, own)
    if 2 * agreeing < compared:
        contradictions = [
            f"{compared - agreeing} of the {compared} medians that asv stores are not those of the trial log's "
            f"samples: asv's results come from another run or other data, so nothing is compared with them"
        ]
        return Instruments(comparison.question, default_case, [], (compared, agreeing), contradictions)
    return Instruments(
        comparison.question,
        default_case,
        _beside(held, comparison, own),
        (compared, agreeing),
        [*contradictions, *missing],
    )


def _same_python(one: str, other: str) -> bool:
    """Whether two versions have the same major and minor number; an unknown version matches any."""
    return not one or not other or one.split(".")[:2] == other.split(".")[:2]


class _Held:
    """asv's results for one question, looked up by strategy, case and the commit of the trials."""

    def __init__(self, comparison: Comparison, results: Sequence[AsvResult]) -> None:
        self.question = comparison.question
        self.pythons: dict[str, str] = {}  # versions other than the trials', by commit
        self._files: defaultdict[str, list[AsvResult]] = defaultdict(list)
        for each in results:
            if _same_python(each.python, comparison.environment.python):
                self._files[each.commit[:8]].append(each)
            else:
                self.pythons[each.commit[:8]] = one_line(each.python)

    def of(self, commit: str, kind: str) -> dict[str, dict[tuple[str, ...], Reading]]:
        """Return the benchmarks of ``Comparison`` or ``Drain`` at a commit, by method name."""
        prefix = f"{self.question}.{kind}."
        return {
            name.removeprefix(prefix): cells
            for result in self._files.get(commit, ())
            for name, cells in result.benchmarks.items()
            if name.startswith(prefix)
        }

    def values(self, row: Row) -> tuple[str, ...]:
        """Return a row's parameters in asv's order, as ``benchmarks/_base.py`` writes them."""
        return (row.strategy, *filter(None, [case_in_words(row.case)]))

    def reading(self, row: Row, commits: Sequence[str], kind: str, benchmark: str) -> Reading | None:
        """Return asv's figure for a row's strategy (and its case, in ``Comparison``)."""
        params = self.values(row) if kind == "Comparison" else _alone(row)
        for commit in commits:
            found = self.of(commit, kind).get(benchmark, {}).get(params)
            if found is not None:
                return found
        return None


def _commits(row: Row, comparison: Comparison) -> list[str]:
    """Return the commits that a row's trials may belong to."""
    return [each for each in (row.commit or comparison.environment.commit).split(", ") if each]


def _beside(held: _Held, comparison: Comparison, rows: Sequence[Row]) -> list[Beside]:
    good = [row for row in rows if row.samples]
    times: dict[str, Pair] = {}
    peaks: dict[str, tuple[Row, Reading]] = {}
    for row in good:
        commits = _commits(row, comparison)
        time, epoch = held.reading(row, commits, "Drain", "time_epoch"), row["epoch"]
        if time and time.measured and time.measured > 0 and epoch:
            times[row.strategy] = time_pair(time, epoch, row.asv_differs)
        peak = held.reading(row, commits, "Drain", "peakmem_epoch")
        if peak and peak.measured and row["peak"]:
            peaks[row.strategy] = row, peak
    groups: defaultdict[str, list[tuple[Row, Reading]]] = defaultdict(list)  # NumPy is imported for every strategy
    for name, each in peaks.items():
        row, _ = each
        imports = sorted({*row.imports, "numpy"}) if row.source else [f"unknown: {name}"]
        groups[repr(imports)].append(each)
    converting = {name for name, (row, _) in peaks.items() if row.converts}
    memory = {name: pair for group in groups.values() for name, pair in memory_pairs(group, converting).items()}
    return [
        Beside(row.strategy, times.get(row.strategy), memory.get(row.strategy))
        for row in good
        if row.strategy in times or row.strategy in memory
    ]


def time_pair(asv: Reading, trial: Estimate, checked: Cause | None = None) -> Pair:
    """Compare both instruments' times of the first epoch, in seconds."""
    ratio = _time_ratio(asv, trial)
    if 1 / TIME_TOLERANCE <= ratio.value <= TIME_TOLERANCE:
        return Pair(asv, trial, "agree", "agree", ratio)
    if ratio.low is not None and ratio.high is not None and ratio.low <= 1 <= ratio.high:
        if ratio.low < 1 / BLUNT and ratio.high > BLUNT:
            words = f"undecided: the intervals allow ratios from {factor(ratio.low)} to {factor(ratio.high)}"
            return Pair(asv, trial, "undecided", words, ratio)
        return Pair(asv, trial, "agree", "agree: the intervals overlap", ratio)
    if checked and checked.low <= ratio.value <= checked.high:
        return Pair(asv, trial, "explained", f"explained: {checked.words}", ratio)
    apart = factor(max(ratio.value, 1 / ratio.value)).removesuffix("×")
    return Pair(asv, trial, "flagged", f"flagged: differs by a factor of {apart}, unexplained", ratio)


def _time_ratio(asv: Reading, trial: Estimate) -> Estimate:
    """Return asv's time over the trial's, from the ends of both intervals; an unknown end is replaced by the value."""
    value = asv.value or 0.0
    if (asv.low is None or asv.high is None) and trial.low is None:
        return Estimate(value / trial.value, None, None, asv.count)
    # With few samples asv's interval is symmetric and may extend below zero, which no time can.
    low = max(0.0, value if asv.low is None else asv.low) / (trial.value if trial.high is None else trial.high)
    high = (value if asv.high is None else asv.high) / (trial.value if trial.low is None else trial.low)
    return Estimate(value / trial.value, low, high, min(asv.count, trial.count))


def memory_pairs(group: Sequence[tuple[Row, Reading]], converting: AbstractSet[str] = frozenset()) -> dict[str, Pair]:
    """Compare both instruments' peaks for strategies that import the same modules, in bytes.

    asv's additional bytes are taken from the half with the highest peaks: these exceed what set-up held.
    """
    beyond = {row.strategy: (asv.value or 0.0) - _peak(row).value for row, asv in group}
    alone = [(row, asv) for row, asv in group if row["peak_tree"] is None]  # asv does not see worker processes
    high = sorted(alone, key=lambda each: _peak(each[0]).value, reverse=True)[: (len(alone) + 1) // 2]
    if len(group) < 2 or not high:
        words = "undecided: no other strategy imports the same modules, so their memory cannot be separated"
        return {
            row.strategy: Pair(asv, _peak(row), "undecided", words, beyond=beyond[row.strategy]) for row, asv in group
        }
    common = statistics.median(beyond[row.strategy] for row, _ in high)
    unsure = statistics.median(_once(_peak(row)) for row, _ in high)
    least = min(asv.value or 0.0 for _, asv in group)
    on_floor = {row.strategy for row, asv in group if (asv.value or 0.0) - least <= RESOLUTION}
    found = {}
    for row, asv in group:
        peak, apart = _peak(row), beyond[row.strategy] - common
        verdict: Verdict = "explained"
        if abs(apart) <= MEMORY_TOLERANCE + _once(peak) + unsure:
            verdict, note = "agree", "agree"
        elif apart < 0 and row["peak_tree"] is not None:
            note = "explained: asv's peak does not include worker processes"
        elif apart > 0 and row.strategy in converting:
            note = "explained: asv converts in the same process, before the epoch"
        elif apart > 0 and row.strategy in on_floor and len(on_floor) > 1:
            note = "explained: asv's peak is that of set-up, which used more memory than this strategy adds"
        else:
            more = "more" if apart > 0 else "less"
            verdict, note = "flagged", f"flagged: asv reads {amount(abs(apart))} {more}, unexplained"
        found[row.strategy] = Pair(asv, peak, verdict, note, beyond=beyond[row.strategy], apart=apart)
    return found


def _peak(row: Row) -> Estimate:
    return row["peak"] or Estimate(0.0, None, None, 0)


def _once(mean: Estimate) -> float:
    """Return by how much one further sample may differ from a mean: half of the prediction interval."""
    if mean.low is None or mean.high is None:
        return 0.0
    return (mean.high - mean.low) / 2 * math.sqrt(mean.count + 1)


def _medians(held: _Held, comparison: Comparison) -> tuple[int, int, list[str]]:
    """Compare asv's ``track_*`` with the log: how many were compared, how many agree, and sentences on the rest."""
    compared = 0
    contradicting: defaultdict[str, list[str]] = defaultdict(list)
    for row in comparison.rows:
        if not row.samples:
            continue
        for metric, (mean, logarithmic, say) in _tracked(row).items():
            found = held.reading(row, _commits(row, comparison), "Comparison", f"track_{metric}")
            if found is None or found.measured is None or mean is None or (logarithmic and found.measured <= 0):
                continue
            compared += 1
            if not may_be_median(found.measured, mean, logarithmic=logarithmic):
                figures = f"asv {say(found.measured)}, n={found.count}; log {say(mean.value)}, n={mean.count}"
                contradicting[metric].append(f"{_words(held.values(row))} ({figures})")
    sentences = [
        f"asv's track_{metric} cannot be the median of the trial log's samples: {_listed(names)}"
        for metric, names in contradicting.items()
    ]
    return compared, compared - sum(map(len, contradicting.values())), sentences


def _tracked(row: Row) -> dict[str, tuple[Estimate | None, bool, Callable[[float], str]]]:
    """Return the metrics that asv may track: the log's estimate, whether it is over logarithms, and its formatter.

    Where some trials were forked and some were not, asv has one kind of them, and the log's estimates are of both.
    """
    mixed = 0 < len(row.forked) < row.samples
    found: dict[str, tuple[Estimate | None, bool, Callable[[float], str]]] = {
        figure.field: (row[figure.name], figure.scale == "ratio", UNITS[figure.unit])
        for figure in MEASURED.values()
        if figure.unit in ASV_UNITS and (not mixed or figure.fresh_only)
    }
    if mixed:
        return found
    found[row.ranked_by] = row["time"], True, duration
    if row["peak_tree"]:  # the row's peak is that of the process tree
        del found["peak_memory"]
    return found


def may_be_median(value: float, mean: Estimate, *, logarithmic: bool) -> bool:
    """Whether samples with this mean can have this median: the two differ by at most one standard deviation.

    With ``logarithmic``, mean and deviation are those of the logarithms. A single sample is its own median.
    """
    scale = math.log if logarithmic else float
    if mean.low is None or mean.high is None:  # a single sample
        return math.isclose(value, mean.value, rel_tol=SAME)
    if logarithmic and mean.low <= 0:
        return True  # so wide that its lower end was rounded to zero
    deviation = (scale(mean.high) - scale(mean.low)) / 2 / quantile(mean.count) * math.sqrt(mean.count - 1)
    rounding = SAME if logarithmic else SAME * abs(mean.value)
    return abs(scale(value) - scale(mean.value)) <= deviation + rounding


def _missing(held: _Held, comparison: Comparison, own: Sequence[Row]) -> list[str]:
    """Say what only one of the two instruments holds."""
    without: list[str] = []
    said: list[str] = []
    for commit in filter(None, comparison.environment.commit.split(", ")):
        rows = {held.values(row): row for row in comparison.rows if commit in _commits(row, comparison)}
        others = {held.values(row) for row in comparison.rows} - set(rows)
        tracked, drained = held.of(commit, "Comparison"), held.of(commit, "Drain")
        axes, at = list(comparison.about.axes), f"at commit {commit}"
        if not tracked and not drained and commit in held.pythons:
            python = comparison.environment.python
            said.append(f"asv's results {at} are from Python {held.pythons[commit]}, the trial log's from {python}")
            continue
        if not tracked and not drained:
            without.append(commit)
            continue
        if tracked:
            said += _lacking(_cells(tracked), rows, "medians", axes, at, others)
        plain = {_alone(row): row for row in own if row in rows.values()}
        if plain and drained:
            elsewhere = {_alone(row) for row in own} - set(plain)
            said += _lacking(_cells(drained), plain, "own benchmarks", [], at, elsewhere)
        elif plain:
            said.append(f"asv's own benchmarks, time_epoch and peakmem_epoch, have no result {at}")
    if without:
        at = f"at {'commit' if len(without) == 1 else 'commits'} {' and '.join(without)}"
        said.append(
            f"The trial log has {comparison.question} {at}, but asv does not: "
            f"it was run with python -m loaders compare, or asv was stopped before it saved"
        )
    return said


def _alone(row: Row) -> tuple[str, ...]:
    """Return a row's parameters in asv's own benchmarks, which have no case."""
    return (row.strategy,)


def _cells(benchmarks: Mapping[str, Mapping[tuple[str, ...], Reading]]) -> dict[tuple[str, ...], dict[str, Reading]]:
    """Regroup readings from benchmark and parameters to parameters and benchmark."""
    cells: defaultdict[tuple[str, ...], dict[str, Reading]] = defaultdict(dict)
    for name, readings in benchmarks.items():
        for params, reading in readings.items():
            cells[params][name] = reading
    return dict(cells)


def _lacking(
    cells: Mapping[tuple[str, ...], Mapping[str, Reading]],
    rows: Mapping[tuple[str, ...], Row],
    what: str,
    axes: Sequence[str],
    at: str,
    elsewhere: AbstractSet[tuple[str, ...]],
) -> Iterator[str]:
    """Say which of asv's cells the log lacks, and vice versa.

    Parameters
    ----------
    rows
        The log's rows of the same commit, by the same parameters.
    what
        The kind of asv's benchmarks.
    axes
        Those of the cases that they have as a parameter today; older ones had each axis's value as one.
    elsewhere
        The parameters of the comparison's rows from other commits.
    """
    known = {
        params: readings
        for params, readings in cells.items()
        if len(params) == 1 + bool(axes) and all(case.partition(" ")[0] in axes for case in params[1:])
    }
    if len(known) < len(cells):
        yield f"asv's {what} {at} have other parameters than today and are left out"
        if not known:
            return
    measured = {params for params, each in known.items() if any(one.measured is not None for one in each.values())}
    replaced = measured & elsewhere
    if replaced:
        yield f"asv's {what} {at} are not compared where the trial log has a newer run: {_named(replaced)}"
    extra = measured - set(rows) - elsewhere
    if extra:
        yield f"asv's {what} {at}, but not the trial log, have {_named(extra, rows)}"
    lacking = {params for params, row in rows.items() if params not in known and row.samples}
    if lacking:
        yield f"The trial log, but not asv's {what} {at}, has {_named(lacking, known)}"
    good = {params for params, row in rows.items() if row.samples}
    left_out = {each for each in good & set(known) if all(_is_nan(one) for one in known[each].values())}
    if left_out:
        yield f"asv's {what} {at} are marked as not applicable, but the trial log has samples of {_named(left_out)}"
    failed: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    for params in good & set(known):
        broken = [name for name, reading in known[params].items() if reading.value is None]
        if broken:
            failed[_listed(sorted(broken))].add(params)
    for names, those in failed.items():
        yield f"asv reports that {names} failed {at}, but the trial log has samples of {_named(those)}"
    bad = sorted(f"{_words(each)} ({rows[each].status})" for each in measured & set(rows) if not rows[each].samples)
    if bad:
        yield f"asv's {what} {at} have figures for which the trial log has no sample: {_listed(bad)}"


def _named(those: AbstractSet[tuple[str, ...]], other: Iterable[tuple[str, ...]] = ()) -> str:
    """Count and name cases: by strategy alone if the other side lacks it in every case or it is the only parameter."""
    partly = {params[0] for params in other}
    if partly.isdisjoint(params[0] for params in those) and (partly or all(len(params) == 1 for params in those)):
        names = sorted({params[0] for params in those})
        return f"{len(names)} {'strategy' if len(names) == 1 else 'strategies'}: {_listed(names)}"
    names = sorted(map(_words, those))
    return f"{len(names)} {'case' if len(names) == 1 else 'cases'}: {_listed(names)}"


def _is_nan(reading: Reading) -> bool:
    return reading.value is not None and math.isnan(reading.value)


def _words(params: Sequence[str]) -> str:
    return one_line(" ".join(params))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(one_line, names[:NAMED]))
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"
