"""Trial logs to result sets: decides which comparisons a page may show side by side and which it must keep apart."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import msgspec

from loaders import _evidence, _faults, _garbage, _registry, _resolution
from loaders._advise import coverage
from loaders._advise.candidates import Choice, choices, is_whole
from loaders._check import equivalence, selftest
from loaders._check.equivalence import Equivalence
from loaders._check.selftest import Selftest
from loaders._compare.plans import FRESH_ROUNDS
from loaders._evidence import Experiment
from loaders._faults import Seen
from loaders._resolution import Calibration
from loaders._rows import Comparison, comparison
from loaders._trial import Record, log
from loaders._trial.machine import CHANGED
from loaders._trial.record import SCHEMA, Environment, surroundings


class Origin(msgspec.Struct, frozen=True):
    """What two comparisons must have in common to share a result set. No ratio is taken across origins.

    A machine name belongs to one processor; ``cpu`` separates two machines given the same name. ``schema`` is that of
    the records.
    """

    machine: str
    size: str
    data: str
    python: str
    tensorflow: str
    cpu: str = ""
    schema: int = SCHEMA


class ResultSet(msgspec.Struct, frozen=True):
    """Comparisons of one origin, at most one per question.

    Attributes
    ----------
    commit
        Empty for the set of each question's newest run; the first digits of a commit for a set of runs that newer ones
        have replaced.
    started
        When the newest run in it started.
    calibration
        The machine's newest calibration, whatever the data.
    selftest
        The machine's newest self-test: how often the performance check is wrong.
    equivalences
        For each question, whether the machine's forked trials measure the same as fresh ones.
    faults
        The machine's experiments with tf.data service.
    evidence
        The machine's newest counts of how often what is concluded is wrong, and of what must hold every time.
    choices
        What a reader can choose from, by question and case; empty for replaced runs.
    """

    origin: Origin
    commit: str
    started: str
    comparisons: list[Comparison]
    calibration: Calibration | None = None
    selftest: Selftest | None = None
    equivalences: list[Equivalence] = []
    faults: list[Seen] = []
    evidence: list[Experiment] = []
    choices: list[Choice] = []

    @property
    def data(self) -> str:
        """The data in words, with the first digits of its digest."""
        name, count, key = self.origin.data.rsplit(", ", 2) if self.origin.data.count(", ") >= 2 else ("", "", "")
        return f"{name}, {count} ({key[:4]})" if key else self.origin.data

    @property
    def is_older(self) -> bool:
        """Whether an older instrument measured it; if so, it is shown but no conclusion rests on it."""
        return self.origin.schema != SCHEMA

    @property
    def answers(self) -> bool:
        """Whether findings, claims and a recommendation may rest on it."""
        return not self.commit and not self.is_older

    @property
    def instrument(self) -> str:
        """The instrument that measured it, in words."""
        return f"older instrument (schema {self.origin.schema})" if self.is_older else "today's instrument"

    @property
    def title(self) -> str:
        """The text of its heading."""
        versions = [f"{name} {each}" for name, each in self.versions.items() if each]
        replaced = [f"replaced runs at {self.commit}"] if self.commit else []
        older = [self.instrument] if self.is_older else []
        named = [self.origin.machine, self.origin.cpu, self.origin.size, self.data]
        return ", ".join(filter(None, [*named, *versions, *older, *replaced]))

    @property
    def environment(self) -> Environment:
        """The environment of its first comparison; software and commit may differ by question."""
        return self.comparisons[0].environment

    @property
    def versions(self) -> dict[str, str]:
        """The versions that the figures depend on most."""
        return {"Python": self.origin.python, "TensorFlow": self.origin.tensorflow}

    @property
    def id(self) -> str:
        """An anchor that stays the same from page to page."""
        what = "\n".join([*map(str, msgspec.structs.astuple(self.origin)), self.commit])
        machine = "".join(letter if letter.isalnum() else "-" for letter in self.origin.machine)
        return f"{machine}-{hashlib.blake2b(what.encode(errors='surrogatepass'), digest_size=4).hexdigest()}"

    @property
    def lacks(self) -> list[str]:
        """The questions for which it has no comparison."""
        return [name for name in _registry.questions() if all(each.question != name for each in self.comparisons)]

    @property
    def unanswered(self) -> list[str]:
        """The questions it lacks that offer a choice."""
        return [name for name in self.lacks if _registry.find_question(name).chooses]


@_garbage.uncollected()
def collect(root: Path, say: Callable[[str], None] = lambda _: None) -> list[ResultSet]:
    """Return the result sets of the trial logs below ``root``: newest runs, then replaced ones, then older ones.

    For each question the newest run that finished a whole round is used, or else simply the newest. Cases that it left
    out are taken from runs of the same commit; what was measured of two commits, or with other packages, variables or
    cores, is never joined. Whole runs that are not used at all are then collected by commit. What an older instrument
    measured comes last.
    """
    current: defaultdict[Origin, dict[str, list[Record]]] = defaultdict(dict)
    runs = _runs(root, say)
    for records in runs:
        place = current[_origin(records)]
        place[records[0].question] = _newest(place.get(records[0].question, []), records)
    shown = {record.run for place in current.values() for records in place.values() for record in records}
    replaced: defaultdict[tuple[Origin, str], dict[str, list[Record]]] = defaultdict(dict)
    for records in runs:
        if records[0].run not in shown and is_whole(records):
            replaced[(_origin(records), _commit(records) or "unknown")][records[0].question] = records
    by_machine: defaultdict[tuple[str, str, int], list[Record]] = defaultdict(list)
    for records in runs:
        by_machine[_machine(_origin(records))] += records
    calibrations = {machine: _resolution.newest(records) for machine, records in by_machine.items()}
    selftests = [found for path in sorted(root.glob(f"*/{selftest.NAME}")) if (found := selftest.newest(path, say))]
    started = [each for path in sorted(root.glob(f"*/{equivalence.NAME}")) for each in log.read(path, say)]
    faults = [each for path in sorted(root.glob(f"*/{_faults.NAME}")) for each in _faults.logged(path, say)]
    newest = [
        msgspec.structs.replace(
            _set(origin, "", place, calibrations[_machine(origin)]),
            selftest=_selftest(selftests, origin),
            equivalences=_equivalences(started, origin),
            faults=_of_faults(faults, origin),
            evidence=_of_evidence(root, origin, say),
        )
        for origin, place in current.items()
    ]
    others = [
        _set(origin, commit, place, calibrations[_machine(origin)]) for (origin, commit), place in replaced.items()
    ]
    ordered = [*_newest_first(newest), *_newest_first(others)]
    return sorted(ordered, key=lambda each: each.is_older)


def _machine(origin: Origin) -> tuple[str, str, int]:
    """Return the key of comparisons that share their instruments."""
    return origin.machine, origin.cpu, origin.schema


def _commit(run: Sequence[Record]) -> str:
    """Return the first digits of a run's commit; empty if none is known."""
    return next((each.environment.commit[:8] for each in run if each.environment.commit), "")


