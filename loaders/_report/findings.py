"""A comparison's findings, in sentences made from its figures. Pure.

Sentences are picked from many comparisons, so those that open a question are corrected: the best set by its own method
(``loaders._judge``), the others by Holm's method among themselves. A sentence that does not survive the correction is
left out, or says *undecided*.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loaders import _scale
from loaders._judge import MEMORY_SHARE, RESOLUTION, TIME_MARGIN, Judged, fitted, holm
from loaders._law import Law
from loaders._resolution import INSTRUMENTS, Calibration
from loaders._rows import (
    EPOCHS,
    CaseLaws,
    Comparison,
    Row,
    advisable,
    differs_at_first,
    loaders_of,
    paired,
    plain,
    worked_first,
)
from loaders._stats import Estimate, ratio_of
from loaders._words import (
    amount,
    case_in_words,
    duration,
    estimated,
    factor,
    fatter,
    gain,
    multiple,
    percent,
    promise,
    quantity,
    small_amount,
    times,
)

FAT = 2
"""Memory over the baseline's: a slow strategy whose interval lies wholly above this is to be avoided."""

MANY = 10_000
"""The number of samples for which the growing strategies' memory is stated."""

NAMED = 3
"""Strategies named in a sentence; the rest are counted."""

CURED = 1.25
"""Ratio of peak to floor below which a cure is worth naming."""

LEANER = 0.8
"""Ratio of the memory needed with a setting to that without; a setting that is shown to be below it is named."""

SHOWN, DOUBT = 0.05, 0.05 / 8
"""p-values: below the first a setting counts as shown to be leaner; below the second its price in time is stated, as of
about eight sentences each may have one."""

DOUBTED = ", which does not survive the correction"

MONOTONE = 0.9
"""Share of the last tenth of all steps that move on to the next record, above which the order counts as sequential."""


def name_of(row: Row, rows: Sequence[Row]) -> str:
    """Return a strategy's name, with its tier if there are several tiers: their outputs differ."""
    return f"{row.strategy} ({row.tier})" if len({each.tier for each in rows}) > 1 else row.strategy


@dataclass(frozen=True)
class _Said:
    """A sentence, its p-value, and the sentence to use instead if it does not survive the correction."""

    text: str
    p_value: float | None = None
    otherwise: str = ""


def _asked(text: str) -> _Said:
    """Return what is said where nothing is shown; it counts in the correction, as it might have come out otherwise."""
    return _Said(text, 1.0, text)


def _corrected(said: Sequence[_Said]) -> list[str]:
    """Return for each sentence what holds of it after correction for their number; empty if nothing does."""
    tested = [each for each in said if each.p_value is not None]
    holds = dict(zip(map(id, tested), holm([each.p_value or 0.0 for each in tested]), strict=True))
    return [each.text if holds.get(id(each), True) else each.otherwise for each in said]


def leaders(rows: Sequence[Row]) -> list[Row]:
    """Return the strategies that cannot be shown to be slower than the fastest, fastest first."""
    return sorted((row for row in _compared_rows(rows) if row.in_best), key=lambda row: row.best is not None)


