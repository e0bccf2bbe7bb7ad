"""Whether more machines would feed a training step that one cannot, from what tf.data service was measured to cost."""

from __future__ import annotations

from collections.abc import Sequence

from loaders import _rows, _scale, _words
from loaders._advise import candidates
from loaders._advise.choose import CHOICE, KEEPS_UP
from loaders._advise.words import Answer, Source
from loaders._law import BOUNDED
from loaders._trial.record import Record, surroundings

QUESTION, CASE = "service", {"storage": "local"}

FOR = "batching"
"""The question whose work is that of ``service``: decoding photographs."""

PAGE = "docs/service.md"


def beyond(records: Sequence[Record], answer: Answer, unlimited: Answer, lasting: Answer) -> str:
    """Say how many workers would do, if loading holds up the step on one machine whatever is taken.

    It rests on a comparison of ``service`` on the machine of the answer; without one, or of other work than its
    photographs, nothing is said. Nor is it where one machine feeds the step with an installation, or with a little more
    memory, as ``unlimited`` tells, the answer for any amount of it: then that is said. Nor is it where what is advised
    may keep up once it runs, as ``lasting`` tells, the answer for very many epochs: workers would start no sooner.
    """
    have, source = answer.settings, answer.source
    if not answer.bottleneck or source is None:
        return ""
    if more := _installation(answer) or _more_memory(unlimited):
        return more
    if answer.question != FOR or not _falls_behind(lasting, answer.recommended):
        return ""
    cost = _costs(records, source)
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


def _installation(answer: Answer) -> str:
    """Say what would let one machine feed the step if it were installed, though it gains too little over others."""
    step = answer.settings.step
    dear = [each for each in answer.strategies if each.kind == "not worth installing"]
    feeds = [(each.wait.high, each) for each in dear if each.wait and each.wait.high is not None]
    feeds = [(high, each) for high, each in feeds if high < KEEPS_UP * step]
    if not feeds:
        return ""
    _, best = min(feeds, key=lambda each: each[0])
    return f"With an installation (pip install {best.needs}), {best.name} would feed it."


def _falls_behind(lasting: Answer, name: str | None) -> bool:
    """Whether a strategy is shown not to keep up with the step where its start does not count."""
    waits = [each.wait.low for each in lasting.strategies if each.name == name and each.wait]
    return any(low is not None and low > KEEPS_UP * lasting.settings.step for low in waits)


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


def _costs(records: Sequence[Record], source: Source) -> _scale.Costs | None:
    for run in candidates.runs(records, QUESTION):
        within, where = [each for each in run if each.case == CASE], surroundings(run)
        if (where.machine, where.cpu) != (source.machine, source.cpu) or not within:
            continue
        if cost := _scale.costs(_rows.comparison(within).rows):
            return cost
    return None
