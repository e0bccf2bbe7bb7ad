"""What a comparison runs, in which order, from which server, and how it goes on; no trial is real here."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import msgspec
import pytest

from loaders import _claims, _compare, _registry, _rows
from loaders._claims import Claim
from loaders._claims._declare import Found
from loaders._claims._evidence import Figures, below, part_of
from loaders._compare import Plan, plans, running, schedule
from loaders._compare.plans import TURNS
from loaders._compare.schedule import GIVE_UP_AFTER
from loaders._corpus import Corpus
from loaders._errors import InputError
from loaders._trial import Record, Trial, forks, log, machine, pages
from loaders._trial.launch import LostServerError
from loaders._trial.metrics import Metrics
from tests.trial.test_log import OF_ANOTHER, RECORD

STRATEGIES = ("numpy_to_numpy", "mixed_copy", "permutation_index")


@pytest.fixture
def planned(corpus: Corpus) -> Plan:
    return Plan("selection", STRATEGIES, ({"images": "500"}, {"images": "2000"}), 3, corpus, 2**30, 60.0)


class Runner:
    """Stands in for the process: returns a record at once, or stops in the middle as Ctrl-C does."""

    def __init__(self) -> None:
        self.ran: list[tuple[int, str, str]] = []
        self.stop_at: int | None = None
        self.fails: set[str] = set()

    def __call__(
        self,
        trial: Trial,
        corpus: Corpus,
        *,
        run: str,
        round: int,  # noqa: A002
        planned: int,
        server: object = None,
        **_: object,
    ) -> Record:
        if len(self.ran) == self.stop_at:
            raise KeyboardInterrupt
        self.ran.append((round, trial.strategy, " ".join(trial.case.values())))
        return msgspec.structs.replace(
            RECORD,
            question=trial.question,
            strategy=trial.strategy,
            case=trial.case,
            round=round,
            run=run,
            seed=trial.seed,
            planned=planned,
            status="failed" if trial.strategy in self.fails else "ok",
            process="forked" if server else "fresh",
            started=datetime.now(UTC).isoformat(),
        )


def stand_in_for_trials(monkeypatch: pytest.MonkeyPatch, runner: Callable[..., Record]) -> None:
    """Call this instead of running a trial, fresh or forked, and start no server, whose imports take seconds."""
    for module in (running, forks):
        monkeypatch.setattr(module, "run_trial", runner)
    monkeypatch.setattr(forks, "Server", Server)


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Runner:
    stand_in = Runner()
    stand_in_for_trials(monkeypatch, stand_in)
    return stand_in


def test_a_round_runs_one_case_at_a_time_in_an_order_shuffled_afresh(planned: Plan, runner: Runner) -> None:
    records = _compare.run(dataclasses.replace(planned, rounds=6))
    assert set(Counter(runner.ran).values()) == {1}
    assert len(records) == 6 * 3 * 2
    assert {each.planned for each in records} == {6}
    orders = [[each[1:] for each in runner.ran if each[0] == index] for index in range(6)]
    assert [each[0] for each in runner.ran] == [index for index in range(6) for _ in range(6)]
    for order in orders:
        assert len({images for _, images in order[:3]}) == len({images for _, images in order[3:]}) == 1
    assert len({order[0][1] for order in orders}) == 2, "either case comes first"
    assert len({tuple(order) for order in orders}) > 4


def test_strategies_of_a_round_share_a_seed_and_rounds_do_not(planned: Plan, runner: Runner) -> None:
    seeds = {(record.round, record.seed) for record in _compare.run(planned)}
    assert len(seeds) == len({seed for _, seed in seeds}) == 3


@pytest.mark.parametrize("stop_at", [0, 1, 7, 17])
def test_an_interrupted_run_loses_nothing_and_is_continued(planned: Plan, runner: Runner, stop_at: int) -> None:
    runner.stop_at = stop_at
    with pytest.raises(KeyboardInterrupt):
        _compare.run(planned)
    assert len(log.read(log.log_path("tested"))) == stop_at
    runner.stop_at = None
    said: list[str] = []
    records = _compare.run(planned, say=said.append)
    assert set(Counter(runner.ran).values()) == {1}
    assert len(records) == 18
    assert len({record.run for record in records}) == 1
    assert bool(said) == (stop_at > 0)
    assert log.read(log.log_path("tested")) == records


def test_a_finished_run_is_measured_anew(planned: Plan, runner: Runner) -> None:
    said: list[str] = []
    first = _compare.run(planned, say=said.append)
    assert said == []
    _compare.run(planned, say=said.append)
    assert said == [f"measuring anew: the run of {first[0].started} is complete, or older than 24 hours"]
    assert len(runner.ran) == 36


def _age(first: float, later: float | None = None) -> None:
    """Make the first record of the log so many hours old, and the others as old, or ``later``."""
    path = log.log_path("tested")
    ages = itertools.chain([first], itertools.repeat(first if later is None else later))
    records = [
        msgspec.structs.replace(each, started=(datetime.now(UTC) - timedelta(hours=age)).isoformat())
        for each, age in zip(log.read(path), ages, strict=False)
    ]
    path.unlink()
    log.append(path, *records)


@pytest.mark.parametrize("anew", [True, False])
@pytest.mark.parametrize(("first", "later", "goes_on"), [(23, 23, True), (25, 25, False), (25, 1, False)])
def test_an_unfinished_run_goes_on_for_a_day(
    planned: Plan, runner: Runner, first: float, later: float, *, goes_on: bool, anew: bool
) -> None:
    runner.stop_at = 4
    with pytest.raises(KeyboardInterrupt):
        _compare.run(planned)
    _age(first, later)
    runner.stop_at = None
    assert len(_compare.run(planned, anew=anew)) == 18
    assert len(runner.ran) == (18 if goes_on else 4 + 18)


def test_a_finished_run_counts_however_old_where_nothing_is_to_be_measured_anew(planned: Plan, runner: Runner) -> None:
    first = dataclasses.replace(planned, cases=planned.cases[:1])
    assert len(_compare.run(first)) == len(runner.ran) == 9
    _age(10_000)
    assert len(_compare.run(first, anew=False)) == len(runner.ran) == 9
    assert len(_compare.run(planned, anew=False)) == 18, "of the other case something is left, which is too late"
    assert len(runner.ran) == 9 + 18


def test_other_cases_continue_a_run(planned: Plan, runner: Runner) -> None:
    first = _compare.run(dataclasses.replace(planned, cases=planned.cases[:1]))
    records = _compare.run(planned)
    assert records[:9] == first
    assert [each.case["images"] for each in records] == ["500"] * 9 + ["2000"] * 9
    assert len({each.run for each in records}) == 1
    assert set(Counter(runner.ran).values()) == {1}


@pytest.mark.parametrize(
    "other", [{"deadline": 61.0}, {"memory_limit": 2**31}, {"fresh": True}, {"staged": True}, {"epochs": 2}]
)
def test_a_run_of_another_plan_is_not_continued(planned: Plan, runner: Runner, other: dict[str, Any]) -> None:
    runner.stop_at = 4
    with pytest.raises(KeyboardInterrupt):
        _compare.run(planned)
    runner.stop_at = None
    before, records = len(runner.ran), _compare.run(dataclasses.replace(planned, **other))
    assert len(runner.ran) == before + len(records)


def test_a_run_with_other_images_is_not_continued(planned: Plan, runner: Runner) -> None:
    runner.stop_at = 4
    with pytest.raises(KeyboardInterrupt):
        _compare.run(planned)
    runner.stop_at = None
    other = msgspec.structs.replace(planned.corpus.manifest, key="other photographs")
    _compare.run(dataclasses.replace(planned, corpus=dataclasses.replace(planned.corpus, manifest=other)))
    assert len(runner.ran) == 4 + 18


@pytest.mark.parametrize(
    ("what", "now"),
    [("packages", {"tensorflow": "another"}), ("variables", {"MALLOC_ARENA_MAX": "1"}), ("cores", 99)],
)
def test_a_run_is_not_continued_where_it_would_measure_something_else(
    planned: Plan, runner: Runner, monkeypatch: pytest.MonkeyPatch, what: str, now: Any
) -> None:
    runner.stop_at = 4
    with pytest.raises(KeyboardInterrupt):
        _compare.run(planned)
    runner.stop_at = None
    monkeypatch.setattr(machine, what, lambda: now)
    _compare.run(planned)
    assert len(runner.ran) == 4 + 18


def test_trials_of_two_processors_are_not_joined_under_one_name(planned: Plan, runner: Runner) -> None:
    log.append(log.log_path("tested"), msgspec.structs.replace(RECORD, environment=OF_ANOTHER))
    with pytest.raises(InputError, match="another processor"):
        _compare.run(planned)
    assert runner.ran == []


@pytest.mark.slow
def test_more_rounds_or_another_precision_continue_a_run(planned: Plan, runner: Runner) -> None:
    _compare.run(planned)
    records = _compare.run(dataclasses.replace(planned, rounds=5, until=0.01))
    assert len(runner.ran) == len(records) == 5 * 6
    assert len({each.run for each in records}) == 1


def test_the_key_changes_with_the_code_that_is_measured(
    planned: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("a = 1")
    with_mine = Plan("selection", STRATEGIES, planned.cases, 3, planned.corpus, 2**30, 60.0, (str(mine),))
    before = with_mine.key
    assert before != planned.key
    mine.write_text("a = 2")
    assert with_mine.key != before
    monkeypatch.setattr(plans, "PACKAGE", tmp_path)
    before = planned.key
    mine.write_text("a = 3")
    assert planned.key != before, "all of the package is in it"


def test_a_strategy_that_keeps_failing_is_not_run_for_ever(planned: Plan, runner: Runner) -> None:
    runner.fails = {"mixed_copy"}
    records = _compare.run(planned)
    failed = Counter((each.strategy, each.case["images"]) for each in records if each.status == "failed")
    assert set(failed.values()) == {GIVE_UP_AFTER}
    assert sum(each.status == "ok" for each in records) == 12
    assert len(_compare.run(planned)) == len(records), "a run that gave up is finished, not interrupted"


def test_each_record_is_in_the_log_before_it_is_shown(planned: Plan, runner: Runner) -> None:
    seen: list[Record] = []

    def shown(record: Record) -> None:
        assert log.read(log.log_path("tested"))[-1] == record
        seen.append(record)

    assert _compare.run(planned, done=shown) == seen


@pytest.mark.parametrize(("size", "cases", "rounds"), [("tiny", 1, 2), ("small", 1, 3), ("full", 2, 24)])
def test_a_plan_follows_from_the_size(corpus: Corpus, size: str, cases: int, rounds: int) -> None:
    manifest: Any = msgspec.structs.replace(corpus.manifest, size=size)
    planned = _compare.plan("selection", Corpus(corpus.root, manifest))
    assert (len(planned.cases), planned.rounds) == (cases, rounds)
    assert (planned.until, planned.whole_rounds) == ((0.05, 8) if size == "full" else (None, rounds))
    assert 0 < (planned.trial("list_to_list", {}, 1).memory_limit or 0) < 2**50
    assert planned.strategies[0] == "list_to_list"


class Timed(Runner):
    """Trials take the seconds of their strategy, times noise; every trial takes two seconds of a simulated clock."""

    def __init__(self, seconds: dict[str, float], noise: float = 0.01) -> None:
        super().__init__()
        self.seconds, self.noise, self.now = seconds, noise, 0.0

    def clock(self) -> float:
        return self.now

    def __call__(self, trial: Trial, corpus: Corpus, **more: Any) -> Record:
        record = super().__call__(trial, corpus, **more)
        self.now += 2
        random_ = random.Random(f"{trial.question} {trial.strategy} {trial.case} {more['round']}")
        takes = self.seconds.get(trial.strategy, 1.0) * (1 + self.noise * random_.uniform(-1, 1))
        metrics = msgspec.structs.replace(record.metrics, epoch_time=takes, sample_time=takes, peak_memory=2**26)
        return msgspec.structs.replace(record, question=trial.question, metrics=metrics, seconds=2.0)


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Timed:
    stand_in = Timed({"numpy_to_numpy": 9.0, "mixed_copy": 5.0, "permutation_index": 1.0})
    stand_in_for_trials(monkeypatch, stand_in)
    return stand_in


def test_rounds_beyond_the_eighth_go_to_what_may_be_the_fastest_and_what_is_undecided(
    planned: Plan, timed: Timed
) -> None:
    _compare.run(dataclasses.replace(planned, rounds=10))
    ran = Counter(strategy for _, strategy, _ in timed.ran)
    assert ran == {"permutation_index": 20, "numpy_to_numpy": 20, "mixed_copy": 16}  # the baseline, ratios are taken to
    timed.ran.clear()
    timed.seconds["mixed_copy"], timed.noise = 9.2, 0.5
    other = dataclasses.replace(planned, rounds=10, deadline=61.0)
    timed.stop_at = 50
    with pytest.raises(KeyboardInterrupt):
        _compare.run(other)
    timed.stop_at = None
    _compare.run(other)  # continued, and the same go on
    ran = Counter(strategy for _, strategy, _ in timed.ran)
    assert ran["mixed_copy"] == 20, "it is not known whether it is slower than the baseline"


@pytest.mark.parametrize(("slower", "goes_on"), [(1.25, True), (1.6, False)])
def test_a_difference_that_only_just_shows_goes_on(slower: float, *, goes_on: bool) -> None:
    """With a look every few rounds, one of them would sooner or later show a difference that is none."""
    baseline = _registry.baseline("selection").name
    records = []
    for index in range(8):
        for name, takes in ((baseline, 1.0), ("mixed_copy", slower * math.exp(0.2 * (-1) ** index))):
            metrics = msgspec.structs.replace(RECORD.metrics, epoch_time=takes, sample_time=takes, peak_memory=2**26)
            case = {"images": "500"}
            records.append(
                msgspec.structs.replace(RECORD, strategy=name, case=case, round=index, run="r", metrics=metrics)
            )
    (row,) = [each for each in _rows.comparison(records).rows if each.strategy == "mixed_copy"]
    assert row.ratio
    assert row.ratio.verdict == "more", "it is decided"
    assert schedule.goes_on(records, until=0.5) == ({baseline, "mixed_copy"} if goes_on else set())


@pytest.mark.parametrize("failures", [1, schedule.GIVE_UP_AFTER])
def test_what_was_given_up_keeps_nobody_waiting(planned: Plan, failures: int) -> None:
    """It is not run again, so its baseline would run alone, in every round that is left."""
    baseline = _registry.baseline("selection").name
    records = []
    for index in range(8):
        for name, takes in ((baseline, 1.0), ("mixed_copy", math.exp(0.3 * (-1) ** index))):
            metrics = msgspec.structs.replace(RECORD.metrics, epoch_time=takes, sample_time=takes, peak_memory=2**26)
            record = msgspec.structs.replace(RECORD, strategy=name, case=planned.cases[0], round=index, run="r")
            is_bad = name == "mixed_copy" and index < failures
            records.append(msgspec.structs.replace(record, metrics=metrics, status="failed" if is_bad else "ok"))
    goes_on = failures < schedule.GIVE_UP_AFTER
    assert schedule.goes_on(records, until=0.5) == ({baseline, "mixed_copy"} if goes_on else set())
    assert bool(_compare.open_ratios(planned, records)) is goes_on


def test_looks_go_on_however_many_rounds_were_asked_for() -> None:
    looks = [schedule._last_look(index) for index in range(8, 50)]
    assert looks == sorted(looks)
    assert sorted(set(looks)) == [8, 12, 16, 20, 28, 36, 44]
    assert all(look <= index < look + schedule.LATER for index, look in enumerate(looks, 8))


@pytest.mark.parametrize(
    ("apart", "until", "staged", "goes_on"),
    [(0.0, 0.5, False, True), (0.5, 0.5, False, False), (0.0, None, False, False), (0.0, 0.5, True, False)],
)
def test_what_an_undecided_claim_rests_on_goes_on(
    planned: Plan, monkeypatch: pytest.MonkeyPatch, apart: float, until: float | None, *, staged: bool, goes_on: bool
) -> None:
    """Neither of the two may be the fastest, and both surely differ from the baseline."""

    def differ(figures: Figures) -> Found:
        """One takes less time than the other."""
        return [part_of(figures.ratio("selection", "mixed_copy", "list_to_list", "times"), below())], "said"

    monkeypatch.setattr(_claims, "claims", lambda: [Claim("X1", "selection", "they differ", "rule", differ)])
    case = {"images": "500"}
    records = []
    for index in range(8):
        noise = 0.1 * (-1) ** (index // 2)
        takes = {
            "permutation_index": 1.0,
            "numpy_to_numpy": 20.0,
            "mixed_copy": 5 * math.exp(noise + apart),
            "list_to_list": 5 * math.exp(-noise),
        }
        for name, seconds in takes.items():
            metrics = msgspec.structs.replace(
                RECORD.metrics, epoch_time=seconds, sample_time=seconds, peak_memory=2**26
            )
            record = msgspec.structs.replace(RECORD, strategy=name, case=case, round=index, run="r", metrics=metrics)
            records.append(record)
    strategies = tuple(dict.fromkeys(each.strategy for each in records))
    plan = dataclasses.replace(planned, strategies=strategies, cases=(case,), rounds=24, until=until, staged=staged)
    due = {name for each in schedule.of_round([plan], {"selection": records}, 8, {}) for name in each.strategies}
    assert ({"mixed_copy", "list_to_list"} <= due) is goes_on
    found = schedule.claimed({"selection": records}, 8)
    later = [msgspec.structs.replace(each, round=each.round + 8) for each in records]
    assert schedule.claimed({"selection": [*records, *later]}, 8) == found, "they are looked at once"


def test_a_claim_that_rests_on_two_questions_is_pursued_where_both_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def differ(figures: Figures) -> Found:
        """One takes less time than the other."""
        figures.row("caching", "no_cache")
        return [part_of(figures.ratio("selection", "mixed_copy", "numpy_to_numpy", "times"), below())], "said"

    monkeypatch.setattr(_claims, "claims", lambda: [Claim("X1", "selection", "they differ", "rule", differ)])
    cases = {name: _registry.find_question(name).default_case for name in ("selection", "caching")}
    names = [("selection", "mixed_copy"), ("selection", "numpy_to_numpy"), ("caching", "no_cache")]
    records: dict[str, list[Record]] = {"selection": [], "caching": []}
    for index in range(8):
        for question, name in names:
            seconds = math.exp(0.1 * (-1) ** index * (name == "mixed_copy"))
            metrics = msgspec.structs.replace(RECORD.metrics, epoch_time=seconds, sample_time=seconds)
            made = msgspec.structs.replace(
                RECORD, question=question, strategy=name, case=cases[question], round=index, run="r", metrics=metrics
            )
            records[question].append(made)
    assert schedule.claimed({"selection": records["selection"]}, 8) == set(), "it is not judged"
    found = schedule.claimed(records, 8)
    assert found == {f"{question} {name} {sorted(cases[question].items())}" for question, name in names}


def test_what_a_bug_report_leaves_open_goes_on_though_no_loader_is_chosen(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = _compare.plan("known_issues", corpus, until=0.05)
    records = [
        msgspec.structs.replace(RECORD, question="known_issues", strategy=name, case=case, round=index, run="r")
        for index in range(8)
        for case in planned.cases
        for name in planned.strategies_in(case)
    ]
    case = planned.cases[0]
    name = planned.strategies_in(case)[0]
    monkeypatch.setattr(schedule, "claimed", lambda *_: {f"known_issues {name} {sorted(case.items())}"})
    found = list(schedule.of_round([planned], {"known_issues": records}, 8, {}))
    assert [(each.case, each.strategies) for each in found] == [(case, [name])]


def test_those_that_keep_nothing_go_on_until_it_is_known_which_of_them_is_fastest() -> None:
    """Where the data does not fit, one of them is recommended, whatever keeps all of it."""
    alike = ("tfdata_numpy_function", "path_generator_pool")
    takes = {"path_generator": (1.0, 1), "load_all": (0.001, 1), alike[0]: (0.4, 1), alike[1]: (0.4, -1)}
    case = _registry.find_question("batching").default_case
    records = []
    for index in range(8):
        for name, (steady, phase) in takes.items():
            wobbling = steady * math.exp((0.1 * phase if steady == 0.4 else 0.01) * (-1) ** (index // 2))
            first = 3.0 if name == "load_all" else wobbling
            metrics = Metrics(epoch_time=first, steady_time=wobbling, start_time=first - wobbling, peak_memory=2**26)
            record = msgspec.structs.replace(RECORD, question="batching", strategy=name, case=case, round=index)
            records.append(msgspec.structs.replace(record, run="r", metrics=metrics))
    rows = {each.strategy: each for each in _rows.comparison(records).rows}
    assert rows["load_all"].in_best
    assert not any(rows[name].in_best for name in alike)
    assert schedule.goes_on(records, until=0.5) == set(alike)


@pytest.mark.parametrize(("wobble", "stated", "goes_on"), [(0.3, True, True), (0.01, True, False), (0.3, False, False)])
def test_a_total_that_a_headline_states_goes_on_until_it_is_known_well(
    wobble: float, *, stated: bool, goes_on: bool
) -> None:
    """Steady epochs are known within 1 %, and the total of what is loaded once rests on how long that took."""
    case = _registry.find_question("batching").default_cases[0 if stated else -1]
    records = []
    for index in range(8):
        sign = (-1) ** index
        for name, steady, first in (("path_generator", 1.0, 1.0), ("load_all", 0.01, 3 * math.exp(wobble * sign))):
            metrics = Metrics(
                epoch_time=first,
                steady_time=steady * math.exp(0.002 * sign * (1 if first == 1.0 else -1)),
                start_time=first - steady,
                peak_memory=2**26 if first == 1.0 else 2**28,
            )
            record = msgspec.structs.replace(RECORD, question="batching", strategy=name, case=case, round=index)
            records.append(msgspec.structs.replace(record, run="r", metrics=metrics))
    assert schedule.goes_on(records, until=0.05) == ({"path_generator", "load_all"} if goes_on else set())


def test_a_precision_ends_a_case_whose_ratios_reach_it_and_24_rounds_end_all(planned: Plan, timed: Timed) -> None:
    whole = dataclasses.replace(planned, rounds=24, until=0.05)
    assert len(_compare.run(whole)) == 8 * 6, "noise of one per cent leaves nothing open"
    timed.ran.clear()
    timed.noise = 0.9
    noisy = dataclasses.replace(whole, deadline=61.0)
    records = _compare.run(noisy)
    assert max(each.round for each in records) == 23
    left = _compare.open_ratios(noisy, records)
    assert left
    pairs = Counter((each.figure, str(each.case), frozenset((each.strategy, each.other))) for each in left)
    assert set(pairs.values()) == {1}, "each pair is named once"
    assert all(each.rounds is None or each.rounds > 24 for each in left), "it says how many more rounds it would need"


def _staged(corpus: Corpus, *questions: str, minutes: float = 4, fresh: bool = True) -> list[Plan]:
    small = Corpus(corpus.root, msgspec.structs.replace(corpus.manifest, size="small"))
    return [_compare.plan(each, small, minutes=minutes, fresh=fresh) for each in questions]


def test_a_budget_goes_to_quick_strategies_then_to_all_and_then_to_what_is_open(corpus: Corpus, timed: Timed) -> None:
    (planned,) = _staged(corpus, "selection")
    known, quick = _registry.variants("selection"), set(_registry.quick("selection"))
    timed.seconds = {name: 1.2**place for place, name in enumerate(known)}
    timed.noise = 0.2
    found = _compare.run_together([planned], seconds=1e9, clock=timed.clock)["selection"]
    ran = {index: {each.strategy for each in found if each.round == index} for index in range(24)}
    assert ran[0] == ran[1] == ran[2] == quick
    assert ran[3] == set(known)
    assert ran[4] < set(known)
    assert ran[4] == ran[5], "between two looks nothing is judged"
    assert [{each.planned for each in found if each.round == index} for index in (0, 3)] == [{len(quick)}, {len(known)}]


def test_every_strategy_has_its_turn_before_any_tells_how_memory_grows(corpus: Corpus) -> None:
    planned = _staged(corpus, "caching", "read_order")
    last = [each for each in schedule.blocks(planned, {"caching": [], "read_order": []}) if each.index == 3]
    assert [each.plan.question for each in last[:2]] == ["caching", "read_order"]
    assert {each.case["data"] for each in last[:2]} == {"x16"}
    assert sorted(each.case["data"] for each in last[2:]) == ["x1", "x1", "x4", "x4"]
    for each in last[:2]:
        assert set(each.strategies) == set(each.plan.strategies_in(each.case))


def test_a_large_budget_goes_to_all_strategies_before_quick_ones_run_again(corpus: Corpus, timed: Timed) -> None:
    planned = _staged(corpus, "caching", "selection", minutes=TURNS)
    order = [(each.index, each.plan.question, each.case) for each in schedule.blocks(planned, defaultdict(list))]
    assert [each[:2] for each in order[:4]] == [(0, "caching"), (0, "selection"), (3, "caching"), (3, "selection")]
    assert all(each[2] in [plan.cases[0] for plan in planned] for each in order[:4])
    assert [index for index, _, case in order[4:] if case.get("data") != "x16"] == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
    _compare.run_together(planned, seconds=1e9, clock=timed.clock)
    assert set(Counter(timed.ran).values()) == {1}


@pytest.mark.parametrize("budgets", [(TURNS, 4.0), (4.0, TURNS)])
def test_a_budget_goes_on_where_one_of_another_order_has_ended(
    corpus: Corpus, timed: Timed, budgets: tuple[float, float]
) -> None:
    for minutes, seconds in zip(budgets, (50.0, 1e9), strict=True):
        planned = _staged(corpus, "caching", "selection", minutes=minutes)
        found = _compare.run_together(planned, seconds=seconds, clock=timed.clock)
    assert set(Counter(timed.ran).values()) == {1}
    for each in planned:
        counts = Counter(record.round for record in found[each.question] if record.round < each.whole_rounds)
        assert counts.total() == each.trials


def test_questions_advance_together_and_calibration_stays_cheap(corpus: Corpus, timed: Timed) -> None:
    planned = _staged(corpus, "calibration", "selection", "resize")
    timed.noise = 0.5
    _compare.run_together(planned, seconds=1e9, clock=timed.clock)
    order = [(index, strategy) for index, strategy, *_ in timed.ran]
    assert [index for index, _ in order] == sorted(index for index, _ in order)
    calibrating = [index for index, strategy in order if strategy in _registry.variants("calibration")]
    assert max(calibrating) == 3
    assert max(index for index, _ in order) > 3


def test_a_budget_reaches_every_strategy_however_few_rounds_are_asked_for(corpus: Corpus, timed: Timed) -> None:
    small = Corpus(corpus.root, msgspec.structs.replace(corpus.manifest, size="small"))
    planned = _compare.plan("selection", small, minutes=4, fresh=True, rounds=1)
    found = _compare.run_together([planned], seconds=1e9, clock=timed.clock)["selection"]
    assert {each.strategy for each in found} == set(_registry.variants("selection"))


def test_a_budget_begins_with_what_needs_most_trials(corpus: Corpus) -> None:
    order = [each.question for each in _compare.weightiest_first(_staged(corpus, *_registry.questions()))]
    assert order[0] == "calibration"
    assert order.index("batching") < order.index("caching") < order.index("selection")


def test_with_all_amounts_that_the_law_of_memory_needs(corpus: Corpus) -> None:
    (planned,) = _staged(corpus, "caching")
    first = [each for each in schedule.blocks([planned], {"caching": []}) if each.index == 0]
    assert {each.case["data"] for each in first} == {"x1", "x4", "x16"}
    assert all(set(each.strategies) == set(_registry.quick("caching")) for each in first)


def test_a_time_budget_ends_between_trials_and_the_same_command_goes_on(corpus: Corpus, timed: Timed) -> None:
    planned = _staged(corpus, "calibration", "selection")
    everything = _compare.run_together(planned, seconds=60, clock=timed.clock)
    assert timed.now == 60
    assert _compare.is_left(planned, everything)
    said: list[str] = []
    more = _compare.run_together(planned, seconds=21.1, clock=timed.clock, say=said.append)
    assert timed.now == 82, "a trial of two seconds is begun when more than one is left"
    assert "30 trials are there" in said[0]
    assert {len({each.run for each in records}) for records in more.values()} == {1}
    _compare.run_together(planned, clock=timed.clock)
    assert set(Counter(timed.ran).values()) == {1}


def test_nothing_is_begun_that_would_end_long_after_the_budget(corpus: Corpus, timed: Timed) -> None:
    (planned,) = _staged(corpus, "selection")
    _compare.run_together([planned], seconds=20.9, clock=timed.clock)
    assert timed.now == 20, "0.9 seconds are left, and a trial takes 2"


def test_each_call_gets_further_however_long_the_next_trial_takes(corpus: Corpus, timed: Timed) -> None:
    (planned,) = _staged(corpus, "selection")
    for done in range(1, 8):
        _compare.run_together([planned], seconds=0.9, clock=timed.clock)
        assert len(timed.ran) == done, "each takes two seconds"


def test_code_that_changes_meanwhile_ends_a_comparison(
    planned: Plan, timed: Timed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows would be measured of other code than its records say."""
    mine = tmp_path / "mine.py"
    mine.write_text("one = 1")
    plan = dataclasses.replace(planned, outside=(str(mine),))

    def edits(trial: Trial, corpus: Corpus, **more: Any) -> Record:
        if len(timed.ran) == 7:
            mine.write_text("one = 2")
        return timed(trial, corpus, **more)

    stand_in_for_trials(monkeypatch, edits)
    with pytest.raises(InputError, match="the code, what is installed or the number of cores has changed"):
        _compare.run(plan)
    kept = log.read(log.log_path("tested"))
    assert len(kept) == 7, "it has ended with the trial that was under way, which may have been of either"
    found = _compare.run(plan)
    assert len(found) == 18
    assert {each.run for each in found}.isdisjoint(each.run for each in kept)