def _compared_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the fastest strategy and those that were measured in the same round as it."""
    return [row for row in rows if row["time"] and (row.best.ratio.count if row.best else row.in_best)]


def listed(names: Sequence[str]) -> str:
    """Return ``a``, ``a and b``, ``a, b and c``, ``a, b, c and 4 more``."""
    shown = list(names[:NAMED])
    last = f"{len(names) - NAMED} more" if len(names) > NAMED else shown.pop() if len(shown) > 1 else ""
    return f"{', '.join(shown)} and {last}" if last else shown[0]


def _full_name(row: Row, rows: Sequence[Row]) -> str:
    """Return ``name (identical, once converted)``: the name with whatever qualifies its time."""
    marks = [
        (row.tier, len({each.tier for each in rows}) > 1),
        ("once converted", row.converts),
        ("once everything is loaded", worked_first(row)),
        ("after the first epoch", differs_at_first(row) and not (row.converts or worked_first(row))),
        ("the baseline", row.is_baseline),
    ]
    said = ", ".join(word for word, holds in marks if holds)
    return f"{row.strategy} ({said})" if said else row.strategy


def _compared(judged: Judged, name: str) -> str:
    """Return ``1.04× slower (1.02 to 1.06) than NAME, by less than 10 %``."""
    prepositions = {"less": "than", "more": "than", "no difference": "from"}
    figure, bracket, rest = times(judged).partition(")")
    return f"{figure}{bracket} {prepositions.get(judged.verdict, 'compared with')} {name}{rest}"


def among(known: Sequence[Row], rows: Sequence[Row], missing: Sequence[Row]) -> str:
    """Say what the fastest was picked from: `` of the 12 of 15 measured so far``; empty if all are ``known``.

    ``known`` are the rows that the fastest was held against, ``missing`` those that are not measured yet. What is not
    advisable, or was skipped, does not count.
    """
    left = len(loaders_of(missing))
    able = [row for row in loaders_of(rows) if not row.status.startswith("skipped")]
    names = {row.strategy for row in known}
    is_whole = not left and all(row.strategy in names for row in able if row["time"])
    return "" if is_whole else f" of the {len(loaders_of(known))} of {len(able) + left} measured so far"


def of_time(rows: Sequence[Row], missing: Sequence[Row] = ()) -> str:
    """Say which strategies are fastest: those not shown to be slower than the one with the shortest time.

    ``missing`` are the strategies of the case that are not measured yet.
    """
    timed = [row for row in rows if row["time"]]
    first = leaders(rows)
    if not timed or not first:
        return "No strategy was timed"
    top = first[0]
    able = [row for row in rows if not row.is_apart]
    sound = [row for row in able if row["time"] and not row.failed]
    if not sound:
        return "Every strategy that was timed failed in some of its trials"
    with_failures = " without a failure" if any(row.failed and row["time"] for row in able) else ""
    so_far = among(_compared_rows(rows), rows, missing)
    those = so_far or (
        f" of the {len(sound)} timed{with_failures} (out of {len(able)})" if len(sound) < len(able) else ""
    )
    slower = "every other one of these is slower" if those else "every other loader is slower"
    others = f"; {slower}" if len(first) < len(loaders_of(_compared_rows(rows))) else ""
    if top["time"] is None or top["time"].low is None:
        return f"{name_of(top, rows)} was fastest{those}, but a single sample cannot show a difference"
    names = [_full_name(row, rows) for row in first]
    if len(first) == 1:
        return f"{listed(names)} is fastest{those}"
    if len(first) <= NAMED:
        return f"{listed(names)} are fastest{those} and cannot be told apart{others}"
    if len(first) >= len(loaders_of(timed)):
        return f"No strategy can be shown to be fastest{those}: {listed(names[:1])} comes first"
    return (
        f"{len(first)} of {len(loaders_of(timed))} strategies may be fastest{those} and cannot be told apart: "
        f"{listed(names)}{others}"
    )


def _against(rows: Sequence[Row]) -> _Said:
    """Say how much faster than the baseline the fastest strategy is, unless it is the baseline itself."""
    top = next(iter(leaders(rows)), None)
    baseline = next((row.strategy for row in rows if row.is_baseline), "the baseline")
    if top is None or top.is_baseline or top.ratio is None or top.ratio.ratio.low is None:
        return _Said("")
    if top["time"] is None or top["time"].low is None:
        return _Said("")  # the sentence before says that its single sample shows nothing
    if worked_first(top) or differs_at_first(top):
        return _Said("")  # its speedup in handing out what is already loaded says nothing about loading
    name = name_of(top, rows)
    undecided = f"Whether {name} is faster than {baseline} is undecided"
    if top.ratio.verdict in ("no difference", "undecided"):
        return _asked(f"Time of {name} compared with {baseline}: {times(top.ratio)}")
    subject = "It" if len(leaders(rows)) == 1 else name  # the previous sentence has named it
    picked_from = len(_compared_rows(rows)) - 1
    p_value = min(1.0, top.p_values.get("ratio", 1.0) * picked_from)
    return _Said(f"{subject} is {_compared(top.ratio, baseline)}", p_value, undecided)


def of_plain(rows: Sequence[Row], laws: Mapping[str, Law], missing: Sequence[Row] = ()) -> str:
    """Say which strategy is fastest if nothing may be converted or grow with the data.

    Only strategies whose memory law is known count; what has none, and is not slower by its mean, is named. Empty if
    the fastest of all are among these anyway.
    """
    able = plain(rows)
    bounded = [row.strategy for row in able if row.strategy in laws and laws[row.strategy].is_bounded]
    if not bounded or {row.strategy for row in leaders(rows)} <= set(bounded):
        return ""
    by_time = fitted({row.strategy: row.times for row in rows if row.times})
    best = by_time.best(bounded)
    top = next(row for row in rows if row.strategy == best.fastest)
    unknown = [row.strategy for row in able if row.strategy not in laws or laws[row.strategy].kind == "unknown"]
    ahead = [name for name in unknown if (each := by_time.difference(name, best.fastest)) is None or each.value < 0]
    those = f" of the {len(bounded)} that are known not to grow" if unknown or loaders_of(missing) else ""
    verb = f"is fastest{those}" if len(best.names) == 1 else f"are fastest{those} and cannot be told apart"
    if those and len(bounded) == 1:
        verb = "is the only one that is known not to grow"
    whose = "its" if len(ahead) == 1 else "their"
    doubt = f"; {listed(ahead)} may be faster, but how {whose} memory grows is unknown" if ahead else ""
    return (
        f"If nothing may be converted and memory must not grow with the data, {listed(best.names)} {verb}: "
        f"{estimated(top['time'], duration)}{doubt}"
    )


def of_kept(rows: Sequence[Row], laws: Mapping[str, Law]) -> str:
    """Say what each sample adds to the memory of the fastest; empty if its memory does not grow."""
    top = next(iter(leaders(rows)), None)
    slope = laws[top.strategy].per_sample if top and top.strategy in laws else None
    if top is None or slope is None or laws[top.strategy].kind != "linear":
        return ""
    many = f"{amount(slope.value * MANY)} for {MANY} samples"
    return f"{top.strategy} needs {estimated(slope, small_amount)} per sample: {many}"


def of_total(rows: Sequence[Row], missing: Sequence[Row] = ()) -> str:
    """Say what is fastest over ``EPOCHS`` epochs; empty if the first epoch does the same work as later ones."""
    known = [row for row in rows if row["total"]]
    if not any(row.converts or differs_at_first(row) for row in known):
        return ""
    compared = [row for row in known if row.total_best is None or row.total_best.ratio.count]
    first = sorted((row for row in compared if row.in_best_total), key=lambda row: row.total_best is not None)
    if not first or first[0]["total"] is None or first[0]["total"].low is None:
        return ""
    top = first[0]
    names = [name_of(row, rows) for row in first]
    baseline = next((row for row in known if row.is_baseline and row not in first), None)
    beside = f"; {baseline.strategy} takes {estimated(baseline['total'], duration)}" if baseline else ""
    takes = estimated(top["total"], duration)
    those = among(compared, rows, missing) if missing or len(compared) < len(known) else ""
    which = f"is fastest{those}: {takes}"
    if len(first) > 1:
        which = f"are fastest{those} and cannot be told apart: {names[0]} takes {takes}"
    included = ", including conversion" if any(row.converts for row in known) else ""
    return f"Over {EPOCHS} epochs{included}, {listed(names)} {which}{beside}"


def frontier(rows: Sequence[Row], memory: str = "peak") -> list[Row]:
    """Return the strategies that no other with their output is shown to beat in both time and memory, fastest first.

    Of what has run once nothing is shown.
    """
    able = [row for row in loaders_of(rows) if is_shown(row, memory)]
    best = [row for row in able if not any(_beats(other, row, memory) for other in able)]
    return sorted(best, key=lambda row: (_time(row), row.strategy))


def is_shown(row: Row, memory: str) -> bool:
    """Whether a strategy's time and memory have intervals, without which nothing can be shown of it."""
    return all(each is not None and each.low is not None for each in (row["time"], row[memory]))


