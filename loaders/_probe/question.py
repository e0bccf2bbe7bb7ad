"""The question that a user's pipeline is measured by; loaded in a trial's process, as a strategy's file is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from loaders._contract import Quality
from loaders._corpus import Corpus
from loaders._errors import InputError
from loaders._probe import delivered, pages, stages, target
from loaders._probe.adapt import Batches, FailedError
from loaders._registry import Batch, Job, Question, Skip, declare_question, variant

NAME, STRATEGY = "probe", "pipeline"
FILE = str(Path(__file__))


def case_of(asked: target.Target, step: float | None, steps: int | None) -> dict[str, str]:
    """Return how a target, its consumer's step in seconds and the length of an epoch are written in a trial's case."""
    return {
        "target": asked.name,
        "call": msgspec.json.encode(asked).decode(),
        "step": "" if step is None else str(step),
        "steps": "" if steps is None else str(steps),
    }


def prepare(_: Corpus, case: Mapping[str, str], __: int) -> Batches:
    """Import the user's file, which belongs to no figure, and go to the directory that the command was given in."""
    asked = target.Target(**json.loads(case["call"]))
    os.chdir(asked.directory)
    try:
        call = target.load(asked)
    except InputError as error:
        raise Skip(str(error)) from error
    return Batches(call, int(case["steps"]) if case["steps"] else None, asked.name)


def audit(job: Job[Batches], checked: bool) -> dict[str, Any]:
    """Say what the pipeline delivers in two more epochs, what tf.data knows of it, and what malloc gives back.

    The last takes two epochs more of a pipeline that calls a generator, and is asked in the ``FIRST`` trial only.
    If it is not to be ``checked``, only what it raised is said.
    """
    batches = job.inputs
    failed = batches.failed
    if failed is None and checked:
        batches.build()
    batches.watch = observer = stages.Observer(batches)
    try:
        found = delivered.read([batches, batches] if checked else [])
    except Exception as error:  # noqa: BLE001 - what a pipeline raises is in ``failed``: this is of its samples
        found = delivered.Delivered([], [], unread=f"{type(error).__name__}: {error}"[:MOST_UNREAD])
    batches.watch = None
    known = observer.found()
    new_pages = pages.read(batches, known) if checked and not batches.failed and job.seed == FIRST else None
    failed = failed or batches.failed
    if failed:
        found = msgspec.structs.replace(found, failed=in_words(failed), after=failed.step)
    told = {"delivered": found, "stages": known, "new_pages": new_pages}
    return {name: msgspec.to_builtins(each) for name, each in told.items()}


def in_words(failed: FailedError) -> str:
    """Return what a pipeline raised, and where."""
    from loaders._trial import failure

    said = failure.in_words(failed.__cause__ or failed)
    return f"{said} {TOO_LATE}" if any(each in said for each in SET_TOO_LATE) else said


SET_TOO_LATE = ("cannot be modified after initialization", "must be set before")
TOO_LATE = "(Set that where the module is imported: TensorFlow is started before the function is called.)"
"""What TensorFlow says of settings that come too late, and what to do."""

FIRST = 1
"""The seed of the first trial of a pipeline, which has no other use for it."""

MOST_UNREAD = 300
"""Letters of why samples could not be compared."""


declare_question(
    NAME,
    Question(
        prepare=prepare,
        check=lambda *_: Quality(),
        audit=audit,
        consumer_step=lambda case: float(case["step"]) if case["step"] else None,
    ),
)


class _Built:
    """The pipeline, until it is dropped: the trial's inputs hold it too, and would be in what is retained."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        batches.build()

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._batches)

    def __del__(self) -> None:
        self._batches.drop()


@variant(question=NAME)
def pipeline(job: Job[Batches]) -> Iterable[Batch]:
    """The user's own."""
    return _Built(job.inputs)
