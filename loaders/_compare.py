"""Comparison runs: rounds of trials, each round shuffled anew, each trial saved at once, resumable after a break."""

from __future__ import annotations

import contextlib
import ctypes.util
import hashlib
import platform
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil

from loaders import _registry, _rows
from loaders._corpus import SIZES, Corpus
from loaders._errors import InputError
from loaders._judge import fitted
from loaders._trial import Record, Trial, imports, log, machine, pages, run_trial, watch
from loaders._trial.launch import Server

SEED = 1
"""Seed of the first round; each later round adds one, so every round draws anew and all strategies draw alike."""

GIVE_UP_AFTER = 2
"""A strategy that has failed this many times is not run again in the same comparison."""

LOOKS = (3, 6, 12, 24)
"""After these numbers of rounds, the strategies that may still be the fastest are chosen, and only they run until the
next look. Looks are fixed beforehand: looking after every round would eventually drop the true best. All strategies get
three rounds, as fewer say nothing about how far trials differ, nor about how memory grows with the data."""

CONTINUE_WITHIN = timedelta(hours=24)
"""An older interrupted run is started again: too much of the machine may have changed."""

MEMORY_SHARE = 0.8
"""Default memory limit of a trial, as a share of the available memory, so that no trial takes down the machine."""


@dataclass(frozen=True)
class Plan:
    """What a comparison runs. Two plans with the same ``key`` may share trials.

    Attributes
    ----------
    rounds
        How often every strategy is run in every case.
    memory_limit
        Bytes for each trial's process tree; by default a share of the memory available when the trial begins.
    deadline
        Seconds for each trial.
    epochs
        How often a trial drains its strategy.
    fresh
        Whether every trial runs in a fresh process, though it might run in a fork.
    """

    question: str
    strategies: tuple[str, ...]
    cases: tuple[dict[str, str], ...]
    rounds: int
    corpus: Corpus
    memory_limit: int | None
    deadline: float
    outside: tuple[str, ...] = ()
    epochs: int = 1
    fresh: bool = False

    @property
    def modules(self) -> dict[str, set[str]]:
        """The modules that the strategies import, each with the attributes that they use."""
        found: dict[str, set[str]] = {"numpy": set()}
        for strategy in self.strategies:
            variant = _registry.find_variant(self.question, strategy)
            for function in filter(None, (variant.build, variant.convert)):
                for name, attributes in _registry.imports_of(function).items():
                    found.setdefault(name, set()).update(attributes)
            for name in imports.known(self.trial(strategy, self.cases[0], SEED)):
                found.setdefault(name, set())
        return found

    @property
    def forks(self) -> bool:
        """Whether trials run in forks of a server: where the system can, and it saves the import of TensorFlow."""
        return not self.fresh and pages.AVAILABLE and any(name.startswith("tensorflow") for name in self.modules)

    @property
    def key(self) -> str:
        """Digest of everything that a trial's figures depend on, including the code of this package."""
        decides = [self.question, *self.strategies, repr(self.cases), str(self.rounds), self.corpus.manifest.key]
        decides += [
            self.corpus.manifest.size,
            str(self.deadline),
            str(self.memory_limit),
            str(self.epochs),
            str(self.fresh),
        ]
        decides += [platform.python_version(), repr(machine.packages()), repr(machine.variables())]
        files = sorted(Path(__file__).parent.rglob("*.py")) + [Path(file) for file in self.outside]
        state = hashlib.blake2b("\n".join(decides).encode(), digest_size=4)
        for file in files:
            state.update(file.read_bytes())
        return state.hexdigest()

    def trials(self) -> Iterator[tuple[int, Trial]]:
        """Yield every trial with its round; each round has its own order."""
        for index in range(self.rounds):
            of_round = [(strategy, case) for case in self.cases for strategy in self.strategies_in(case)]
            random.Random(f"{self.question} {index}").shuffle(of_round)  # noqa: S311
            for strategy, case in of_round:
                yield index, self.trial(strategy, case, SEED + index)

    def strategies_in(self, case: dict[str, str]) -> list[str]:
        """Return the strategies that run in a case."""
        known = _registry.variants(self.question)
        return [each for each in self.strategies if known[each].runs_in(case)]

    @property
    def trials_a_round(self) -> int:
        """Number of trials in one round."""
        return sum(len(self.strategies_in(case)) for case in self.cases)

    def trial(self, strategy: str, case: dict[str, str], seed: int) -> Trial:
        """Return the trial of one strategy, with the process settings that its declaration asks for."""
        variant = _registry.find_variant(self.question, strategy)
        variables, skip = dict(variant.variables), ""
        if variant.preload:
            library = ctypes.util.find_library(variant.preload)
            if library and sys.platform == "linux":
                variables["LD_PRELOAD"] = library
            else:
                skip = f"the library {variant.preload} is not installed"
        return Trial(
            question=self.question,
            strategy=strategy,
            case=case,
            corpus=str(self.corpus.root.absolute()),
            seed=seed,
            epochs=self.epochs,
            outside=list(self.outside),
            variables=variables,
            skip=skip,
            memory_limit=self.memory_limit or default_memory_limit(),
            deadline=self.deadline,
        )