def _beats(one: Row, other: Row, memory: str) -> bool:
    """Whether a strategy's intervals of time and memory lie below another's."""
    if one.tier != other.tier:
        return False
    pairs = [(one[figure], other[figure]) for figure in ("time", memory)]
    return all(less is not None and more is not None and _is_below(less, more) for less, more in pairs)


def of_memory(rows: Sequence[Row], figure: str = "peak") -> str:
    """Say which strategies have the lowest and the highest figure of memory: ``peak`` or ``needed``."""
    able = [row for row in advisable(rows) if row.samples]
    known = sorted((held.value, row.strategy) for row in able if (held := row[figure]))
    if not known:
        return "No strategy's memory was measured"
    (least, leanest), (most, fattest) = known[0], known[-1]
    those = f", of the {len(known)} of {len(able)} whose memory is known" if len(known) < len(able) else ""
    return f"{figure.capitalize()} memory ranges from {amount(least)} ({leanest}) to {amount(most)} ({fattest}){those}"


def _worst(rows: Sequence[Row], laws: Mapping[str, Law]) -> _Said:
    """Say which strategy to avoid: one shown to be slower than the baseline, at a multiple of its memory.

    The multiple depends on the amount of data, so the memory added per sample comes before it where that is known. Of
    what learns late that an epoch is over, the time of a short one tells nothing.
    """
    figure = "needed" if any(row["needed"] for row in rows) else "peak"
    baseline = next((row for row in rows if row.is_baseline), None)
    if baseline is None:
        return _asked("")
    usual = held.value if (held := baseline[figure]) else 0.0
    fit = fitted({row.strategy: row.needs if figure == "needed" else row.peaks for row in rows}, floor=RESOLUTION)
    fat: list[tuple[float, str, Row, Judged]] = []
    late: list[tuple[float, str, Row, Judged]] = []
    for row in advisable(rows):
        more, ratio = row[figure], fit.compare(row.strategy, baseline.strategy, margin=MEMORY_SHARE)
        if (
            more
            and ratio
            and ratio.verdict == "more"
            and (ratio.ratio.low or 0.0) > FAT
            and (more.value - RESOLUTION) / (usual + RESOLUTION) > FAT  # whatever the instrument adds to either
            and row.ratio
            and row.ratio.verdict == "more"
            and not (row["saved"] and row["saved"].value > 0)
        ):
            (late if row.ends_late else fat).append((more.value, row.strategy, row, ratio))
    if not fat:
        return _asked("")
    most, name, row, ratio = max(fat, key=lambda each: each[:2])
    why = row.label.replace("`", "").rstrip(".")
    slope = laws[name].per_sample if name in laws and laws[name].kind == "linear" else None
    each = f"{estimated(slope, small_amount)} per sample, so " if slope else ""
    size = f" with {row.delivered} samples" if row.delivered else ""
    what = f"{amount(most)} needed" if figure == "needed" else f"a peak of {amount(most)}"
    text = f"Avoid {name} ({why}): {each}{what}{size}, {fatter(ratio)} than {baseline.strategy}, and {times(row.ratio)}"
    if late:
        names = listed([each for _, each, *_ in sorted(late, key=lambda each: each[:2], reverse=True)])
        text += f" (also more than {FAT:g}× as fat, but not judged, as their epochs end late: {names})"
    # Both have to hold, so the sentence is as sure as the less sure of the two; it may have named any other strategy.
    fatness = fit.difference(name, baseline.strategy)
    p_value = max(row.p_values.get("ratio", 1.0), 2 * fatness.p_above(FAT) if fatness else 1.0)
    return _Said(text, min(1.0, p_value * (len(advisable(rows)) - 1)))


