"""How the two sides run their trials: alike, in forks where both can fork, in turn, and timed only once proven.

Each side has a process that runs its trials (``loaders._check.serve``). A commit that is too old for that runs each
trial by its own command line; then the other side does so too, so that no ratio joins a fresh trial and a forked one.

Where the steady epochs rank a question, a trial of each side is alive at the same time, and their epochs alternate
(``loaders._trial.turns``): both sides then meet the same moments of the machine. Their steady times are then geometric
means over their turns, not medians, so that a block compares turn with turn.

The first trial of each side proves, after its measurement, that it delivers what its question asks; without that it
has no figures. Later trials of the same code are not all checked, because a check takes as long as the rest: one of
each side in every fourth block is. All are as long as none has passed, and once one has not. Every trial must deliver
as many samples as the proven one.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from loaders import _registry
from loaders._check import partners
from loaders._check.serve import UNUSABLE, Asked, Order, Round
from loaders._check.sides import Side
from loaders._compare import CHECKED
from loaders._errors import InputError
from loaders._trial import turns
from loaders._trial.forks import ATTEMPTS

GRACE = 20.0
"""Seconds allowed for a side's process to end what it has started, which takes milliseconds."""


class Served:
    """A side's process that runs its trials.

    Attributes
    ----------
    offer
        What it answered to ``start``; ``None`` if its tree is too old for it.
    """

    def __init__(self, side: Side, asked: Asked) -> None:
        self._side, self._asked = side, asked
        self.offer: dict[str, Any] | None = None
        self._launch()

    def _launch(self) -> None:
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - ``end`` closes it
        self._process = subprocess.Popen(
            [*self._side.command, "trial", "--serve", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            cwd=self._side.root,
            env=self._side.variables,
            start_new_session=True,  # Ctrl-C reaches the check alone, which then ends this
        )

    def start(self) -> None:
        """Say what will be measured, and await the offer; the corpus is built, and the first server started."""
        self.offer = self._ask(self._asked)

    def tell(self, line: msgspec.Struct) -> None:
        """Send a line."""
        assert self._process.stdin is not None  # noqa: S101 - for the type checker: a pipe was asked for
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(msgspec.json.encode(line) + b"\n")
            self._process.stdin.flush()

    def answer(self) -> dict[str, Any] | None:
        """Return the next answer; ``None`` if the process has ended.

        Raises
        ------
        InputError
            If a trial could not be run for want of room, say: that is no failure of the strategy.
        """
        assert self._process.stdout is not None  # noqa: S101 - as above
        line = self._process.stdout.readline()
        found = json.loads(line) if line.endswith(b"\n") else None
        if found and found.get("status") == UNUSABLE:
            raise InputError(f"{self._side.name}: {found['message']}")
        return found

    def _ask(self, line: msgspec.Struct) -> dict[str, Any] | None:
        self.tell(line)
        return self.answer()

    def trial(self, order: Order) -> dict[str, Any]:
        """Run a trial and return its record; if the process ends meanwhile, once more in a new one."""
        said: dict[str, Any] = {}
        for _ in range(ATTEMPTS):
            if record := self._ask(order):
                return record
            said = self.replaced()
        return said

    @property
    def answering(self) -> int:
        """The descriptor that becomes readable when there is an answer, or the process has ended."""
        assert self._process.stdout is not None  # noqa: S101 - as above
        return self._process.stdout.fileno()

    def replaced(self) -> dict[str, Any]:
        """Start a new process in place of one that has ended, and return a record that says so."""
        said = self.last_words()
        self.end()
        self._launch()
        self.start()
        return {"status": "failed", "message": f"the process that runs the trials of {self._side.name} ended: {said}"}

    def last_words(self) -> str:
        """Return how the process ended, and what it printed last."""
        code = self._process.wait()
        self._printed.seek(0)
        return f"exit code {code}: {self._printed.read().decode(errors='replace').strip()[-500:]}"

    def end(self) -> None:
        """End the process, and with it what it has started."""
        process = self._process
        for pipe in filter(None, (process.stdin, process.stdout)):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        if sys.platform != "win32":  # where this would not let it end its trial
            process.terminate()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._printed.close()


Run = Callable[[int], dict[str, Any]]


@dataclass(frozen=True)
class Runs:
    """What runs the trials of one strategy on both sides.

    Attributes
    ----------
    a, b
        Run a trial of one side with a seed, and return its record.
    in_turn
        Runs a trial of each side, whose epochs alternate, with a seed, and returns both records; ``None`` if whole
        trials must.
    """

    a: Run
    b: Run
    in_turn: Callable[[int], Sequence[dict[str, Any]]] | None = None


class Trials(Protocol):
    """Runs the trials of both sides."""

    def begin(self, names: Sequence[str]) -> str:
        """Prepare the next round of blocks, of these strategies; return why they cannot be run now, or nothing."""

    def start_of(self, name: str) -> str:
        """Return how the trials of a strategy start, ``fresh`` or ``forked``."""

    def of(self, question: str, name: str, twin: str = "") -> Runs:
        """Return what runs trials of a strategy; B runs its ``twin`` if there is one."""


class Alone:
    """Each trial by its side's command line, because one of the sides knows no other way."""

    def __init__(self, sides: Sequence[Side], size: str) -> None:
        self._sides, self._size = sides, size

    def begin(self, names: Sequence[str]) -> str:  # noqa: ARG002
        """See ``Trials``."""
        return ""

    def start_of(self, name: str) -> str:  # noqa: ARG002
        """See ``Trials``."""
        return "fresh"

    def of(self, question: str, name: str, twin: str = "") -> Runs:
        """See ``Trials``."""

        def running(side: Side, strategy: str) -> Run:
            return lambda seed: side.trial([question, strategy, "--size", self._size, "--seed", str(seed)])

        a, b = self._sides
        return Runs(running(a, name), running(b, twin or name))


class Together:
    """The trials of both sides by processes that hold servers."""

    def __init__(self, served: Sequence[Served], size: str, say: Callable[[str], None]) -> None:
        self._served, self._size, self._say = served, size, say
        a, b = ((each.offer or {}).get("forks", []) for each in served)
        self._forked = set(a) & set(b)
        self._by_group = all((each.offer or {}).get("by_group") for each in served)
        self._takes_turns = turns.AVAILABLE and all((each.offer or {}).get("turns") for each in served)

    @property
    def reasons(self) -> list[str]:
        """Why a side cannot fork, in words."""
        return [each.offer["reason"] for each in self._served if each.offer and each.offer["reason"]]

    def begin(self, names: Sequence[str]) -> str:
        """See ``Trials``: both servers import at the same time, while nothing is measured."""
        reason = ""
        if forked := [name for name in names if name in self._forked]:
            for each in self._served:
                each.tell(Round(forked if self._by_group else []))  # what is imported must be alike on both sides
            for each in self._served:
                offer = each.answer() or {}  # a process that has ended is replaced by its next trial
                reason = reason or offer.get("reason", "")
        if reason:
            self._say(f"a round of blocks is left out, because a side's trials cannot be forked: {reason}")
        return reason

    def start_of(self, name: str) -> str:
        """See ``Trials``."""
        return "forked" if name in self._forked else "fresh"

    def of(self, question: str, name: str, twin: str = "") -> Runs:
        """See ``Trials``."""
        known = _registry.questions().get(question)
        pair = _Pair(
            self._served,
            [[question, each, "--size", self._size, *_amount(known)] for each in (name, twin or name)],
            forked=f"{question}.{name}" in self._forked,
        )
        is_steady = known is not None and known.ranked_by == "steady_time"
        return Runs(pair.a, pair.b, pair.in_turn if is_steady and self._takes_turns else None)


def _amount(question: _registry.Question | None) -> list[str]:
    """Return the arguments for the second smallest amount of data, if a question's default is more.

    A block of a quarter of the data takes a quarter of the time, and blocks are what a verdict needs.
    """
    if question is None or not question.size_axis:
        return []
    axis, values = question.size_axis, list(question.axes[question.size_axis])
    is_more = values.index(question.default_case[axis]) > 1
    return ["--case", f"{axis}={values[1]}"] if is_more else []


class _Pair:
    """The trials of one strategy on both sides, with the same checks."""

    def __init__(self, sides: Sequence[Served], arguments: Sequence[list[str]], *, forked: bool) -> None:
        self._sides, self._arguments, self._forked = sides, arguments, forked
        self._proofs: list[dict[str, Any] | None] = [None, None]
        self._counts = [0, 0]
        self._is_doubted = False

    def a(self, seed: int) -> dict[str, Any]:
        """Run a trial of A."""
        return self._run(0, seed)

    def b(self, seed: int) -> dict[str, Any]:
        """Run a trial of B."""
        return self._run(1, seed)

    def in_turn(self, seed: int) -> list[dict[str, Any]]:
        """Run a trial of each side, whose epochs alternate; which side is first does, too."""
        orders = [self._order(side, seed, every=CHECKED) for side in (0, 1)]
        first, second = (0, 1) if seed % 2 else (1, 0)
        found: list[dict[str, Any]] = [{}, {}]
        for _ in range(ATTEMPTS):
            records = _in_turn([self._sides[each] for each in (first, second)], [orders[first], orders[second]])
            for side, record in zip((first, second), records, strict=True):
                found[side] = record or self._sides[side].replaced()
            if all(records):
                break
        return [self._held(side, found[side]) for side in (0, 1)]

    def _run(self, side: int, seed: int) -> dict[str, Any]:
        order = self._order(side, seed, every=2 * CHECKED)  # its first trial in every fourth block
        return self._held(side, self._sides[side].trial(order))

    def _order(self, side: int, seed: int, every: int) -> Order:
        checked = self._is_doubted or self._proofs[side] is None or self._counts[side] % every == 0
        self._counts[side] += 1
        return Order([*self._arguments[side], "--seed", str(seed)], forked=self._forked, checked=checked)

    def _held(self, side: int, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record, as wrong output if its number of samples is not that of the proven trial."""
        proof = self._proofs[side]
        if record["status"] == "ok" and proof is None:
            self._proofs[side] = record["metrics"]
        elif record["status"] == "ok" and proof and not proof.get("lost"):
            delivered, proven = record["metrics"].get("samples"), proof.get("samples")
            if delivered != proven:
                message = f"delivered {delivered} samples, and {proven} when checked"
                record = {**record, "status": "wrong_output", "message": message}
        self._is_doubted |= record["status"] == "wrong_output"
        return record


@dataclass(frozen=True)
class _Ordered:
    """A trial that a side is ordered to run."""

    side: Served
    order: Order

    @property
    def answering(self) -> int:
        return self.side.answering

    def begin(self, directory: str) -> None:
        self.side.tell(msgspec.structs.replace(self.order, turns=directory))

    def answer(self) -> dict[str, Any] | None:
        return self.side.answer()


def _in_turn(sides: Sequence[Served], orders: Sequence[Order]) -> list[dict[str, Any] | None]:
    """Run two trials whose epochs alternate, and return their records; ``None`` for a process that has ended."""
    records, given = partners.play([_Ordered(*each) for each in zip(sides, orders, strict=True)])
    ran = [((each or {}).get("metrics") or {}).get("steady_epochs") for each in records]
    times = partners.times(given, ran)
    return [record and _timed(record, seconds) for record, seconds in itertools.zip_longest(records, times)]


def _timed(record: dict[str, Any], of_turns: float | None) -> dict[str, Any]:
    """Return a record with its steady time until an epoch's last batch, by its turns if it had any."""
    metrics = record.get("metrics") or {}
    seconds = partners.until_last_batch(of_turns, metrics.get("steady_time"), metrics.get("closing_time"))
    return record if seconds is None else {**record, "metrics": {**metrics, "steady_time": seconds}}


@contextlib.contextmanager
def trials(
    sides: Sequence[Side],
    strategies: Mapping[str, Sequence[str]],
    size: str,
    say: Callable[[str], None],
    *,
    fresh: bool = False,
) -> Iterator[Trials]:
    """Start what runs both sides' trials of these strategies; nothing of it is left running afterwards.

    Parameters
    ----------
    say
        Called with why trials are not forked, or a round is left out.
    fresh
        Fork none.
    """
    asked = Asked({question: list(names) for question, names in strategies.items()}, size, fresh)
    with contextlib.ExitStack() as stack:
        served = []
        for side in sides:
            served.append(each := Served(side, asked))
            stack.callback(each.end)
            each.start()
            if each.offer is None:
                say(f"{side.name} cannot fork its trials, so all start in fresh processes ({each.last_words()})")
                yield Alone(sides, size)
                return
        together = Together(served, size, say)
        for reason in together.reasons:
            say(f"trials start in fresh processes: {reason}")
        yield together
