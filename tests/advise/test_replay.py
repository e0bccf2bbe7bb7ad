from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from loaders import _evidence
from loaders._advise import candidates, choose, replay
from loaders._advise.coverage import OURS
from loaders._trial import log
from loaders._trial.record import SCHEMA, Record
from tests.advise import golden, made
from tests.conftest import ROOT


def _published() -> list[Record]:
    """What the project's machines have measured, whatever a reader has."""
    paths = sorted((ROOT / "results").glob(f"{OURS}*/{log.NAME}"))
    return [each for path in paths for each in log.read(path) if each.schema == SCHEMA]


RUNS: dict[str, Callable[[], list[Record]]] = {
    **{name: (lambda name=name: golden.RUNS[name]) for name in golden.RUNS},  # type: ignore[misc]
    "published": _published,
}


@pytest.mark.parametrize("run", list(RUNS))
def test_every_recommendation_is_what_the_raw_trials_allow(run: str) -> None:
    records = RUNS[run]()
    if not records:
        pytest.skip("no results of the present schema are published")
    counts = replay.replay(records)
    assert {name: counts[name] for name in replay.BROKEN} == dict.fromkeys(replay.BROKEN, 0)
    assert counts["settings"] == 288 * counts["cases"]
    assert counts["recommended"] + counts["null"] == counts["settings"]
    assert counts["recommended"] > 0 or run == "one round"


def test_a_grid_has_200_settings_or_more() -> None:
    every = [each for settings in replay.grid() for each in settings]
    assert len(every) == len({msgspec.json.encode(each) for each in every}) >= 200


@pytest.mark.parametrize("name", ["tf1_queue", "opencv_pool", "tfdata_paths_2"])
def test_taking_what_nobody_may_take_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    right = _barred()
    monkeypatch.setattr(
        choose.Reckoned,
        "barred",
        property(lambda self: {each: kind for each, kind in right(self).items() if each != name}),
    )
    assert replay.replay(_few())["forbidden"] > 0


def test_nothing_though_something_is_allowed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = _barred()
    barred = {"path_generator": "failed", "memory_map": "failed"}
    monkeypatch.setattr(choose.Reckoned, "barred", property(lambda self: {**right(self), **barred}))
    assert replay.replay(_few())["null though something is allowed"] > 0


def _barred() -> Callable[[choose.Reckoned], dict[str, choose.Kind]]:
    found: Callable[[choose.Reckoned], dict[str, choose.Kind]] = vars(choose.Reckoned)["barred"].func
    return found


def _few() -> list[Record]:
    """Fast where it is forbidden, so that only the rule keeps it away."""
    forbidden, allowed = ("tf1_queue", "opencv_pool", "tfdata_paths_2"), ("path_generator", "memory_map")
    speeds = {**dict.fromkeys(forbidden, 0.0001), **dict.fromkeys(allowed, 0.001)}
    return made.run({name: made.Planted(speed) for name, speed in speeds.items()}, rounds=6)


def test_taking_what_memory_did_not_hold_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        msgspec.structs.replace(
            each,
            metrics=msgspec.structs.replace(each.metrics, disk_bytes=600_000 * (each.metrics.samples or 0)),
            environment=msgspec.structs.replace(each.environment, memory=2**33),
        )
        if each.strategy == "memory_map"
        else each
        for each in made.run({"path_generator": made.Planted(0.001), "memory_map": made.Planted(0.0001)}, rounds=6)
    ]
    counts = replay.replay(records)
    assert {name: counts[name] for name in replay.BROKEN} == dict.fromkeys(replay.BROKEN, 0)
    (found,) = candidates.choices(records)
    held = next(each.held for each in found.candidates if each.name == "memory_map")
    assert held == pytest.approx(2**33 / 600_000)
    right = _barred()
    monkeypatch.setattr(
        choose.Reckoned,
        "barred",
        property(lambda self: {each: kind for each, kind in right(self).items() if kind != "time unknown"}),
    )
    assert replay.replay(records)["forbidden"] > 0


def test_a_budget_that_is_passed_and_a_slower_choice_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    records = made.run(rounds=6)
    decide = choose.Reckoned.decide
    monkeypatch.setattr(choose.Reckoned, "decide", lambda self, memory: decide(self, 16 * memory))
    assert replay.replay(records)["beyond the budget"] > 0

    def slowest(self: choose.Reckoned, memory: int) -> choose.Decision:
        found = decide(self, memory)
        allowed = [name for name, kind in found.kinds.items() if kind in choose.CHOICE]
        taken = max(allowed, key=lambda name: self.totals[name][0], default=None)
        return msgspec.structs.replace(found, recommended=taken)

    monkeypatch.setattr(choose.Reckoned, "decide", slowest)
    assert replay.replay(records)["slower"] > 0


def test_the_evidence_counts_broken_rules(tmp_path: Path) -> None:
    for each in made.run(rounds=2):
        log.append(tmp_path / "trials.jsonl", each)
    found = _evidence.experiment("replay", [tmp_path / "trials.jsonl"], 1)
    assert [each.share for each in found.counts] == [0.0] * len(replay.BROKEN)
    assert all(each.is_reached and each.repetitions == 288 for each in found.counts)


def test_the_first_epoch_of_a_fork_counts_as_those_of_fresh_trials_took() -> None:
    most = [each for each in made.run({"load_all": made.Planted(0.001)}, rounds=4) if each.case["data"] == "x16"]
    forked = [
        msgspec.structs.replace(each, process="forked", metrics=msgspec.structs.replace(each.metrics, epoch_time=0.001))
        for each in most[2:]
    ]
    fresh = [each.metrics.epoch_time or 0.0 for each in most[:2]]
    extras = replay._extras([*most[:2], *forked])
    assert len(extras) == 4
    for each in forked:
        assert extras[each.pairing] == pytest.approx(sum(fresh) / 2 - (each.metrics.steady_time or 0.0))


def test_a_replay_too_lets_what_happens_once_grow_as_in_trials_that_started_alike() -> None:
    trials = made.run({"load_all": made.Planted(0.001)}, rounds=4)
    later = [
        msgspec.structs.replace(
            each,
            process="fresh" if each.case["data"] == "x16" and each.round < 2 else "forked",
            metrics=msgspec.structs.replace(
                each.metrics,
                epoch_time=(each.metrics.epoch_time or 0) + 0.3 * (each.case["data"] == "x16" and each.round < 2),
            ),
        )
        for each in trials
    ]
    settings = choose.Settings(2**30, 0.0, samples=10_000)
    forked = [msgspec.structs.replace(each, process="forked") for each in trials]
    before, after = (replay._total(each, settings) for each in (forked, later))
    for index, seconds in before.items():
        assert after.get(index, after.get(~index)) == pytest.approx(seconds + 0.3, abs=0.1)


def test_an_installation_for_little_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_there = functools.partial(candidates.candidates, is_there=lambda _: False)
    monkeypatch.setattr(candidates, "candidates", nothing_there)
    monkeypatch.setattr(replay, "is_found", lambda _: False)
    records = made.run({"spdl_threads": made.Planted(0.00085), "path_generator": made.Planted(0.001)}, rounds=6)
    assert replay.replay(records)["installed for little"] == 0
    monkeypatch.setattr(choose.Reckoned, "_worthwhile", lambda _, allowed: allowed)
    assert replay.replay(records)["installed for little"] > 0
