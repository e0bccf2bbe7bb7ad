"""How often the check is wrong, and what it finds: trials with identical sides and with planted differences.

Each check goes the whole way, from trials to a verdict, on one strategy and a twin that does a known amount more. There
are two such subjects: Python that works for about a tenth of a second on one core and holds a few MiB, in whole trials;
and a tf.data map over the corpus' photographs, on all cores, whose epochs take turns where the system can. Their
spreads differ, so power is stated for each.
"""

from __future__ import annotations

import functools
import hashlib
import math
import platform
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from loaders._check import run as checking
from loaders._check.judge import EFFICIENCY, FAMILY, LOOKS, TIME_MARGIN, TRIMMED, Figure
from loaders._check.run import UNCONFIRMED, Outcome, Subject
from loaders._check.trials import Runs
from loaders._errors import CHANGED, InputError
from loaders._trial import log, machine
from loaders._trial.record import Environment

QUESTIONS_OF: dict[str, str] = {"python": "selection", "tensorflow": "batching"}
"""The question of each subject; it checks what the subject delivers."""

NAME = "selftest.jsonl"
FILE = Path(__file__).with_name("planted.py")

QUESTIONS = 3
"""Verdicts in a check of one strategy: its time, its memory, and how often it fails."""


TOGETHER = 10
"""Checks that share their rounds of blocks, and so the servers of each round: starting these takes as long as a block.
Each is judged as if it were the only one."""


class Kind(msgspec.Struct, frozen=True):
    """A kind of check: what is planted, and the figures that are judged.

    ``share`` is the fraction of the requested checks that this kind runs: a difference that hardly matters needs fewer.
    ``same`` is the strategy without the difference. ``time`` is the metric used as time.
    """

    name: str
    twin: str
    figures: tuple[Figure, ...]
    share: float = 1.0
    same: str = "same"
    time: str = "epoch_time"


KINDS = (
    Kind("nothing", "same", ("time", "memory")),
    Kind("+10 % of time", "time_10", ("time",)),
    Kind("+8 MiB", "memory_8", ("memory",)),
    Kind("+20 % of time", "time_20", ("time",), 0.25),
    Kind("+5 % of time", "time_5", ("time",), 0.1),
    Kind("+1 MiB", "memory_1", ("memory",), 0.25),
    Kind("+64 MiB", "memory_64", ("memory",), 0.25),
)
"""What is added of time is of the planted work, which is most of an epoch but not all of it: in the median of forty
checks each, *+10 %* read as +9.3 %, and as +8.5 % in a TensorFlow strategy. A check finds rather more than is said."""

_in_tensorflow = functools.partial(Kind, same="tf_same", time="steady_time")

TENSORFLOW_KINDS = (
    _in_tensorflow("tensorflow: nothing", "tf_same", ("time", "memory")),
    _in_tensorflow("tensorflow: +10 % of time", "tf_time_10", ("time",)),
    _in_tensorflow("tensorflow: +64 MiB", "tf_memory_64", ("memory",), 0.25),
    _in_tensorflow("tensorflow: +20 % of time", "tf_time_20", ("time",), 0.25),
)

KINDS_OF: dict[str, tuple[Kind, ...]] = {"python": KINDS, "tensorflow": TENSORFLOW_KINDS}
EVERY_KIND = (*KINDS, *TENSORFLOW_KINDS)


class Tally(msgspec.Struct, frozen=True):
    """How the checks of one kind ended.

    Attributes
    ----------
    verdicts
        How often each verdict occurred; for a kind with nothing planted, over both figures.
    alarms
        Checks that confirmed a regression; where nothing is planted, any difference.
    blocks
        The number of blocks of each check, in order.
    spread
        The standard deviation of the logarithm of a block's ratio of times; ``None`` if time was not judged.
    start
        How the trials started: ``fresh`` or ``forked``.
    """

    kind: str
    checks: int
    verdicts: dict[str, int]
    alarms: int
    blocks: list[int]
    spread: float | None = None
    start: str = "fresh"


