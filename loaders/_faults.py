"""What arrived while processes of tf.data service failed: the log of the experiments, and what follows from it.

``loaders.questions.service.faults`` runs the experiments.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from loaders._trial import log
from loaders._units import Count, Name, Seconds

NAME = "faults.jsonl"
"""The log, beside the trial log."""

UNDISTURBED = "none"
"""The experiment in which nothing fails."""


class Seen(msgspec.Struct, frozen=True):
    """What came of one experiment.

    Attributes
    ----------
    fault, does
        Its name, and in words.
    ended
        *whole*: the epoch ended; *failed*: the client was told; *waits*: no batch came for a minute and a half;
        *before*: it was over before anything failed, so it does not count.
    share
        How much of the epoch had been read when it failed.
    usual
        The longest wait for a batch before that, in seconds.
    stalled
        The longest wait for a batch after the fault, in seconds.
    recovered
        Seconds after the fault until throughput was back; ``None`` if that was not in this epoch.
    followed
        Batches that came after the fault, and what mended it, was done.
    missing, repeated
        Images that came less often than while nothing fails, and more often.
    verdict
        Whether what came is what is documented; *open* if the epoch did not end and only lacks some.
    message
        What the client was told.
    started, machine, cpu, versions, commit
        When, where and with what.
    """

    fault: Name
    does: Name
    strategy: Name
    ended: Literal["whole", "failed", "waits", "before"]
    share: float
    seconds: Seconds
    usual: Seconds
    stalled: Seconds
    recovered: Seconds | None
    followed: Count
    images: Count
    missing: Count
    repeated: Count
    promised: Name
    verdict: Literal["kept", "broken", "not promised", "open"]
    message: Name = ""
    started: Name = ""
    machine: Name = ""
    cpu: Name = ""
    versions: Name = ""
    commit: Name = ""


@dataclass(frozen=True)
class FaultTally:
    """What came of the repetitions of one experiment.

    Attributes
    ----------
    does, strategy
        What failed, in words, and in which strategy.
    repetitions
        How many there are; the other counts are of these.
    stalled
        The middle and the longest of the longest waits after the fault, in seconds.
    recovered
        In how many throughput was back before the epoch ended, and after how many seconds in the middle one of these.
    missing, repeated
        The most of one whole epoch; ``None`` if there was none.
    """

    does: str
    strategy: str
    is_undisturbed: bool
    promised: str
    repetitions: int
    whole: int
    failed: int
    waits: int
    kept: int
    broken: int
    stalled: tuple[float, float]
    recovered: tuple[int, float | None]
    missing: int | None
    repeated: int | None
    message: str


def tallied(seen: Iterable[Seen]) -> list[FaultTally]:
    """Count what came of each experiment: undisturbed ones last."""
    groups: dict[tuple[str, str], list[Seen]] = {}
    for each in seen:
        if each.ended == "before":
            continue
        groups.setdefault((each.fault, each.strategy), []).append(each)
    found = []
    for (_, strategy), own in sorted(groups.items(), key=lambda item: (item[0][0] == UNDISTURBED, item[0])):
        ended, verdicts = Counter(each.ended for each in own), Counter(each.verdict for each in own)
        back = [each.recovered for each in own if each.recovered is not None]
        found.append(
            FaultTally(
                own[0].does,
                strategy,
                own[0].fault == UNDISTURBED,
                own[0].promised,
                len(own),
                ended["whole"],
                ended["failed"],
                ended["waits"],
                verdicts["kept"],
                verdicts["broken"],
                (statistics.median(each.stalled for each in own), max(each.stalled for each in own)),
                (len(back), statistics.median(back) if back else None),
                max((each.missing for each in own if each.ended == "whole"), default=None),
                max((each.repeated for each in own if each.ended == "whole"), default=None),
                next((each.message for each in own if each.message), ""),
            )
        )
    return found


def logged(path: Path, say: Callable[[str], None] = lambda _: None) -> list[Seen]:
    """Return the experiments of a log; none if there is none. Unusable lines are left out, and ``say`` is told."""
    return log.lines(path, msgspec.json.Decoder(Seen).decode, say)


def newest(seen: Iterable[Seen]) -> list[Seen]:
    """Return the experiments that were made like the newest: what two commits have seen is not counted together."""
    found = list(seen)
    last = max(found, key=lambda each: each.started, default=None)
    return [each for each in found if last and _made(each) == _made(last)]


def _made(seen: Seen) -> tuple[str, ...]:
    return seen.machine, seen.cpu, seen.versions, seen.commit


HEADINGS = (
    "what fails",
    "strategy",
    "documented",
    "kept",
    "how the epoch ended",
    "longest wait",
    "throughput back",
    "missing",
    "doubled",
)


def line(tally: FaultTally) -> tuple[str, ...]:
    """Return the cells of an experiment under ``HEADINGS``."""
    from loaders._words import duration  # the questions import this module, and nothing heavy at their top

    ends = {"whole": tally.whole, "failed": tally.failed, "waits for ever": tally.waits}
    middle, longest = tally.stalled
    back, after = tally.recovered
    count = tally.repetitions
    kept = f"{tally.kept} of {count}" + (f", {tally.broken} broken" if tally.broken else "")
    wait = duration(middle)
    if longest > middle:
        wait += f", at most {duration(longest)}"
    return (
        tally.does,
        tally.strategy,
        tally.promised,
        "–" if tally.promised == "nothing" else kept,
        ", ".join(f"{each} of {count} {words}" for words, each in ends.items() if each),
        "for ever" if tally.waits == count else wait,
        "–" if tally.is_undisturbed else f"{back} of {count}" + ("" if after is None else f", after {duration(after)}"),
        _most(tally.missing),
        _most(tally.repeated),
    )


def _most(count: int | None) -> str:
    return "–" if count is None else f"at most {count}" if count else "none"


def summary(tallies: Iterable[FaultTally]) -> list[str]:
    """Say whether what is documented is kept, undisturbed and after a fault, and after what an epoch goes on or not."""
    every = list(tallies)
    said = []
    for words, of_kind in (
        ("When something fails", [each for each in every if not each.is_undisturbed]),
        ("While nothing fails", [each for each in every if each.is_undisturbed]),
    ):
        if held := [each for each in of_kind if each.kept or each.broken]:
            broken = [
                f"{each.strategy} ({each.broken} of {each.repetitions}, {each.does})" for each in held if each.broken
            ]
            count = f"{len(held)} experiment{'s' if len(held) > 1 else ''}"
            said.append(
                f"{words}, what is documented is kept in {len(held) - len(broken)} of {count}, each of {_epochs(held)}"
                + (f"; not in {', '.join(broken)}" if broken else "")
            )
    if waits := [(each, each.waits) for each in every if each.waits]:
        said.append(f"The client waits for ever after {_named(waits)}")
    if ends := [(each, each.whole) for each in every if each.whole and not each.is_undisturbed]:
        said.append(f"The epoch goes on to its end after {_named(ends)}")
    return said


def _named(counted: Iterable[tuple[FaultTally, int]]) -> str:
    """Name faults, each with its strategies, and how often where that is not always."""
    found: dict[str, list[str]] = {}
    for each, count in counted:
        often = "" if count == each.repetitions else f" {count} of {each.repetitions} times"
        found.setdefault(each.does, []).append(f"{each.strategy}{often}")
    return "; ".join(f"{does} ({', '.join(names)})" for does, names in found.items())


def _epochs(tallies: Iterable[FaultTally]) -> str:
    counts = sorted({each.repetitions for each in tallies})
    least, most = counts[0], counts[-1]
    return f"{least} to {most} epochs" if least < most else "1 epoch" if most == 1 else f"{most} epochs"


def sentences(tallies: Iterable[FaultTally]) -> list[str]:
    """Say what clients were told."""
    return [f"{each.strategy}, {each.does}: the client is told “{each.message}”" for each in tallies if each.message]
