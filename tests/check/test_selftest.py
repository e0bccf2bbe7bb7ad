from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm

from loaders._check import selftest, sides, trials
from loaders._check.judge import Block, Judgement, judge
from loaders._check.run import Outcome
from loaders._check.sides import Side
from loaders._check.trials import Runs
from loaders._cli.selftest import command
from loaders._corpus import Corpus
from loaders._errors import InputError
from loaders._stats import Estimate
from loaders._trial import log, machine, run_trial
from loaders._trial.metrics import Metrics
from tests.conftest import ROOT
from tests.trial.test_log import RECORD

MIB = 2**20
TIMES = {"same": 1.0, "time_5": 1.05, "time_10": 1.1, "time_20": 1.2}
MEMORY = {"same": 0, "memory_1": 1, "memory_8": 8, "memory_64": 64}


def _simulated(spread: float) -> Any:
    random = np.random.default_rng(1)

    def trial(strategy: str) -> dict[str, Any]:
        time = TIMES.get(strategy, 1.0) * float(np.exp(random.normal(0, spread)))
        peak = (16 + MEMORY.get(strategy, 0)) * MIB + int(random.normal(0, 2**15))
        record = msgspec.structs.replace(RECORD, message="", metrics=Metrics(epoch_time=time, peak_memory=peak))
        return cast("dict[str, Any]", msgspec.to_builtins(record))

    return lambda kind: Runs(lambda _: trial(kind.same), lambda _: trial(kind.twin))


def test_kinds_are_counted_by_what_the_check_says(tmp_path: Path) -> None:
    found = {each.kind: each for each in selftest.selftest(8, 1e6, _simulated(0.02), tmp_path / selftest.NAME)}
    assert {name: each.checks for name, each in found.items() if each.checks != 8} == {
        "+20 % of time": 2,
        "+5 % of time": 1,
        "+1 MiB": 2,
        "+64 MiB": 2,
    }
    assert found["nothing"].alarms == 0
    assert found["nothing"].verdicts == {"no difference": 16}
    assert (found["+10 % of time"].alarms, found["+8 MiB"].alarms) == (8, 8)
    assert found["+1 MiB"].alarms == 0, "within the margin"
    assert found["nothing"].spread == pytest.approx(0.02, rel=0.5)


def test_a_check_that_cries_wolf_shows(tmp_path: Path) -> None:
    kind = selftest.Kind("nothing", "time_20", ("time",))  # planted, though it says that it is not
    (found,) = selftest.selftest(4, 1e6, _simulated(0.02), tmp_path / selftest.NAME, [kind])
    assert found.alarms == 4
    assert selftest.line(found)[2] == "4 (100%)"


def test_faster_is_a_false_alarm_too_where_nothing_is_planted(tmp_path: Path) -> None:
    outcome = Outcome("nothing", Judgement("faster", Estimate(0.9, 0.89, 0.91, 8), 1.0, 0.9, 8), None)
    nothing, planted = selftest.KINDS[:2]
    assert (selftest.tally(nothing, [outcome]).alarms, selftest.tally(planted, [outcome]).alarms) == (1, 0)


@pytest.mark.parametrize(("twin", "code"), [("same", 0), ("time_20", 1)])
def test_the_command_says_whether_anything_was_called_different_where_nothing_was_planted(
    corpus: Corpus, results: Path, monkeypatch: pytest.MonkeyPatch, twin: str, code: int
) -> None:
    kind = selftest.Kind("nothing", twin, ("time",))
    runs = _simulated(0.02)(kind)
    side = Side("own", ROOT, Path(sys.executable), results)
    stand_in = SimpleNamespace(of=lambda *_: runs, start_of=lambda _: "fresh", begin=lambda _: None)
    given: list[float] = []
    really = selftest.selftest

    def measured(checks: int, seconds: float, *rest: Any, **more: Any) -> Any:
        given.append(seconds)
        return really(checks, 1e6, *rest, **more)

    monkeypatch.setattr("loaders._cli.options.open_corpus", lambda *_, **__: corpus)
    monkeypatch.setattr(sides, "side", lambda *_: side)
    monkeypatch.setattr(trials, "trials", lambda *_: contextlib.nullcontext(stand_in))
    monkeypatch.setattr(selftest, "KINDS_OF", {"python": [kind]})
    monkeypatch.setattr(selftest, "selftest", measured)
    done = CliRunner().invoke(command, ["--checks", "3", "--minutes", "2", "--json"])
    assert done.exit_code == code, done.output
    (tally,) = json.loads(done.stdout)
    assert (tally["checks"], tally["alarms"]) == (3, 3 * code)
    assert given == [120.0]
    assert (results / "tested" / selftest.NAME).exists()