def proportion(count: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share: Clopper and Pearson's (1934), exact and therefore rather too wide."""
    from scipy.special import betaincinv

    low = float(betaincinv(count, total - count + 1, 0.025)) if count else 0.0
    high = float(betaincinv(count + 1, total - count, 0.975)) if count < total else 1.0
    return low, high


def detectable(spread: float, blocks: int, questions: int = QUESTIONS) -> float:
    """Return the smallest slowdown, as a factor, that this many blocks confirm nine times in ten.

    It is the margin plus half the interval and the quantile of nine in ten, in units of the trimmed mean's error.
    """
    from scipy.special import stdtrit

    kept = blocks - 2 * int(TRIMMED * blocks)
    freedom, error = kept - 1, spread * EFFICIENCY / math.sqrt(blocks)
    half = float(stdtrit(freedom, 1 - FAMILY / (questions * len(LOOKS)) / 2))
    return math.exp(math.log(TIME_MARGIN) + (half + float(stdtrit(freedom, 0.9))) * error)


class Checked(msgspec.Struct, frozen=True):
    """One check of the selftest, as it is logged; ``key`` separates checks that different code has run."""

    key: str
    kind: str
    started: str
    outcome: Outcome
    environment: Environment


class Selftest(msgspec.Struct, frozen=True):
    """How the checks of a machine's newest selftest ended, and where they ran."""

    started: str
    environment: Environment
    tallies: list[Tally]


def key(seconds: float) -> str:
    """Return the digest of what decides how a check of so many seconds ends.

    That is code, what the planted strategies are made of, the versions of Python and of packages, and the processor.
    """
    package = Path(__file__).parents[1]
    rooms = ("_check", "_compare", "_corpus", "_registry", "_trial", "questions/batching")
    alone = (package / "_contract.py", package / "_judge.py", package / "questions" / "selection.py")
    files = sorted([*alone, *(file for room in rooms for file in (package / room).glob("[!.]*.py"))])
    versions = repr((seconds, platform.python_version(), machine.packages(), machine.processor())).encode()
    return hashlib.blake2b(b"".join([versions, *(file.read_bytes() for file in files)]), digest_size=4).hexdigest()


def selftest(
    checks: int,
    seconds: float,
    runs: Callable[[Kind], Runs],
    path: Path,
    kinds: Sequence[Kind] = KINDS,
    *,
    start: str = "fresh",
    begin: Callable[[], str | None] = lambda: None,
    told: Callable[[Tally], None] = lambda _: None,
) -> list[Tally]:
    """Run the checks of each kind, and return how they ended.

    Those that share their rounds take at most ``seconds`` seconds each, on average: what some leave, others use.

    Parameters
    ----------
    runs
        Returns what runs the two planted strategies of a kind with a seed.
    path
        The log. Checks are appended as soon as those end that share their rounds, unless they judged nothing; checks
        that the same code has already logged count.
    start
        How the trials start: ``fresh`` or ``forked``.
    begin
        Called before each round of blocks; it starts new servers, if trials are forked.
    told
        Called with the tally so far after each of these appends.

    Raises
    ------
    InputError
        If no check of a kind judged anything, or the code changes meanwhile.
    """
    own = key(seconds)
    logged = [each for each in _read(path) if each.key == own and each.outcome.start == start]
    found = []
    for kind in kinds:
        outcomes = [each.outcome for each in logged if each.kind == kind.name]
        total = max(1, round(checks * kind.share))
        for first in range(len(outcomes), total, TOGETHER):
            due = range(first, min(first + TOGETHER, total))
            started = datetime.now(UTC).isoformat(timespec="seconds")
            found_of = [_subject(kind, runs(kind), 1000 * index, start) for index in due]
            ended = checking.run(
                [subject for subject, _ in found_of],
                seconds * len(due),
                questions=QUESTIONS,
                apart=True,
                begin=lambda _: begin(),
            )
            if key(seconds) != own:
                raise InputError(CHANGED)
            for outcome, (_, environments) in zip(ended, found_of, strict=True):
                if _has_judged(outcome):
                    outcomes.append(outcome)
                    log.append(path, Checked(own, kind.name, started, outcome, environments[-1]))
            if not outcomes:
                raise InputError(f"{kind.name}: no check has judged anything: {ended[0].message or ended[0].skipped}")
            told(tally(kind, outcomes))
        found.append(tally(kind, outcomes))
    return found


def _subject(kind: Kind, runs: Runs, first: int, start: str) -> tuple[Subject, list[Environment]]:
    """Return what a check measures, with its own seeds, and a list that its trials' environments are added to."""
    environments = [Environment()]

    def kept(record: dict[str, Any]) -> dict[str, Any]:
        if found := record.get("environment"):  # without one, the process that runs trials has ended
            environments.append(msgspec.convert(found, Environment))
        return record

    in_turn = runs.in_turn
    return Subject(
        kind.name,
        kind.time,
        lambda seed: kept(runs.a(first + seed)),
        lambda seed: kept(runs.b(first + seed)),
        kind.figures,
        start,
        (lambda seed: [kept(each) for each in in_turn(first + seed)]) if in_turn else None,
    ), environments


def newest(path: Path, say: Callable[[str], None] = lambda _: None) -> Selftest | None:
    """Return what a machine's log holds from the newest code; ``None`` if it holds nothing."""
    checked = _read(path, say)
    if not checked:
        return None
    own = [each for each in checked if each.key == checked[-1].key]
    tallies = []
    for kind in EVERY_KIND:
        outcomes = [each.outcome for each in own if each.kind == kind.name]
        if outcomes:  # fresh and forked trials are not counted together
            tallies.append(tally(kind, [each for each in outcomes if each.start == outcomes[-1].start]))
    return Selftest(own[0].started, own[-1].environment, tallies) if tallies else None


OLDER_WORD = (b'"verdict":"inconclusive"', b'"verdict":"undecided"')
"""The word that an older check wrote, and the one used now."""


def _read(path: Path, say: Callable[[str], None] = lambda _: None) -> list[Checked]:
    decode = msgspec.json.Decoder(Checked).decode
    read = log.lines(path, lambda line: decode(line.replace(*OLDER_WORD)), say)
    return [each for each in read if _has_judged(each.outcome)]


def _has_judged(outcome: Outcome) -> bool:
    """Whether a check has judged anything: not if the time was up before, or if its trials failed on both sides."""
    return outcome.broken or bool(outcome.judgements)


def tally(kind: Kind, outcomes: Sequence[Outcome]) -> Tally:
    """Count how checks ended."""
    judged = [each for outcome in outcomes for each in outcome.judgements]
    verdicts = [each.verdict for each in judged]
    spreads = [_spread(outcome) for outcome in outcomes if outcome.time]
    known = sorted(each for each in spreads if each is not None)
    return Tally(
        kind.name,
        len(outcomes),
        {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)},
        sum(_is_alarm(kind, outcome) for outcome in outcomes),
        [max((each.blocks for each in outcome.judgements), default=0) for outcome in outcomes],
        known[len(known) // 2] if known else None,
        outcomes[-1].start if outcomes else "fresh",
    )


def _is_alarm(kind: Kind, outcome: Outcome) -> bool:
    """Whether a check has confirmed what is planted, or any difference where nothing is."""
    differs = any(each.verdict not in UNCONFIRMED for each in outcome.judgements)
    return outcome.is_regression or (kind.twin == kind.same and differs)


HEADINGS = ("planted", "checks", "found", "95 % interval", "blocks", "verdicts")


def line(tally: Tally) -> tuple[str, ...]:
    """Return the cells of a kind of check under ``HEADINGS``."""
    low, high = proportion(tally.alarms, tally.checks)
    blocks = sorted(tally.blocks)
    others = ", ".join(f"{count} {verdict}" for verdict, count in tally.verdicts.items())
    return (
        tally.kind,
        str(tally.checks),
        f"{tally.alarms} ({tally.alarms / tally.checks:.0%})",
        f"{low:.0%} to {high:.0%}",
        f"{blocks[0]} to {blocks[-1]}, median {blocks[len(blocks) // 2]}",
        others,
    )


def sentences(tallies: Sequence[Tally]) -> list[str]:
    """State for each subject the smallest slowdown that would be found nine times in ten, from its own spread."""
    said = []
    for subject, kinds in KINDS_OF.items():
        names = {kind.name for kind in kinds}
        known = next((each for each in tallies if each.kind in names and each.spread), None)
        if known is None or known.spread is None:
            continue
        spread = known.spread
        found = ", ".join(f"{detectable(spread, each) - 1:.1%} with {each}" for each in LOOKS[1:])
        said.append(
            f"In a check of the {SUBJECTS[subject]}, with {known.start} trials, a block's time ratio has a standard "
            f"deviation of {spread:.1%}. "
            f"Smallest slowdown found nine times in ten, by number of blocks: {found}. A strategy with a larger spread "
            f"needs more blocks or a larger slowdown."
        )
    return said


SUBJECTS = {"python": "Python subject", "tensorflow": "tf.data subject"}


def _spread(outcome: Outcome) -> float | None:
    """Return a block's spread, worked out from the interval of the ratio."""
    from scipy.special import stdtrit

    judged = outcome.time
    if judged is None or judged.change.low is None or judged.change.high is None:
        return None
    out = int(TRIMMED * judged.blocks)
    half = math.log(judged.change.high / judged.change.low) / 2
    quantile = float(stdtrit(judged.blocks - 2 * out - 1, 1 - FAMILY / (QUESTIONS * len(LOOKS)) / 2))
    return half / quantile * math.sqrt(judged.blocks) / (EFFICIENCY if out else 1)