def test_a_finished_question_is_kept_while_another_is_left(corpus: Corpus, timed: Timed) -> None:
    calibration, selection = _staged(corpus, "calibration", "selection")
    _compare.run(calibration)
    before = len(timed.ran)
    found = _compare.run_together([calibration, selection], clock=timed.clock)
    assert len(timed.ran) == before + len(found["selection"])
    _compare.run_together([calibration, selection], clock=timed.clock)
    assert len(timed.ran) == 2 * (before + len(found["selection"])), "all of it was there, so all is measured anew"


class Server:
    """Stands in for a server."""

    begun: ClassVar[list[Server]] = []
    reasons: ClassVar[list[str]] = []

    def __init__(self, modules: dict[str, set[str]]) -> None:
        self.modules, self.is_lost = modules, False
        self.reason = self.reasons.pop(0) if self.reasons else ""
        self.begun.append(self)

    def end(self) -> None:
        self.is_lost = True


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> type[Server]:
    """Trials of ``planned`` run in forks, of servers that are none."""
    monkeypatch.setattr(Server, "begun", [])
    monkeypatch.setattr(Server, "reasons", [])
    monkeypatch.setattr(forks, "Server", Server)
    monkeypatch.setattr(pages, "AVAILABLE", True)
    monkeypatch.setattr(Plan, "groups", property(lambda self: {(): {f"tensorflow.{self.question}": set[str]()}}))
    return Server