def _pairs(rows: Sequence[Row]) -> list[_Said]:
    """Say how much of a gap remains between two strategies with the same output; empty without such pairs."""
    said = []
    for row, pair in ((row, row.pair) for row in paired(rows) if row.pair):
        text = f"{row.strategy}: {_compared(pair, row.matches or '')}"
        doubt = f"{row.strategy}: undecided compared with {row.matches}"
        is_decided = pair.verdict in ("less", "more")
        said.append(_Said(text, row.p_values.get("pair", 1.0), doubt) if is_decided else _asked(text))
    return said


def of_level(rows: Sequence[Row]) -> str:
    """Say which strategy holds more memory than its buffers need, and what holds it; empty without cures."""
    cures = cures_of(rows)
    if not cures:
        return ""
    ill, _ = cures[0]
    if not ill.floor or not ill["level"]:
        return ""
    held = ill["level_held"].value if ill["level_held"] else 0.0
    beyond = ill["level"].value - ill.floor
    whose = ""
    if held > beyond / 2:
        whose = f", and {amount(held)} of it was freed but is held by the allocator"
        if ill.in_use_bound is not None:
            whose += f": no leak, as memory in use grows by at most {gain(ill.in_use_bound)}"
    steady, over = ill["level"].value, ill["level"].value / ill.floor
    return (
        f"{ill.strategy} holds {amount(steady)} from step to step, {factor(over)} its floor{whose}; its peak is "
        f"{multiple(ill['over_floor'])}"
    )


