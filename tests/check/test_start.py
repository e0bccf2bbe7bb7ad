from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from loaders import _registry
from loaders._check import equivalence, start
from loaders._cli import selftest
from loaders._compare import GIVE_UP_AFTER, Plan
from loaders._compare.plans import PACKAGE
from loaders._corpus import Corpus, open_corpus
from loaders._errors import InputError
from loaders._trial import Record, Trial, forks, log, pages, turns
from loaders._trial.metrics import MemoryTrace, Metrics
from loaders._trial.timing import MOST_EPOCHS
from tests.conftest import one_document
from tests.trial.test_log import OF_ANOTHER, RECORD

ROOT = Path(__file__).parents[2]

NAMES = ("numpy_to_numpy", "mixed_copy", "permutation_index", "numpy_to_list")
CASE = {"images": "500"}


@pytest.fixture
def planned(corpus: Corpus) -> Plan:
    return Plan("selection", NAMES, (CASE,), 1, corpus, 2**30, 60.0)


class StandIn:
    """Stands in for trials and servers: returns a record at once, or stops in the middle as Ctrl-C does."""

    def __init__(self) -> None:
        self.ran: list[tuple[int, str, str, int]] = []
        self.servers: list[StandInServer] = []
        self.stop_at: int | None = None
        self.fails: set[tuple[str, str]] = set()
        self.seconds: dict[str | tuple[str, int], float] = {}
        self.reason = ""

    def trial(self, trial: Trial, corpus: Corpus, *, server: Any = None, **more: Any) -> Record:
        if len(self.ran) == self.stop_at:
            raise KeyboardInterrupt
        assert server is None or (server is self.servers[-1] and not server.is_lost)
        way = "fresh" if server is None else "forked"
        self.ran.append((more["round"], trial.strategy, way, trial.seed))
        return msgspec.structs.replace(
            RECORD,
            strategy=trial.strategy,
            case=trial.case,
            round=more["round"],
            run=more["run"],
            process=way,
            seconds=self.seconds.get((trial.strategy, more["round"])) or self.seconds.get(trial.strategy, 1.0),
            status="failed" if (trial.strategy, way) in self.fails else "ok",
            metrics=Metrics(steady_time=1.0, memory_trace=MemoryTrace([1], [0.1], [5], None), steps=[1], walk=[2]),
        )

    def server(self, modules: Any) -> StandInServer:
        self.servers.append(StandInServer(self.reason))
        return self.servers[-1]


class StandInServer:
    def __init__(self, reason: str) -> None:
        self.reason, self.is_lost = reason, False

    def end(self) -> None:
        self.is_lost = True


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    found = StandIn()
    monkeypatch.setattr(forks, "Server", found.server)
    for module in (start, forks):
        monkeypatch.setattr(module, "run_trial", found.trial)
    return found


def test_each_strategy_runs_fresh_and_forked_next_to_each_other(
    planned: Plan, stand_in: StandIn, tmp_path: Path
) -> None:
    start.measure([planned], tmp_path / "log", rounds=6)
    pairs = list(zip(stand_in.ran[::2], stand_in.ran[1::2], strict=True))
    assert len(pairs) == 6 * len(NAMES)
    assert all((one[0], one[1], one[3]) == (other[0], other[1], other[3]) for one, other in pairs), "also the seed"
    assert all({one[2], other[2]} == {"fresh", "forked"} for one, other in pairs)
    assert {one[2] for one, _ in pairs} == {"fresh", "forked"}, "neither is always first"
    assert len({tuple(one[1] for one, _ in pairs if one[0] == index) for index in range(6)}) > 1, "orders"
    assert len({one[3] for one, _ in pairs}) == 6, "each round draws anew"
    assert len(stand_in.servers) == 6
    assert all(each.is_lost for each in stand_in.servers)