def test_an_interrupted_selftest_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "TOGETHER", 1)
    path = tmp_path / "box" / selftest.NAME
    ran: list[str] = []

    def stop(tally: selftest.Tally) -> None:
        ran.append(tally.kind)
        if len(ran) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        selftest.selftest(2, 1e6, _simulated(0.02), path, told=stop)
    kept, runs = path.read_bytes(), _simulated(0.02)

    def stopped(kind: selftest.Kind) -> Runs:
        def b(seed: int) -> dict[str, Any]:
            if seed > 1001:
                raise KeyboardInterrupt
            return cast("dict[str, Any]", runs(kind).b(seed))

        return Runs(runs(kind).a, b)

    with pytest.raises(KeyboardInterrupt):
        selftest.selftest(2, 1e6, stopped, path, selftest.KINDS[1:2])
    assert path.read_bytes() == kept, "the check that was interrupted is none"
    with path.open("ab") as file:
        file.write(b'{"cut')
    done = selftest.selftest(2, 1e6, _simulated(0.02), path, told=lambda tally: ran.append(tally.kind))
    assert [(each.kind, each.checks) for each in done[:3]] == [("nothing", 2), ("+10 % of time", 2), ("+8 MiB", 2)]
    assert ran.count("nothing") == 2, "not again"
    said: list[str] = []
    found = selftest.newest(path, said.append)
    assert found
    assert [each.checks for each in found.tallies] == [each.checks for each in done]
    assert len(said) == 1
    assert found.environment.machine == "tested"
    monkeypatch.setattr(selftest, "key", lambda _: "another code")
    selftest.selftest(1, 1e6, _simulated(0.02), path, selftest.KINDS[:1])
    assert [each.checks for each in (selftest.newest(path) or found).tallies] == [1]
    assert selftest.newest(tmp_path / "nowhere") is None


def test_checks_share_their_servers_and_nothing_else(tmp_path: Path) -> None:
    begun: list[bool] = []
    runs, kinds = _simulated(0.02), selftest.KINDS[:1]
    asked: list[str] = []

    def counted(kind: selftest.Kind) -> Runs:
        asked.append(kind.name)
        return runs(kind)

    (found,) = selftest.selftest(
        selftest.TOGETHER + 1, 1e6, counted, tmp_path / "log", kinds, begin=lambda: begun.append(True)
    )
    assert found.checks == len(asked) == selftest.TOGETHER + 1, "each has its own proofs"
    assert len(begun) < sum(found.blocks), "rounds are shared"
    assert max(found.blocks) <= len(begun)


def test_forked_and_fresh_trials_are_counted_apart(tmp_path: Path) -> None:
    path, kinds = tmp_path / "log", selftest.KINDS[:1]
    begun: list[bool] = []
    selftest.selftest(2, 1e6, _simulated(0.02), path, kinds)
    (forked,) = selftest.selftest(
        1, 1e6, _simulated(0.02), path, kinds, start="forked", begin=lambda: begun.append(True)
    )
    assert (forked.start, forked.checks) == ("forked", 1)
    assert len(begun) >= 4, "before each round of blocks"
    (newest,) = (selftest.newest(path) or pytest.fail("nothing read")).tallies
    assert (newest.start, newest.checks) == ("forked", 1)
    (fresh,) = selftest.selftest(2, 1e6, _simulated(0.02), path, kinds, told=lambda _: pytest.fail("again"))
    assert (fresh.start, fresh.checks) == ("fresh", 2)


def test_a_check_that_judged_nothing_is_none(tmp_path: Path) -> None:
    path, kinds = tmp_path / "log", selftest.KINDS[:1]

    def failed(seed: int) -> dict[str, Any]:
        return {"status": "failed", "message": "no memory"}

    with pytest.raises(InputError, match="nothing: no check has judged anything: A failed: no memory"):
        selftest.selftest(2, 1e6, lambda _: Runs(failed, failed), path, kinds)
    assert not path.exists()
    selftest.selftest(1, 1e6, _simulated(0.02), path, kinds)
    (logged,) = selftest._read(path)
    unfinished = Outcome("nothing", None, None, "not measured: the time was up")
    alarm = Outcome("nothing", None, None, "B failed: no memory", broken=True)
    for each in (unfinished, alarm):  # as older code logged them
        log.append(path, msgspec.structs.replace(logged, outcome=each))
    (tally,) = (selftest.newest(path) or pytest.fail("nothing read")).tallies
    assert (tally.checks, tally.alarms) == (2, 1)