def of_growth(rows: Sequence[Row]) -> str:
    """Say what ``of_level`` says, and what brings the memory down at what cost; empty without cures.

    A cure is a strategy that ``matches`` the one it cures; its cost is the extra time it takes.
    """
    sentence = of_level(rows)
    return ". ".join([sentence, *of_cures(rows)]) if sentence else ""


def of_cures(rows: Sequence[Row]) -> list[str]:
    """Say what brings the memory down of the strategy that has most cures, and at what cost; leanest first."""
    for ill, healed in cures_of(rows)[:1]:
        return [
            f"{row.settings or row.strategy} brings its peak down to {factor(held.value)} the floor, and "
            f"{price_of(row, len(healed))}"
            for row in healed
            if (held := row["over_floor"]) and held.value < CURED and _is_below(held, ill["over_floor"])
        ]
    return []


def _is_below(one: Estimate, other: Estimate | None) -> bool:
    """Whether a figure is shown to be below another."""
    return other is not None and one.high is not None and other.low is not None and one.high < other.low


def price_of(row: Row, picked_from: int) -> str:
    """Say what a setting does to the time, if that is beyond doubt, or how much is known of it."""
    is_shown = row.pair is not None and row.pair.verdict in ("less", "more")
    if is_shown and row.p_values.get("pair", 1.0) * picked_from < DOUBT:
        return f"it is then {times(row.pair)}"
    if row.pair and row.pair.verdict == "no difference":
        return f"its time shows {times(row.pair)}"
    return f"its price in time is {f'undecided: {times(row.pair)}{DOUBTED}' if is_shown else times(row.pair)}"


def cures_of(rows: Sequence[Row]) -> list[tuple[Row, list[Row]]]:
    """Return each strategy that has cures, most cures first, together with its cures, leanest first."""
    by_name = {row.strategy: row for row in rows if row.samples}
    healed = [row for row in by_name.values() if row["over_floor"] and row.matches in by_name and not row.failed]
    names = Counter(row.matches for row in healed)
    return [
        (
            by_name[name],
            sorted(
                (row for row in healed if row.matches == name),
                key=lambda row: row["over_floor"].value if row["over_floor"] else 0.0,
            ),
        )
        for name, _ in names.most_common()
        if name
    ]


class Leaner(NamedTuple):
    """A strategy with a setting and without, and the ratio of the memory they need.

    ``p_value`` is the chance of one so low if it is in truth ``LEANER`` or more, for all its settings together.
    """

    row: Row
    without: Row
    ratio: Estimate
    p_value: float


def leaner_of(rows: Sequence[Row]) -> list[Leaner]:
    """Return, of each strategy, the setting that needs least memory, and the p-value of its being much leaner.

    Those shown to be come first. The others are returned too: what is said is corrected for all that were asked. Where
    the strategies' buffers have a known floor, settings are ``cures_of``.
    """
    by_name = {row.strategy: row for row in rows}
    those = [row for row in rows if row.settings and row.matches in by_name and row.floor is None]
    fit = fitted({row.strategy: row.needs for row in rows}, floor=RESOLUTION)
    best: dict[str, Leaner] = {}
    for row in those:
        without = by_name[row.matches or ""]
        tried = sum(each.matches == row.matches for each in those)
        judged = fit.compare(row.strategy, without.strategy, margin=MEMORY_SHARE, picked_from=tried)
        difference = fit.difference(row.strategy, without.strategy)
        if judged is None or difference is None:
            continue
        found = Leaner(row, without, judged.ratio, min(1.0, 2 * difference.p_below(LEANER) * tried))
        best[without.strategy] = min(
            found, best.get(without.strategy, found), key=lambda each: (each.p_value > SHOWN, each.ratio.value)
        )
    return list(best.values())