def test_one_server_serves_a_round_of_all_questions(corpus: Corpus, runner: Runner, served: type[Server]) -> None:
    two = [_compare.plan(each, corpus, rounds=3) for each in ("selection", "resize")]
    records = [each for of_question in _compare.run_together(two).values() for each in of_question]
    assert {each.process for each in records} == {"forked"}
    assert [set(each.modules) for each in served.begun] == [{"tensorflow.selection", "tensorflow.resize"}] * 3
    assert all(each.is_lost for each in served.begun), "none is left"


def test_a_round_that_goes_on_after_the_turns_has_new_servers(
    corpus: Corpus, runner: Runner, served: type[Server]
) -> None:
    planned = _staged(corpus, "caching", "selection", minutes=TURNS, fresh=False)
    records = _compare.run_together([dataclasses.replace(each, rounds=4) for each in planned])
    assert len(served.begun) == 6, "rounds 0, 3, 0, 1, 2, 3"
    ran = [(each.process, each.round) for each in records["caching"] if each.status == "ok"]
    assert {process for process, _ in ran} == {"forked"}
    assert list(dict.fromkeys(index for _, index in ran)) == [0, 3, 1, 2]
    assert len(ran) == next(each.trials for each in planned if each.question == "caching")


def test_a_fresh_plan_starts_no_server(planned: Plan, runner: Runner, served: type[Server]) -> None:
    assert {each.process for each in _compare.run(dataclasses.replace(planned, fresh=True))} == {"fresh"}
    assert served.begun == []


