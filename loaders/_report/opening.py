"""What results advise, a line each: *if you ... do ... because ...*. Pure.

A line names one strategy and what it was held against: the question's baseline, or a strategy with the same output.
Strategies whose output differs are never compared here. The lines are picked from many comparisons, so they are
corrected together (Holm's method), and each for the number of strategies that it was picked from. A line that does not
survive says *undecided*, or is left out if it is about a setting. Lines on what an allocator holds rest on 95 %
intervals of their own, far from each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from loaders import _words
from loaders._advise.choose import BATCH
from loaders._claims._evidence import Figures, NotMeasuredError, ratio_of
from loaders._judge import MEMORY_SHARE, RESOLUTION, TIME_MARGIN, Fitted, Judged, fitted, holm
from loaders._law import Law
from loaders._report import findings
from loaders._rows import EPOCHS, Comparison, Headline, Row, headline, loaders_of, paired, unprepared
from loaders._words import amount, small_amount, times

FITS = ", all of which fit into memory once loaded"
"""Added to a question where the answer's memory grows with the data."""

CACHED = ", and all data fits into memory when converted"
"""Added where the answer's files were read from memory when it was timed, as it had just written them, or as they were
in the page cache and larger than the baseline's by ``BULKY``."""

BULKY = 1.5
"""Times the baseline's bytes on disk: a quarter of the data that fits into memory no longer does."""

ANY, UNWRITTEN = ", any number of them", ", without converting any"
"""Added where memory must not grow; and where the answer writes nothing."""

UNDECIDED = "Undecided."

MARGIN = f"{round(100 * (TIME_MARGIN - 1))} %"
"""What a gain must be to matter, in words."""

DOUBT = f", not shown to be {MARGIN} faster"
"""Added to a gain on another machine that may be less than matters."""

HANDED_OVER = {"path_generator_pool": "pool_from_generator", "load_all": "load_all_from_tensor_slices"}
"""Strategies of ``batching`` that yield NumPy arrays, and those that hand these over to TensorFlow."""

UNCHANGED = ", without augmenting them"
"""Added to a question that asks for augmented images too, where the answer hands out what it has loaded once."""

ALIKE = (
    "Each line compares strategies with the same output (in `read_order`: the same records, in another order); one "
    "whose pixels differ, for example, may gain more."
)
"""The note required wherever lines are shown, unless ``CORRECTED`` is."""

CORRECTED = (
    f"{ALIKE} Lines are corrected for their number, and for how many strategies each was picked from; those on what an "
    "allocator holds rest on 95 % intervals of their own."
)
"""The note required wherever all of them are."""

OTHERS = "other machines"
"""What a range of ratios is over."""

ILL = 1.5
"""Times the memory that the buffers need: what is surely above is ill, surely below ``findings.CURED`` is cured."""


class Advice(msgspec.Struct, frozen=True):
    """A line; its parts are Markdown.

    Attributes
    ----------
    strategy
        What is advised; empty if it is undecided.
    """

    question: str
    when: str
    do: str
    because: str
    strategy: str = ""


@dataclass(frozen=True)
class _Draft:
    """A line, how likely it is to be wrong by chance, and the reason that is given if it may be; none leaves it out."""

    line: Advice
    p_value: float | None
    otherwise: str = ""

    @property
    def if_doubted(self) -> list[Advice]:
        """What is said if the line does not hold."""
        said = Advice(self.line.question, self.line.when, UNDECIDED, self.otherwise)
        return [said] if self.otherwise else []


def advice(comparisons: Sequence[Comparison]) -> list[Advice]:
    """Return the lines of all questions that say what they are asked about, in their order."""
    asked = [comparison for comparison in comparisons if comparison.about.when]
    drafts = [draft for comparison in asked for draft in _drafts(comparison, _laws(comparison, comparisons))]
    holds = iter(holm([draft.p_value for draft in drafts if draft.p_value is not None]))
    return [
        line
        for draft in drafts
        for line in ([draft.line] if draft.p_value is None or next(holds) else draft.if_doubted)
    ]