def test_an_interrupted_one_loses_nothing_and_goes_on(planned: Plan, stand_in: StandIn, tmp_path: Path) -> None:
    path = tmp_path / "box" / equivalence.NAME
    stand_in.stop_at = 11  # in the middle of a pair
    with pytest.raises(KeyboardInterrupt):
        start.measure([planned], path, rounds=2)
    assert len(log.read(path)) == 10, "of two that take turns, one alone says nothing"
    assert all(each.is_lost for each in stand_in.servers)
    stand_in.stop_at = None
    told: list[Record] = []
    records = start.measure([planned], path, rounds=2, done=told.append)
    assert sorted(Counter(each[:3] for each in stand_in.ran).values()) == [1] * 15 + [2]
    assert len(records) == len(told) == len(log.read(path)) == 2 * 2 * len(NAMES)
    before = len(stand_in.servers)
    start.measure([planned], path, rounds=2)
    assert len(stand_in.servers) == before, "nothing is left to do"
    start.measure([planned], path, rounds=3)
    assert len(log.read(path)) == 3 * 2 * len(NAMES), "further rounds are added"
    found = equivalence.judged(log.read(path))
    assert [each.rounds for each in found] == [3]
    assert all((each.metrics.memory_trace, each.metrics.steps) == (None, None) for each in log.read(path))