def test_a_case_starts_fresh_where_one_of_its_strategies_must(corpus: Corpus, served: type[Server]) -> None:
    tensors = {"record": "tensor", "data": "x16"}
    planned = _compare.plan("read_order", corpus, all_cases=True, rounds=1)
    fresh = {str(each.case): each.fresh for each in schedule.blocks([planned], {"read_order": []})}
    assert fresh.pop(str(tensors)), "its strategies set how malloc works"
    assert not any(fresh.values())


def test_published_start_figures_come_from_the_first_rounds_of_the_default_cases(
    corpus: Corpus, runner: Runner, served: type[Server]
) -> None:
    full = Corpus(corpus.root, msgspec.structs.replace(corpus.manifest, size="full"))
    records = _compare.run(_compare.plan("selection", full, rounds=4))
    fresh = {(each.round, each.case["images"]) for each in records if each.process == "fresh"}
    assert fresh == {(0, "500"), (1, "500"), (2, "500")}
    assert {each.process for each in records} == {"fresh", "forked"}
    for index in range(4):
        for images in ("500", "2000"):
            of_block = [each for each in records if (each.round, each.case["images"]) == (index, images)]
            assert len({each.process for each in of_block}) == 1


def test_where_forks_are_not_shown_to_measure_the_same_published_trials_start_fresh(
    corpus: Corpus, served: type[Server]
) -> None:
    full = Corpus(corpus.root, msgspec.structs.replace(corpus.manifest, size="full"))
    for among, always in ((full, True), (corpus, False)):
        planned = _compare.plan("training", among, all_cases=True, rounds=8)
        assert planned.forks
        fresh = {
            each.fresh for each in schedule.blocks([planned], {"training": []}) if each.index >= plans.FRESH_ROUNDS
        }
        assert fresh == {always}