def repeated(lines: Sequence[Advice], comparisons: Sequence[Comparison], others: Sequence[Comparison]) -> list[Advice]:
    """Return the lines with how the same strategies compare on other machines, each by its own trials.

    ``comparisons`` are those that the lines rest on; of the ``others``, the first of each machine counts that measured
    what they measured, or in which trials of the strategy went wrong.
    """
    of = {each.question: each for each in comparisons}
    found = []
    for line in lines:
        own, judged = of[line.question], dict[str, Judged | None]()
        case, rows = own.cases[0]
        time, _ = _held_against(rows, line.strategy)
        for each in (each for each in others if each.question == line.question):
            of_case = next((found for measured, found in each.cases if measured == case), [])
            machine, (there, ratio) = each.environment.machine, _held_against(of_case, line.strategy)
            alike = (each.not_closed, there) == (own.not_closed, time)
            went_wrong = any(row.failed for row in of_case if row.strategy == line.strategy)
            if machine != own.environment.machine and (went_wrong or (alike and ratio)):
                judged.setdefault(machine, None if went_wrong else ratio)
        found.append(msgspec.structs.replace(line, because=f"{line.because}{_elsewhere(judged)}"))
    return found


def _held_against(rows: Sequence[Row], strategy: str) -> tuple[str, Judged | None]:
    """Return which time of a case a strategy is judged by, and the judgement: to its baseline or its pair."""
    found = headline(rows)
    if not found:
        return "pair", next((row.pair for row in paired(rows) if row.strategy == strategy), None)
    baseline, same, times, over_all = found
    row = next((row for row in same if row.strategy == strategy and row is not baseline), None)
    judged = _timed(fitted(times), row, baseline, over_all=over_all) if row else None
    return "total" if over_all else "epoch", judged


def _elsewhere(found: Mapping[str, Judged | None]) -> str:
    """Say how many times as fast a strategy is on other machines, on which it may gain less than matters, or failed."""
    judged = {machine: each for machine, each in found.items() if each}
    failing = ", ".join(sorted(found.keys() - judged.keys()))
    failed = f"; some of its trials failed on {failing}" if failing else ""
    if not judged:
        return failed
    if len(judged) == 1:
        ((machine, only),) = judged.items()
        return f"; on {machine} {times(only)}{'' if _matters(only) else DOUBT}{failed}"
    low, *_, high = sorted(1 / each.ratio.value for each in judged.values())
    machines = ", ".join(sorted(machine for machine, each in judged.items() if not _matters(each)))
    doubt = f"{DOUBT} on {machines}" if machines else ""
    return f"; on {len(judged)} {OTHERS} {_words.factor(low)} to {_words.factor(high)} as fast{doubt}{failed}"


def matters(comparisons: Sequence[Comparison]) -> str:
    """Return the note required wherever lines are shown: when they matter, and what their times and memory are."""
    figures, handed_over = Figures(comparisons), []
    for plain, handed in HANDED_OVER.items():
        with suppress(NotMeasuredError):
            ratio = _words.multiple(ratio_of(figures.ratio("batching", handed, plain, "times")))
            handed_over.append(f"an epoch of `{handed}` takes {ratio} that of `{plain}`")
    longer = " and ".join(handed_over)
    on = {each.question: _words.elsewhere(each.environment, "") for each in comparisons}.get("batching", "")
    return (
        "These lines matter where loading takes a good part of the time. A loader that works ahead hides its time "
        "behind the training step, if that leaves it a core, until it takes longer than that; any other adds it to "
        "every step. Strategies that yield NumPy arrays, as `path_generator`, `path_generator_pool`, `load_all`, "
        "`load_all_uint8` and `memory_map` do, are timed without handing these over to TensorFlow"
        f"{f': {longer}{on}' if longer else ', which can take longer than that'}. "
        "Memory is what the system cannot reclaim; the page cache is not in it."
    )


def _laws(comparison: Comparison, comparisons: Sequence[Comparison]) -> Mapping[str, Law]:
    """Return the laws of memory of a comparison's default case, or of that of the question which has them for it.

    What a loader holds of the data is a matter of its code: if none are of the same machine, those of another will do.
    """
    known, machine = comparison.about.laws_from, comparison.environment.machine
    of = [each for each in comparisons if each.question == known]
    found = min(of, key=lambda each: each.environment.machine != machine, default=comparison)
    return found.laws_of(found.cases[0][0])


