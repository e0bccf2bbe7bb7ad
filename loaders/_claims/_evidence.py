"""What claims rest on: the figures of one result set by name, and p-values for and against each part of a claim. Pure.

Ratios are those of ``loaders._judge``: paired by round, with variances moderated over all strategies of the case. Each
part of a claim has a p-value for each possible outcome. A claim is only as sure as its least sure part, and all claims
of a page are corrected by Holm's method among themselves.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from loaders._judge import RESOLUTION, Difference, Fitted, fitted, holm, margin_of, rounds_until
from loaders._law import AMOUNTS, Law
from loaders._rows import Comparison, Row
from loaders._stats import Estimate, estimate, quantile
from loaders._trial.growth import CONFIDENCE as GROWTH_CONFIDENCE
from loaders._trial.record import SCHEMA

Verdict = Literal["holds", "does not hold", "holds in part", "undecided here", "not asked here"]
Figure = Literal["times", "peaks", "needs", "cpus"]
IN_SECONDS = ("times", "cpus")

ALPHA = 0.05
"""Probability of any false verdict on a page."""


ENOUGH = 24
"""Rounds of the published comparisons, at most; a claim that these leave undecided says that it needs more."""

SINGLE = "a single round decides nothing"

NOT_WHOLE = "it does not hold as a whole, and whether in part is undecided"


class NotMeasuredError(Exception):
    """A figure that a rule needs is missing; the message names it."""


@dataclass(frozen=True)
class Shown:
    """P-values of the possible outcomes for a part of a claim: the smaller, the surer.

    ``not_whole`` is that of *fails or holds in part*, where a test can show it without showing which.
    """

    holds: float = 1.0
    fails: float = 1.0
    partly: float = 1.0
    not_whole: float = 1.0

    @property
    def surest(self) -> float:
        return min(self.holds, self.fails, self.partly)

    def at(self, level: float) -> Verdict:
        """Return the verdict at a level of significance."""
        if self.partly <= level:
            return "holds in part"
        if self.holds <= level:
            return "holds"
        return "does not hold" if self.fails <= level else "undecided here"


@dataclass(frozen=True)
class Asked:
    """A row that a claim rests on."""

    question: str
    strategy: str
    case: dict[str, str]


Test = Callable[[Difference], Shown]


@dataclass(frozen=True)
class Part:
    """A part of a claim; the difference and its test, if any, tell how many rounds would decide it."""

    shown: Shown
    difference: Difference | None = None
    test: Test | None = None

    def rounds(self, level: float) -> int | None:
        """Return the total number of rounds that would decide at this estimate and spread; ``None`` if unknown."""
        found, test = self.difference, self.test
        if self.shown.surest <= level:
            return 0
        if found is None or test is None or math.isinf(found.error) or found.rounds < 2:
            return None
        return rounds_until(found, lambda each: test(each).surest <= level)


def part_of(difference: Difference, test: Test) -> Part:
    return Part(test(difference), difference, test)


def exactly(holds: bool, *, partly: bool = False) -> Part:
    """Return a part that is decided by a count, which is the same in every trial."""
    return Part(Shown(partly=0.0) if partly else Shown(holds=0.0) if holds else Shown(fails=0.0))


def below(bound: float = 1.0) -> Test:
    """Hold if the 95 % interval lies below a bound, fail if it lies above."""
    return lambda each: Shown(_twice(each.p_below(bound)), _twice(each.p_above(bound)))


def above(bound: float = 1.0) -> Test:
    return opposite(below(bound))


def opposite(test: Test) -> Test:
    def turned(difference: Difference) -> Shown:
        shown = test(difference)
        return Shown(shown.fails, shown.holds, shown.partly)

    return turned


def gain(margin: float) -> Test:
    """Hold if the 95 % interval lies below 1; fail if any gain is smaller than the margin.

    Hold in part if both are so: there is a gain, and it is smaller than the margin.
    """

    def test(each: Difference) -> Shown:
        less, little = _twice(each.p_below()), each.p_above(1 / margin)
        return Shown(less, little, max(less, little))

    return test


def no_gain(margin: float) -> Test:
    """Fail if any gain is smaller than the margin; of less than the instrument resolves, no gain can be shown."""
    return lambda each: Shown(fails=each.p_above(1 / margin))


def opposite_of(part: Part) -> Part:
    """Return a part that holds where another fails."""
    shown = Shown(part.shown.fails, part.shown.holds, part.shown.partly)
    return Part(shown, part.difference, opposite(part.test) if part.test else None)


def unchanged(margin: float) -> Test:
    """Hold if the 90 % interval lies within the margin; fail if the 95 % interval excludes 1."""
    return lambda each: Shown(
        max(each.p_below(margin), each.p_above(1 / margin)), _twice(min(each.p_below(), each.p_above()))
    )


def light(margin: float, limit: float) -> Test:
    """Hold if no more than the margin is added, hold in part up to a limit, fail beyond it."""

    def test(each: Difference) -> Shown:
        more = _twice(each.p_above(margin))
        return Shown(each.p_below(margin), _twice(each.p_above(limit)), max(more, each.p_below(limit)), more)

    return test


def within(low: float, high: float) -> Test:
    """Hold if a ratio lies between two bounds, fail if it lies outside them."""
    return lambda each: Shown(
        max(each.p_above(low), each.p_below(high)), _twice(min(each.p_below(low), each.p_above(high)))
    )


def _twice(p: float) -> float:
    return min(1.0, 2 * p)


def both(*shown: Shown) -> Shown:
    """Combine conditions that must all hold: any of them that fails will do, which is corrected for their number."""
    return Shown(max(each.holds for each in shown), min(1.0, len(shown) * min(each.fails for each in shown)))


def both_of(one: Part, other: Part) -> Part:
    """Return a part that holds if two do, and fails if any fails: what decides it is the less sure one, or that one."""
    shown = both(one.shown, other.shown)
    if shown.holds <= shown.fails:
        least = max(one, other, key=lambda each: each.shown.holds)
        return Part(shown, least.difference, least.test)
    failing = min(one, other, key=lambda each: each.shown.fails)
    test = failing.test
    return Part(shown, failing.difference, (lambda each: Shown(fails=_twice(test(each).fails))) if test else None)


def less_than(figure: Estimate | None, bound: float) -> Difference:
    """Return an estimate minus a bound, to be tested against 1 as a logarithm is: its interval is Student's t."""
    found = known(figure)
    value = found.value - bound
    if found.low is None or found.high is None or found.count < 2:
        return Difference(value, math.inf, 0.0, found.count)
    error = (found.high - found.low) / 2 / quantile(found.count)
    return Difference(value, max(error, 1e-6 * abs(value), 1e-12), found.count - 1, found.count)


