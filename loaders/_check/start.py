"""Fresh and forked trials of the same strategies in turn, for ``equivalence`` to judge.

Rounds go through one question after the other. In each round, a question has a new server; its strategies come in an
order shuffled anew, and each runs fresh and forked, in random order. Both trials are alive at the same time, and their
steady epochs take turns (``loaders._trial.turns``), whose means are their steady times: from trial to trial a strategy
spreads by 10 % and more, between the turns of two by a third of that. Without named pipes one runs after the other.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, get_args

import msgspec

from loaders import _compare, _registry
from loaders._check import partners, touched
from loaders._check.equivalence import Way
from loaders._compare import CHECKED, GIVE_UP_AFTER, SEED, Plan
from loaders._compare.plans import PACKAGE
from loaders._corpus import Corpus
from loaders._errors import CHANGED, InputError
from loaders._trial import Record, Trial, log, run_trial, turns
from loaders._trial.forks import Forks

AMOUNT = "x4"
"""The amount of data, for questions that vary it: the smallest one at which all have the three batches in an epoch that
a steady time needs. What a fork costs weighs more in a short epoch."""

EPOCHS = 2
"""Short epochs are repeated for the steady time; of long ones, one is enough."""

SLOW = 60.0
"""Seconds. A strategy with such a trial in the first round is compared in that one only, and is not pooled with others:
it alone would take as long as all of them. A trial waits while its partner has a turn. One that is so slow later goes
on: only rounds that all have are pooled, and those that followed would count for nothing."""

NO_FORKS = "this system cannot fork trials (Linux 5.14 or later can), so all start fresh"
NONE_RAN = "no pair was run: none of its strategies may fork, its server could not, or the time was up"
NO_TENSORFLOW = "its trials always start fresh: a server saves nothing without TensorFlow"


def plan(question: str, corpus: Corpus) -> Plan:
    """Return what is run of a question in each round: its default case, all strategies."""
    asked = _registry.find_question(question)
    case = {**asked.default_case, **({asked.size_axis: AMOUNT} if asked.size_axis else {})}
    epochs = max(EPOCHS, asked.quick_epochs)
    return _compare.plan(question, corpus, rounds=1, only=case, epochs=epochs)


def key(planned: Plan) -> str:
    """Return the digest of what a question's trials run; what renders or concludes is not in it.

    So hours of trials need not be run in one go: what is measured of one question counts after a change of another one.
    """
    texts = {f"{PACKAGE.name}/{file.relative_to(PACKAGE).as_posix()}": file for file in PACKAGE.rglob("[!.]*.py")}
    sources = {name: file.read_text("utf-8") for name, file in texts.items()}
    files = touched.reached(sources, touched.files_of(sources, planned.question))
    own = (f"{PACKAGE.name}/{name}.py" for name in ("_check/partners", "_check/start", "_compare/plans"))
    return planned.digest(texts[name] for name in [*files, *own])


def forked_in(planned: Plan) -> list[str]:
    """Return the strategies that may run in forks: those that set no variables for their process."""
    (case,) = planned.cases
    return [each for each in planned.strategies_in(case) if planned.may_fork(each)]


def measure(
    plans: Sequence[Plan],
    path: Path,
    *,
    rounds: int,
    seconds: float = math.inf,
    begin: Callable[[Trial], None] = lambda _: None,
    done: Callable[[Record], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Record]:
    """Run the pairs of some rounds, as far as time allows, and return their records.

    Both trials of a pair are appended to the log when they have ended. Pairs that the same code has already logged
    count. A question whose server cannot fork is left out, and ``say`` is told why.

    Raises
    ------
    InputError
        If the code changes meanwhile, or the log cannot be written.
    """
    until = clock() + seconds
    keys = {planned.question: key(planned) for planned in plans}
    records = [each for each in log.read(path, say) if each.run == keys.get(each.question) and each.round < rounds]
    for record in records:
        done(record)
    refused: set[str] = set()
    for index, planned in itertools.product(range(rounds), plans):
        due = list(_due(planned, index, records))
        if not due or planned.question in refused or clock() >= until:
            continue
        # The threads end before the servers do, as what a thread has started ends with it.
        with Forks(planned.groups) as forks, ThreadPoolExecutor(2) as threads:
            if forks.begin():
                say(f"{planned.question}: its trials cannot be forked: {forks.reason}")
                refused.add(planned.question)
                continue
            for strategy, ways in due:
                if clock() >= until:
                    break
                if key(planned) != keys[planned.question]:
                    raise InputError(CHANGED)
                trial = _trial(planned, strategy, index)
                begin(trial)
                how: dict[str, Any] = {
                    "run": keys[planned.question],
                    "round": index,
                    "planned": 2 * len(forked_in(planned)),
                }
                runs = [partial(forks.run if way == "forked" else run_trial, **how) for way in ways]
                pair = _pair(trial, planned.corpus, runs, threads)
                log.append(path, *pair)  # half a pair would be joined with another turn's half
                records += pair
                for record in pair:
                    done(record)
    return records


def _pair(trial: Trial, corpus: Corpus, runs: Sequence[Callable[..., Record]], threads: Executor) -> list[Record]:
    """Run a trial in two ways, in turn where the system can, and return both records without their traces."""
    if not turns.AVAILABLE:
        return [_without_traces(run(trial, corpus)) for run in runs]

    def partner(run: Callable[..., Record]) -> partners.InThread[Record]:
        return partners.InThread(threads, lambda place: run(msgspec.structs.replace(trial, turns=place), corpus))

    records, given = partners.play([partner(run) for run in runs])
    times = partners.times(given, [each.metrics.steady_epochs for each in records])
    return [
        _without_traces(record, **_steady(record, seconds)) for record, seconds in itertools.zip_longest(records, times)
    ]


def _steady(record: Record, of_turns: float | None) -> dict[str, float]:
    """Return the steady time that counts for a pair, by the trial's turns if it had any."""
    seconds = partners.until_last_batch(of_turns, record.metrics.steady_time, record.metrics.closing_time)
    return {} if seconds is None else {"steady_time": seconds}


def _trial(planned: Plan, strategy: str, index: int) -> Trial:
    """Return the trial of a round: no slow consumer, whose memory is not compared, and a check now and then."""
    trial = planned.trial(strategy, planned.cases[0], SEED + index)
    return msgspec.structs.replace(trial, slow=False, checked=index % CHECKED == 0)


def _due(planned: Plan, index: int, records: Sequence[Record]) -> Iterator[tuple[str, list[Way]]]:
    """Yield the strategies that must still be run in a round, each with the way to begin with; both are shuffled."""
    shuffled = random.Random(f"{planned.question} {index}")  # noqa: S311
    names = forked_in(planned)
    shuffled.shuffle(names)
    for name in names:
        ways: list[Way] = list(get_args(Way))
        shuffled.shuffle(ways)
        own = [each for each in records if (each.question, each.strategy) == (planned.question, name)]
        bad = [each.process for each in own if each.status != "ok"]
        there = {each.process for each in own if each.round == index}
        if index and any(each.seconds > SLOW for each in own if each.round == 0):
            continue
        if max(map(bad.count, ways)) < GIVE_UP_AFTER and len(there) < len(ways):
            yield name, ways


def _without_traces(record: Record, **more: Any) -> Record:
    """Return a record without its long lists, which nothing here is concluded from, and with ``more`` metrics."""
    metrics = msgspec.structs.replace(record.metrics, memory_trace=None, steps=None, walk=None, **more)
    return msgspec.structs.replace(record, metrics=metrics)