@pytest.mark.parametrize(("name", "other"), [("packages", {"numpy": "0.1"}), ("processor", "Another")])
def test_checks_with_other_versions_or_processors_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, name: str, other: object
) -> None:
    before = selftest.key(1.0)
    assert selftest.key(1.0) == before
    assert selftest.key(2.0) != before, "shorter checks find less"
    monkeypatch.setattr(machine, name, lambda: other)
    assert selftest.key(1.0) != before


@pytest.mark.parametrize("blocks", [4, 48])
def test_a_known_spread_is_found_again_with_and_without_trimming(blocks: int) -> None:
    ratios = [float(np.exp(0.05 * norm.ppf((index + 0.5) / blocks))) for index in range(blocks)]
    judged = judge("time", [Block((1.0,), (each,)) for each in ratios], selftest.QUESTIONS)
    assert selftest._spread(Outcome("x", judged, None)) == pytest.approx(0.05, rel=0.03)


@given(total=st.integers(1, 60), data=st.data())
def test_the_interval_of_a_share_is_the_exact_one(total: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, total))
    expected = binomtest(count, total).proportion_ci(0.95, method="exact")
    assert selftest.proportion(count, total) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_more_blocks_detect_less() -> None:
    found = [selftest.detectable(0.05, each) for each in (6, 11, 20, 36)]
    assert found == sorted(found, reverse=True)
    assert all(each > 1.02 for each in found)


def test_power_is_stated_of_each_subject_from_its_own_spread() -> None:
    tallies = [
        selftest.Tally(kinds[0].name, 8, {}, 0, [8], spread)
        for kinds, spread in zip(selftest.KINDS_OF.values(), (0.02, 0.05), strict=True)
    ]
    python, tensorflow = selftest.sentences(tallies)
    assert "Python subject" in python
    assert "2.0%" in python
    assert "tf.data subject" in tensorflow
    assert "5.0%" in tensorflow
    assert selftest.sentences(tallies[1:]) == [tensorflow]


def test_an_older_selftest_is_read_with_todays_word(tmp_path: Path) -> None:
    selftest.selftest(1, 1e6, _simulated(0.02), tmp_path / "log", selftest.KINDS[:1])
    text = (tmp_path / "log").read_text().replace('"verdict":"no difference"', '"verdict":"inconclusive"')
    (tmp_path / "log").write_text(text)
    (tally,) = (selftest.newest(tmp_path / "log") or pytest.fail("nothing read")).tallies
    assert tally.verdicts == {"undecided": 2}


def _planned(subject: str, corpus: Any) -> Any:
    from loaders import _compare, _registry

    _registry.load_files([selftest.FILE])
    question, kinds = selftest.QUESTIONS_OF[subject], selftest.KINDS_OF[subject]
    assert {kind.twin for kind in kinds} | {kind.same for kind in kinds} <= set(_registry.variants(question))
    return _compare.plan(question, corpus, outside=(str(selftest.FILE),))


def test_the_planted_strategies_hold_what_they_say(corpus: Any, forget: Any) -> None:
    planned = _planned("python", corpus)
    peaks = {}
    for name in ("same", "memory_8", "memory_64"):
        record = run_trial(planned.trial(name, planned.cases[0], 1), corpus)
        assert record.status == "ok", record.message
        peaks[name] = record.metrics.peak_memory or 0
    assert peaks["memory_8"] - peaks["same"] == pytest.approx(8 * MIB, abs=MIB)
    assert peaks["memory_64"] - peaks["same"] == pytest.approx(64 * MIB, abs=MIB)


@pytest.mark.slow
def test_what_is_planted_in_tensorflow_delivers_the_same(corpus: Any, forget: Any) -> None:
    planned = _planned("tensorflow", corpus)
    record = run_trial(planned.trial("tf_time_20", planned.cases[0], 1), corpus)
    assert record.status == "ok", record.message
    assert (record.metrics.samples or 0) == len(corpus.image_paths)