def test_what_sets_variables_has_its_baseline_start_fresh_and_no_other_case(
    corpus: Corpus, served: type[Server]
) -> None:
    full = Corpus(corpus.root, msgspec.structs.replace(corpus.manifest, size="full"))
    planned = _compare.plan("caching", full, all_cases=True, rounds=8)
    found = [each for each in schedule.blocks([planned], {"caching": []}) if each.index >= plans.FRESH_ROUNDS]
    assert {each.case["onednn"] for each in found if each.fresh} == {"set"}
    assert {each.case["onednn"] for each in found if not each.fresh} == {"default"}
    assert all("no_cache" in each.strategies for each in found)


def test_other_amounts_of_data_are_forked_from_the_first_round_on(corpus: Corpus, served: type[Server]) -> None:
    full = Corpus(corpus.root, msgspec.structs.replace(corpus.manifest, size="full"))
    planned = _compare.plan("batching", full, all_cases=False)
    names = planned.strategies_in(planned.cases[0])
    fresh = {
        (index, case["data"])
        for index in range(8)
        for case in planned.cases
        if planned.starts_fresh(index, case, names)
    }
    assert fresh == {(0, "x16"), (1, "x16"), (2, "x16")}


@pytest.mark.parametrize(
    ("question", "given", "from_round"),
    [
        ("batching", {"all_cases": False}, plans.FRESH_ROUNDS),
        ("batching", {"all_cases": True}, 0),
        ("caching", {"all_cases": False}, plans.FRESH_ROUNDS),
        ("batching", {"all_cases": False, "rounds": 4}, 0),  # too few would be left
        ("batching", {"all_cases": False, "fresh": True}, 0),  # all pair with each other
        ("batching", {"only": {"data": "x4", "augment": "off"}}, 0),
    ],
)
def test_other_amounts_of_data_have_no_round_that_pairs_with_nothing(
    corpus: Corpus, served: type[Server], question: str, given: dict[str, Any], from_round: int
) -> None:
    full = Corpus(corpus.root, msgspec.structs.replace(corpus.manifest, size="full"))
    planned = _compare.plan(question, full, **given)
    rounds = range(planned.whole_rounds)
    for case in planned.cases:
        found = [index for index in rounds if planned.beforehand(index, case)]
        assert found == [*rounds[0 if case["data"] == "x16" else from_round :]]


