"""``python -m loaders advise``: the answer from the existing results, and its table in words."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from loaders import _registry, _words
from loaders._advise import candidates
from loaders._advise.beyond import beyond
from loaders._advise.choose import CHOICE, Settings
from loaders._advise.words import Answer, answer
from loaders._errors import InputError
from loaders._trial.record import Record

if TYPE_CHECKING:
    from rich.table import Table

SECONDS = {"ms": 1e-3, "us": 1e-6, "µs": 1e-6, "s": 1.0}
"""By unit; a unit that another one ends with comes after that."""


SHORTEST, LONGEST = 1e-6, 1e6
"""Seconds of a training step."""

MANY = 10**6
"""Epochs among which what is done once does not count."""


def seconds(value: str) -> float:
    """Return the seconds in ``50ms`` or ``0.2s``, and 0 for ``none``."""
    text = value.strip().lower()
    if text == "none":
        return 0.0
    unit = next((each for each in SECONDS if text.endswith(each)), "")
    try:
        found = float(text.removesuffix(unit)) * SECONDS[unit]
    except (ValueError, KeyError):
        found = 0.0
    if not SHORTEST <= found <= LONGEST:
        raise InputError(
            f"--step {value} is not a duration from 1us to {LONGEST:.0f}s; write 50ms or 0.2s, or none for no training "
            "step"
        )
    return found


def asked(question: str, given: Mapping[str, str]) -> tuple[_registry.Question, dict[str, str]]:
    """Return the question and its case without the axis of amounts.

    Raises
    ------
    InputError
        For a question from which no loader can be chosen, or a case that it does not measure.
    """
    found = _registry.find_question(question)
    if not found.size_axis:
        names = ", ".join(candidates.questions())
        raise InputError(f"{question} does not help to choose a loader; --question must be one of {names}")
    if found.size_axis in given:
        raise InputError(f"--case {found.size_axis}=…: give the amount of your data with --samples")
    known = candidates.cases(found)
    fitting = [case for case in known if given.items() <= case.items()]
    if not fitting:
        said = "; ".join(_words.case_in_words(case) for case in known)
        raise InputError(
            f"{question} is not measured at three amounts of data with {_words.case_in_words(dict(given))}, so "
            f"its memory with more data is unknown; it is measured so with: {said}"
        )
    return found, fitting[0]


def advise(records: Sequence[Record], question: str, given: Mapping[str, str], settings: Settings, own: str) -> Answer:
    """Return the answer from records; those of the reader's ``own`` machine come first."""
    found, case = asked(question, given)
    run = candidates.pick(records, question, case, own)
    among = candidates.candidates(run, question, case)
    source = candidates.source(run, case, among, own) if run else None
    words = ["python", "-m", "loaders", "compare", question]
    for axis, value in case.items():
        words += ["--case", f"{axis}={value}"]
    is_whole = bool(run) and candidates.has_all_amounts(run, question, case)
    words += ["--size", "full"] if is_whole else []
    measure = "" if is_whole and run[0].size in ("full", "large") else shlex.join(words)

    def answered(**changes: int) -> Answer:
        return answer(found.name, case, among, msgspec.structs.replace(settings, **changes), source, measure)

    said = answered()
    if not said.bottleneck:
        return said
    more = beyond(records, said, answered(memory=sys.maxsize), answered(epochs=MANY))
    return msgspec.structs.replace(said, beyond=more)


def table(answer: Answer) -> Table:
    """Return the verdict on every strategy, best first."""
    from rich.table import Table

    found = Table(box=None, pad_edge=False)
    for heading in HEADINGS:
        found.add_column(heading, overflow="fold", no_wrap=heading == HEADINGS[0])
    for line in lines(answer):
        found.add_row(*line)
    return found


HEADINGS = ("strategy", "verdict", "memory needed", "a step waits", "all epochs")


def lines(answer: Answer) -> Iterator[tuple[str, ...]]:
    """Yield the verdict on every strategy with its figures, in words."""
    for each in answer.strategies:
        shown = each.kind in CHOICE or each.kind == "does not fit"
        yield (
            each.name,
            _words.one_line(each.verdict),
            _words.estimated(each.memory, _words.amount),
            _words.estimated(each.wait, _words.duration) if shown else _words.ABSENT,
            _words.estimated(each.total, _words.duration) if shown else _words.ABSENT,
        )


def source_in_words(answer: Answer) -> str:
    """Say what the answer rests on, and which of the reader's settings were not measured."""
    source = answer.source
    if source is None:
        return ""
    whose = "this machine's results" if source.own else "published results, not from this machine"
    said = (
        f"From {whose}: {source.machine}, {source.cpu}, {source.cores} cores, commit {source.commit or 'unknown'}, "
        f"{_words.in_rounds(source.fewest, source.rounds)} begun {source.started}; "
        f"{source.data}, {', '.join(map(str, source.amounts))} samples in batches of {source.batch}"
        f"{f', with {source.given}' if source.given else ''}."
    )
    if answer.settings.batch > source.batch:
        said += (
            f" Memory with batches of {answer.settings.batch} is extrapolated: buffers of batches are assumed to grow "
            f"with the batch size."
        )
    return said