def _drafts(comparison: Comparison, laws: Mapping[str, Law]) -> Iterator[_Draft]:
    rows = _at_their_fullest(comparison, laws)
    if found := headline(rows):
        yield from _of_fastest(comparison, found, laws)
    elif pairs := paired(rows):
        yield _of_pairs(comparison, pairs)
    settings = (list(_of_setting(comparison, in_case)) for _, in_case in comparison.cases)
    yield from next(filter(None, settings), [])  # those of the first case in which a strategy runs with one
    for _, in_case in comparison.cases:
        yield from _of_cure(comparison, in_case)


def _at_their_fullest(comparison: Comparison, laws: Mapping[str, Law]) -> Sequence[Row]:
    """Return the rows of the default case, with the memory of the question that has their laws where that is more.

    A loader that is slower than the training steps of its question never fills its buffers; behind longer ones it does.
    """
    _, rows = comparison.cases[0]
    if not comparison.about.laws_from:
        return rows
    found = []
    for row in rows:
        law, own = laws.get(row.strategy), row["needed"] or row["peak"]
        there = law.at(row.delivered) if law and row.delivered else None
        fuller = own and there and there.value > own.value
        found.append(msgspec.structs.replace(row, figures={**row.figures, "needed": there}) if fuller else row)
    return found


def _of_pairs(comparison: Comparison, pairs: Sequence[Row]) -> _Draft:
    """Advise, of the strategies that gain over their pair, the one that gains least by its mean."""
    gaining = [row for row in pairs if _matters(row.pair)]
    row = max(gaining or pairs, key=lambda each: each.pair.ratio.value if each.pair else 0.0)
    within = _within(comparison, row)
    said = f"{times(row.pair)} than `{row.matches}`{within}, with the same output"
    if others := len(gaining) - 1:
        said += f"; {others} more such {'pair gains' if others == 1 else 'pairs gain'} as much or more"
    if lacking := len(pairs) - len(gaining):
        said += f"; {lacking} more {'is' if lacking == 1 else 'are'} not shown to gain as much as matters"
    line = Advice(comparison.question, comparison.about.when, _do(row), said, row.strategy)
    # If all gain, the one that gains least was not picked for a large gain, and needs no correction for the choice.
    picked_from = len(pairs) if lacking else 1
    p_value = min(1.0, picked_from * row.p_values.get("pair", 1.0)) if gaining else 1.0
    doubt = f"{_whether(row.strategy, row.matches or '', row.pair)}{within}: {_open(row.pair)}"
    return _Draft(line, p_value, doubt)


def _of_fastest(comparison: Comparison, found: Headline, laws: Mapping[str, Law]) -> Iterator[_Draft]:
    baseline, same, times, over_all = found
    fit = fitted(times)
    sound = [row for row in same if not row.failed]
    chosen = _leanest(fit, sound, baseline, over_all=over_all)
    when = _when(comparison, chosen) + _limit(comparison, chosen, baseline, laws)
    yield _of_one(comparison, when, chosen, baseline, fit, sound, laws, over_all=over_all)
    bounded = [row for row in unprepared(same) if row.strategy in laws and laws[row.strategy].is_bounded]
    if _reads_back(chosen, baseline):
        bounded = [row for row in bounded if not _reads_back(row, baseline)]
    elif chosen in bounded:
        return
    if not bounded:
        return
    other = _leanest(fit, bounded, baseline, over_all=over_all)
    if other is not baseline and other is not chosen:
        when = _when(comparison, other) + (CACHED if _reads_back(other, baseline) else ANY + UNWRITTEN)
        yield _of_one(comparison, when, other, baseline, fit, bounded, laws, over_all=over_all)


def _when(comparison: Comparison, row: Row) -> str:
    """Say what a line is about: without augmented images, if its strategy does not run with them."""
    about = comparison.about
    runs_in = about.strategies.get(row.strategy, {}).get("augment", about.axes.get("augment", []))
    return about.when + (UNCHANGED if runs_in == ["off"] else "")


