"""From trial records and the registry to the candidates: one run of one question, one case."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from loaders import _registry, _words
from loaders._advise import coverage
from loaders._advise.choose import Amount, Candidate
from loaders._advise.words import Source
from loaders._compare.plans import QUICK_ROUNDS
from loaders._law import AMOUNTS
from loaders._rows.figures import commits, first_epochs, is_not_closed, is_untold, value
from loaders._trial.imports import is_found
from loaders._trial.record import SCHEMA, Record, surroundings


class Choice(msgspec.Struct, frozen=True):
    """The candidates in one case of one question, as one run measured them."""

    question: str
    case: dict[str, str]
    candidates: list[Candidate]
    source: Source


def questions() -> list[str]:
    """Return the names of the questions from which a loader can be chosen."""
    return [name for name, question in _registry.questions().items() if question.size_axis]


def cases(question: _registry.Question) -> list[dict[str, str]]:
    """Return its cases without the axis of amounts, the default first, if there are enough amounts for a law."""
    every = [without_size(case, question) for case in question.cases]
    return [case for place, case in enumerate(every) if every.count(case) >= AMOUNTS and case not in every[:place]]


def without_size(case: Mapping[str, str], question: _registry.Question) -> dict[str, str]:
    """Return a case without the axis of amounts."""
    return {axis: value for axis, value in case.items() if axis != question.size_axis}


def runs(records: Iterable[Record], question: str) -> list[list[Record]]:
    """Return a question's runs that can support an answer, newest first: present schema, at least one whole round.

    Results of two processors are never joined, even if they continued the same run; of two commits a run has trials
    only where the package's code is the same. A trial that was skipped or ended early could not describe its
    environment, and is counted with its run.
    """
    by_run: defaultdict[tuple[str, ...], list[Record]] = defaultdict(list)
    for each in records:
        if each.question == question and each.schema == SCHEMA and each.run:
            by_run[each.environment.machine, each.run, each.size, each.data].append(each)
    found: list[list[Record]] = []
    for run in by_run.values():
        processors = {each.environment.cpu for each in run} - {""}
        found += [[each for each in run if each.environment.cpu in (cpu, "")] for cpu in processors]
    whole = [each for each in found if is_whole(each)]
    return sorted(whole, key=lambda each: max(record.started for record in each), reverse=True)


def is_whole(run: Sequence[Record]) -> bool:
    """Whether a run has finished a round; trials that were withdrawn later do not undo that.

    The next round begins after the first one, but for that in which all strategies of a time budget have their turn.
    """
    counts = Counter(record.round for record in run)
    if 0 in counts and counts.keys() - {0, QUICK_ROUNDS}:
        return True
    planned = {record.round: max(1, record.planned) for record in run}
    return any(count >= planned[index] for index, count in counts.items())


def pick(records: Sequence[Record], question: str, case: Mapping[str, str], own: str) -> list[Record]:
    """Return the records of the run that answers best.

    It is the reader's own, else that of the project's machine that has measured most (``coverage.most``), else the
    newest one. A run with all amounts of the case comes before one with fewer, because without them no law of memory is
    known.
    """
    asked = _registry.find_question(question)
    usable = [run for run in runs(records, question) if _sizes(run, asked, case)]
    usable = [run for run in usable if has_all_amounts(run, question, case)] or usable
    if mine := [run for run in usable if run[0].environment.machine == own]:
        return mine[0]
    able = [run for run in usable if coverage.may_answer(run[0].environment.machine, run[0].size, run[0].data)]
    newest = {run[0].environment.machine: run for run in reversed(able)}
    return coverage.most(list(newest.values()), lambda run: _coverage(run, case)) or next(iter(usable), [])


def _coverage(run: Sequence[Record], case: Mapping[str, str]) -> coverage.Coverage:
    """Return how many strategies a run has measured in a case, and in how many rounds."""
    counts, started = map(len, _rounds_of(run, case).values()), max(each.started for each in run)
    return coverage.of(counts, surroundings(run), started, is_closed=not any(map(is_not_closed, run)))


def _rounds_of(run: Sequence[Record], case: Mapping[str, str]) -> dict[str, set[int]]:
    """Return the rounds in which each strategy was measured in a case."""
    question = _registry.find_question(run[0].question)
    rounds: defaultdict[str, set[int]] = defaultdict(set)
    for each in run:
        if without_size(each.case, question) == case and each.status == "ok":
            rounds[each.strategy].add(each.round)
    return rounds


def has_all_amounts(run: Sequence[Record], question: str, case: Mapping[str, str]) -> bool:
    """Whether a run has all amounts of data at which its question is measured in a case."""
    asked = _registry.find_question(question)
    wanted = sum(without_size(each, asked) == case for each in asked.cases)
    return len(_sizes(run, asked, case)) >= wanted


def _sizes(run: Sequence[Record], question: _registry.Question, case: Mapping[str, str]) -> set[str]:
    within = [each for each in run if without_size(each.case, question) == case and each.status == "ok"]
    return {each.case.get(question.size_axis, "") for each in within}


def candidates(
    run: Sequence[Record], question: str, case: Mapping[str, str], is_there: Callable[[str], bool] = is_found
) -> list[Candidate]:
    """Return the candidates: every strategy of the question that runs in the case, measured or not.

    ``is_there`` says whether a package is installed where the reader is.
    """
    asked = _registry.find_question(question)
    within: defaultdict[str, list[Record]] = defaultdict(list)
    for each in run:
        if without_size(each.case, asked) == case:
            within[each.strategy].append(each)
    known = _registry.variants(question)
    sizes = [each for each in asked.cases if without_size(each, asked) == case]
    found = []
    for name in sorted({*known, *within}):
        variant, records = known.get(name), within.get(name, [])
        if variant is None:
            found.append(Candidate(name, amounts=amounts(records), problem="not measured: this version lacks its code"))
        elif records or any(variant.runs_in(each) for each in sizes):
            found.append(
                Candidate(
                    name,
                    _words.MAY_LOSE if variant.may_lose else variant.tier,
                    variant.historic,
                    variant.ceiling,
                    variant.convert is not None,
                    variant.settings,
                    sum(bool(line.strip()) for line in variant.source.splitlines()),
                    variant.capacity,
                    amounts=amounts(records),
                    problem=problem(records),
                    needs=", ".join(each for each in variant.optional if not is_there(each)),
                    held=held(records),
                    grows=grows(records),
                )
            )
    return found


def grows(records: Sequence[Record]) -> str:
    """Say that memory grows from step to step, if it did in most of the trials that were long enough to tell."""
    verdicts = [
        each.metrics.memory_growth.verdict
        for each in records
        if each.status == "ok" and each.metrics.memory_growth and not is_untold(each)
    ]
    told = [each for each in verdicts if each != "undecided"]
    growing = sum(each.startswith("growing") for each in told)
    return f"it grows from step to step, in {growing} of {len(told)} trials" if 2 * growing > len(told) else ""


def held(records: Sequence[Record]) -> float | None:
    """Return of how many samples the files fit into the memory of the machine that timed them; ``None`` without any.

    Nothing is known to limit what was timed with files that were not in memory (``page_cache=cold``).
    """
    warm = [each for each in records if each.environment.memory and each.case.get("page_cache") != "cold"]
    return min(
        (
            each.environment.memory * each.metrics.samples / each.metrics.disk_bytes
            for each in warm
            if each.metrics.samples and each.metrics.disk_bytes
        ),
        default=None,
    )


def amounts(records: Sequence[Record]) -> list[Amount]:
    """Return what one strategy's trials measured in one case, by amount of data."""
    by_samples: defaultdict[int, list[Record]] = defaultdict(list)
    for each in records:
        if each.status == "ok" and each.metrics.samples:
            by_samples[each.metrics.samples].append(each)
    return [
        Amount(
            samples,
            max(1, *(each.metrics.batches or 1 for each in found)),
            _by_round(found, "needed_memory"),
            first_epochs(found, "linear"),
            _by_round(found, "steady_time"),
            _by_round(found, "wait_time"),
            _by_round(found, "convert_time"),
            _by_round(found, "epoch_time"),
            _by_round(found, "closing_time"),
        )
        for samples, found in sorted(by_samples.items())
    ]