def ratio_to(figure: Estimate | None, bound: float) -> Difference:
    """Return the logarithm of an estimate's ratio to a fixed amount."""
    found = known(figure)
    if found.value <= 0 or bound <= 0:
        raise NotMeasuredError("no figure")
    away = less_than(found, bound)
    return Difference(math.log(found.value / bound), away.error / found.value, away.degrees, away.rounds)


def known(figure: Estimate | None) -> Estimate:
    if figure is None:
        raise NotMeasuredError("no figure")
    return figure


def ratio_of(difference: Difference) -> Estimate:
    """Return the ratio with its 95 % interval."""
    value = math.exp(difference.value)
    if math.isinf(difference.error):
        return Estimate(value, None, None, difference.rounds)
    return Estimate(value, *difference.interval(), difference.rounds)


class Figures:
    """The rows of one result set, by name.

    ``has_single`` says whether any figure that was asked for, since it was last cleared, rests on a single round, and
    ``asked`` which rows: by question, strategy and case.
    """

    has_single = False

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        self.asked: list[Asked] = []
        self._comparisons = {each.question: each for each in comparisons}
        self._fits: dict[tuple[str, Figure, tuple[tuple[tuple[str, str], ...], ...]], Fitted] = {}

    def comparison(self, question: str) -> Comparison:
        """Return the comparison of a question.

        Raises
        ------
        NotMeasuredError
            If it was not run, or was run with an older instrument, whose figures mean something else.
        """
        if question not in self._comparisons:
            raise NotMeasuredError(f"{question} was not run")
        if self._comparisons[question].schema != SCHEMA:
            raise NotMeasuredError(f"{question} was run with an older instrument, on which no verdict rests")
        return self._comparisons[question]

    def row(self, question: str, strategy: str, **case: str) -> Row:
        """Return one row; axes that are not given have their default value."""
        wanted = self._case(question, case)
        for row in self.comparison(question).rows:
            if (row.strategy, row.case) == (strategy, wanted):
                self.asked.append(Asked(question, strategy, wanted))
                if not row.samples:
                    raise NotMeasuredError(f"{strategy}: {row.status}")
                self._refuse_wrong(question, (strategy,), wanted)
                self.has_single |= row.samples == 1
                return row
        said = " ".join(["was not run", *(["with", *case.values()] if case else [])])
        raise NotMeasuredError(f"{question} {strategy} {said}")

    def _refuse_wrong(self, question: str, strategies: Sequence[str], case: Mapping[str, str]) -> None:
        """Refuse strategies that were seen to deliver wrong data in a case, or in any case with these values of axes.

        Most of their other trials are not checked (``loaders._compare.schedule.CHECKED``).
        """
        for row in self.comparison(question).rows:
            if row.strategy in strategies and case.items() <= row.case.items() and row.ends.get("wrong_output"):
                raise NotMeasuredError(f"{row.strategy}: {row.status}")

    def aside(self, question: str, strategy: str, **case: str) -> Row | None:
        """Return a row on which no verdict rests; ``None`` if it was not measured."""
        before = self.has_single, [*self.asked]
        try:
            return self.row(question, strategy, **case)
        except NotMeasuredError:
            return None
        finally:
            self.has_single, self.asked = before

    def ratio(self, question: str, one: str, other: str, figure: Figure, **case: str) -> Difference:
        """Return the ratio of two strategies' figures in one case, paired by round."""
        wanted = self._case(question, case)
        self.asked += [Asked(question, one, wanted), Asked(question, other, wanted)]
        self._refuse_wrong(question, (one, other), wanted)
        return self._found(self._fit(question, figure, [wanted]).difference(_key(one, wanted), _key(other, wanted)))

    def growth_with(self, question: str, strategy: str, figure: Figure, axis: str, less: str, more: str) -> Difference:
        """Return the ratio of a strategy's figure with ``more`` on the axis to that with ``less``, paired by round."""
        few, many = self._case(question, {axis: less}), self._case(question, {axis: more})
        self.asked += [Asked(question, strategy, few), Asked(question, strategy, many)]
        for case in (few, many):
            self._refuse_wrong(question, (strategy,), case)
        return self._found(
            self._fit(question, figure, [few, many]).difference(_key(strategy, many), _key(strategy, few))
        )

    def increase(self, one: Row, other: Row, figure: Figure) -> Estimate:
        """Return by how much one row's figure is more than another's, paired by round."""
        more, less = (_pairing(row, getattr(row, figure)) for row in (one, other))
        common = sorted(more.keys() & less.keys())
        if not common:
            raise NotMeasuredError("no round has both figures")
        self.has_single |= len(common) == 1
        return estimate([more[each] - less[each] for each in common], "linear")

    def law(self, question: str, strategy: str) -> Law:
        """Return how a strategy's memory follows the amount of data, with the other axes at their defaults."""
        asked = self.comparison(question).about
        wanted = {axis: value for axis, value in asked.default_case.items() if axis != asked.size_axis}
        for each in self.comparison(question).laws:
            if each.case == wanted and strategy in each.laws:
                found = each.laws[strategy]
                if len(found.points) < AMOUNTS:
                    raise NotMeasuredError(f"{strategy}: {found.why}")
                self.has_single |= any(memory.count == 1 for _, memory in found.points)
                self._refuse_wrong(question, (strategy,), wanted)
                amounts = asked.axes[asked.size_axis] if asked.size_axis else ()
                self.asked += [Asked(question, strategy, {**wanted, asked.size_axis: amount}) for amount in amounts]
                return found
        raise NotMeasuredError(f"{strategy} was not run with several amounts of data")

    def _case(self, question: str, case: Mapping[str, str]) -> dict[str, str]:
        return {**self.comparison(question).about.default_case, **case}

    def _fit(self, question: str, figure: Figure, cases: Sequence[Mapping[str, str]]) -> Fitted:
        key = (question, figure, tuple(tuple(sorted(case.items())) for case in cases))
        if key not in self._fits:
            samples = {
                _key(row.strategy, row.case): _pairing(row, getattr(row, figure))
                for row in self.comparison(question).rows
                if row.case in cases and row.samples
            }
            self._fits[key] = fitted(samples, floor=0.0 if figure in IN_SECONDS else RESOLUTION)
        return self._fits[key]

    def _found(self, difference: Difference | None) -> Difference:
        if difference is None:
            raise NotMeasuredError("no round has both figures")
        self.has_single |= difference.rounds == 1
        return difference