def _limit(comparison: Comparison, row: Row, baseline: Row, laws: Mapping[str, Law]) -> str:
    """Say of how much data a line speaks: nobody knows what a strategy needs of which no law is known, beyond that."""
    law = laws.get(row.strategy)
    if law and law.kind == "linear":
        return FITS
    cached = CACHED if _reads_back(row, baseline) or _is_bulky(row, baseline) else ""
    is_unknown = comparison.about.is_sized and (law is None or law.kind == "unknown")
    return f"{cached} (up to {row.delivered} samples)" if is_unknown and row.delivered else cached


def _writes(row: Row, baseline: Row) -> bool:
    """Whether a strategy writes to disk; where the baseline has such a figure too, it is of the files that all read."""
    return row["disk"] is not None and (row.converts or baseline["disk"] is None)


def _reads_back(row: Row, baseline: Row) -> bool:
    """Whether a strategy was timed on files that it had just written, and its baseline on none."""
    return row["disk"] is not None and baseline["disk"] is None


def _is_bulky(row: Row, baseline: Row) -> bool:
    """Whether a strategy has much more on disk than its baseline, and was timed with that in the page cache."""
    own, usual = row["disk"], baseline["disk"]
    was_cached = row.page_cache is not None and row.page_cache[1] > 1 / BULKY
    return was_cached and own is not None and usual is not None and own.value > BULKY * usual.value


def _leanest(fit: Fitted, among: Sequence[Row], baseline: Row, *, over_all: bool) -> Row:
    """Return, of the strategies that cannot be told from the fastest, the fastest of those that need least memory.

    One that needs an installation gives way to one that needs none, unless that is not shown to gain anything; and what
    is shown to gain nothing that matters, to the baseline.
    """
    known = _level(fit, among, over_all=over_all)
    least = min(known, key=lambda row: math.inf if (held := _memory(row)) is None else held)
    lean = [row for row in known if not _is_more(row, least)]
    without = next((row for row in lean if not row.optional), lean[0])
    gains = without is baseline or _is_faster(_timed(fit, without, baseline, over_all=over_all))
    found = without if gains else lean[0]
    gains_nothing = _gains_nothing(_timed(fit, found, baseline, over_all=over_all))
    return baseline if gains_nothing and baseline in among else found


def _timed(fit: Fitted, row: Row, baseline: Row, *, over_all: bool) -> Judged | None:
    """Return the judgement on a strategy's time against the baseline's."""
    return fit.compare(row.strategy, baseline.strategy, margin=TIME_MARGIN) if over_all else row.ratio


def _is_faster(judged: Judged | None) -> bool:
    return judged is not None and judged.verdict == "less" and judged.ratio.resolved


def _matters(judged: Judged | None) -> bool:
    """Whether a strategy is surely faster by as much as matters: nobody changes a loader for less."""
    if judged is None or judged.ratio.high is None:
        return False
    return _is_faster(judged) and judged.ratio.high < 1 / TIME_MARGIN


def _gains_nothing(judged: Judged | None) -> bool:
    """Whether a strategy is surely slower, no different, or faster by less than matters."""
    if judged is None or judged.ratio.low is None:
        return False
    return judged.verdict in ("more", "no difference") or (_is_faster(judged) and judged.ratio.low > 1 / TIME_MARGIN)


def _level(fit: Fitted, among: Sequence[Row], *, over_all: bool) -> list[Row]:
    """Return the strategies that cannot be told from the fastest, in the order of their times."""
    best = fit.best({row.strategy for row in among})
    unresolved = {row.strategy for row in among if row.best and not row.best.ratio.resolved} if not over_all else set()
    names = [name for name in best.ratios if name in best.names or name in unresolved]
    names += [name for name in best.names if name not in names]
    return [row for name in names for row in among if row.strategy == name]


def _is_more(row: Row, than: Row) -> bool:
    """Whether a strategy is shown to need more memory than another, by as much as matters; what is unknown may."""
    more, less = (each["needed"] or each["peak"] for each in (row, than))
    if more is None or less is None:
        return more is None and less is not None
    if more.value - less.value < max(RESOLUTION, (MEMORY_SHARE - 1) * less.value):
        return False
    return more.low is None or less.high is None or more.low > less.high


