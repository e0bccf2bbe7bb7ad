"""What a comparison runs, and how its trials start."""

from __future__ import annotations

import ctypes.util
import functools
import hashlib
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from loaders import _registry
from loaders._corpus import SIZES, Corpus
from loaders._errors import InputError
from loaders._trial import Trial, imports, machine, pages
from loaders._trial.forks import group_of

SEED = 1
"""Seed of the first round; each later round adds one, so every round draws anew and all strategies draw alike."""

PACKAGE = Path(__file__).parents[1]
"""The code that a trial's figures depend on."""

LEAST_ROUNDS = 8
"""Rounds of every strategy, if as many are asked for. Later rounds are only for what may still be the fastest, and for
what is undecided."""

MOST_ROUNDS = 24
"""Where a precision is asked for, what has not reached it by this round is left undecided."""

UNTIL = 0.05
"""Half the width of a ratio's 95 % interval, at which no more rounds are needed: half of the smallest difference that
the page calls one."""

QUICK_ROUNDS = 3
"""A comparison on a time budget begins with these rounds of the quick strategies: fewer say nothing about how far
trials differ, nor about how memory grows with the data. Then every strategy runs once, or after the first of them
(``TURNS``)."""

TURNS = 15.0
"""Minutes. On such a budget, or a larger one, every strategy has its turn before a quick one has its second trial: all
of them within 13 minutes where no other engine is installed (Intel, family 6, model 207). What is left is spent on the
rounds of the quick ones, so that little may be known of how trials differ, or of memory, until the next call."""

FRESH_ROUNDS = 3
"""Where figures are published, the first rounds of a question's default case start in fresh processes, which alone show
what a start takes. The same rounds of its other amounts of data do not: with TensorFlow's imports they would take half
as long again. Figures of several amounts are paired by the later rounds, and those of the other amounts that would pair
with nothing are left out where only a law of memory needs these: a tenth of the time of eight rounds. In questions in
which forks are not shown to measure the same, every round starts fresh (``Question.fresh``)."""


