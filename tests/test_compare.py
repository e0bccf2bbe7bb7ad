from __future__ import annotations

import dataclasses
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loaders import _compare, _registry
from loaders._compare import GIVE_UP_AFTER, Plan
from loaders._corpus import Corpus
from loaders._errors import InputError
from loaders._trial import Record, Trial, log
from tests.trial.test_log import RECORD

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
        **_: object,
    ) -> Record:
        if len(self.ran) == self.stop_at:
            raise KeyboardInterrupt
        self.ran.append((round, trial.strategy, trial.case["images"]))
        return msgspec.structs.replace(
            RECORD,
            strategy=trial.strategy,
            case=trial.case,
            round=round,
            run=run,
            seed=trial.seed,
            planned=planned,
            status="failed" if trial.strategy in self.fails else "ok",
            started=datetime.now(UTC).isoformat(),
        )


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Runner:
    stand_in = Runner()
    monkeypatch.setattr(_compare, "run_trial", stand_in)
    return stand_in


def test_every_strategy_runs_once_a_round_in_an_order_shuffled_afresh(planned: Plan, runner: Runner) -> None:
    records = _compare.run(planned)
    assert set(Counter(runner.ran).values()) == {1}
    assert len(records) == 3 * 3 * 2
    orders = [[each[1:] for each in runner.ran if each[0] == index] for index in range(3)]
    assert [len(order) for order in orders] == [6, 6, 6]
    assert [each[0] for each in runner.ran] == [0] * 6 + [1] * 6 + [2] * 6
    assert len({tuple(order) for order in orders}) == 3


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
    first, second = _compare.run(planned), _compare.run(planned)
    assert len(runner.ran) == 36
    assert first[0].started <= second[0].started


def test_an_old_unfinished_run_is_begun_anew(planned: Plan, runner: Runner) -> None:
    runner.stop_at = 4
    with pytest.raises(KeyboardInterrupt):
        _compare.run(planned)
    path = log.log_path("tested")
    records = [msgspec.structs.replace(each, started="2020-01-01T00:00:00+00:00") for each in log.read(path)]
    path.unlink()
    for record in records:
        log.append(path, record)
    runner.stop_at = None
    assert len(_compare.run(planned)) == 18
    assert len(runner.ran) == 4 + 18


def test_a_run_of_another_plan_is_not_continued(planned: Plan, runner: Runner, tmp_path: Path) -> None:
    runner.stop_at = 4
    with pytest.raises(KeyboardInterrupt):
        _compare.run(planned)
    runner.stop_at = None
    more = msgspec.convert(planned.rounds + 1, int)
    _compare.run(Plan("selection", STRATEGIES, planned.cases, more, planned.corpus, 2**30, 60.0))
    assert len(runner.ran) == 4 + 24


def test_the_key_changes_with_the_code_that_is_measured(planned: Plan, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("a = 1")
    with_mine = Plan("selection", STRATEGIES, planned.cases, 3, planned.corpus, 2**30, 60.0, (str(mine),))
    before = with_mine.key
    assert before != planned.key
    mine.write_text("a = 2")
    assert with_mine.key != before


def test_a_strategy_that_keeps_failing_is_not_run_for_ever(planned: Plan, runner: Runner) -> None:
    runner.fails = {"mixed_copy"}
    records = _compare.run(planned)
    failed = Counter((each.strategy, each.case["images"]) for each in records if each.status == "failed")
    assert set(failed.values()) == {GIVE_UP_AFTER}
    assert sum(each.status == "ok" for each in records) == 12
    assert len(_compare.run(planned)) == len(records), "a run that gave up is finished, not interrupted"


def test_each_record_is_in_the_log_before_it_is_shown(planned: Plan, runner: Runner) -> None:
    def shown(record: Record) -> None:
        assert log.read(log.log_path("tested"))[-1] == record

    _compare.run(planned, done=shown)


@pytest.mark.parametrize(("size", "cases", "rounds"), [("tiny", 1, 2), ("full", 2, 6)])
def test_a_plan_follows_from_the_size(corpus: Corpus, size: str, cases: int, rounds: int) -> None:
    manifest: Any = msgspec.structs.replace(corpus.manifest, size=size)
    planned = _compare.plan("selection", Corpus(corpus.root, manifest))
    assert (len(planned.cases), planned.rounds) == (cases, rounds)
    assert 0 < (planned.trial("list_to_list", {}, 1).memory_limit or 0) < 2**50
    assert planned.strategies[0] == "list_to_list"


def test_rounds_beyond_the_third_go_to_those_that_may_be_the_fastest(
    planned: Plan, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {"numpy_to_numpy": 9.0, "mixed_copy": 5.0, "permutation_index": 1.0}

    def timed(trial: Trial, corpus: Corpus, **more: Any) -> Record:
        record = runner(trial, corpus, **more)
        wobble = 1 + 0.01 * ((record.round + len(trial.strategy)) % 3)
        # With more images nothing can be told apart.
        takes = seconds[trial.strategy] * wobble if trial.case["images"] == "500" else 1 + record.round % 3
        return msgspec.structs.replace(record, metrics=msgspec.structs.replace(record.metrics, epoch_time=takes))

    monkeypatch.setattr(_compare, "run_trial", timed)
    six = dataclasses.replace(planned, rounds=6)
    _compare.run(six)
    ran = Counter((strategy, images) for _, strategy, images in runner.ran)
    assert ran["permutation_index", "500"] == 6
    assert ran["numpy_to_numpy", "500"] == 6  # the baseline, which ratios are taken to
    assert ran["mixed_copy", "500"] == 3
    assert all(ran[strategy, "2000"] == 6 for strategy in STRATEGIES)
    runner.ran.clear()
    runner.stop_at = 8
    with pytest.raises(KeyboardInterrupt):
        _compare.run(dataclasses.replace(six, deadline=61.0))
    runner.stop_at = None
    _compare.run(dataclasses.replace(six, deadline=61.0))  # continued, and the same are left out
    assert Counter((strategy, images) for _, strategy, images in runner.ran) == ran


def test_trials_may_be_repeated_but_not_all_of_them(
    planned: Plan, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def robbed(trial: Trial, corpus: Corpus, *, repeats: int, **more: Any) -> Record:
        return msgspec.structs.replace(runner(trial, corpus, **more), tries=1 + repeats)

    monkeypatch.setattr(_compare, "run_trial", robbed)
    tries = [record.tries for record in _compare.run(planned)]
    assert tries[:6] == [3, 1, 2, 1, 2, 1]


def test_a_quick_plan_runs_what_carries_the_finding_and_outside_strategies(corpus: Corpus) -> None:
    quick = _compare.plan("read_order", corpus, quick=True)
    assert quick.strategies == ("range_indexed", "parallel_reads")
    assert quick.trials_a_round == 6  # at three amounts of data, for the law of memory
    assert {case["record"] for case in quick.cases} == {"jpeg"}


def test_a_strategy_runs_only_where_it_answers_something(corpus: Corpus) -> None:
    planned = _compare.plan("read_order", corpus, all_cases=True, rounds=1)
    trials = [(trial.strategy, trial.case["record"]) for _, trial in planned.trials()]
    assert ("interleave_arena_1", "tensor") in trials
    assert ("interleave_arena_1", "jpeg") not in trials
    assert len(trials) == planned.trials_a_round


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
