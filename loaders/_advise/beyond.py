"""Whether more machines would feed a training step that one cannot, from what tf.data service was measured to cost."""

from __future__ import annotations

from collections.abc import Sequence

from loaders import _rows, _scale, _words
from loaders._advise import candidates
from loaders._advise.choose import CHOICE, KEEPS_UP
from loaders._advise.words import Answer
from loaders._law import BOUNDED
from loaders._trial.record import Record

QUESTION, CASE = "service", {"storage": "local"}

FOR = "batching"
"""The question whose work is that of ``service``: decoding photographs."""

PAGE = "docs/service.md"


def beyond(records: Sequence[Record], answer: Answer, unlimited: Answer) -> str:
    """Say how many workers would do, if loading holds up the step on one machine whatever is taken.

    It rests on a comparison of ``service`` on the machine of the answer; without one, or of other work than its
    photographs, nothing is said. Nor is it where one machine feeds the step with a little more memory, as
    ``unlimited`` tells, the answer for any amount of it: then that is said.
    """
    have, source = answer.settings, answer.source
    if not answer.bottleneck or source is None:
        return ""
    if more := _more_memory(unlimited):
        return more
    if answer.question != FOR:
        return ""
    cost = _costs(records, source.machine)
    if cost is None:
        return ""
    rate = have.batch / have.step
    apart = cost.apart(source.cores)
    count = apart.needed(rate, source.cores)
    step = _words.duration(have.step)
    if count is None:
        first, end = next(iter(apart.limits(source.cores).items()))
        return (
            f"More machines would not feed it either: a step of {step} takes {rate:.0f} samples/s, and {first} would "
            f"end at {end:.0f}."
        )
    workers = "1 worker" if count == 1 else f"{count} workers"
    like = f"like {'this one' if source.own else source.machine}"
    machines = f"on a machine {like}" if count == 1 else f"on machines {like}"
    return f"{workers} of tf.data service {machines} would feed it ({PAGE}); projected, not measured."


def _more_memory(unlimited: Answer) -> str:
    """Say how much memory would let one machine feed the step, of whatever does not grow with the data."""
    step = unlimited.settings.step
    feeds = [
        (each.memory.high, each.name)
        for each in unlimited.strategies
        if each.kind in CHOICE and each.law in BOUNDED and each.memory and each.memory.high is not None
        if each.wait and each.wait.high is not None and each.wait.high < KEEPS_UP * step
    ]
    if not feeds:
        return ""
    memory, name = min(feeds)
    return f"With {_words.enough(memory)} of memory, {name} would feed it."


def _costs(records: Sequence[Record], machine: str) -> _scale.Costs | None:
    for run in candidates.runs(records, QUESTION):
        within = [each for each in run if each.case == CASE]
        if run[0].environment.machine == machine and within and (cost := _scale.costs(_rows.comparison(within).rows)):
            return cost
    return None