def _of_one(
    comparison: Comparison,
    when: str,
    row: Row,
    baseline: Row,
    fit: Fitted,
    among: Sequence[Row],
    laws: Mapping[str, Law],
    *,
    over_all: bool,
) -> _Draft:
    """Say why a strategy is advised: its time against the baseline's, what its memory needs, what it writes."""
    line = Advice(comparison.question, when, _do(row), "", row.strategy)
    level = _level(fit, among, over_all=over_all)
    is_known = all(_memory(each) is not None for each in level)
    is_leanest = is_known and all(_is_more(each, row) for each in level if each is not row)
    leanest = "the leanest" if len(level) > 2 else "the leaner"
    those = f"; {leanest if is_leanest else 'one'} of {len(level)} that cannot be told apart in time"
    others = those if len(level) > 1 and row in level else ""
    if row is baseline:
        return _of_baseline(comparison, line, baseline, fit, among, others)
    judged = _timed(fit, row, baseline, over_all=over_all)
    ratio = times(judged)
    over = f" over {EPOCHS} epochs" if over_all else ""
    within = _within(comparison, row)
    on = f" on {comparison.environment.cores} cores" if row.series else ""  # how many at a time is best depends on it
    parts = [f"{ratio} than `{baseline.strategy}`{over}{within}{on}"]
    parts += _of_steps(row, baseline)
    parts += _of_memory(comparison, row, baseline, laws)
    parts += _of_tensors(comparison, row, fit, over_all=over_all)
    if row["disk"] and _writes(row, baseline):
        parts.append(_of_disk(row["disk"].value, row, baseline))
    said = ", ".join(parts) + others + _picked(_so_far(comparison, baseline))
    picked_from = sum(each is not baseline for each in among)
    p_value = _p_value(fit, row, baseline, picked_from) if _matters(judged) else 1.0
    doubt = f"{_whether(row.strategy, baseline.strategy, judged)}{over}{within}: {_open(judged)}"
    return _Draft(msgspec.structs.replace(line, because=said), p_value, doubt)


def _of_baseline(
    comparison: Comparison, line: Advice, baseline: Row, fit: Fitted, among: Sequence[Row], others: str
) -> _Draft:
    """Advise the baseline if each of the others is shown to gain nothing that matters; else it is undecided."""
    judged = {
        row.strategy: fit.compare(row.strategy, baseline.strategy, margin=TIME_MARGIN)
        for row in among
        if row is not baseline
    }
    open_ = [name for name, each in judged.items() if not _gains_nothing(each)]
    so_far, within = _so_far(comparison, baseline), _within(comparison, baseline)
    if open_:
        first = min(open_, key=lambda name: judged[name].ratio.value if judged[name] else 0.0)  # type: ignore[union-attr]
        doubt = f"{_whether(first, baseline.strategy, judged[first])}{within}: {_open(judged[first])}{_picked(so_far)}"
        return _Draft(line, 1.0, doubt)
    if len(judged) == 1:
        said = (
            f"`{next(iter(judged))}`, the only other with the same output{so_far}, is not faster by as much as matters"
        )
    else:
        said = f"none of the {len(judged)} others with the same output{so_far} is faster by as much as matters{others}"
    # All of them must gain too little, so the line is as doubtful as the least sure of that: nothing was picked.
    p_values = {name: _p_of_little(fit, name, baseline) for name in judged}
    least_sure = max(p_values, key=p_values.__getitem__)
    whether = f"whether `{least_sure}` is faster by {MARGIN} or more than `{baseline.strategy}`{within}"
    doubt = f"{whether}: {times(judged[least_sure])}{findings.DOUBTED}{_picked(so_far)}"
    return _Draft(msgspec.structs.replace(line, because=said), p_values[least_sure], doubt)


