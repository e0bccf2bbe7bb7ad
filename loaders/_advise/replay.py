"""Check every recommendation against an independent second reading of the raw trials. For tests and evidence.

It shares the law of memory and the question's declarations with ``choose``, but no arithmetic on times: totals are
worked out anew from each trial's own metrics.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from loaders import _registry
from loaders._advise import candidates
from loaders._advise.choose import Candidate, Settings, laws_of, reckon
from loaders._law import Law, law
from loaders._rows.figures import value
from loaders._stats import paired_ratio
from loaders._trial.imports import is_found
from loaders._trial.record import Record

GIB = 2**30

MEMORY = (GIB // 32, GIB // 8, GIB // 2, GIB, 4 * GIB, 32 * GIB)
STEPS = (0.0, 0.005, 0.05, 0.3)
BATCHES = (16, 32, 128)
SAMPLES = (500, 10_000, 100_000, 1_000_000)
EPOCHS = 20

SLOWER = 1.1
"""The factor by which a simpler strategy may be slower."""

TO_INSTALL = 1.25
"""The same where the faster one must be installed first."""


A_MINUTE = 60.0
"""The longest that dropping an iterator takes, in seconds."""

BROKEN = (
    *("forbidden", "beyond the budget", "of unknown law", "slower", "installed for little"),
    "null though something is allowed",
)
"""What must not happen. ``slower``: another allowed strategy is faster by more than 10 %, beyond doubt. ``installed for
little``: it must be installed first, and one that need not is not even on average 1.25 times as slow."""


def grid() -> Iterator[list[Settings]]:
    """Yield lists of settings that differ only in memory: 288 settings in all."""
    for step, batch, samples in itertools.product(STEPS, BATCHES, SAMPLES):
        yield [Settings(memory, step, batch, samples, EPOCHS) for memory in MEMORY]


def replay(records: Sequence[Record], own: str = "") -> dict[str, int]:
    """Count the recommendations made and the rules they broke; every count of a broken rule should be zero.

    Covers every question from which a loader can be chosen, and every case of it that ``records`` hold.
    """
    counts: Counter[str] = Counter(dict.fromkeys(("cases", "settings", "recommended", "null", *BROKEN), 0))
    for name in candidates.questions():
        question = _registry.find_question(name)
        for case in candidates.cases(question):
            run = candidates.pick(records, name, case, own)
            if not run:
                continue
            counts["cases"] += 1
            among = candidates.candidates(run, name, case)
            raw = _raw(run, question, case)
            for settings in grid():
                counts.update(_judged(settings, among, raw, name))
    return dict(counts)


def _judged(
    grid: Sequence[Settings], among: Sequence[Candidate], raw: Mapping[str, list[Record]], question: str
) -> Counter[str]:
    found: Counter[str] = Counter()
    reckoned = reckon(among, grid[0], laws_of(among))
    totals = {name: _total(trials, grid[0]) for name, trials in raw.items() if _is_sound(trials)}
    variants = _registry.variants(question)
    open_to_all = {
        name
        for name, values in totals.items()
        if values and name in variants and not variants[name].is_apart and variants[name].tier == "identical"
    }
    open_to_all -= {name for name in open_to_all if _is_beyond_memory(raw[name], grid[0])}
    bounds = {name: _bound(raw[name], variants[name].capacity, grid[0]) for name in open_to_all}
    for settings in grid:
        decision = reckoned.decide(settings.memory)
        found["settings"] += 1
        fitting = {name for name, bound in bounds.items() if bound is not None and bound <= settings.memory}
        taken = decision.recommended
        if taken is None:
            found["null"] += 1
            found["null though something is allowed"] += bool(fitting)
            continue
        found["recommended"] += 1
        found["forbidden"] += taken not in open_to_all
        bound = bounds.get(taken)
        found["of unknown law"] += bound is None
        found["beyond the budget"] += bound is not None and bound > settings.memory
        for other in fitting - {taken}:
            ratio = paired_ratio(totals[taken], totals[other])
            limit = SLOWER * (TO_INSTALL if _is_missing(variants[other]) else 1)
            if ratio and ratio.low is not None and ratio.low > limit:
                found["slower"] += 1
                break
        if _is_missing(variants[taken]):
            own = [name for name in fitting if not _is_missing(variants[name])]
            gains = [paired_ratio(totals[name], totals[taken]) for name in own]
            found["installed for little"] += any(each is not None and each.value < TO_INSTALL for each in gains)
    return found


def _is_missing(variant: _registry.Variant) -> bool:
    return not all(map(is_found, variant.optional))


def _raw(run: Sequence[Record], question: _registry.Question, case: Mapping[str, str]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in run:
        rest = dict(record.case)
        rest.pop(question.size_axis)
        if rest == dict(case):
            found.setdefault(record.strategy, []).append(record)
    return found


def _is_beyond_memory(trials: Sequence[Record], settings: Settings) -> bool:
    """Whether a strategy's files for so many samples are larger than the memory from which they were read."""
    warm = [each for each in trials if each.case.get("page_cache") != "cold"]
    return any(
        (each.metrics.disk_bytes or 0) * settings.samples > each.environment.memory * (each.metrics.samples or 1)
        for each in warm
    )


