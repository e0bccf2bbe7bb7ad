"""Two trials that are alive at the same time, and whose epochs take turns (``loaders._trial.turns``)."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from loaders import _durable
from loaders._errors import InputError
from loaders._trial import turns
from loaders._trial.launch import SCRATCH, scratch

Found = TypeVar("Found")
Told_co = TypeVar("Told_co", covariant=True)


class Partner(Protocol[Told_co]):
    """One of the two trials, wherever it is run."""

    @property
    def answering(self) -> int:
        """The descriptor that becomes readable when it has ended."""

    def begin(self, directory: str) -> None:
        """Start it; ``directory`` is where it asks for its turns."""

    def answer(self) -> Told_co:
        """Wait until it has ended, and return what came of it."""


def play(partners: Sequence[Partner[Found]]) -> tuple[list[Found], list[turns.Turns]]:
    """Run two trials whose epochs alternate, and return what came of each, and its turns.

    The second one starts when the first has run its first epochs, so nothing is ever measured of both at a time.
    """
    with contextlib.ExitStack() as open_:
        try:
            own = tempfile.TemporaryDirectory(prefix=_durable.owned(SCRATCH), dir=scratch())
            place = Path(open_.enter_context(own))
            given = [turns.Turns(place / name) for name in ("first", "second")]
        except OSError as error:
            raise InputError(f"trials cannot take turns in {scratch()}: {error.strerror or error}") from error
        asked, begun, patience = [], time.monotonic(), None
        for each, partner in zip(given, partners, strict=True):
            open_.callback(each.close)
            partner.begin(str(each.directory))
            asked.append(each.is_asked(partner.answering, patience))
            patience = patience or turns.PATIENCE + turns.TIMES * (time.monotonic() - begun)
        if all(asked):
            turns.give(given, [partner.answering for partner in partners], patience)
        for each in given:  # both before either is waited for: one may hang
            each.end()
        return [partner.answer() for partner in partners], given


def times(given: Sequence[turns.Turns], epochs: Sequence[int | None]) -> list[float]:
    """Return both trials' steady times as their turns compare them (``turns.compared``); empty if they cannot be.

    Parameters
    ----------
    epochs
        How many steady epochs each says that it ran. A trial that was run again without turns, because it imported in
        its last one, ran others.
    """
    return turns.compared(given) if list(epochs) == [each.epochs for each in given] else []


def until_last_batch(turns: float | None, steady: float | None, closing: float | None) -> float | None:
    """Return a trial's steady time until an epoch's last batch, where its turns end; without any, of its own epochs.

    What dropping the iterator takes is not in it: a millisecond or as long as the epoch, by chance.
    """
    return turns if turns is not None or steady is None else steady - (closing or 0.0)


class InThread(Generic[Found]):
    """A trial that a thread runs: a function of the directory in which it asks for its turns."""

    def __init__(self, threads: Executor, run: Callable[[str], Found]) -> None:
        self._threads, self._run = threads, run
        self.answering, self._ended = os.pipe()

    def begin(self, directory: str) -> None:
        """See ``Partner``."""
        self._found = self._threads.submit(self._run, directory)
        self._found.add_done_callback(lambda _: os.close(self._ended))

    def answer(self) -> Found:
        """See ``Partner``."""
        try:
            return self._found.result()
        finally:
            os.close(self.answering)