def _setting(found: Leaner) -> str:
    row, without, ratio, _ = found
    return f"{row.settings} makes {without.strategy} need {factor(ratio.value)} the memory, and {price_of(row, 1)}"


def of_sweep(rows: Sequence[Row]) -> str:
    """Say how many bodies ran at the highest number asked for, and what that costs in memory."""
    swept = [row for row in rows if row.series and row.at.isdecimal() and row["in_flight"] and row["peak"]]
    if not swept:
        return "Time and memory over the sweep"
    most_asked = max(swept, key=lambda row: int(row.at))
    least_asked = min((row for row in swept if row.series == most_asked.series), key=lambda row: int(row.at))
    if not (most_asked["in_flight"] and most_asked["peak"] and least_asked["peak"]):
        return "Time and memory over the sweep"
    return (
        f"{most_asked.strategy}: {most_asked.at} requested, {most_asked['in_flight'].value:.3g} in flight; "
        f"peak memory {amount(most_asked['peak'].value)}, "
        f"against {amount(least_asked['peak'].value)} at {least_asked.at}"
    )


def of_laws(found: CaseLaws) -> str:
    """Say how memory follows the amount of data: first what a sample adds, then what is level and what is unknown.

    Empty if only one amount was measured.
    """
    if all(len(law.points) < 2 for law in found.laws.values()):
        return ""
    growing = [(name, law) for name, law in found.laws.items() if law.kind == "linear" and law.per_sample]
    growing.sort(key=lambda each: each[1].per_sample.value if each[1].per_sample else 0.0, reverse=True)
    said = [f"{name} needs {estimated(law.per_sample, small_amount)} more per sample" for name, law in growing]
    if len(said) > NAMED:
        said[NAMED:] = [f"{len(said) - NAMED} others also grow with the data"]
    for kind, words in (("level", "level"), ("saturating", "rises until buffers are full"), ("unknown", "law unknown")):
        names = [name for name, law in found.laws.items() if law.kind == kind]
        if names:
            said.append(f"{words}: {listed(names)}")
    return "; ".join(said)


def of_ceiling(rows: Sequence[Row]) -> str:
    """Say which strategy comes closest to the ceiling, and how much of its speed it keeps; empty without a ceiling.

    The ceiling is the best bare pool. Strategies that hand out what was decoded before do less work and are left out.
    """
    top = min(
        (row for row in rows if row.ceiling and row["time"]),
        key=lambda row: row["time"].value if row["time"] else 0.0,
        default=None,
    )
    others = [row for row in plain(rows) if top and row.tier == top.tier]
    if top is None or not others:
        return ""
    best = min(others, key=lambda row: row["time"].value if row["time"] else 0.0)
    kept = ratio_of(top["time"], best["time"])
    if kept is None:
        return ""
    return f"{best.strategy} reaches {_bare(kept, '.0%')} of the speed of the best bare pool, {top.strategy}"


def of_processes(comparison: Comparison) -> list[str]:
    """Say for each case whether processes that serve a loader gain over the best loader without, both as they are.

    Each is the best of its side, so the interval is corrected for the pairs that they were picked from.
    """
    said = []
    for case, rows in comparison.cases:
        timed = sorted((row for row in rows if row["time"] and row.tier == "identical" and not row.failed), key=_time)
        served, alone = ([row for row in timed if bool(row.roles) is is_served] for is_served in (True, False))
        if not (served and alone):
            continue
        judged = fitted({row.strategy: row.times for row in timed}).compare(
            served[0].strategy, alone[0].strategy, margin=TIME_MARGIN, picked_from=len(served) * len(alone)
        )
        said.append(
            f"With {case_in_words(case)} the fastest that reads through other processes, {served[0].strategy}, takes "
            f"{_took(served[0])}, and {alone[0].strategy}, in the process that trains, {_took(alone[0])}: "
            f"{times(judged)}"
        )
    return said


def _time(row: Row) -> float:
    return row["time"].value if row["time"] else math.inf


def _took(row: Row) -> str:
    return estimated(row["time"], duration) if row["time"] else ""


