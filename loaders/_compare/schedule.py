"""Which trials come next, from the records that are there. Pure.

A round runs one case at a time, so that what is paired lies close together in time. The order of a question's cases,
and of the strategies in each, is shuffled afresh in each round. Questions advance together, round by round, but for the
turns of all strategies on a time budget.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from loaders import _claims, _registry, _rows
from loaders._compare.plans import QUICK_ROUNDS, Plan
from loaders._judge import TIME_MARGIN, Best, Judged, fitted
from loaders._rows import Row, headline, plain, unprepared
from loaders._stats import Estimate
from loaders._trial import Record
from loaders._trial.metrics import Metrics

GIVE_UP_AFTER = 2
"""A strategy that has failed this many times is not run again in the same comparison."""

LOOKS = (4, 6, 8, 12, 16, 20)
"""After these numbers of rounds it is decided what goes on until the next look: what may still be the fastest, and what
is undecided; then after every further ``LATER`` rounds. Looks are fixed beforehand: looking after every round would
eventually drop the true best."""

LATER = 8

CHECKED = 4
"""What a strategy delivers is checked in one of this many rounds, because a check takes as long as the rest of a trial;
in the others, only its number of samples is. Nothing is left unchecked before a trial has passed."""

Records = Mapping[str, Sequence[Record]]
"""The records of a command's comparisons, by question."""


@dataclass(frozen=True)
class Block:
    """The trials of one case in one round.

    Attributes
    ----------
    strategies
        Those that are still due, in their order.
    planned
        The number of trials of the question's round.
    fresh
        Whether they run in fresh processes.
    """

    plan: Plan
    index: int
    case: dict[str, str]
    strategies: list[str]
    planned: int
    fresh: bool


def blocks(plans: Sequence[Plan], records: Records) -> Iterator[Block]:
    """Yield what is due, in its order. ``records`` may grow while this is read, and must, to get to later rounds."""
    looked: dict[str, set[str]] = {}
    for index, amounts in _order(plans):
        for block in of_round(plans, records, index, looked):
            if amounts is None or amounts == _is_an_amount(block):
                yield block


def of_round(plans: Sequence[Plan], records: Records, index: int, looked: dict[str, set[str]]) -> Iterator[Block]:
    """Yield what is due in a round; ``looked`` keeps what looks have decided, for the rounds that follow."""
    for plan in plans:
        if index < plan.rounds:
            yield from _of_question(plan, index, records, looked)


def _order(plans: Sequence[Plan]) -> Iterator[tuple[int, bool | None]]:
    """Yield the numbers of rounds, and whether only other amounts than the default are due, or only the default.

    In the round in which all strategies of a time budget have their turn, the default cases of all questions come
    first: the other amounts only tell how memory grows. Where the budget may allow for all turns, they come as soon as
    the quick strategies have had a first trial, so that no question is left out if it does not.
    """
    quick, turn = [(index, None) for index in range(QUICK_ROUNDS)], QUICK_ROUNDS
    if any(each.turns for each in plans):
        yield from ((0, False), (turn, False), (0, True), *quick[1:], (turn, True))
    else:
        yield from (*quick, (turn, False), (turn, True))
    yield from ((index, None) for index in range(turn + 1, max(each.rounds for each in plans)))


def _is_an_amount(block: Block) -> bool:
    """Whether it is one of a time budget that only tells how memory grows with the data."""
    return block.plan.staged and block.case != block.plan.cases[0]


def is_left(plans: Sequence[Plan], records: Records) -> bool:
    """Whether anything is due."""
    return any(True for _ in blocks(plans, records))


def _of_question(plan: Plan, index: int, records: Records, looked: dict[str, set[str]]) -> Iterator[Block]:
    wanted = [(case, _wanted(plan, index, case, records, looked)) for case in plan.cases]
    planned = sum(len(strategies) for _, strategies in wanted)
    order = random.Random(f"{plan.question} {index}")  # noqa: S311
    order.shuffle(wanted)
    for case, strategies in wanted:
        order.shuffle(strategies)
        of_case = [each for each in records[plan.question] if each.case == case]
        due = [name for name in strategies if _is_due(index, [each for each in of_case if each.strategy == name])]
        if due:
            yield Block(plan, index, case, due, planned, plan.starts_fresh(index, case, strategies))


def _is_due(index: int, own: Sequence[Record]) -> bool:
    """Whether a strategy's trial of a round is not done, and it has not failed too often in this case."""
    failures = sum(each.status != "ok" for each in own)
    return failures < GIVE_UP_AFTER and all(each.round != index for each in own)


def is_checked(index: int, own: Sequence[Record]) -> bool:
    """Whether what a strategy delivers in a round is checked, after its own trials so far."""
    first = index - index % CHECKED
    return not any(each.status == "ok" and each.checked and each.round >= first for each in own)