def _is_sound(trials: Sequence[Record]) -> bool:
    return all(each.status == "ok" and not each.metrics.lost for each in trials)


def _bound(trials: Sequence[Record], capacity: int, settings: Settings) -> float | None:
    """Return the upper bound of memory, in bytes; ``None`` if it is unknown.

    Memory needed without any data holds batches, and so does all of it if memory does not depend on the data: doubling
    the batch doubles that part.
    """
    samples = settings.samples
    points: dict[int, dict[int, float]] = {}
    for each in trials:
        needed = value(each, "needed_memory")
        if each.metrics.samples and needed is not None:
            points.setdefault(each.metrics.samples, {})[each.pairing] = float(needed)
    found: Law = law(points, capacity)
    predicted = found.at(samples)
    if predicted is None or (found.kind == "unknown" and samples > max(points, default=0)):
        return None
    most = max(points)
    batched = any(each.metrics.samples == most and each.metrics.batches != most for each in trials)
    if predicted.high is None or not batched or settings.batch <= 32:
        return predicted.high
    full = max(most, capacity) if found.kind == "saturating" else most
    held = found.at(min(samples, full)) or predicted
    by_data = 0.0
    if found.kind == "linear":
        below = sorted(points)[-2]
        rounds = points[most].keys() & points[below].keys()
        by_data = sum(points[most][each] - points[below][each] for each in rounds) / len(rounds) / (most - below)
    if held.high is None:
        return None
    return predicted.high + max(0.0, held.high - by_data * min(samples, most)) * (settings.batch - 32) / 32


def _total(trials: Sequence[Record], settings: Settings) -> dict[int, float]:
    """Return the seconds of all epochs by round, from the trials with the most data."""
    sizes = sorted({each.metrics.samples or 0 for each in trials})
    largest = [
        each
        for each in trials
        if each.metrics.samples == sizes[-1] and each.metrics.epoch_time is not None and each.metrics.batches
    ]
    smaller = {each.pairing: each for each in trials if len(sizes) > 1 and each.metrics.samples == sizes[-2]}
    extras, as_run, before = _extras(largest), _extras_as_run(largest), _extras_as_run(list(smaller.values()))
    once = {
        each.pairing: _at(settings, sizes, extras[each.pairing] or 0.0, as_run[each.pairing], before.get(each.pairing))
        + _at(
            settings,
            sizes,
            each.metrics.convert_time,
            each.metrics.convert_time,
            _converted(smaller.get(each.pairing)),
        )
        for each in largest
    }
    # With a smaller amount, the line through both tells; rounds that lack it are given the mean of the others.
    told = [value for index, value in once.items() if index in smaller]
    found = {}
    for each in largest:
        metrics = each.metrics
        epoch = metrics.epoch_time if metrics.steady_time is None else metrics.steady_time
        closing = metrics.closing_time or 0.0
        closed = min(closing * settings.samples / sizes[-1], A_MINUTE) / (settings.samples / settings.batch)
        load = ((epoch or 0.0) - closing) * settings.batch / sizes[-1]
        wait = load
        if settings.step:
            slow = load
            if metrics.wait_time is not None:
                slow = metrics.wait_time * settings.batch * (metrics.batches or 0) / sizes[-1]
            wait = max(load - settings.step, slow)
        wait += closed
        own = once[each.pairing] if each.pairing in smaller or not told else math.fsum(told) / len(told)
        found[each.pairing] = settings.epochs * (settings.samples / settings.batch) * (settings.step + wait) + own
    return found


def _at(
    settings: Settings, sizes: Sequence[int], now: float | None, like_before: float | None, before: float | None
) -> float:
    """Return the seconds of what is done once, for all samples, from those with the most data.

    They grow as from ``before``, with less data, to ``like_before``, with the most, in trials that started alike.
    """
    if now is None:
        return 0.0
    if before is None or like_before is None:
        return max(0.0, now * settings.samples / sizes[-1])
    share = (settings.samples - sizes[-1]) / (sizes[-1] - sizes[-2])
    return max(0.0, now + share * (like_before - before))


def _converted(trial: Record | None) -> float | None:
    return trial.metrics.convert_time if trial else None


def _extras(trials: Sequence[Record]) -> dict[int, float | None]:
    """Return, by round, how much longer the first epoch takes than a steady one.

    A reader's process starts fresh: the first epoch of a forked trial counts as long as those of the fresh ones took on
    average. Unlike in ``choose`` that is not spread again, so this reading is the stricter one.
    """
    first = {each.pairing: each.metrics.epoch_time for each in trials}
    if fresh := [
        seconds for each in trials if each.process == "fresh" and (seconds := first[each.pairing]) is not None
    ]:
        usual = math.fsum(fresh) / len(fresh)
        first |= {each.pairing: usual for each in trials if each.process == "forked"}
    return _beyond(trials, first)


def _extras_as_run(trials: Sequence[Record]) -> dict[int, float | None]:
    """Return the same, of each trial by itself."""
    return _beyond(trials, {each.pairing: each.metrics.epoch_time for each in trials})


def _beyond(trials: Sequence[Record], first: Mapping[int, float | None]) -> dict[int, float | None]:
    return {
        each.pairing: seconds - steady
        if (seconds := first[each.pairing]) is not None and (steady := each.metrics.steady_time) is not None
        else None
        for each in trials
    }
