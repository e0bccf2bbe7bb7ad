"""From the records of one run to a comparison. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from loaders import _registry
from loaders._judge import RESOLUTION
from loaders._law import law
from loaders._resolution import Calibration
from loaders._rows.case import Case
from loaders._rows.figures import commits, is_not_closed, unmeasured, value
from loaders._rows.values import BUSY, About, CaseLaws, Comparison, Disturbed, Row
from loaders._trial.record import Record, surroundings

T = TypeVar("T")


def about(question: _registry.Question) -> About:
    """Return a question's description of itself."""
    return About(
        doc=question.doc,
        when=question.when,
        axes={axis: list(values) for axis, values in question.axes.items()},
        default_case=question.default_case,
        size_axis=question.size_axis,
        laws_from=question.laws_from,
        strategies={
            name: {axis: list(values) for axis, values in each.only.items()}
            for name, each in _registry.variants(question.name).items()
        },
        apart=question.apart,
        has_quick=len(_registry.quick(question.name)) < len(_registry.variants(question.name)),
        sweeps=question.sweeps,
        calibrates=question.calibrates,
        reports=question.reports,
    )


def _is_out(record: Record, known: Mapping[str, _registry.Variant]) -> bool:
    """Whether a strategy ran, for an earlier checkout, in a case in which it answers nothing."""
    variant, case = known.get(record.strategy), record.case
    return variant is not None and variant.only.keys() <= case.keys() and not variant.runs_in(case)


def comparison(records: Sequence[Record], calibration: Calibration | None = None) -> Comparison:
    """Return the comparison that the records of one run make up.

    A strategy that this checkout no longer has keeps its name and figures. With a calibration of the machine, ratios
    that its instruments cannot resolve are marked.
    """
    question = _registry.find_question(records[0].question)
    known = _registry.variants(question.name)
    records = [each for each in records if not _is_out(each, known)] or records
    first = records[0]
    baseline = _registry.baseline(first.question).name
    described = about(question)
    rows: list[Row] = []
    missing: list[Row] = []
    cases = _distinct(record.case for record in records)
    for case in sorted(
        cases, key=lambda each: question.cases.index(each) if each in question.cases else len(question.cases)
    ):
        within = [record for record in records if record.case == case]
        ranked_by = _ranked_by(within, question)
        of_case = Case(within, known, baseline, ranked_by, calibration)
        in_case = [of_case.row(name) for name in of_case.times]
        rows += sorted(in_case, key=lambda row: (row.ranked_at is None, row.ranked_at or 0.0, row.strategy))
        missing += [
            unmeasured(question.name, name, case, known[name], ranked_by, is_baseline=name == baseline)
            for name in described.running_in(case)
            if name not in of_case.times
        ]
    return Comparison(
        question=first.question,
        title=question.title,
        run=first.run,
        size=first.size,
        data=first.data,
        started=min(record.started for record in records),
        rounds=len({record.round for record in records}),
        ranked_by=question.ranked_by,
        epochs=first.epochs,
        # What differs between trials is left to the rows.
        environment=msgspec.structs.replace(
            surroundings(records),
            load=None,
            page_cache=None,
            frequency=None,
            swap=None,
            commit=commits(records),
        ),
        rows=rows,
        unmeasured=missing,
        laws=_laws(records, question) if question.size_axis else [],
        schema=first.schema,
        disturbed=disturbed(records),
        about=described,
        not_closed=not question.repeats and any(map(is_not_closed, records)),
    )


def disturbed(records: Iterable[Record]) -> Disturbed | None:
    """Say what disturbed a comparison, and for how many trials that is unknown; ``None`` if all were quiet at once.

    It was disturbed if the machine was busy in more than a tenth of the trials, or swapped or was throttled by heat in
    any of them: swapped memory is missing from every memory figure, and a hot processor is a different processor.
    Trials without a figure do not count.
    """
    measured = [record for record in records if record.status == "ok"]
    found = [record.metrics.disturbance for record in measured if record.metrics.disturbance]
    swapped = [each.swapped for each in found if (each.swapped or 0) > RESOLUTION]
    seen = Disturbed(
        trials=len(found),
        busy=sum(each.taken > BUSY for each in found),
        others=max((each.others for each in found), default=0.0),
        stolen=max((each.stolen or 0.0 for each in found), default=0.0),
        swapped=len(swapped),
        most_swapped=max((each or 0 for each in swapped), default=0),
        throttled=sum((each.throttled or 0) > 0 for each in found),
        unrecorded=len(measured) - len(found),
        repeated=sum(record.tries > 1 for record in measured),
    )
    return seen if seen.is_busy or seen.unrecorded or seen.repeated else None


def _ranked_by(records: Sequence[Record], question: _registry.Question) -> str:
    """Return the metric that ranks a case: the same for all its strategies."""
    good = [record for record in records if record.status == "ok"]
    has_all = all(value(record, question.ranked_by) is not None for record in good)
    return question.ranked_by if has_all else "epoch_time"


def _laws(records: Sequence[Record], question: _registry.Question) -> list[CaseLaws]:
    """Return how each strategy's memory follows the amount of data, for every case apart from the size axis."""
    known = _registry.variants(question.name)
    found: list[tuple[dict[str, str], dict[str, dict[int, dict[int, float]]]]] = []
    # A law comes from a single run: if a comparison joins cases of several, the run with the most cases is used.
    runs = Counter(run for run, _ in {(each.run, repr(each.case)) for each in records})
    most = max(runs, key=lambda run: (runs[run], run), default="")
    for record in records:
        metrics = record.metrics
        if record.run != most:
            continue
        needed = value(record, "needed_memory")
        if record.status != "ok" or not metrics.samples or needed is None:
            continue
        case = {axis: value for axis, value in record.case.items() if axis != question.size_axis}
        points = next((each for other, each in found if other == case), None)
        if points is None:
            found.append((case, points := {}))
        of_amount = points.setdefault(record.strategy, {}).setdefault(metrics.samples, {})
        of_amount[record.pairing] = float(needed)
    return [
        CaseLaws(
            case,
            {name: law(points, known[name].capacity if name in known else 0) for name, points in strategies.items()},
        )
        for case, strategies in found
    ]


def _distinct(items: Iterable[T]) -> list[T]:
    """Return the items without repetition, in order of first appearance; they need not be hashable."""
    found: list[T] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
