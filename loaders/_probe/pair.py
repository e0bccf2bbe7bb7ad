"""Two pipelines against each other: interleaved trials, and the verdicts of ``check``."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from loaders._check import run
from loaders._check.run import Outcome, Subject
from loaders._probe import asked
from loaders._probe.asked import Asked
from loaders._probe.delivered import Delivered
from loaders._trial import Record


class Pair:
    """Runs the trials of two pipelines.

    Attributes
    ----------
    first
        The first trial of each that ended well.
    """

    def __init__(self, a: Asked, b: Asked) -> None:
        self._asked = {"a": a, "b": b}
        self.first: dict[str, Record] = {}

    @property
    def name(self) -> str:
        """Both, as a check names its subject."""
        return f"{self._asked['b'].target.name} against {self._asked['a'].target.name}"

    def trial(self, side: str, seed: int) -> dict[str, object]:
        """Run a trial of one side and return its record; a pipeline that raises has the status ``failed``.

        What a pipeline delivers is read again in its first trial only.
        """
        is_first = side not in self.first
        record = asked.run(self._asked[side], seed, grows=False, checked=is_first, first=is_first)
        if (said := asked.failure(record)) and record.status == "ok":
            record = msgspec.structs.replace(record, status="failed", message=said)
        if record.status == "ok":
            self.first.setdefault(side, record)
        plain: dict[str, object] = msgspec.to_builtins(record)
        return plain

    def run(self, seconds: float, told: Callable[[list[Outcome]], None] | None = None) -> Outcome:
        """Run both, one after the other, until it is decided or the time is up."""
        subject = Subject(
            self.name, "steady_time", lambda seed: self.trial("a", seed), lambda seed: self.trial("b", seed)
        )
        (outcome,) = run.run([subject], seconds, told=told)
        return outcome

    def same_samples(self) -> str:
        """Say whether both deliver the same samples; empty if one has not run."""
        given = [asked.delivered(self.first[side]) for side in ("a", "b") if side in self.first]
        known = [each for each in given if each and each.epochs]
        return compared(known[0], known[1]) if len(known) == len(self._asked) else ""


def compared(a: Delivered, b: Delivered) -> str:
    """Compare what two pipelines deliver in their first epochs."""
    one, other = a.epochs[0], b.epochs[0]
    if one.content == other.content and one.samples == other.samples:
        if one.batches == other.batches:
            return f"Both deliver the same {one.samples} samples."
        return f"Both deliver the same {one.samples} samples, in {one.batches} and {other.batches} batches."
    if a.whole or b.whole:
        return "Whether they deliver the same samples is not known: these cannot be told apart in their batches."
    if one.samples != other.samples:
        return f"They deliver different samples: A {one.samples}, B {other.samples}."
    if a.kinds != b.kinds:
        return f"They deliver different samples: A {'; '.join(a.kinds)}, B {'; '.join(b.kinds)}."
    changes = "; each also differs from epoch to epoch" if a.only_first and b.only_first else ""
    return f"They deliver {one.samples} samples each, and not the same ones{changes}."