def plan(
    question: str,
    corpus: Corpus,
    *,
    rounds: int | None = None,
    all_cases: bool | None = None,
    memory_limit: int | None = None,
    deadline: float = 600.0,
    outside: tuple[str, ...] = (),
    epochs: int | None = None,
    fresh: bool = False,
    quick: bool = False,
    only: dict[str, str] | None = None,
) -> Plan:
    """Return the plan of a question's comparison; the corpus's size sets what is not given.

    With ``only``, only the cases with these values of axes are run. With ``quick``, only the strategies that carry the
    question's finding are run, and those from ``outside`` files.

    Raises
    ------
    InputError
        If no strategy runs in any of the cases.
    """
    size = SIZES[corpus.manifest.size]
    asked = _registry.find_question(question)
    quick_ones = _registry.quick(question)
    every = bool(only) or (size.all_cases if all_cases is None else all_cases)
    wanted = (only or {}).items()
    planned = Plan(
        question=question,
        strategies=tuple(
            name
            for name, each in _registry.variants(question).items()
            if not quick or name in quick_ones or each.is_outside
        ),
        cases=tuple(case for case in (asked.cases if every else asked.default_cases) if wanted <= case.items()),
        rounds=rounds or size.rounds,
        corpus=corpus,
        memory_limit=memory_limit,
        deadline=deadline,
        outside=outside,
        epochs=epochs or (asked.epochs if size.all_cases else asked.quick_epochs),
        fresh=fresh,
    )
    if not planned.trials_a_round:
        possible = "; ".join(_spelled(case) for case in asked.cases if planned.strategies_in(case))
        raise InputError(
            f"no strategy of {question} runs with {_spelled(only or asked.default_case)}; "
            f"these values go together: {possible}"
        )
    return planned


def _spelled(case: Mapping[str, str]) -> str:
    """Write a case, or part of one, in the command line's syntax."""
    return " ".join(f"{axis}={value}" for axis, value in case.items())


def default_memory_limit() -> int:
    """Return a trial's default memory limit in bytes."""
    return int(psutil.virtual_memory().available * MEMORY_SHARE)


def run(
    planned: Plan,
    *,
    done: Callable[[Record], None] = lambda _: None,
    begin: Callable[[Trial], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Record]:
    """Run a comparison and return its records, including those of an interrupted run of the same plan.

    Every record is in the trial log before ``done`` is called with it, so however this function ends, it loses
    at most the trial that was under way.

    Raises
    ------
    InputError
        If another comparison is under way, or if the log cannot be written.
    """
    with log.exclusive(machine.machine_name()):
        log.refuse_other_processor(log.log_path(machine.machine_name()), machine.processor())
        return _run(planned, done, begin, say)


def _run(
    planned: Plan, done: Callable[[Record], None], begin: Callable[[Trial], None], say: Callable[[str], None]
) -> list[Record]:
    path = log.log_path(machine.machine_name())
    name, records = _unfinished(planned, log.read(path, say))
    if records:
        say(f"continuing the run of {records[0].started}: {len(records)} trials are there")
    for record in records:
        done(record)
    a_round = planned.trials_a_round
    due = _Due()
    with _Servers(planned) as servers:
        for index, trial in planned.trials():
            if not due(index, trial, records):
                continue
            begin(trial)
            server = servers.of(index)
            more = watch.repeats_left(records)
            record = run_trial(
                trial, planned.corpus, run=name, round=index, planned=a_round, server=server, repeats=more
            )
            log.append(path, record)
            records.append(record)
            done(record)
    return records


class _Servers:
    """The servers of a comparison, one for each round: one layout of addresses must not be that of all trials."""

    def __init__(self, planned: Plan) -> None:
        self._planned, self._server, self._round = planned, None, -1
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> _Servers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, index: int) -> Server | None:
        """Return the server of a round; ``None`` if trials run in fresh processes."""
        if not self._planned.forks:
            return None
        if index != self._round or (self._server and self._server.is_lost):
            self._stack.close()
            self._server, self._round = Server(self._planned.modules), index
            self._stack.callback(self._server.end)
        return self._server


class _Due:
    """Whether a trial must still be run: it is not done, its strategy has not failed too often and may be the best."""

    def __init__(self) -> None:
        self._contenders: dict[str, set[str]] = {}

    def __call__(self, index: int, trial: Trial, records: Sequence[Record]) -> bool:
        same = [each for each in records if (each.strategy, each.case) == (trial.strategy, trial.case)]
        failures = sum(each.status != "ok" for each in same)
        if failures >= GIVE_UP_AFTER or any(each.round == index for each in same):
            return False
        look = max((each for each in LOOKS if each <= index), default=0)
        if not look:
            return True
        case = f"{look} {_spelled(trial.case)}"
        if case not in self._contenders:
            self._contenders[case] = contenders(
                [each for each in records if each.case == trial.case and each.round < look]
            )
        return trial.strategy in self._contenders[case]


def contenders(records: Sequence[Record]) -> set[str]:
    """Return the strategies of one case that may still be the fastest, once or over many epochs, and the baseline.

    A strategy whose output one of them reproduces is included: the difference that remains between them is asked too.
    """
    if not records:
        return set()
    rows = _rows.comparison(records).rows
    found = {row.strategy for row in rows if row.in_best or row.in_best_total or row.is_baseline}
    # Strategies that keep or convert all data are no option if it does not fit, so the others are also judged apart.
    if among := [row.strategy for row in _rows.plain(rows)]:
        found.update(fitted({row.strategy: row.times for row in rows if row.times}).best(among).names)
    return found | {row.matches for row in rows if row.matches and row.strategy in found}


def _unfinished(planned: Plan, logged: list[Record]) -> tuple[str, list[Record]]:
    """Return the name and the records of the last run of this plan if it can be continued, else a new name."""
    key = planned.key
    now = datetime.now(UTC)
    runs = [record.run for record in logged if record.run.endswith(f"-{key}")]
    if runs:
        records = [record for record in logged if record.run == runs[-1]]
        recent = now - datetime.fromisoformat(records[0].started) < CONTINUE_WITHIN
        due = _Due()
        if recent and any(due(index, trial, records) for index, trial in planned.trials()):
            return runs[-1], records
    return f"{now:%Y%m%dT%H%M%S}-{key}", []