def _within(comparison: Comparison, row: Row, but: str = "") -> str:
    """Say in which case a line was measured, apart from the amount of data: `` with record jpeg``, or nothing.

    What is left as it is by default need not be said, nor an axis whose usual value is ``but``.
    """
    size, usual = comparison.about.size_axis, comparison.about.default_case
    axes = [axis for axis in row.case if axis != size and not (but and usual.get(axis) == but)]
    case = {axis: row.case[axis] for axis in axes if row.case[axis] != "default"}
    return f" with {_words.case_in_words(case)}" if case else ""


def _so_far(comparison: Comparison, baseline: Row) -> str:
    """Say how many of the strategies with the same output have been measured; empty if all have."""
    case, rows = comparison.cases[0]
    able, missing = ([row for row in each if row.tier == baseline.tier] for each in (rows, comparison.missing(case)))
    return findings.among([row for row in loaders_of(able) if row["time"]], able, missing)


def _picked(so_far: str) -> str:
    return f"; picked from{so_far.removeprefix(' of')}" if so_far else ""


def _p_value(fit: Fitted, row: Row, baseline: Row, picked_from: int) -> float:
    """Return how likely it is that a strategy looks so much faster by chance, picked from so many."""
    difference = fit.difference(row.strategy, baseline.strategy)
    return 1.0 if difference is None else min(1.0, 2 * difference.p_below() * picked_from)


def _p_of_little(fit: Fitted, name: str, baseline: Row) -> float:
    """Return how likely it is that a strategy looks to gain so little by chance, while it gains as much as matters."""
    difference = fit.difference(name, baseline.strategy)
    return 1.0 if difference is None else difference.p_above(1 / TIME_MARGIN)


def _whether(strategy: str, other: str, judged: Judged | None) -> str:
    """Say what is undecided: of what is faster, but perhaps by less than matters, only by how much."""
    by = f" by {MARGIN} or more" if judged and judged.verdict == "less" and not _matters(judged) else ""
    return f"whether `{strategy}` is faster{by} than `{other}`"


def _open(judged: Judged | None) -> str:
    return f"{times(judged)}{findings.DOUBTED if _matters(judged) else ''}"


def _of_steps(row: Row, baseline: Row) -> list[str]:
    """Say what a training step takes with its batch: a loader makes it wait, and slows it down on the same cores."""
    said = []
    for each in (row, baseline):
        if each["time"] is None or each["step_wait"] is None or not each.delivered:
            return []
        said.append(_words.estimated(each["time"].scaled(BATCH / each.delivered), _words.duration))
    takes, took = said
    return [f"a step takes {takes} instead of {took}"]


def _of_tensors(comparison: Comparison, row: Row, fit: Fitted, *, over_all: bool) -> list[str]:
    """Say what it takes, in time and memory, to hand over to TensorFlow what a strategy yields as NumPy arrays."""
    handed = HANDED_OVER.get(row.strategy)
    into = next((each for each in comparison.cases[0][1] if each.strategy == handed), None)
    if into is None or not over_all or handed not in fit.strategies or row.strategy not in fit.strategies:
        return []
    judged, needed = fit.compare(into.strategy, row.strategy, margin=TIME_MARGIN), _memory(into)
    if judged is None or needed is None:
        return []
    return [f"as tensors (`{into.strategy}`) {times(judged)} than that, {amount(needed)}"]


def _of_disk(written: float, row: Row, baseline: Row) -> str:
    """Say what a strategy writes to disk, instead of what, and of how much of that its time tells."""
    if not row.delivered:
        return f"{amount(written)} on disk"
    each, cached = written / row.delivered, _words.cached([row.page_cache])
    many = f"{amount(each * findings.MANY)} for {findings.MANY}"
    where = f", {cached} of that in the page cache" if cached else ", still in memory as just written"
    usual = baseline["disk"]
    instead = f" instead of {small_amount(usual.value / baseline.delivered)}" if usual and baseline.delivered else ""
    return f"{small_amount(each)} on disk a sample{instead} ({many}; timed with {row.delivered}{where})"


def _as_in(comparison: Comparison) -> str:
    """Say where a law of memory is from, if not from here."""
    return f" (as in `{comparison.about.laws_from}`)" if comparison.about.laws_from else ""