@dataclass(frozen=True)
class Plan:
    """What a comparison runs. Two plans with the same ``key`` may share trials.

    Attributes
    ----------
    rounds
        The most rounds that a strategy is run in a case; from ``LEAST_ROUNDS`` on only if something is open.
    memory_limit
        Bytes for each trial's process tree; by default a share of the memory available when the trial begins.
    deadline
        Seconds for each trial.
    epochs
        How often a trial drains its strategy.
    fresh
        Whether every trial runs in a fresh process, though it might run in a fork.
    staged
        Whether the quick strategies come first, for a time budget.
    turns
        Whether, on this budget, only the first trials of the quick strategies come before those of all others.
    until
        Half the width of a ratio's interval at which it needs no more rounds, as a share; ``None`` if only a verdict
        is asked for.
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
    staged: bool = False
    turns: bool = False
    until: float | None = None

    def may_fork(self, strategy: str) -> bool:
        """Whether a strategy's trials may run in forks: not if it sets what libraries read when they are loaded."""
        variant = _registry.find_variant(self.question, strategy)
        return not variant.variables and not variant.preload

    @functools.cached_property
    def groups(self) -> dict[tuple[str, ...], dict[str, set[str]]]:
        """By group, the modules that the strategies which may fork import, each with the attributes that they use.

        What trials were seen to import meanwhile is not in it: fresh and forked ones would then import other things.
        """
        groups: dict[tuple[str, ...], dict[str, set[str]]] = {}
        for strategy in filter(self.may_fork, self.strategies):
            variant = _registry.find_variant(self.question, strategy)
            if not all(map(imports.is_found, variant.optional)):
                continue  # its trials are skipped
            found = groups.setdefault(group_of(variant), {"numpy": set()})
            for function in filter(None, (variant.build, variant.convert)):
                for name, attributes in _registry.imports_of(function).items():
                    found.setdefault(name, set()).update(attributes)
            for name in imports.known(self._alone(strategy, self.cases[0], SEED)):
                found.setdefault(name, set())
        return groups

    @functools.cached_property
    def forks(self) -> bool:
        """Whether trials run in forks of a server: where the system can, and it saves the import of TensorFlow."""
        return (
            not self.fresh
            and pages.AVAILABLE
            and any(name.startswith("tensorflow") for modules in self.groups.values() for name in modules)
        )

    def starts_fresh(self, index: int, case: dict[str, str], strategies: Sequence[str]) -> bool:
        """Whether a round of a case runs in fresh processes: all of its strategies do or none, so that ratios hold."""
        question = _registry.find_question(self.question)
        shows_start = index < FRESH_ROUNDS and case == question.default_case
        return (
            not self.forks
            or (SIZES[self.corpus.manifest.size].all_cases and (question.fresh or shows_start))
            or not all(map(self.may_fork, strategies))
        )

    @property
    def key(self) -> str:
        """Digest of everything that a trial's figures depend on, including the code of this package."""
        return self.digest(PACKAGE.rglob("[!.]*.py"))

    def digest(self, files: Iterable[Path]) -> str:
        """Return a digest of these files of the package and of everything else that a trial's figures depend on.

        How many rounds and which cases are asked for is not in it, nor what time they may take: more of the same
        continues a run.
        """
        decides = [self.question, *self.strategies, self.corpus.manifest.key]
        decides += [
            self.corpus.manifest.size,
            str(self.deadline),
            str(self.memory_limit),
            str(self.epochs),
            str(self.fresh),
            str(self.staged),
        ]
        decides += [
            platform.python_version(),
            repr(machine.packages()),
            repr(machine.variables()),
            str(machine.cores()),
        ]
        state = hashlib.blake2b("\n".join(decides).encode(), digest_size=4)
        for file in [*sorted(files), *map(Path, self.outside)]:
            state.update(file.read_bytes())
        return state.hexdigest()

    def strategies_in(self, case: dict[str, str]) -> list[str]:
        """Return the strategies that run in a case."""
        known = _registry.variants(self.question)
        return [each for each in self.strategies if known[each].runs_in(case)]

    @property
    def whole_rounds(self) -> int:
        """After this many rounds, only what is open goes on; where no loader is chosen, what was asked for is run."""
        if self.staged:
            return QUICK_ROUNDS + 1
        ends = self.until is not None or _registry.find_question(self.question).chooses
        return min(self.rounds, LEAST_ROUNDS) if ends else self.rounds

    def beforehand(self, index: int, case: dict[str, str]) -> list[str]:
        """Return the strategies of one of the whole rounds, which are known before anything is measured."""
        if not self.staged or index >= QUICK_ROUNDS:
            return [] if self._pairs_with_nothing(index, case) else self.strategies_in(case)
        question = _registry.find_question(self.question)
        main = [each for each in self.cases if each in question.default_cases] or self.cases
        quick = set(_quick(self.question))
        return [each for each in self.strategies_in(case) if each in quick] if case in main else []

    def _pairs_with_nothing(self, index: int, case: dict[str, str]) -> bool:
        """Whether a round of another amount of data than the default case's would be forked while that one is fresh.

        Where all cases are asked for, each has as many rounds as the others. Nothing is known here of a system that
        turns out not to fork.
        """
        question = _registry.find_question(self.question)
        amounts, main = question.default_cases, question.default_case
        is_for_a_law = case != main and list(self.cases) == amounts
        if not is_for_a_law or self.whole_rounds < LEAST_ROUNDS:
            return False
        is_fresh, main_is_fresh = (self.starts_fresh(index, each, self.strategies_in(each)) for each in (case, main))
        return main_is_fresh and not is_fresh

    @property
    def trials(self) -> int:
        """The number of trials in its whole rounds."""
        return sum(len(self.beforehand(index, case)) for index in range(self.whole_rounds) for case in self.cases)

    def trial(self, strategy: str, case: dict[str, str], seed: int) -> Trial:
        """Return the trial of one strategy, with the process settings that its declaration asks for."""
        group = group_of(_registry.find_variant(self.question, strategy))
        return msgspec.structs.replace(self._alone(strategy, case, seed), ahead=self.groups.get(group, {}))

    def _alone(self, strategy: str, case: dict[str, str], seed: int) -> Trial:
        """Return the trial of one strategy that knows nothing of the others."""
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
            memory_limit=self.memory_limit or machine.default_memory_limit(),
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
    minutes: float | None = None,
    until: float | None = None,
) -> Plan:
    """Return the plan of a question's comparison; the corpus's size sets what is not given.

    With ``only``, only the cases with these values of axes are run. With ``quick``, only the strategies that carry the
    question's finding are run, and those from ``outside`` files. ``minutes`` is the time budget, if any: unless figures
    are to be published, the quick strategies come first. See ``Plan`` for the others.

    Raises
    ------
    InputError
        If no strategy runs in any of the cases.
    """
    size = SIZES[corpus.manifest.size]
    asked = _registry.find_question(question)
    quick_ones = _quick(question)
    every = bool(only) or (size.all_cases if all_cases is None else all_cases)
    wanted = (only or {}).items()
    staged = minutes is not None and not size.all_cases
    if until is None and rounds is None and (minutes is not None or size.all_cases):
        until = UNTIL
    planned = Plan(
        question=question,
        strategies=tuple(name for name in _registry.variants(question) if not quick or name in quick_ones),
        cases=tuple(case for case in (asked.cases if every else asked.default_cases) if wanted <= case.items()),
        rounds=max(rounds or (None if until else size.rounds) or MOST_ROUNDS, QUICK_ROUNDS + 1 if staged else 0),
        corpus=corpus,
        memory_limit=memory_limit,
        deadline=deadline,
        outside=outside,
        epochs=epochs or (asked.epochs if size.all_cases else asked.quick_epochs),
        fresh=fresh,
        staged=staged,
        turns=staged and (minutes or 0.0) >= TURNS,
        until=until,
    )
    if not any(map(planned.strategies_in, planned.cases)):
        possible = "; ".join(_spelled(case) for case in asked.cases if planned.strategies_in(case))
        raise InputError(
            f"no strategy of {question} runs with {_spelled(only or asked.default_case)}; "
            f"these values go together: {possible}"
        )
    return planned


def groups_of(plans: Iterable[Plan]) -> dict[tuple[str, ...], dict[str, set[str]]]:
    """Return what the servers of plans import: see ``Plan.groups``."""
    found: dict[tuple[str, ...], dict[str, set[str]]] = {}
    for planned in plans:
        for group, modules in planned.groups.items():
            for name, attributes in modules.items():
                found.setdefault(group, {}).setdefault(name, set()).update(attributes)
    return found


def weightiest_first(plans: Iterable[Plan]) -> list[Plan]:
    """Return plans in an order in which the time may end at any moment.

    Calibration comes first, as the others need the resolution that it measures, then the question with most trials: it
    has several amounts of data, and a law of memory needs all of them in several rounds.
    """
    return sorted(plans, key=lambda each: (not _registry.find_question(each.question).calibrates, -each.trials))


def _quick(question: str) -> list[str]:
    """Return the strategies that carry a question's finding, and those from outside files."""
    known = _registry.variants(question)
    return [*_registry.quick(question), *(name for name, each in known.items() if each.is_outside)]


def _spelled(case: Mapping[str, str]) -> str:
    """Write a case, or part of one, in the command line's syntax."""
    return " ".join(f"{axis}={value}" for axis, value in case.items())