def _by_round(records: Iterable[Record], metric: str) -> dict[int, float]:
    values = {each.pairing: value(each, metric) for each in records}
    return {index: float(found) for index, found in sorted(values.items()) if found is not None}


def problem(records: Sequence[Record]) -> str:
    """Say why a strategy cannot be taken; empty if it can."""
    bad = [each for each in records if each.went_wrong]
    if bad:
        said = ": ".join(filter(None, [bad[0].status.replace("_", " "), bad[0].message.partition("\n")[0][:200]]))
        return f"failed in {len(bad)} of {len(records)} trials: {said}"
    lost = max((each.metrics.lost or 0 for each in records), default=0)
    if lost:
        return f"lost {lost} samples of an epoch"
    skipped = [each for each in records if each.status == "skipped"]
    return f"not measured: skipped, {skipped[0].message}" if skipped else ""


def source(run: Sequence[Record], case: Mapping[str, str], found: Sequence[Candidate], own: str) -> Source:
    """Return where the figures come from."""
    question = _registry.find_question(run[0].question)
    within = [each for each in run if without_size(each.case, question) == case]
    environment = surroundings(run)
    return Source(
        environment.machine,
        environment.machine == own,
        environment.cpu,
        environment.cores,
        commits(run),
        len({each.round for each in within}),
        min(each.started for each in within),
        run[0].size,
        run[0].data,
        sorted({amount.samples for each in found for amount in each.amounts}),
        sum(bool(each.amounts) for each in found),
        len(found),
        environment.memory_method,
        _words.set_beforehand(environment),
        fewest=min((len(rounds) for rounds in _rounds_of(run, case).values()), default=0),
    )


def choices(records: Sequence[Record]) -> list[Choice]:
    """Return the choices that the records of one question support; empty if there are none."""
    question = _registry.find_question(records[0].question)
    if not question.size_axis:
        return []
    found = []
    own = records[0].environment.machine
    for case in cases(question):
        if run := pick(records, question.name, case, own):
            # Who reads a page may have none of the packages that a strategy declares as optional.
            among = candidates(run, question.name, case, lambda _: False)
            found.append(Choice(question.name, case, among, source(run, case, among, own)))
    return found