def of_scale(comparison: Comparison) -> list[str]:
    """Say for each case what workers add, what a model from one and two of them predicts, and where it would end."""
    said = []
    for case, rows in comparison.cases:
        cost, cores, measured = _scale.costs(rows), comparison.environment.cores, _scale.by_workers(rows)
        if cost is None:
            continue
        limits = cost.limits(cores)
        ends = ", ".join(f"{name} at {rate:.0f}" for name, rate in limits.items())
        one, most = measured[1], cost.most(cores)
        sentence = f"With {case_in_words(case)} one worker ({one.strategy}) delivers {1 / cost.each:.0f} images/s"
        for count, row in measured.items():
            rate, times = _scale.rate(row), ratio_of(one["time"], row["time"])
            if count == 1 or not (rate and times):
                continue
            sentence += f"; {count} workers deliver {_bare(rate, '.0f')} images/s, {_bare(times, '.2f')} times as many"
            if count not in _scale.FROM:
                predicted = cost.here(count, cores)
                off = _off(rate, predicted, one["time"])
                sentence += f" and {off} the {predicted:.0f} predicted for processes that share {cores} cores"
        said.append(
            f"{sentence}. {_of_their_memory(measured)}Projected for machines of their own, in images/s: {ends}; "
            f"more than {most} worker{'' if most == 1 else 's'} would add nothing"
        )
    return said


def _of_their_memory(measured: Mapping[int, Row]) -> str:
    """Say what all processes need, and who holds it where that was read."""
    needed = {count: row["needed"] for count, row in measured.items()}
    words = [f"{estimated(each, amount)} with {count}" for count, each in needed.items() if each]
    if not words:
        return ""
    holders = next((row for count, row in measured.items() if count > 1 and row.role_memory), None)
    parts = [f"{name} {amount(held)}" for name, held in holders.role_memory.items()] if holders else []
    last = f"; after an epoch of {holders.strategy} they hold: {', '.join(parts)}" if holders else ""
    return f"All processes together need {', '.join(words)}{last}. "


def _bare(estimate: Estimate, form: str) -> str:
    """Return a value with its interval, if it has one, and no unit."""
    if estimate.low is None or estimate.high is None:
        return format(estimate.value, form)
    return f"{estimate.value:{form}} ({estimate.low:{form}} to {estimate.high:{form}})"


def _off(measured: Estimate, predicted: float, single: Estimate | None) -> str:
    """Say how a rate compares with a prediction, which is no better known than the ``single`` worker it rests on."""
    if measured.low is None or measured.high is None or single is None or single.low is None or single.high is None:
        return "a single sample against"
    low, high = (
        measured.low / predicted * single.low / single.value,
        measured.high / predicted * single.high / single.value,
    )
    if low >= 1 / TIME_MARGIN and high <= TIME_MARGIN:
        return "as many as"
    if low <= 1 <= high:
        return "not shown to differ from"
    away = measured.value / predicted - 1
    return f"{percent(abs(away))} {'more' if away > 0 else 'less'} than"


def of_threads(comparison: Comparison) -> list[str]:
    """Say for each case whether strategies come in the same order on one thread and on all cores.

    A pair counts if both orders are shown, with Holm's correction among all pairs of both cases.
    """
    by_case = [(case, [row for row in rows if row.times]) for case, rows in comparison.cases]
    said = []
    for case, alone in by_case:
        for other, together in by_case:
            if case.get("threads") == "1" and other == {**case, "threads": "all"}:
                names = sorted({row.strategy for row in alone} & {row.strategy for row in together})
                rest = " ".join(f"{axis} {value}" for axis, value in case.items() if axis != "threads")
                said.append(f"With {rest}: {_rank(alone, together, names)}")
    return said


