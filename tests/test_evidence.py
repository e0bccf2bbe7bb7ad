from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from loaders import _evidence, _judge
from loaders._check import equivalence, judge
from loaders._cli import main
from loaders._compare import plans, schedule
from loaders._errors import InputError
from loaders._evidence import Count, Noise
from loaders._trial import log
from loaders._trial.growth import Growth, Verdict
from loaders._trial.metrics import Metrics
from loaders._trial.record import Record
from tests.advise import made
from tests.check.pairs import planted
from tests.conftest import ROOT
from tests.trial.test_log import RECORD

PUBLISHED = ROOT / "results" / "reference" / "trials.jsonl"

found_out = pytest.mark.skipif(os.environ.get("LOADERS_SIMULATIONS") != "all", reason="minutes; make evidence runs it")
"""What simulates a rule that is too sure until it is found out; that no rule is, takes less."""


def _records(spreads: dict[str, float], rounds: int, seed: int = 1) -> list[Record]:
    random = np.random.default_rng(seed)
    return [
        msgspec.structs.replace(
            RECORD,
            status="ok",
            strategy=name,
            round=index,
            run="r",
            metrics=Metrics(epoch_time=float(np.exp(random.normal(0, spread)))),
        )
        for name, spread in spreads.items()
        for index in range(rounds)
    ]


@pytest.fixture(scope="module")
def published() -> Noise:
    return _evidence.noise(_evidence.decoded(PUBLISHED))


def test_a_line_that_was_cut_off_costs_itself_alone_and_no_trial_counts_twice(tmp_path: Path) -> None:
    path = tmp_path / log.NAME
    first, second = (msgspec.structs.replace(RECORD, run="r", round=index) for index in range(2))
    log.append(path, first)
    with path.open("ab") as file:
        file.write(b'{"question":"sel')
    log.append(path, first)
    log.append(path, second)
    assert _evidence.decoded(path) == [first, second]


def test_the_noise_of_trials_is_their_spread_without_strategy_and_round() -> None:
    spreads = {f"s{index}": 0.05 for index in range(20)}
    found = _evidence.noise(_records(spreads, 40))
    assert found.residuals.std() == pytest.approx(1, abs=0.01)
    assert found.spreads[0].mean() == pytest.approx(0.05, rel=0.1)
    with pytest.raises(InputError, match="no comparison"):
        _evidence.noise(_records(spreads, 2))


def test_noise_is_taken_of_all_strategies_though_a_few_ran_for_more_rounds() -> None:
    records = _records({f"s{index}": 0.05 for index in range(10)}, 8)
    longer = [each for each in _records({"s0": 0.05, "s1": 0.05}, 24) if each.round >= 8]
    assert len(_evidence.noise([*records, *longer]).residuals) == 80


def test_of_several_runs_of_a_case_the_newest_counts() -> None:
    spreads = {f"s{index}": 0.05 for index in range(10)}
    new = [msgspec.structs.replace(each, run="new", started="2027-01-01") for each in _records(spreads, 8)]
    old = _records(dict.fromkeys(spreads, 0.5), 20)
    for records in ([*old, *new], [*new, *old]):
        found = _evidence.noise(records)
        assert len(found.residuals) == 80
        assert found.spreads[0].mean() == pytest.approx(0.05, rel=0.3)


def test_the_published_trials_have_noise_enough(published: Noise) -> None:
    assert len(published.residuals) > 500
    assert 0.03 < float(np.median(np.concatenate(published.spreads))) < 0.2


def test_the_judge_is_right_as_often_as_it_says(published: Noise) -> None:
    missed = [count for count in _evidence.simulation(published, 150) if not count.is_reached]
    assert not missed


def test_a_judge_that_is_too_sure_is_found_out(published: Noise, monkeypatch: pytest.MonkeyPatch) -> None:
    def certain(squares: list[float], degrees: list[float], total: float) -> tuple[list[float], list[float]]:
        return [1e-4] * len(squares), [1e3] * len(squares)

    monkeypatch.setattr(_judge, "moderate", certain)
    missed = {count.what for count in _evidence.simulation(published, 60) if not count.is_reached}
    assert {f"95 % intervals cover the truth, at {rounds} rounds" for rounds in (3, 6, 8)} <= missed
    assert "the best set contains the true best, at 3 rounds" in missed


@pytest.fixture(scope="module")
def newest() -> Noise:
    return _evidence.noise(_evidence.decoded(ROOT / "results" / "reference-amd" / "trials.jsonl"))


@pytest.mark.slow
def test_rounds_by_need_invent_no_differences(newest: Noise) -> None:
    counts = _evidence.rounds_by_need(newest, 40)
    assert [count.is_reached for count in counts] == [True] * 4, counts