def held_to(record: Record, own: Sequence[Record]) -> Record:
    """Return a record; if it was not checked, as wrong output if its number of samples is not that of a checked trial.

    Strategies that may lose samples are held to nothing.
    """
    proven = next((each.metrics for each in own if each.status == "ok" and each.checked), None)
    if record.checked or record.status != "ok" or proven is None or record.metrics.samples == proven.samples:
        return record
    if _registry.find_variant(record.question, record.strategy).may_lose:
        return record
    message = f"delivered {record.metrics.samples} samples, and {proven.samples} when checked"
    return msgspec.structs.replace(record, status="wrong_output", message=message, metrics=Metrics())


def _wanted(plan: Plan, index: int, case: dict[str, str], records: Records, looked: dict[str, set[str]]) -> list[str]:
    """Return the strategies of a round in a case."""
    if index < plan.whole_rounds:
        return plan.beforehand(index, case)
    if plan.until is None or plan.staged:
        due = set[str]()
    else:
        if "claims" not in looked:
            looked["claims"] = claimed(records, plan.whole_rounds)
        due = {each for each in plan.strategies_in(case) if _in_case(plan.question, each, case) in looked["claims"]}
    if _registry.find_question(plan.question).chooses:
        look = _last_look(index)
        name = f"{plan.question} {case} {look}"
        if name not in looked:
            own = records[plan.question]
            looked[name] = goes_on([each for each in own if each.case == case and each.round < look], plan.until)
        due |= looked[name]
    return [each for each in plan.strategies_in(case) if each in due]


def _last_look(index: int) -> int:
    """Return after how many rounds was looked last, in a round that comes after so many."""
    last = LOOKS[-1]
    return last + (index - last) // LATER * LATER if index >= last else max(each for each in LOOKS if each <= index)


def claimed(records: Records, whole_rounds: int) -> set[str]:
    """Return what the claims rest on that the whole rounds left undecided: strategies, each of a question in a case.

    A claim may rest on several questions; it is judged if the command measures them all.

    They are looked at once, and go on to the end: with more looks, one of them would sooner or later decide anything.
    Only what is far beyond doubt stops, so that the second look, at the end, hardly adds to the errors of all.
    """
    whole = [[each for each in own if each.round < whole_rounds] for own in records.values()]
    open_ = [
        each
        for each in _claims.judged([_rows.comparison(own) for own in whole if own], strictness=STRICT)
        if each.reached and each.verdict == "undecided here"
    ]
    return {_in_case(each.question, each.strategy, each.case) for claim in open_ for each in claim.asked}


STRICT = 10
"""A claim is decided early only if its p-value would do among so many times as many claims as there are (Haybittle and
Peto's rule): a page judges the claims of all questions together, and again at the end."""


def _in_case(question: str, strategy: str, case: Mapping[str, str]) -> str:
    return f"{question} {strategy} {sorted(case.items())}"


def goes_on(records: Sequence[Record], until: float | None) -> set[str]:
    """Return the strategies of one case that need more rounds, and those that they are compared with.

    Without ``until``, those that may be the fastest go on in any case.
    """
    rows = _rows_of(_not_given_up(records))
    leading = _contenders(rows) if until is None else set()
    return leading | _unsure(rows) | {name for each in _open(rows, until) for name in (each.strategy, each.other)}


SURE = 1.5
"""A ratio that differs by less than this many half-widths of its 95 % interval goes on though it is decided: with a
look every few rounds, one of them sooner or later shows a difference that is none. Of strategies that take as long as
their baseline, 6.1 % were said to differ without this, and 2.9 % are, in 3 % more trials (200 simulated comparisons
with the noise of published trials)."""


def _unsure(rows: Sequence[Row]) -> set[str]:
    """Return the strategies that only just differ from what they are compared with, by enough to matter, with that."""
    baseline = next((row.strategy for row in rows if row.is_baseline), "")
    found: set[str] = set()
    for row in rows:
        for judged, other in ((row.ratio, baseline), (row.peak_ratio, baseline), (row.pair, row.matches or "")):
            if judged and judged.verdict in ("less", "more") and not judged.small and not _is_sure(judged):
                found |= {row.strategy, other}
    return found


def _is_sure(judged: Judged) -> bool:
    ratio = judged.ratio
    if ratio.low is None or ratio.high is None or ratio.low <= 0:
        return True  # more rounds would not tell
    return abs(math.log(ratio.value)) >= SURE * math.log(ratio.high / ratio.low) / 2


def _not_given_up(records: Sequence[Record]) -> list[Record]:
    """Return the records of one case without those of strategies that have failed too often to be run again."""
    failed = Counter(each.strategy for each in records if each.status != "ok")
    return [each for each in records if failed[each.strategy] < GIVE_UP_AFTER]


def _rows_of(records: Sequence[Record]) -> Sequence[Row]:
    return _rows.comparison(records).rows if records else []


