"""The process that runs one side's trials, one after another, and holds the server that they are forked from.

``check`` starts it in a side's tree as ``python -m loaders trial --serve PARENT``. Each line on standard input is a
request in JSON, and each is answered with one line: ``Asked`` with an ``Offer``, ``Round`` with an ``Offer`` as well,
``Order`` with the trial's record. It ends at the end of its input, and the kernel ends it when its parent ends; the
server and the trial end with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import IO, Any

import msgspec

from loaders import _compare
from loaders._corpus import Corpus
from loaders._errors import InputError
from loaders._trial import Record, Trial, log, machine, run_trial, watch
from loaders._trial.launch import LostServerError, Server
from loaders._trial.server import PR_SET_PDEATHSIG, SIGKILL

ATTEMPTS = 2
"""A trial whose server has ended is run once more, with a new server."""


class Asked(msgspec.Struct, frozen=True, tag=True):
    """The first line: what will be measured.

    Attributes
    ----------
    strategies
        The names of the strategies, by question.
    size
        The corpus.
    fresh
        Fork none.
    """

    strategies: dict[str, list[str]]
    size: str
    fresh: bool = False


class Offer(msgspec.Struct, frozen=True):
    """The strategies, as ``QUESTION.STRATEGY``, whose trials can be forked, and why no others can."""

    forks: list[str]
    reason: str = ""


class Round(msgspec.Struct, frozen=True, tag=True):
    """Start a new server, for the next round of blocks: one layout of addresses must not be that of all trials."""


class Order(msgspec.Struct, frozen=True, tag=True):
    """Run a trial.

    Attributes
    ----------
    arguments
        Those of ``python -m loaders trial``.
    forked
        Fork it; otherwise it starts fresh.
    checked
        Check what it delivers.
    """

    arguments: list[str]
    forked: bool
    checked: bool


class Forks:
    """Runs trials in forks of a server that ``begin`` replaces."""

    def __init__(self, modules: Mapping[str, Iterable[str]]) -> None:
        self._modules = modules
        self._server: Server | None = None
        self._ran: list[Record] = []

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def begin(self) -> Server:
        """Start a new server."""
        self.end()
        self._server = Server(self._modules)
        return self._server

    def end(self) -> None:
        """End the server."""
        if self._server:
            self._server.end()
        self._server = None

    def run(self, trial: Trial, corpus: Corpus) -> Record:
        """Run a trial in a fork; if its server ends, once more in a fork of a new one.

        Raises
        ------
        InputError
            If the server cannot fork, or has ended again.
        """
        for _ in range(ATTEMPTS):
            server = self.begin() if self._server is None or self._server.is_lost else self._server
            if server.reason:
                raise InputError(f"cannot be forked: {server.reason}; use --fresh")
            with contextlib.suppress(LostServerError):
                record = run_trial(trial, corpus, server=server, repeats=watch.repeats_left(self._ran))
                if not server.is_lost:
                    self._ran.append(record)
                    return record
        raise InputError("the server that it is forked from was ended twice; free memory, or use --fresh")


class Serving:
    """Runs the trials of a side as they are ordered.

    Attributes
    ----------
    corpus
        What they read.
    offer
        What can be forked.
    """

    def __init__(self, asked: Asked, corpus: Corpus) -> None:
        self.corpus = corpus
        self._order = Order([], forked=False, checked=True)
        self._log = log.log_path(machine.machine_name())
        log.refuse_other_processor(self._log, machine.processor())
        modules: dict[str, set[str]] = {}
        self._names: list[str] = []
        for question, names in asked.strategies.items():
            planned = replace(_compare.plan(question, corpus, fresh=asked.fresh), strategies=tuple(names))
            if planned.forks:
                able = [name for name in names if not planned.trial(name, planned.cases[0], 0).variables]
                self._names += [f"{question}.{name}" for name in able]
                for module, attributes in replace(planned, strategies=tuple(able)).modules.items():
                    modules.setdefault(module, set()).update(attributes)
        self.forks = Forks(modules)
        self.offer = self.begin()

    def begin(self) -> Offer:
        """Start a new server, if trials can be forked."""
        reason = self.forks.begin().reason if self._names else ""
        return Offer([] if reason else self._names, reason)

    def ordered(self, order: Order, plan: Callable[[list[str], Serving], Record]) -> Record | dict[str, str]:
        """Run a trial, which ``plan`` works out from its arguments; what cannot be run has the status ``failed``."""
        self._order = order
        try:
            return plan(order.arguments, self)
        except InputError as error:
            return {"status": "failed", "message": str(error)}

    def run(self, trial: Trial) -> Record:
        """Run a trial as it was ordered, and log it.

        Its memory with a slow consumer is no figure of a check, so it is not measured.
        """
        trial = msgspec.structs.replace(trial, slow=False, checked=self._order.checked)
        record = self.forks.run(trial, self.corpus) if self._order.forked else run_trial(trial, self.corpus)
        log.append(self._log, record)
        return record


def serve(parent: int, open_corpus: Callable[[str], Corpus], plan: Callable[[list[str], Serving], Record]) -> None:
    """Answer the lines on standard input until it ends.

    Parameters
    ----------
    parent
        The process that must not outlive this one.
    open_corpus
        Opens a corpus of a size.
    plan
        Works out a trial from its arguments, and gives it to ``Serving.run``.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
        if os.getppid() != parent:  # it ended before the signal was requested
            return
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what else is printed must not be among the answers
    asked = msgspec.json.decode(sys.stdin.buffer.readline(), type=Asked)
    serving = Serving(asked, open_corpus(asked.size))
    with serving.forks, answers:
        _tell(answers, serving.offer)
        for line in sys.stdin.buffer:
            request = msgspec.json.decode(line, type=Round | Order)
            _tell(answers, serving.begin() if isinstance(request, Round) else serving.ordered(request, plan))


def _tell(answers: IO[bytes], said: Any) -> None:
    answers.write(msgspec.json.encode(said) + b"\n")
    answers.flush()