@pytest.mark.parametrize("raises", [True, False])
def test_a_lost_server_is_replaced_and_the_trial_runs_once_more(
    planned: Plan, runner: Runner, served: type[Server], monkeypatch: pytest.MonkeyPatch, raises: bool
) -> None:
    lost: list[Trial] = []

    def loses(trial: Trial, corpus: Corpus, *, server: Server, **more: Any) -> Record:
        if len(runner.ran) == 2 and not lost:
            lost.append(trial)
            server.is_lost = True
            if raises:
                raise LostServerError
            return msgspec.structs.replace(RECORD, status="failed", process="forked")
        return runner(trial, corpus, server=server, **more)

    stand_in_for_trials(monkeypatch, loses)
    records = _compare.run(planned)
    assert len(lost) == 1
    assert len(served.begun) == 3 + 1
    assert {(each.status, each.process) for each in records} == {("ok", "forked")}
    assert len(records) == 18
    assert (records[2].strategy, records[2].case) == (lost[0].strategy, lost[0].case)


def test_a_trial_that_ends_its_server_twice_has_failed(
    planned: Plan, runner: Runner, served: type[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends_it(trial: Trial, corpus: Corpus, *, server: Server, **more: Any) -> Record:
        runner.fails = {"mixed_copy"}
        server.is_lost = trial.strategy == "mixed_copy"
        return runner(trial, corpus, server=server, **more)

    stand_in_for_trials(monkeypatch, ends_it)
    records = _compare.run(planned)
    assert Counter(each.status for each in records) == {"ok": 12, "failed": 2 * GIVE_UP_AFTER}
    assert {each.process for each in records} == {"forked"}


def test_servers_that_keep_ending_are_an_error_with_its_remedy(
    planned: Plan, served: type[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    def loses(*_: object, server: Server, **__: object) -> Record:
        server.is_lost = True
        raise LostServerError

    stand_in_for_trials(monkeypatch, loses)
    with pytest.raises(InputError, match="has ended twice; finished trials are kept, and the same command goes on"):
        _compare.run(planned)


def test_what_began_fresh_goes_on_fresh_though_servers_can_fork_again(
    planned: Plan, runner: Runner, served: type[Server]
) -> None:
    served.reasons, runner.stop_at = ["its imports have started 3 threads"], 1
    with pytest.raises(KeyboardInterrupt):
        _compare.run(planned)
    runner.stop_at = None
    records = _compare.run(planned)
    begun = records[0].case
    assert len(records) == 18, "nothing is left out"
    fresh = [each for each in records if each.process == "fresh"]
    assert {(each.round, each.case["images"]) for each in fresh} == {(0, begun["images"])}
    assert len(fresh) == 3


def test_importing_that_takes_what_was_left_ends_a_budget(corpus: Corpus, timed: Timed, served: type[Server]) -> None:
    small = Corpus(corpus.root, msgspec.structs.replace(corpus.manifest, size="small"))
    planned = _compare.plan("selection", small, minutes=4)
    whole = len(_registry.quick("selection")) * len(planned.cases)
    imports = served.__init__

    def slow(self: Server, modules: dict[str, set[str]]) -> None:
        imports(self, modules)
        timed.now += 10

    served.__init__ = slow  # type: ignore[method-assign]
    try:
        _compare.run_together([planned], seconds=10 + 2 * whole + 3, clock=timed.clock)
    finally:
        served.__init__ = imports  # type: ignore[method-assign]
    assert len(served.begun) == 2
    assert len(timed.ran) == whole, "three seconds were left before the second server"


@pytest.mark.skipif(not pages.AVAILABLE, reason="the system cannot map a fork's pages")
def test_a_kernel_that_does_not_know_the_advice_cannot_map_a_forks_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MADV_POPULATE_WRITE", 9999)  # as before Linux 5.14
    assert not pages._is_available()


def test_where_a_forks_pages_cannot_be_mapped_nothing_is_forked(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, served: type[Server]
) -> None:
    monkeypatch.setattr(pages, "AVAILABLE", False)
    with forks.Forks({(): {"numpy": set[str]()}}) as made:
        assert made.begin() == made.reason == "this system cannot map a fork's pages before it is measured"
    assert not served.begun


def test_if_one_server_cannot_fork_none_is_kept(served: type[Server]) -> None:
    served.reasons = ["", "its imports have started 3 threads"]
    with forks.Forks({("one",): {}, ("other",): {}}) as made:
        assert made.begin() == "its imports have started 3 threads"
        assert [each.is_lost for each in served.begun] == [True, True]
        assert made.begin() == "", "it may in the next round"


def test_a_server_that_cannot_serve_makes_a_comparison_fresh_and_says_why_once(
    planned: Plan, runner: Runner, served: type[Server]
) -> None:
    served.reasons = ["its imports have started 3 threads"]
    said: list[str] = []
    records = _compare.run(planned, say=said.append)
    assert said == ["trials run in fresh processes, which takes longer: its imports have started 3 threads"]
    assert ({each.process for each in records}, len(records)) == ({"fresh"}, 18)


def test_no_round_of_a_case_joins_forked_and_fresh_trials(planned: Plan, runner: Runner, served: type[Server]) -> None:
    runner.stop_at = 8
    with pytest.raises(KeyboardInterrupt):
        _compare.run(planned)
    runner.stop_at = None
    served.reasons = ["its imports have started 3 threads"]
    records = _compare.run(planned)
    assert {each.process for each in records} == {"forked", "fresh"}
    blocks = {(each.round, each.case["images"]): set[str]() for each in records}
    for each in records:
        blocks[each.round, each.case["images"]].add(each.process)
    assert set(map(len, blocks.values())) == {1}
    assert len(records) == 18 - 1, "one trial of the block that was begun is left out"


def test_trials_may_be_repeated_but_not_all_of_them(
    planned: Plan, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def robbed(trial: Trial, corpus: Corpus, *, repeats: int, **more: Any) -> Record:
        return msgspec.structs.replace(runner(trial, corpus, **more), tries=1 + repeats)

    stand_in_for_trials(monkeypatch, robbed)
    tries = [record.tries for record in _compare.run(planned)]
    assert tries[:6] == [3, 1, 2, 1, 2, 1]


def test_a_quick_plan_runs_what_carries_the_finding_and_outside_strategies(corpus: Corpus) -> None:
    quick = _compare.plan("read_order", corpus, quick=True)
    assert quick.strategies == ("range_indexed", "parallel_reads", "interleave_sequential")
    assert quick.trials == 3 * 6  # at three amounts of data, for the law of memory
    assert {case["record"] for case in quick.cases} == {"jpeg"}


def test_a_strategy_runs_only_where_it_answers_something(corpus: Corpus) -> None:
    planned = _compare.plan("read_order", corpus, all_cases=True, rounds=1)
    due = schedule.blocks([planned], {"read_order": []})
    trials = [(strategy, block.case["record"]) for block in due for strategy in block.strategies]
    assert ("interleave_arena_1", "tensor") in trials
    assert ("interleave_arena_1", "jpeg") not in trials
    assert len(trials) == planned.trials


def test_some_cases_may_be_run_alone(corpus: Corpus) -> None:
    planned = _compare.plan("resize", corpus, only={"scale": "2.0"})
    assert planned.cases == ({"scale": "2.0"},)
    augmented = _compare.plan("batching", corpus, only={"augment": "on"})
    assert augmented.cases == ({"data": "x4", "augment": "on"},)


def test_a_plan_without_a_trial_is_a_clear_error(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"no strategy of batching runs with augment=on data=x1; these .* data=x4 aug"):
        _compare.plan("batching", corpus, only={"augment": "on", "data": "x1"})
    only_tensors = {"interleave_arena_1": _registry.find_variant("read_order", "interleave_arena_1")}
    monkeypatch.setattr(_registry, "variants", lambda _: only_tensors)
    with pytest.raises(
        InputError,
        match=r"read_order runs with record=jpeg data=x16; these values go together: record=tensor data=x16$",
    ):
        _compare.plan("read_order", corpus)


def _own(*checked: bool, status: str = "ok") -> list[Record]:
    changes: list[dict[str, Any]] = [{"round": index, "checked": each} for index, each in enumerate(checked)]
    return [msgspec.structs.replace(RECORD, **{"status": status, **each}) for each in changes]


def test_what_is_delivered_is_checked_first_and_then_in_every_fourth_round() -> None:
    assert [schedule.is_checked(index, _own(*[True] * index)) for index in range(10)] == [
        True, False, False, False, True, False, False, False, True, False,
    ]  # fmt: skip
    assert schedule.is_checked(3, []), "a strategy that begins later is checked as it begins"
    assert schedule.is_checked(3, _own(True, status="wrong_output")), "nothing is left unchecked before it has passed"
    assert schedule.is_checked(3, _own(False, False))
    assert schedule.is_checked(5, _own(True, True)), "what was checked in an earlier group of four says nothing"


def test_a_comparison_checks_the_first_round_and_every_fourth(planned: Plan, timed: Timed) -> None:
    checked: dict[int, set[bool]] = {}

    def noted(trial: Trial, corpus: Corpus, **more: Any) -> Record:
        checked.setdefault(more["round"], set()).add(trial.checked)
        return msgspec.structs.replace(timed(trial, corpus, **more), checked=trial.checked)

    with pytest.MonkeyPatch.context() as patch:
        stand_in_for_trials(patch, noted)
        _compare.run(dataclasses.replace(planned, rounds=6))
    assert checked == {0: {True}, 1: {False}, 2: {False}, 3: {False}, 4: {True}, 5: {False}}


def test_what_delivers_another_number_of_samples_unchecked_is_wrong() -> None:
    def delivers(samples: int, *, checked: bool, strategy: str = "tf1_queue") -> Record:
        metrics = Metrics(epoch_time=1.0, samples=samples)
        return msgspec.structs.replace(
            RECORD, question="read_order", strategy=strategy, metrics=metrics, checked=checked
        )

    proven = delivers(640, checked=True)
    for good in (delivers(640, checked=False), delivers(639, checked=True), proven):
        assert schedule.held_to(good, [proven]) == good
    assert schedule.held_to(delivers(639, checked=False), []).status == "ok"
    found = schedule.held_to(delivers(639, checked=False, strategy="interleave"), [proven])
    assert (found.status, found.message) == ("wrong_output", "delivered 639 samples, and 640 when checked")
    assert found.metrics.epoch_time is None, "no figure of it counts"
    losing = next(name for name, each in _registry.variants("read_order").items() if each.may_lose)
    kept = delivers(639, checked=False, strategy=losing)
    assert schedule.held_to(kept, [proven]) == kept


def test_a_quick_look_checks_each_strategy_with_one_amount_of_data(
    corpus: Corpus, timed: Timed, monkeypatch: pytest.MonkeyPatch
) -> None:
    (planned,) = _staged(corpus, "caching")
    checked: list[tuple[int, str]] = []

    def noted(trial: Trial, corpus: Corpus, **more: Any) -> Record:
        checked.extend([(more["round"], trial.strategy)] * trial.checked)
        return msgspec.structs.replace(timed(trial, corpus, **more), checked=trial.checked)

    stand_in_for_trials(monkeypatch, noted)
    _compare.run_together([planned], seconds=2 * planned.trials - 1, clock=timed.clock)
    quick = set(_registry.quick("caching"))
    first = {(0 if each in quick else 3, each) for each in planned.strategies_in(planned.cases[0])}
    assert sorted(checked) == sorted(first)


def test_what_takes_long_is_no_part_of_a_budget_for_everything() -> None:
    from loaders._cli.compare import every_question

    names, budgeted = ([each.name for each in every_question(budgeted=way)] for way in (False, True))
    assert set(names) == set(_registry.questions())
    assert set(names) - set(budgeted) == {"known_issues", "service"}
    assert budgeted[0] == "calibration"


@pytest.mark.skipif(not pages.AVAILABLE, reason="the system cannot map a fork's pages")
def test_a_round_starts_the_servers_of_what_it_runs_and_no_others(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the other engines take as long to import as the round's trials do."""
    groups = {"local": (), "service_2": ("serve",)}
    planned = dataclasses.replace(_compare.plan("service", corpus), strategies=tuple(groups))
    records: dict[str, list[Record]] = {"service": []}
    assert running._used([planned], records, 0) == set(planned.groups) == set(groups.values())
    for name, group in groups.items():
        monkeypatch.setattr(Plan, "beforehand", lambda *_, name=name: [name])
        assert running._used([planned], records, 0) == {group}
    started: list[Any] = []

    def start(modules: Any) -> Any:
        started.append(modules)
        return SimpleNamespace(end=list, reason="")

    monkeypatch.setattr(forks, "Server", start)
    with forks.Forks(planned.groups) as served:
        served.begin({()})
    assert started == [planned.groups[()]], "with all that its group imports"


def test_what_is_written_anew_as_it_was_ends_no_comparison(
    planned: Plan, timed: Timed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("one = 1")

    def saves(trial: Trial, corpus: Corpus, **more: Any) -> Record:
        os.utime(mine, ns=(len(timed.ran), len(timed.ran)))
        return timed(trial, corpus, **more)

    stand_in_for_trials(monkeypatch, saves)
    assert len(_compare.run(dataclasses.replace(planned, outside=(str(mine),)))) == 18


def test_an_editors_lock_is_no_code(planned: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Emacs lays a link that leads nowhere beside a file of which something is not saved."""
    (tmp_path / "a.py").write_text("x = 1")
    monkeypatch.setattr(plans, "PACKAGE", tmp_path)
    before = planned.key
    (tmp_path / ".#a.py").symlink_to("me@here.1")
    assert planned.key == before
    (tmp_path / "a.py").write_text("x = 2")
    assert planned.key != before


def test_a_finished_run_counts_though_an_unfinished_one_came_after_it(planned: Plan, runner: Runner) -> None:
    """A question whose rest an interrupted suite has begun, and not finished within a day."""
    first = dataclasses.replace(planned, cases=planned.cases[:1])
    path = log.log_path("tested")
    whole = [msgspec.structs.replace(each, run=f"whole-{planned.key}") for each in _compare.run(first)]
    path.unlink()
    log.append(path, *whole)
    runner.stop_at = len(runner.ran) + 4
    with pytest.raises(KeyboardInterrupt):
        _compare.run(first)
    assert len(log.read(path)) == len(whole) + 4
    _age(100)
    runner.stop_at = None
    before = len(runner.ran)
    found = _compare.run(first, anew=False)
    assert len(runner.ran) == before
    assert {each.run for each in found} == {whole[0].run}
    _age(1)
    assert {each.run for each in _compare.run(first, anew=False)} == {whole[0].run}, "nor does one that is recent"
    assert len(_compare.run(first)) == 9, "but where it is to be measured anew, that one goes on"
    assert len(runner.ran) == before + 5
