"""The trials of a user's pipeline: what is run, how often, and what goes wrong before anything is measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import msgspec

from loaders._corpus import NO_CORPUS
from loaders._errors import InputError
from loaders._probe import question
from loaders._probe.delivered import Delivered
from loaders._probe.target import Target
from loaders._trial import Record, Trial, machine, run_trial
from loaders._trial.growth import MIN_POINTS
from loaders._trial.watch import STEPS_STILL, STOOD_STILL

EPOCHS = 4
"""Epochs of a trial at full speed. With the slow consumer's, the two that are compared and those that a steady time
may need besides, that is about ten."""

TRIALS = 3
"""Trials of a pipeline: with fewer, an interval says next to nothing."""


class Asked(msgspec.Struct, frozen=True):
    """How a pipeline is measured.

    Attributes
    ----------
    step
        The seconds that a training step takes; ``None`` if that is not asked for.
    steps
        The batches of an epoch, for a pipeline that never ends.
    memory_limit, deadline
        Of each trial, in bytes (by default a share of what is available) and seconds.
    """

    target: Target
    step: float | None = None
    steps: int | None = None
    epochs: int = EPOCHS
    memory_limit: int | None = None
    deadline: float = 600.0

    def trial(self, seed: int = 1, *, checked: bool = True) -> Trial:
        """Return a trial of it; unless it is to be ``checked``, nothing is said of what it delivers."""
        return Trial(
            question=question.NAME,
            strategy=question.STRATEGY,
            case=question.case_of(self.target, self.step, self.steps),
            corpus="",
            seed=seed,
            checked=checked,
            epochs=self.epochs,
            outside=[question.FILE],
            memory_limit=self.memory_limit or machine.default_memory_limit(),
            deadline=self.deadline,
            still=STEPS_STILL * (self.step or 0.0),
            slow=self.step is not None,
            pinned=False,
        )


OPEN = ("undecided", "growing, held by the allocator")
"""Verdicts on a first trial that are not final: malloc may keep more and more for some epochs, and then no more."""

MORE = 4
"""How many times as many epochs are run, at least, where those of a first trial leave a verdict on memory open."""

LONGEST = 30.0
"""Seconds that more epochs may take, for a verdict on memory."""

MOST_GROWN = 2**30
"""Bytes that memory may grow by in more epochs, if it goes on as in the first ones."""

MOST_STEPS = 30_000
"""Batches that more epochs may have: the times that are kept of each take 32 bytes, and must not look like a leak."""


def run(asked: Asked, index: int = 0, *, grows: bool = True, checked: bool = True, first: bool = True) -> Record:
    """Run one trial of a pipeline; once a ``first`` one has ended well, one that does not end is its failure.

    Unless it is to be ``checked``, nothing is said of what it delivers but what it raises.

    Memory is read between batches, for at most 2 % of the time, so a fast pipeline's epochs may be too short to show
    how it develops. If ``grows`` is asked and left open, the trial is run again with as many epochs as that takes. If
    these, which nobody has asked for, run into the deadline, the trial without them counts.

    Raises
    ------
    InputError
        If it cannot be measured: no such function, arguments that are missing, nothing that can be iterated over, an
        import that does not end.
    """
    seed = index + question.FIRST
    record = run_trial(asked.trial(seed, checked=checked), NO_CORPUS, round=index)
    _refuse(record, asked, is_first=first)
    epochs = _epochs(record, asked) if grows else asked.epochs
    if epochs > asked.epochs:
        longer = msgspec.structs.replace(asked, epochs=epochs)
        again = run_trial(longer.trial(seed, checked=checked), NO_CORPUS, round=index)
        if again.status != "timed_out" or STOOD_STILL in again.message:
            _refuse(again, asked, is_first=False)
            return again
    return record


def _epochs(record: Record, asked: Asked) -> int:
    """Return how many epochs a trace of memory needs that is long enough to be judged, as far as time allows."""
    trace, epoch = record.metrics.memory_trace, record.metrics.epoch_time
    if record.status != "ok" or failure(record) or trace is None or not trace.step or not epoch:
        return asked.epochs
    growth, seen = record.metrics.memory_growth, max(1, len(set(trace.step)))
    if growth is None or growth.verdict not in OPEN:
        return asked.epochs
    needed = max(MORE, math.ceil(4 * MIN_POINTS / seen)) * asked.epochs
    grown, steps = max(1, trace.resident[-1] - trace.resident[0]), max(1, trace.step[-1])
    left = max(0.0, asked.deadline - record.seconds) / 2  # a trial does more than its epochs
    seconds = min(LONGEST, asked.epochs * epoch + left)
    most = min(seconds / epoch, MOST_STEPS * asked.epochs / steps, MOST_GROWN * asked.epochs / grown)
    return min(needed, max(asked.epochs, int(most)))


def rounds(asked: Asked, count: int, told: Callable[[Record], None]) -> Iterator[Record]:
    """Run trials, one after another, until one goes wrong: the next would go wrong as well.

    Each has as many epochs as the one before needed, or more: a first trace may just be long enough, and the next not.
    """
    for index in range(count):
        record = run(asked, index, first=index == 0)
        asked = msgspec.structs.replace(asked, epochs=record.epochs)
        told(record)
        yield record
        if record.status != "ok" or failure(record):
            return


def delivered(record: Record) -> Delivered | None:
    """Return what a trial found of the epochs that were delivered; ``None`` if it did not get so far."""
    found = record.found.get("delivered")
    return None if found is None else msgspec.convert(found, Delivered)


def failure(record: Record) -> str:
    """Return what the pipeline raised in a trial, and after how many batches; empty if it did not."""
    if record.status == "failed":
        return record.message
    found = delivered(record)
    return f"{found.failed}, after {found.after} batches" if found and found.failed else ""


def _refuse(record: Record, asked: Asked, *, is_first: bool) -> None:
    name = asked.target.name
    if record.status == "skipped":
        raise InputError(record.message)
    stood = STOOD_STILL in record.message
    more_time, does = ("", "wait") if stood else ("; if it is slow, give more time: --deadline", "train")
    if record.status == "timed_out" and record.metrics.peak_memory is None:
        raise InputError(
            f"{asked.target.place} was not imported: {record.message}; does it {does} when it is imported? "
            f'Put that under if __name__ == "__main__"{more_time}'
        )
    if record.status == "timed_out" and asked.steps is None and is_first:
        raise InputError(
            f"{name}: {record.message}; if it never ends, give the length of an epoch: --steps N{more_time}"
        )
    found = delivered(record)
    if found and found.epochs and not found.failed and not found.epochs[0].batches:
        raise InputError(f"{name} delivers no batch")