def _of_memory(comparison: Comparison, row: Row, baseline: Row, laws: Mapping[str, Law]) -> list[str]:
    """Say what memory a strategy needs, and how that follows the amount of data."""
    law = laws.get(row.strategy)
    if law and law.kind == "linear" and law.per_sample:
        each, many = law.per_sample.value, findings.MANY
        words = f"but needs {small_amount(each)} of memory a sample ({amount(each * many)} for {many})"
        return [f"{words}{_as_in(comparison)}"]
    needed, usual = _memory(row), _memory(baseline)
    if needed is None:
        return []
    is_fatter, is_leaner = (usual is not None and _is_more(*each) for each in ((row, baseline), (baseline, row)))
    more = f" instead of {amount(usual)}" if usual is not None and (is_fatter or is_leaner) else ""
    verb = "but needs " if is_fatter else ""
    of = f", however many there are{_as_in(comparison)}"
    if law is None or not law.is_bounded or law.capacity > (row.delivered or 0):
        of = f" with {row.delivered} samples" if row.delivered else ""
    if law and law.kind == "saturating" and law.capacity > (row.delivered or 0):
        of += f", and more until {law.capacity} samples fill its buffers"
    elif comparison.about.is_sized and (law is None or law.kind == "unknown"):
        of += f" ({_growing(comparison, law)})"
    return [f"{verb}{amount(needed)} of memory{more}{of}"]


def _growing(comparison: Comparison, law: Law | None) -> str:
    """Say what is known of how memory grows where there is no law of it."""
    if law is None or len(law.points) < 2 or not law.per_sample or (law.per_sample.low or 0.0) <= 0:
        return "how that grows is unknown"
    (before, _), (last, _) = law.points[-2:]
    each = f"{small_amount(law.per_sample.value)} a sample from {before} to {last} of them{_as_in(comparison)}"
    return f"it grows by {each}, and how beyond that is unknown"


def _of_cure(comparison: Comparison, rows: Sequence[Row]) -> Iterator[_Draft]:
    """Advise the cheapest setting that brings memory down to what the buffers need, where a strategy holds more."""
    if not findings.of_level(rows):
        return
    ill, healed = findings.cures_of(rows)[0]
    held = ill["over_floor"]
    cures = [
        row for row in healed if row.pair and (over := row["over_floor"]) and over.high and over.high < findings.CURED
    ]
    if not cures or held is None or held.low is None or held.low < ILL:
        return
    row = min(cures, key=lambda each: each.pair.ratio.value if each.pair else 0.0)
    when = (
        f"use `{ill.strategy}`{_within(comparison, ill)}, whose peak is {_words.multiple(held)} what its buffers need"
    )
    do = f"Set `{row.settings}`." if row.settings else _do(row)
    slow = ""
    if row["needed"] and row.floor:
        slow = f", {_words.multiple(row['needed'].scaled(1 / row.floor))} with a slow consumer"
    price = findings.price_of(row, len(cures))
    said = f"its peak falls to {_words.multiple(row['over_floor'])} that need{slow}, and {price}"
    yield _Draft(Advice(comparison.question, when, do, said, row.strategy), None, "")


def _of_setting(comparison: Comparison, rows: Sequence[Row]) -> Iterator[_Draft]:
    """Advise each setting with which a strategy is shown to need much less memory than as the system sets it."""
    for row, without, ratio, p_value in findings.leaner_of(rows):
        before, needed = _memory(without), _memory(row)
        if before is None or needed is None:
            continue
        within = _within(comparison, row, but="default")
        size = f" with {row.delivered} samples" if row.delivered else ""
        said = f"it then needs {amount(needed)}, {_words.multiple(ratio)} of that, and {findings.price_of(row, 1)}"
        line = Advice(
            comparison.question,
            f"use `{without.strategy}`{within}, which needs {amount(before)} of memory by default{size}",
            f"Set `{row.settings}`. {row.label}",
            said,
            row.strategy,
        )
        yield _Draft(line, p_value)


def _memory(row: Row) -> float | None:
    found = row["needed"] or row["peak"]
    return found.value if found else None


def _do(row: Row) -> str:
    return f"`{row.strategy}`. {row.label}"