@found_out
def test_rounds_that_stop_as_soon_as_anything_seems_to_differ_are_found_out(
    newest: Noise, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each round a look, from the third: what the looks that are fixed beforehand are for."""
    monkeypatch.setattr(plans, "LEAST_ROUNDS", 3)
    monkeypatch.setattr(schedule, "LOOKS", tuple(range(3, 24)))
    monkeypatch.setattr(schedule, "SURE", 0.0)
    missed = [count.what for count in _evidence.rounds_by_need(newest, 120) if not count.is_reached]
    assert "rounds by need: what takes as long as its baseline is said to differ" in missed


@pytest.mark.slow
def test_checks_seldom_cry_wolf_and_find_what_fails_only_now(published: Noise) -> None:
    counts = _evidence.checks(published, 30)
    assert [count.is_reached for count in counts] == [True] * 6, counts


@found_out
@pytest.mark.parametrize("in_turn", [False, True])
def test_a_check_that_looks_too_often_is_found_out(
    published: Noise, monkeypatch: pytest.MonkeyPatch, in_turn: bool
) -> None:
    monkeypatch.setattr(judge, "ALIKE_LEVEL", 0.05)
    assert not _evidence.missed(published, 120, in_turn=in_turn).is_reached


@pytest.mark.parametrize(("shared", "own", "correlation"), [(0.2, 0.1, 0.8), (0.0, 0.1, 0.0)])
def test_pairing_gains_what_a_round_has_in_common(shared: float, own: float, correlation: float) -> None:
    random = np.random.default_rng(1)
    records = []
    for run in range(40):
        drift = random.normal(0, shared, 8)
        records += [
            msgspec.structs.replace(
                RECORD,
                strategy=name,
                round=index,
                run="r",
                case={"number": str(run)},
                metrics=Metrics(epoch_time=float(np.exp(drift[index] + random.normal(0, own)))),
            )
            for name in ("numpy_to_numpy", "mixed_copy", "permutation_index")
            for index in range(8)
        ]
    found, gained = _evidence.pairing(records)
    assert found.share == pytest.approx(correlation, abs=0.07)
    assert gained.share == pytest.approx(correlation, abs=0.1), "both spread alike"
    assert (found.repetitions, "95 % interval" in found.what) == (40, True)
    alone = [each for each in records if each.strategy != "numpy_to_numpy"]
    with pytest.raises(InputError, match="with its baseline"):
        _evidence.pairing(alone)


def test_the_published_trials_show_what_pairing_gains() -> None:
    found, _ = _evidence.pairing(_evidence.decoded(PUBLISHED))
    assert found.repetitions > 5
    assert found.share > 0, "pairing gains nothing, and costs an order of trials"


def test_a_count_misses_by_more_than_chance_only() -> None:
    assert Count("x", 0.92, 0.01, 100, "at least", 0.93).is_reached
    assert not Count("x", 0.90, 0.01, 100, "at least", 0.93).is_reached
    assert Count("x", 0.06, 0.01, 100, "at most", 0.05).is_reached
    assert not Count("x", 0.08, 0.01, 100, "at most", 0.05).is_reached
    assert _evidence.line(Count("x", 0.08, 0.01, 100, "at most", 0.05))[1] == "8.0% ± 1.0% of 100"
    assert _evidence.line(Count("x", 0.25, 0, 8, "at most", 0.0))[1] == "2 of 8", "counted, not estimated"


def test_what_misses_its_target_is_named() -> None:
    good, bad = Count("good", 1, 0, 5, "at least", 1), Count("bad", 0.5, 0, 4, "at most", 0)
    made = [_evidence.Experiment(each.what, "t", "c", "cpu", "s", [each]) for each in (good, bad)]
    assert _evidence.finding(made[:1]) == "1 of 1 counts reach their targets"
    assert _evidence.finding(made) == "1 of 2 counts reach their targets; these do not: bad"


def test_the_newest_line_of_each_experiment_counts(tmp_path: Path) -> None:
    path = tmp_path / _evidence.NAME
    made = [_evidence.Experiment(name, "t", commit, "cpu", "s", []) for name, commit in ("aA", "bB", "aC")]
    path.write_bytes(b"\n".join([*map(msgspec.json.encode, made), b"{}"]))
    said: list[str] = []
    assert len(_evidence.newest(path, said.append)) == 2
    assert len(said) == 1
    assert said[0].startswith(f"{path}: left out line 4, which cannot be read")
    assert {each.name: each.commit for each in _evidence.newest(path)} == {"a": "C", "b": "B"}
    assert _evidence.newest(tmp_path / "none") == []


def test_the_equivalence_of_forked_trials_is_counted_from_their_own_log(tmp_path: Path) -> None:
    source = tmp_path / "trials.jsonl"
    with pytest.raises(InputError, match="selftest --start"):
        _evidence.experiment("start", [source], 1)
    many = {f"s{index}": 1.0 for index in range(15)} | {"odd": 1.12}
    for each in planted(many, memory=dict.fromkeys(many, (10.0, 10.0))):
        log.append(tmp_path / equivalence.NAME, each)
    found = _evidence.experiment("start", [source], 1)
    assert found.source.endswith(equivalence.NAME)
    counts = {count.what: (count.share, count.is_reached) for count in found.counts}
    assert counts["fresh and forked trials, steady time: a question's is shown to be the same"] == (1.0, True)
    assert counts["fresh and forked trials, steady time: a strategy's lies beyond its margin"] == (1 / 16, False)
    assert counts["fresh and forked trials, peak: a strategy's lies beyond its margin"] == (0.0, True)
    assert counts["a strategy fails in forks only"] == (0.0, True)


def test_an_experiment_that_lacks_its_trials_keeps_no_other_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(records: Sequence[Record], repetitions: int) -> list[Count]:
        raise InputError("no trials")

    def counted(records: Sequence[Record], repetitions: int) -> list[Count]:
        return [Count("x", 1.0, 0.0, 1, "at least", 1.0)]

    monkeypatch.setenv("LOADERS_RESULTS", str(tmp_path))
    monkeypatch.setattr(_evidence, "EXPERIMENTS", {"law": lacking, "replay": counted})
    ran = CliRunner().invoke(main, ["evidence", "--json"])
    assert (ran.exit_code, "error: law: no trials" in ran.stderr) == (2, True)
    assert [each["name"] for each in json.loads(ran.stdout)] == ["replay"]
    assert [each.name for each in _evidence.newest(tmp_path / "tested" / _evidence.NAME)] == ["replay"]


def test_the_law_of_memory_is_tested_on_each_machine_with_its_own_run() -> None:
    def measured(machine: str, held: float) -> list[Record]:
        level, where = {"path_generator": made.Planted(0.0016, memory=lambda _: held)}, made.environment(machine)
        further = made.run(level, 3, amounts={_evidence.FURTHER: 2560}, name="", where=where)
        return [*made.run(level, where=where), *further]

    records = [*measured("box", 20.0), *measured("other", 60.0)]
    within, beyond = _evidence.foreseen(records)
    assert (within.share, within.repetitions, beyond.share) == (1.0, 6, 0.0)
    elsewhere = [
        msgspec.structs.replace(
            each,
            case={**each.case, "augment": "on"},
            metrics=msgspec.structs.replace(each.metrics, needed_memory=2**40),
        )
        for each in records
        if each.case["data"] == _evidence.FURTHER
    ]
    assert _evidence.foreseen([*records, *elsewhere]) == [within, beyond], "those of another case do not count"


@pytest.mark.parametrize(("name", "function"), [("replay", "replayed"), ("law", "foreseen")])
def test_what_is_about_all_that_is_published_is_read_from_the_logs_of_all_the_projects_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, function: str
) -> None:
    """Each question is answered by the one that has measured most of it."""
    monkeypatch.setenv("LOADERS_RESULTS", str(tmp_path))
    for machine in (log.PUBLISHED, "reference-another", "mine"):
        environment = msgspec.structs.replace(RECORD.environment, machine=machine)
        log.append(tmp_path / machine / log.NAME, msgspec.structs.replace(RECORD, environment=environment))

    def machines(records: Sequence[Record]) -> list[_evidence.Count]:
        return [_evidence.Count(each.environment.machine, 0.0, 0.0, 1, "at least", 0.0) for each in records]

    def read(*arguments: str) -> set[str]:
        ran = CliRunner().invoke(main, ["evidence", name, "--json", *arguments])
        (found,) = json.loads(ran.stdout)
        return {each["what"] for each in found["counts"]}

    monkeypatch.setattr(_evidence, function, machines)
    assert read() == {log.PUBLISHED, "reference-another"}
    assert read("--noise", str(tmp_path / log.PUBLISHED / log.NAME)) == {log.PUBLISHED}
    assert read("--noise", str(tmp_path / "mine" / log.NAME)) == {"mine"}


@pytest.mark.parametrize(("found", "reached"), [(20, True), (19, True), (18, False)])
def test_copies_of_a_list_are_counted_and_too_few_trials_are_no_evidence(found: int, reached: bool) -> None:
    def trials(name: str, verdicts: Sequence[Verdict]) -> list[Record]:
        return [
            msgspec.structs.replace(
                RECORD,
                question="known_issues",
                strategy=name,
                case={"data": "paths"},
                status="ok",
                metrics=Metrics(memory_growth=Growth(verdict, 0, 0, 0, 0, 0, 1000)),
            )
            for verdict in verdicts
        ]

    unsure: list[Verdict] = ["undecided"]
    left_alone: list[Verdict] = ["flat"]
    copied: list[Verdict] = ["growing"]
    left_alone, copied = 19 * left_alone + unsure, found * copied + (20 - found) * unsure
    level = trials("torch_dataloader_array", left_alone)
    grows = trials("torch_dataloader_list", copied)
    of_list, of_array = _evidence.copies([*level, *grows])
    assert (of_list.share, of_list.is_reached) == (found / 20, reached)
    assert (of_array.share, of_array.repetitions, of_array.is_reached) == (0.95, 20, True)
    with pytest.raises(InputError, match="19 trials of torch_dataloader_list, at least 20 needed"):
        _evidence.copies([*level, *grows[1:]])