def _code(run: Sequence[Record]) -> tuple[str, str, dict[str, str], dict[str, str], int]:
    """Return what two runs that are joined share: commit and what was changed since, packages, variables and cores.

    What was changed is in the name of a run.
    """
    commit, known = _commit(run), surroundings(run)
    return commit, _key(run) if commit.endswith(CHANGED) else "", known.packages, known.variables, known.cores


def _selftest(found: Sequence[Selftest], origin: Origin) -> Selftest | None:
    where = origin.machine, origin.cpu
    own = [each for each in found if (each.environment.machine, each.environment.cpu) == where]
    return max(own, key=lambda each: each.started, default=None)


def _equivalences(records: Sequence[Record], origin: Origin) -> list[Equivalence]:
    """Return what a machine's processor has shown of forked trials."""
    return equivalence.judged(
        each
        for each in records
        # A trial that was ended early could not describe its processor.
        if each.environment.machine == origin.machine and each.environment.cpu in (origin.cpu, "")
    )


def _of_faults(found: Sequence[Seen], origin: Origin) -> list[Seen]:
    """Return the newest experiments with tf.data service of a machine and its processor."""
    return _faults.newest(each for each in found if (each.machine, each.cpu) == (origin.machine, origin.cpu))


def _of_evidence(root: Path, origin: Origin, say: Callable[[str], None]) -> list[Experiment]:
    """Return the newest experiments that a machine's processor has repeated."""
    own = [path for path in sorted(root.glob(f"*/{_evidence.NAME}")) if path.parent.name == origin.machine]
    return [each for path in own for each in _evidence.newest(path, say) if each.cpu == origin.cpu]