def _rank(alone: Sequence[Row], together: Sequence[Row], names: Sequence[str]) -> str:
    """Count the pairs of strategies whose order on all cores is another than on one thread."""
    fits = [fitted({row.strategy: row.times for row in rows if row.strategy in names}) for rows in (alone, together)]
    pairs = list(itertools.combinations(names, 2))
    found = [fit.difference(*pair) for pair in pairs for fit in fits]
    shown = holm([2 * min(each.p_below(), each.p_above()) if each else 1.0 for each in found])
    both = [
        (pair, one.value < 0, other.value < 0)
        for place, pair in enumerate(pairs)
        if (one := found[2 * place]) and (other := found[2 * place + 1]) and all(shown[2 * place : 2 * place + 2])
    ]
    swapped = [pair if is_first else pair[::-1] for pair, is_first, still in both if is_first != still]
    decided = f"the order of {len(both)} of {len(pairs)} pairs is shown on one thread and on all cores"
    if not swapped:
        return f"{decided}; none differs"
    named = [f"{first} is faster than {second} on one thread only" for first, second in swapped[:NAMED]]
    more = f", and {len(swapped) - NAMED} more" if len(swapped) > NAMED else ""
    return f"{decided}; {len(swapped)} {'differs' if len(swapped) == 1 else 'differ'}: {', '.join(named)}{more}"


def of_calibration(calibration: Calibration) -> str:
    """Say how far the instruments were off against known values: times as a share, memory as an amount."""
    said = []
    for each in calibration.calibrated:
        unit = each.instrument.unit
        known = [reading for reading in each.readings if reading.truth and reading.verdict != "undecided"]
        if not known:
            continue
        span = " to ".join(dict.fromkeys(quantity(reading.truth, unit) for reading in (known[0], known[-1])))
        by_share = unit in ("s", "bytes a step")
        worst = max(_furthest(reading.error) / (reading.truth if by_share else 1) for reading in known)
        within = percent(worst) if by_share else quantity(worst, unit)
        said.append(f"{each.instrument.words} ({span}) {f'within {within}' if worst else 'exact'}")
    sentences = [f"Instrument error against known values: {', '.join(said)}"] if said else []
    off = [reading for reading in calibration.readings if reading.verdict == "off"]
    if off:
        named = (f"{INSTRUMENTS[each.metric].words} of {each.strategy}, {promise(each)}" for each in off)
        sentences.append(f"Unreliable: {'; '.join(named)}")
    open_ = [each for each in calibration.readings if each.verdict == "undecided"]
    if open_:
        names = ", ".join(f"{INSTRUMENTS[each.metric].words} of {each.strategy}" for each in open_)
        sentences.append(f"Undecided because the trials vary too much (was the machine busy?): {names}")
    return ". ".join(sentences)


def _furthest(error: Estimate) -> float:
    """Return how large an error may be: the end of its interval that is further from zero."""
    return max(abs(each) for each in (error.value, error.low, error.high) if each is not None)


def of_order(rows: Sequence[Row]) -> str:
    """Say which strategies end by reading a single file in order."""
    ending = [row.strategy for row in rows if row.order and (row.order.tail_monotony or 0) > MONOTONE]
    mixing = [row.strategy for row in rows if row.order and (row.order.tail_monotony or 0) <= MONOTONE]
    if not ending:
        return f"Mixed to the end: {', '.join(mixing)}"
    mixed = f"; mixed to the end: {', '.join(mixing)}" if mixing else ""
    return f"Ends with one file, in order: {', '.join(ending)}{mixed}"


def sentences(rows: Sequence[Row], laws: Mapping[str, Law] | None = None, missing: Sequence[Row] = ()) -> list[str]:
    """Return all findings without full stops: what to avoid, then strategies with the same output, then the rest.

    ``missing`` are the strategies of the case that are not measured yet.
    """
    pairs, known = _pairs(rows), laws or {}
    tail = [_Said(of_time(rows, missing)), _against(rows), _Said(of_kept(rows, known))]
    tail += [_Said(of_plain(rows, known, missing)), _Said(of_total(rows, missing))]
    tail += [_Said(_setting(each), each.p_value) for each in leaner_of(rows)]
    # All sentences share the correction; the pairs that survive it are joined into one sentence.
    worst, *held = _corrected([_worst(rows, known), *pairs, *tail])
    same = list(filter(None, held[: len(pairs)]))
    together = f"With the same output: {'; '.join(same)}" if same else ""
    figure = "needed" if any(row["needed"] for row in loaders_of(rows)) else "peak"  # as the tables
    return [*filter(None, [worst, together, *held[len(pairs) :]]), of_memory(rows, figure)]