def _pairing(row: Row, values: Mapping[int, float]) -> dict[int, float]:
    """Return a row's figures by what pairs them: see ``loaders._trial.record.Record.pairing``."""
    return {~index if index in row.forked else index: value for index, value in values.items()}


def _key(strategy: str, case: Mapping[str, str]) -> str:
    return " ".join((strategy, *(case[axis] for axis in sorted(case))))


def margin_of_two(one: Row, other: Row) -> float:
    """Return the margin for two peaks: 5 % or the resolution."""
    return margin_of(max(known(one["peak"]).value, known(other["peak"]).value))


def of_trials(
    verdicts: str | None, samples: int, holds: Sequence[str], partly: Sequence[str] = (), *, most: bool = False
) -> Shown:
    """Return the p-values of a row's verdicts on memory: ``holds`` and ``partly`` list verdicts, all others fail.

    ``verdicts`` is a row's text: ``flat``, or ``flat in 2; undecided in 1``. A trial's verdict is right with a
    confidence of 99 %, and trials are independent. If those that decide contradict each other, nothing is shown; with
    ``most``, nor is anything unless most trials decide. The p-value is that of so many wrong verdicts among all trials.
    """
    counts: Counter[Verdict] = Counter()
    for each in (verdicts or "undecided").split("; "):
        name, _, count = each.rpartition(" in ") if each[-1:].isdecimal() else (each, "", str(samples))
        if name != "undecided":
            way: Verdict = "holds" if name in holds else "holds in part" if name in partly else "does not hold"
            counts[way] += int(count)
    if set(counts) == {"holds", "holds in part"}:
        counts = Counter({"holds in part": counts.total()})
    if len(counts) != 1 or (most and 2 * counts.total() <= samples):
        return Shown()
    ((way, count_),) = counts.items()
    wrong = 1 - GROWTH_CONFIDENCE
    p = math.fsum(math.comb(samples, n) * wrong**n * (1 - wrong) ** (samples - n) for n in range(count_, samples + 1))
    return {"holds": Shown(holds=p), "holds in part": Shown(partly=p)}.get(way, Shown(fails=p))