def _runs(root: Path, say: Callable[[str], None]) -> list[list[Record]]:
    """Return the records of each comparison run, oldest run first.

    Runs are told apart by more than their name: two machines may have begun a run in the same second.
    """
    known = _registry.questions()
    by_run: defaultdict[tuple[str, ...], list[Record]] = defaultdict(list)
    unknown: Counter[str] = Counter()
    for record in log.read_all(root, say):
        if not record.run:
            continue  # a single trial, run by hand
        if record.question in known:
            origin = record.environment.machine, str(record.schema), record.size, record.data
            by_run[(*origin, record.run, record.question)].append(record)
        else:
            unknown[record.question] += 1
    for question, count in unknown.items():
        trials = "a trial" if count == 1 else f"{count} trials"
        say(f"left out {trials} of {question!r}, a question that this version does not have")
    return sorted(by_run.values(), key=lambda each: each[0].started)


def _newest(older: list[Record], newer: list[Record]) -> list[Record]:
    """Return the records to use for a question, given a newer run.

    One that measures the same again is used once it has got as far in its cases: before, it has less to say.
    """
    again = [record.case for record in newer]
    before = [record for record in older if record.case in again]
    if _key(newer) in map(_key, _by_run(older)) and not _pairs(newer) >= _pairs(before):
        return older
    if older and is_whole(newer) and _code(newer) != _code(older):
        return older if _has_amounts_to_come(newer, older) else newer
    if not older or is_whole(newer):
        # An older run keeps the cases that the question still has and that were not run again.
        kept = [case for case in _registry.find_question(newer[0].question).cases if case not in again]
        return [each for each in older if each.case in kept] + newer
    if not any(map(is_whole, _by_run(older))):
        return newer
    return older


def _by_run(records: Sequence[Record]) -> list[list[Record]]:
    return [[each for each in records if each.run == run] for run in dict.fromkeys(each.run for each in records)]


def _key(run: Sequence[Record]) -> str:
    """Return what runs of the same code, packages and data share in their names (``loaders._compare.plans.Plan``)."""
    return run[0].run.rpartition("-")[2]


def _pairs(records: Sequence[Record]) -> set[tuple[str, str]]:
    """Return which strategies have run in which cases."""
    return {(each.strategy, str(sorted(each.case.items()))) for each in records}


def _has_amounts_to_come(newer: Sequence[Record], older: Sequence[Record]) -> bool:
    """Whether a run has not come to the other amounts of data yet, without which there is no law of memory.

    They begin after the rounds that start fresh (``loaders._compare.plans``).
    """
    amounts, known = _registry.find_question(newer[0].question).default_cases, [each.case for each in newer]
    lacks = any(each.case in amounts and each.case not in known for each in older)
    return lacks and newer[0].size == coverage.SIZE and max(each.round for each in newer) <= FRESH_ROUNDS


def _origin(run: Sequence[Record]) -> Origin:
    environment = surroundings(run)
    return Origin(
        environment.machine or "unknown",
        run[0].size,
        run[0].data,
        environment.python,
        environment.packages.get("tensorflow", ""),
        environment.cpu,
        run[0].schema,
    )


def _set(origin: Origin, commit: str, runs: dict[str, list[Record]], calibration: Calibration | None) -> ResultSet:
    return ResultSet(
        origin,
        commit,
        max(records[-1].started for records in runs.values()),
        [comparison(runs[name], calibration) for name in in_order(runs)],
        calibration,
        choices=[]
        if commit or origin.schema != SCHEMA
        else [each for name in in_order(runs) for each in choices(runs[name])],
    )


def in_order(names: Collection[str]) -> list[str]:
    """Return those questions in the order in which they are shown; the instruments come last."""
    questions = _registry.questions()
    return [name for name in sorted(questions, key=lambda name: questions[name].calibrates) if name in names]


def _newest_first(sets: Sequence[ResultSet]) -> list[ResultSet]:
    return sorted(sets, key=lambda each: each.started, reverse=True)