def _contenders(rows: Sequence[Row]) -> set[str]:
    """Return the strategies of one case that may still be the fastest, once or over many epochs, and the baseline.

    A strategy whose output one of them reproduces is included: the difference that remains between them is asked too.
    """
    found = {row.strategy for row in rows if row.in_best or row.in_best_total or row.is_baseline}
    if ahead := _best_of_plain(rows):
        found.update(ahead.names)
    return found | {row.matches for row in rows if row.matches and row.strategy in found}


def _best_of_plain(rows: Sequence[Row]) -> Best | None:
    """Return the best of those that keep and convert nothing: others are no option where the data does not fit."""
    among = [row.strategy for row in plain(rows)]
    return fitted({row.strategy: row.times for row in rows if row.times}).best(among) if among else None


@dataclass(frozen=True)
class Open:
    """A ratio that needs more rounds.

    Attributes
    ----------
    figure
        ``time``, ``total`` or ``memory``.
    half
        Half the width of its 95 % interval, as a share; infinite after a single round.
    rounds
        The number of rounds in total that would do; ``None`` if that is unknown.
    """

    case: dict[str, str]
    strategy: str
    other: str
    figure: str
    half: float
    rounds: int | None


def open_ratios(plan: Plan, records: Sequence[Record]) -> list[Open]:
    """Return what a comparison has left open, case by case."""
    return [
        each
        for case in plan.cases
        if _registry.find_question(plan.question).chooses
        for each in _open(_rows_of(_not_given_up([record for record in records if record.case == case])), plan.until)
    ]


def _open(rows: Sequence[Row], until: float | None) -> list[Open]:
    """Return the ratios of one case that are undecided, or wider than ``until`` where a first answer rests on them."""
    leading = _contenders(rows)
    totals = _of_headline(rows)
    baseline = next((row.strategy for row in rows if row.is_baseline), "")
    fastest = next((row.strategy for row in rows if row.in_best and row.best is None), "")
    ahead = _best_of_plain(rows)
    # Keyed by figure and pair: the baseline may be the fastest, and is then met twice.
    found: dict[tuple[str, frozenset[str]], Open] = {}
    for row in rows:
        for figure, other, judged in (
            ("time", baseline, row.ratio),
            ("time", fastest, row.best),
            ("time", ahead.fastest if ahead else "", _among(ahead, row.strategy)),
            ("time", row.matches or "", row.pair),
            ("total", baseline, totals.get(row.strategy)),
            ("memory", baseline, row.peak_ratio),
        ):
            if judged is None or not judged.ratio.resolved:
                continue  # more rounds of what the instrument cannot resolve would not help
            half = half_width(judged.ratio)
            rests = figure == "total" or (figure == "time" and row.strategy in leading)
            wide = until is not None and rests and half > until
            if wide or judged.verdict == "undecided":
                needed = _rounds(judged, half, until if wide else None)
                pair = figure, frozenset((row.strategy, other))
                found.setdefault(pair, Open(row.case, row.strategy, other, figure, half, needed))
    return list(found.values())


def _of_headline(rows: Sequence[Row]) -> dict[str, Judged]:
    """Return the ratios to the baseline that a headline may state of totals.

    They are of the best, and of the best that convert nothing beforehand (``unprepared``). Empty where a headline
    states the time of an epoch, as ``Row.ratio`` does, or nothing (``loaders._report.opening``). Which of the
    unprepared ones are bounded, and so advised for more data, is known from several amounts only, and not here.
    """
    found = headline(rows)
    if found is None or not found.over_all:
        return {}
    baseline, same, times, _ = found
    question = _registry.find_question(baseline.question)
    if not question.when or baseline.case != question.default_case:
        return {}
    fit = fitted(times)
    groups = [{row.strategy for row in each} & set(fit.strategies) for each in (same, unprepared(same))]
    best = {name for group in groups if group for name in fit.best_names(group)} - {baseline.strategy}
    ratios = {name: fit.compare(name, baseline.strategy, margin=TIME_MARGIN) for name in sorted(best)}
    return {name: each for name, each in ratios.items() if each}


def _among(best: Best | None, strategy: str) -> Judged | None:
    """Return the ratio of one of the best to the fastest of them."""
    return best.ratios.get(strategy) if best and strategy in best.names else None


def half_width(ratio: Estimate) -> float:
    """Return half the width of a ratio's interval, as a share: 0.05 for a ratio that is known within 5 %."""
    if ratio.low is None or ratio.high is None or ratio.low <= 0:
        return math.inf
    return math.sqrt(ratio.high / ratio.low) - 1


def _rounds(judged: Judged, half: float, until: float | None) -> int | None:
    """Return how many rounds would do: an interval narrows with the root of their number."""
    if until is None:
        return judged.rounds
    if math.isinf(half):
        return None
    narrower = math.ceil(judged.ratio.count * (math.log1p(half) / math.log1p(until)) ** 2)
    return max(narrower, judged.rounds or 0)
