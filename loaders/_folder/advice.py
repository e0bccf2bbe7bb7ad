"""From the trials of a race to an answer: what to use, whether loading is the bottleneck, what would change that."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path

import msgspec

from loaders import _words
from loaders._advise import words
from loaders._advise.choose import CHOICE, Reckoned
from loaders._advise.words import Advised, Answer, Source
from loaders._folder import question, written
from loaders._folder.look import Look
from loaders._folder.race import Race, Wanted
from loaders._judge import TIME_MARGIN, Judged
from loaders._stats import Estimate, estimate
from loaders._trial import Record
from loaders._trial.machine import machine_name
from loaders._trial.record import surroundings

MOST_CHANGES = 3


class Change(msgspec.Struct, frozen=True):
    """Another loader with more memory.

    Attributes
    ----------
    memory
        In bytes: what it needs at most.
    judged
        The time of all epochs against that of the present answer; ``None`` without one.
    """

    memory: float
    loader: str
    judged: Judged | None


class Again(msgspec.Struct, frozen=True):
    """The answer measured again, with the images that were held out, and what was predicted for these.

    It was run with ``images`` of the ``of`` that were held out; where none were, of those that it was measured with.
    Times are seconds an image once it runs, memory is in bytes. ``problem`` says what went wrong, if anything did, and
    ``vanished`` how many of the images are no longer there.
    """

    images: int
    of: int
    held_out: bool
    time: float | None
    memory: float | None
    predicted_time: Estimate | None
    predicted_memory: Estimate | None
    problem: str = ""
    vanished: int = 0


class Advice(msgspec.Struct, frozen=True):
    """The answer for a folder.

    Attributes
    ----------
    ceiling
        Images a second that all cores decode, and nothing else; ``None`` if that was not measured.
    demand
        Images a second that the training step asks for; ``None`` without a step.
    disk
        In bytes: what the answer writes, with all images; ``None`` if it writes nothing.
    from_disk
        In bytes a second: what the disk must deliver for the answer to hold, where the images are more than fits into
        memory and are read in every epoch; those that were measured with were in memory. ``None`` elsewhere.
    larger
        In bytes: what of the answer's memory is for images that are larger than those of the sample.
    ended
        Why there were no more rounds: ``answered``, ``time`` or ``interrupted``.
    again
        The answer measured again; ``None`` if there was no time left for it, or it could not be.
    not_again
        Why it could not be.
    module
        The name of the file that the loader was written to, without its suffix; empty if there is none.
    """

    folder: Look
    asked: Wanted
    answer: Answer
    ceiling: Estimate | None
    demand: float | None
    disk: float | None
    changes: list[Change]
    ended: str
    again: Again | None = None
    module: str = ""
    from_disk: float | None = None
    larger: float = 0.0
    not_again: str = ""


def advice(seen: Look, race: Race, ended: str, command: str) -> Advice:
    """Return what follows from the trials so far; ``command`` goes on with them."""
    wanted = race.wanted
    settings, among = wanted.settings(race.images), race.candidates()
    reckoned = race.reckoned()
    dropped = race.dropped()
    left = " still in the race" if dropped else ""
    given = words.answer(question.NAME, {}, among, settings, _source(seen, race), command, left, reckoned.laws)
    given = _with_dropped(given, dropped)
    decoding = [
        each.metrics.samples / each.metrics.steady_time
        for each in race.records
        if each.strategy == question.DECODING and each.metrics.samples and each.metrics.steady_time
    ]
    return Advice(
        folder=seen,
        asked=wanted,
        answer=given,
        ceiling=estimate(decoding, "ratio") if decoding else None,
        demand=wanted.batch / wanted.step if wanted.step else None,
        disk=_disk(race, given.recommended),
        changes=changes(reckoned, given),
        ended=ended,
        from_disk=_from_disk(seen, race, given.recommended),
        larger=race.once(given.recommended) if given.recommended else 0.0,
    )


def _disk(race: Race, name: str | None) -> float | None:
    """Return the bytes that a loader writes with all images."""
    return float(race.writes(name)) or None if name else None


def _from_disk(seen: Look, race: Race, name: str | None) -> float | None:
    """Return the bytes a second that a loader, or training with it, takes from disk where memory holds not all."""
    if name is None or seen.size <= race.ram or written.converts(name) or written.keeps_all(name):
        return None
    seconds = _per_image(race, name)
    if not seconds:
        return None
    an_image = max(statistics.fmean(seconds), race.wanted.step / race.wanted.batch)
    return seen.size / seen.images / an_image


def _per_image(race: Race, name: str) -> list[float]:
    """Return the seconds that an image takes in each steady epoch of a loader with the most images."""
    (found,) = (each for each in race.candidates() if each.name == name)
    return [each / found.largest.samples for each in found.largest.steady.values()] if found.amounts else []


def _with_dropped(given: Answer, dropped: Mapping[str, str]) -> Answer:
    """Say of loaders that dropped out of the race why nothing more is known of them."""

    def told(one: Advised) -> Advised:
        if one.name not in dropped or one.kind in ("recommended", "as good", "undecided", "does not fit"):
            return one
        return msgspec.structs.replace(one, kind="slower", verdict=dropped[one.name])

    found = sorted(map(told, given.strategies), key=lambda each: each.kind not in CHOICE)
    return msgspec.structs.replace(given, strategies=found)


def changes(reckoned: Reckoned, given: Answer) -> list[Change]:
    """Return which loaders more memory would allow, if they are faster beyond doubt; or the least that would do."""
    found = []
    for each in sorted(given.strategies, key=lambda each: each.memory.high or 0.0 if each.memory else 0.0):
        if each.kind != "does not fit" or each.memory is None or each.memory.high is None:
            continue
        then = reckoned.decide(int(each.memory.high) + 1)
        if then.recommended != each.name:
            continue
        if given.recommended is None:
            return [Change(each.memory.high, each.name, None)]
        judged = reckoned.fits.compare(each.name, given.recommended, margin=TIME_MARGIN)
        if judged and judged.verdict == "less":
            found.append(Change(each.memory.high, each.name, judged))
    return found[:MOST_CHANGES]


def again(race: Race, answer: Answer, record: Record | None) -> Again | None:
    """Hold a trial with other images against what was predicted for it."""
    if record is None or answer.recommended is None:
        return None
    images = int(record.case["images"])
    per_image = _per_image(race, answer.recommended)
    law = race.reckoned().laws.get(answer.recommended)
    measured = law and msgspec.structs.replace(law, besides=0.0, once=0.0)  # a trial is given the list
    metrics = record.metrics
    problem = "" if record.status == "ok" else f"{record.status.replace('_', ' ')}: {record.message}"
    if not problem and metrics.needed_memory and metrics.needed_memory > race.wanted.memory:
        needed, given = _words.enough(metrics.needed_memory), _words.amount(race.wanted.memory)
        problem = f"it needed {needed}, more than the {given} that there are"
    return Again(
        images=images,
        of=len(race.held_out or race.sample),
        held_out=bool(race.held_out),
        time=metrics.steady_time / metrics.samples if metrics.steady_time and metrics.samples else None,
        memory=metrics.needed_memory,
        predicted_time=estimate(per_image, "ratio") if per_image else None,
        predicted_memory=measured.at(images) if measured else None,
        problem=problem,
        vanished=sum(not Path(path).exists() for path, _ in (race.held_out or race.sample)[:images]),
    )


def _source(seen: Look, race: Race) -> Source | None:
    good = [each for each in race.records if each.status == "ok"]
    if not good:
        return None
    among = race.candidates()
    environment = surroundings(good)
    return Source(
        machine_name(),
        True,
        environment.cpu,
        environment.cores,
        environment.commit[:8],
        len({each.round for each in good}),
        min(each.started for each in good),
        "own",
        f"{seen.name}, {seen.images} images",
        race.amounts,
        sum(bool(each.amounts) for each in among),
        len(among),
        environment.memory_method,
        batch=race.wanted.batch,
    )
