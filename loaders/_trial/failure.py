"""What went wrong in the trial's process, in words."""

from __future__ import annotations

import contextlib
import os
import re
import traceback
from pathlib import Path

from loaders import _registry
from loaders._corpus import damage, load_corpus
from loaders._errors import InputError, WrongOutputError
from loaders._trial.prepare import ConversionError, job_of
from loaders._trial.record import Outcome, Trial

MACHINERY = tuple(str(Path(__file__).parents[1] / room) for room in ("_trial", "_probe"))
"""What calls a strategy is not where it went wrong."""


def outcome(error: BaseException, trial: Trial) -> Outcome:
    """Return how a trial ended that raised an exception, and which of the records that it reads are damaged."""
    if isinstance(error, _registry.Skip):
        return Outcome("skipped", str(error))
    damaged = _damage(trial)
    if isinstance(error, WrongOutputError):
        return Outcome("wrong_output", "; ".join([str(error), *damaged]))
    said = f"MemoryError: {error}" if isinstance(error, MemoryError) else in_words(error)
    return Outcome("failed", "; ".join([said, *damaged]))


def in_words(error: BaseException) -> str:
    """Return the exception and the first frame of its traceback outside this suite's machinery."""
    if isinstance(error, (InputError, ModuleNotFoundError, ConversionError)):
        return str(error)
    if inner := _raised_in_body(str(error)):
        return inner
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(MACHINERY)]
    where = f" ({Path(own[0].filename).name}, line {own[0].lineno}, in {own[0].name})" if own else ""
    return f"{type(error).__name__}: {error}{where}"


def _raised_in_body(message: str) -> str:
    """Return what a Python body inside a pipeline raised, and where; empty if no body raised it.

    TensorFlow puts the body's traceback, as text, into the message of its own error.
    """
    frames = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', message)
    own = [frame for frame in frames if f"{os.sep}tensorflow{os.sep}" not in frame[0] and "autograph" not in frame[0]]
    if "Traceback (most recent call last)" not in message or not own:
        return ""
    path, line, function = own[-1]
    raised = re.search(r"\b([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Iteration)): ?([^\n]*)", message)
    what = f"{raised[1]}: {raised[2]}".rstrip(": ") if raised else "an exception"
    return f"{what} ({Path(path).name}, line {line}, in {function}), raised in a body that TensorFlow called"


def _damage(trial: Trial) -> list[str]:
    """Say which of the records that the strategy reads are damaged, as that may be why it failed."""
    with contextlib.suppress(Exception):  # any other fault has been reported already
        question = _registry.find_question(trial.question)
        if question.shards:
            job = job_of(trial, question, load_corpus(Path(trial.corpus)))
            return list(damage(question.shards(job)))
    return []