def settle(claims: Sequence[Sequence[Part]], among: int = 0) -> list[tuple[Verdict, str]]:
    """Return each claim's verdict, corrected by Holm's method, and for undecided claims what would decide them.

    They are corrected as if they were ``among`` so many, if that is more.
    """
    surest = [min(_whole(parts), _mixed(parts)) for parts in claims]
    rejected = holm([*surest, *[1.0] * (among - len(surest))], ALPHA)
    order = sorted(range(len(claims)), key=surest.__getitem__)
    levels = {index: ALPHA / (max(among, len(claims)) - rank) for rank, index in enumerate(order)}
    least = ALPHA / max(among, len(claims), 1)
    verdicts = [
        _verdict(parts, levels[index]) if rejected[index] else "undecided here" for index, parts in enumerate(claims)
    ]
    return [
        (verdict, _open(parts, least) if verdict == "undecided here" else "")
        for verdict, parts in zip(verdicts, claims, strict=True)
    ]


def _verdict(parts: Sequence[Part], level: float) -> Verdict:
    if _whole(parts) <= level:
        return all_of(*(part.shown.at(level) for part in parts))
    # A ratio that is shown to differ from 1, and by less than matters, may both hold and fail: then it holds.
    found = {part.shown.at(level / len(parts)) for part in parts}
    is_mixed = "holds in part" in found or {"holds", "does not hold"} <= found
    return "holds in part" if is_mixed else "undecided here"


def _whole(parts: Sequence[Part]) -> float:
    """Return the p-value for every part being decided."""
    return max((part.shown.surest for part in parts), default=1.0)


def _mixed(parts: Sequence[Part]) -> float:
    """Return the p-value for one part holding and another failing, or one holding in part: so does the claim, then.

    These are picked from all parts, so it is corrected for the number of parts.
    """
    shown = [part.shown for part in parts]
    pairs = ((max(one.holds, other.fails), other) for one, other in itertools.permutations(shown, 2))
    apart = (surest for surest, other in pairs if other.holds > surest)  # else that one would hold
    return min(1.0, len(parts) * min([*apart, *(each.partly for each in shown)], default=1.0))


def _open(parts: Sequence[Part], level: float) -> str:
    """Say what would decide an undecided claim. It may still hold in part where a part is shown not to hold."""
    open_ = [part.shown for part in parts if part.shown.at(level / len(parts)) != "holds"]
    surest = min((min(shown.fails, shown.not_whole) for shown in open_), default=1.0)
    needed = _would_decide(parts, level)
    return f"{NOT_WHOLE}: {needed}" if len(parts) * surest <= level else needed


def _would_decide(parts: Sequence[Part], level: float) -> str:
    """Say how many rounds would decide an undecided claim; more than ``ENOUGH`` if that cannot be told.

    Of a ratio only the rounds with both figures count, begun alike: they may be fewer than a comparison has.
    """
    if any(part.difference and math.isinf(part.difference.error) for part in parts):
        return SINGLE
    needed = [(part.rounds(level), part.difference) for part in parts]
    rounds = [(each, difference.rounds) for each, difference in needed if each is not None and difference]
    if any(each is None for each, _ in needed) or not any(each for each, _ in rounds):
        return f"it needs more than {ENOUGH} rounds, if rounds can decide it"
    needs, there = max(rounds, key=lambda each: each[0] - each[1])
    return f"{needs} rounds would decide, of which {there} are there"


def all_of(*verdicts: Verdict) -> Verdict:
    """Combine the verdicts on a claim's parts."""
    if "undecided here" in verdicts or not verdicts:
        return "undecided here"
    if len(set(verdicts)) == 1:
        return verdicts[0]
    return "holds in part"
