"""The process that runs one side's trials, one after another, and holds the server that they are forked from.

``check`` starts it in a side's tree as ``python -m loaders trial --serve PARENT``. Each line on standard input is a
request in JSON, and each is answered with one line: ``Asked`` with an ``Offer``, ``Round`` with an ``Offer`` as well,
``Order`` with the trial's record. It ends at the end of its input, and the kernel ends it when its parent ends; the
server and the trial end with it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any

import msgspec

from loaders import _compare, _registry
from loaders._corpus import Corpus
from loaders._errors import InputError
from loaders._trial import Record, Trial, launch, log, machine, run_trial, turns, watch
from loaders._trial.forks import Forks, group_of
from loaders._trial.server import PR_SET_PDEATHSIG, SIGKILL

UNUSABLE = "unusable"
"""The status of what is no trial's failure."""


class _UnusableError(InputError):
    """No trial can be run now."""


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
    """The strategies, as ``QUESTION.STRATEGY``, whose trials can be forked, and why no others can.

    ``by_group`` says that a round starts only the servers that it needs, each with all that its group imports. An older
    commit's imports everything, or what the round's strategies need.
    ``turns`` says that a trial can run its epochs in turn with another one's.
    """

    forks: list[str]
    reason: str = ""
    by_group: bool = False
    turns: bool = False


class Round(msgspec.Struct, frozen=True, tag=True):
    """Start a new server, for the next round of blocks: one layout of addresses must not be that of all trials.

    Attributes
    ----------
    names
        The strategies, as ``QUESTION.STRATEGY``, that the round measures; all if there are none.
    """

    names: list[str] = []


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
    turns
        Where it asks for its turns, if it runs in turn with another one: see ``loaders._trial.turns``.
    """

    arguments: list[str]
    forked: bool
    checked: bool
    turns: str = ""


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
        plans = [_compare.plan(question, corpus, fresh=asked.fresh) for question in asked.strategies]
        self._plans = [each for each in plans if each.forks]
        self._names = [
            f"{each.question}.{name}"
            for each in self._plans
            for name in filter(each.may_fork, asked.strategies[each.question])
        ]
        self.forks = Forks(_compare.groups_of(self._plans))
        self._forked: list[Record] = []
        self.offer = self.begin(self._names)

    def begin(self, names: Sequence[str]) -> Offer:
        """Start the new servers that these strategies' trials are forked from, if trials can be forked."""
        used = {group_of(_registry.find_variant(*name.split(".", 1))) for name in names}
        reason = self.forks.begin(used) if self._names else ""
        return Offer([] if reason else self._names, reason, by_group=True, turns=turns.AVAILABLE)

    def ordered(self, order: Order, plan: Callable[[list[str], Serving], Record]) -> Record | dict[str, str]:
        """Run a trial, which ``plan`` works out from its arguments; what this side does not know has failed.

        What no trial could be run for, such as a full disk, has the status ``unusable``.
        """
        self._order = order
        try:
            return plan(order.arguments, self)
        except _UnusableError as error:
            return {"status": UNUSABLE, "message": str(error)}
        except InputError as error:
            return {"status": "failed", "message": str(error)}

    def run(self, trial: Trial) -> Record:
        """Run a trial as it was ordered, and log it.

        Its memory with a slow consumer is no figure of a check, so it is not measured.
        """
        order = self._order
        trial = msgspec.structs.replace(trial, slow=False, checked=order.checked, turns=order.turns)
        try:
            if order.forked:
                repeats = 0 if order.turns else watch.repeats_left(self._forked)
                record = self.forks.run(trial, self.corpus, repeats=repeats)
                self._forked.append(record)
            else:
                record = run_trial(trial, self.corpus)
        except InputError as error:
            if launch.is_full():
                raise _UnusableError(str(error)) from error
            raise
        try:
            log.append(self._log, record)
        except InputError as error:
            raise _UnusableError(str(error)) from error
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
            _tell(
                answers,
                serving.begin(request.names or serving.offer.forks)
                if isinstance(request, Round)
                else serving.ordered(request, plan),
            )


def _tell(answers: IO[bytes], said: Any) -> None:
    answers.write(msgspec.json.encode(said) + b"\n")
    answers.flush()