def test_code_that_is_edited_meanwhile_ends_it(
    planned: Plan, stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its trials would be logged as of the code before."""
    path, digest = tmp_path / "log", start.key
    monkeypatch.setattr(start, "key", lambda each: f"{digest(each)}{'' if len(stand_in.ran) < 4 else 'x'}")
    with pytest.raises(InputError, match="the code, what is installed or the number of cores has changed"):
        start.measure([planned], path, rounds=3)
    assert len(log.read(path)) == len(stand_in.ran) == 4


def test_a_full_disk_leaves_no_half_of_a_pair(
    planned: Plan, stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, append = tmp_path / "log", log.append

    def full(path: Path, *records: Record) -> None:
        append(path, *records)
        raise InputError("the disk is full; these were kept with its reserve")

    monkeypatch.setattr(log, "append", full)
    with pytest.raises(InputError):
        start.measure([planned], path, rounds=1)
    monkeypatch.setattr(log, "append", append)
    assert [each.process for each in log.read(path)] in (["fresh", "forked"], ["forked", "fresh"])
    records = start.measure([planned], path, rounds=1)
    assert records == log.read(path)
    assert set(Counter((each.strategy, each.process) for each in records).values()) == {1}


def test_trials_of_other_code_do_not_count(
    planned: Plan, stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start.measure([planned], tmp_path / "log", rounds=1)
    monkeypatch.setattr(start, "key", lambda _: "another")
    start.measure([planned], tmp_path / "log", rounds=1)
    assert len(stand_in.ran) == 2 * 2 * len(NAMES)


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("_trial/child.py", True),
        ("_trial/drain.py", True),  # imported by one that each trial runs
        ("_check/start.py", True),
        ("_check/partners.py", True),  # whose turns make the steady times
        ("questions/batching/pool.py", True),
        ("questions/service/__init__.py", False),
        ("_report/page.py", False),
        ("_check/equivalence.py", False),
    ],
)
def test_what_was_measured_counts_until_what_its_trials_run_changes(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, counts: bool
) -> None:
    planned = start.plan("training", corpus)  # which takes its loaders from batching
    before = start.key(planned)
    shutil.copytree(PACKAGE, copied := tmp_path / PACKAGE.name)
    monkeypatch.setattr("loaders._check.start.PACKAGE", copied)
    assert start.key(planned) == before
    with (copied / file).open("a") as changed:
        changed.write("x = 1\n")
    assert (start.key(planned) != before) is counts


def test_it_stops_after_a_pair_when_the_time_is_up(planned: Plan, stand_in: StandIn, tmp_path: Path) -> None:
    records = start.measure([planned], tmp_path / "log", rounds=9, seconds=5, clock=lambda: float(len(stand_in.ran)))
    assert len(records) == 6
    assert len(stand_in.servers) == 1


def test_a_strategy_that_keeps_failing_is_given_up(planned: Plan, stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.fails = {("mixed_copy", "forked")}
    start.measure([planned], tmp_path / "log", rounds=5)
    ran = Counter(each[1:3] for each in stand_in.ran)
    assert ran["mixed_copy", "forked"] == ran["mixed_copy", "fresh"] == GIVE_UP_AFTER
    assert ran["numpy_to_numpy", "forked"] == 5


def test_a_slow_strategy_is_compared_once_and_holds_up_no_others(
    planned: Plan, stand_in: StandIn, tmp_path: Path
) -> None:
    stand_in.seconds = {"mixed_copy": start.SLOW + 1}
    records = start.measure([planned], tmp_path / "log", rounds=5)
    ran = Counter(each[1] for each in stand_in.ran)
    assert (ran["mixed_copy"], ran["numpy_to_numpy"]) == (2, 10)
    (found,) = equivalence.judged(records)
    assert found.rounds == 5
    assert {each.strategy: each.pairs for each in found.strategies}["mixed_copy"] == 1
    assert "single pair" in equivalence.in_words("steady_time", found.strategies[0].figures["steady_time"])


def test_a_strategy_that_is_slow_in_a_later_round_goes_on(planned: Plan, stand_in: StandIn, tmp_path: Path) -> None:
    """It was given up, and the other strategies' later rounds, which it lacked, were not pooled."""
    stand_in.seconds = {("mixed_copy", 2): start.SLOW + 1}
    (found,) = equivalence.judged(start.measure([planned], tmp_path / "log", rounds=5))
    assert (found.rounds, found.pooled["steady_time"].pairs) == (5, 5)
    assert {each.pairs for each in found.strategies} == {5}


def test_a_server_that_cannot_serve_says_why_and_nothing_runs(planned: Plan, stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.reason = "its imports have started 3 threads"
    said: list[str] = []
    assert start.measure([planned], tmp_path / "log", rounds=2, say=said.append) == []
    assert said == ["selection: its trials cannot be forked: its imports have started 3 threads"]
    assert stand_in.servers[0].is_lost


def test_what_sets_variables_always_starts_fresh_and_is_left_out(corpus: Corpus) -> None:
    case = {"record": "tensor", "data": "x4"}
    setting = [name for name, each in _registry.variants("read_order").items() if each.variables]
    names = ("interleave", *setting)
    assert setting
    assert start.forked_in(Plan("read_order", names, (case,), 1, corpus, 2**30, 60.0)) == ["interleave"]


@pytest.mark.parametrize("question", sorted(_registry.questions()))
def test_a_question_is_compared_in_one_case_with_epochs_for_a_steady_time(question: str, corpus: Corpus) -> None:
    planned = start.plan(question, corpus)
    (case,) = planned.cases
    asked = _registry.find_question(question)
    assert planned.epochs >= start.EPOCHS
    assert {axis for axis in case if case[axis] != asked.default_case[axis]} <= {asked.size_axis}
    assert case in asked.cases


@pytest.mark.skipif(not pages.AVAILABLE, reason="the system cannot fork trials")
def test_real_trials_are_told_apart(corpus: Corpus, tmp_path: Path) -> None:
    planned = Plan("selection", NAMES[:1], (CASE,), 1, corpus, None, 60.0, epochs=4)
    records = start.measure([planned], tmp_path / "log", rounds=1)
    assert [each.status for each in records] == ["ok", "ok"], [each.message for each in records]
    assert {each.process for each in log.read(tmp_path / "log")} == {"fresh", "forked"}
    (found,) = equivalence.judged(records)
    assert found.pooled.keys() >= {"peak_memory", "retained_memory", "epoch_time"}
    assert found.verdict == "not shown yet", "its epochs have no steady time"


@pytest.mark.slow
@pytest.mark.skipif(not (pages.AVAILABLE and turns.AVAILABLE), reason="the system cannot fork trials, or give turns")
def test_the_epochs_of_real_trials_take_turns(tmp_path: Path) -> None:
    small = open_corpus("small")  # of a tiny one, an epoch has too few batches for a steady time
    planned = Plan("batching", ("load_all",), ({"data": "x4", "augment": "off"},), 1, small, None, 60.0, epochs=2)
    records = start.measure([planned], tmp_path / "log", rounds=1)
    assert [each.status for each in records] == ["ok", "ok"], [each.message for each in records]
    ran = [each.metrics.steady_epochs or 0 for each in records]
    assert min(ran) >= turns.FEW * MOST_EPOCHS, "several short epochs in each of many turns"
    times = [each.metrics.steady_time or 0.0 for each in records]
    assert 0.3 < times[0] / times[1] < 3


def test_where_nothing_can_be_forked_it_is_said_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "AVAILABLE", False)
    done = CliRunner().invoke(selftest.command, ["--start", "--questions", "batching"])
    assert done.exit_code == 0, done.output
    assert f"batching: skipped: {start.NO_FORKS}." in done.output
    done = CliRunner().invoke(selftest.command, ["--start", "--json"])
    assert done.exit_code == 0
    assert {each["skipped"] for each in one_document(done.stdout)} == {start.NO_FORKS}


def test_published_trials_are_forks_where_these_are_shown_to_measure_the_same() -> None:
    """Which questions start fresh is declared (``Question.fresh``), and follows from the newest pairs that decide."""
    files = ROOT.glob(f"results/reference*/{equivalence.NAME}")
    found = sorted((each for file in files for each in equivalence.judged(log.read(file))), key=lambda one: one.started)
    asked = {each.question for each in found}
    assert len(asked) >= 10
    decided = {each.question: each.verdict for each in found if each.verdict in ("same", "different")}
    shown = {question for question, verdict in decided.items() if verdict == "same"}
    assert {question for question in asked if _registry.find_question(question).fresh} == asked - shown


def test_the_command_joins_no_figures_of_two_processors(
    corpus: Corpus, stand_in: StandIn, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loaders._cli.options.open_corpus", lambda *_, **__: corpus)
    monkeypatch.setattr(pages, "AVAILABLE", True)
    log.append(results / "tested" / equivalence.NAME, msgspec.structs.replace(RECORD, environment=OF_ANOTHER))
    done = CliRunner().invoke(selftest.command, ["--start", "--questions", "caching"])
    assert isinstance(done.exception, InputError)
    assert "another processor" in str(done.exception)
    assert stand_in.ran == []


def test_the_command_runs_what_is_forked_and_says_what_is_not(
    corpus: Corpus, stand_in: StandIn, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loaders._cli.options.open_corpus", lambda *_, **__: corpus)
    monkeypatch.setattr(pages, "AVAILABLE", True)
    run = ["--start", "--questions", "caching", "--questions", "selection", "--rounds", "2"]
    done = CliRunner().invoke(selftest.command, run)
    assert done.exit_code == 0, done.output
    assert f"selection: skipped: {start.NO_TENSORFLOW}." in done.output
    assert {each.status for each in log.read(results / "tested" / equivalence.NAME)} == {"ok"}
    forked = {name for name, each in _registry.variants("caching").items() if not each.variables}
    assert {each[1] for each in stand_in.ran} == forked
    stand_in.fails = {(name, "forked") for name in _registry.variants("caching")}
    (results / "tested" / equivalence.NAME).unlink()
    done = CliRunner().invoke(selftest.command, run)
    assert done.exit_code == 1, "what fails only in forks differs"
    assert CliRunner().invoke(selftest.command, ["--questions", "caching"]).exit_code == 2


def test_a_question_of_which_nothing_ran_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOADERS_RESULTS", str(tmp_path))
    monkeypatch.setattr(pages, "AVAILABLE", True)
    monkeypatch.setattr(start, "measure", lambda *_, **__: [])
    (found,) = selftest._start(["batching"], 2, 60.0)
    assert (found.question, found.verdict, found.skipped) == ("batching", "skipped", start.NONE_RAN)


def test_without_turns_both_trials_end_with_their_last_batch() -> None:
    """What dropping an iterator takes would be in some rounds, and not in those whose epochs took turns."""
    closed = msgspec.structs.replace(RECORD, metrics=Metrics(steady_time=1.0, closing_time=0.25))
    assert start._steady(closed, None) == {"steady_time": 0.75}
    assert start._steady(closed, 0.5) == {"steady_time": 0.5}
    assert start._steady(msgspec.structs.replace(RECORD, metrics=Metrics()), None) == {}
