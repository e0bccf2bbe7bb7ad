"""What asv is handed: samples, ``None`` for failed, NaN for not applicable, a skip for what was not compared."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from asv_runner.discovery import disc_benchmarks

import benchmarks.selection
from benchmarks import _base
from loaders import _compare, _registry
from loaders._corpus import Corpus
from loaders._durable import owned
from loaders._errors import InputError
from loaders._trial import Record, log
from loaders._trial.metrics import Metrics
from loaders._words import case_in_words
from tests.conftest import ROOT
from tests.test_compare import Runner, stand_in_for_trials
from tests.test_rows import record


@pytest.fixture(scope="module")
def discovered() -> dict[str, Any]:
    return {each.name: each for each in disc_benchmarks(str(ROOT / "benchmarks"))}


@pytest.mark.python
def test_each_question_has_both_instruments_and_no_base_class_is_discovered(discovered: dict[str, Any]) -> None:
    for question in _registry.questions():
        expected = {f"{question}.Comparison.track_{metric}" for metric in ("epoch_time", "peak_memory")}
        expected |= {f"{question}.Drain.time_epoch", f"{question}.Drain.peakmem_epoch"}
        assert expected <= discovered.keys()
    assert not [name for name in discovered if name.startswith("_")]


def test_each_question_has_a_comparison_of_its_own(discovered: dict[str, Any]) -> None:
    keys = {name.split(".")[0]: each.setup_cache_key for name, each in discovered.items() if ".Comparison." in name}
    assert len(set(keys.values())) == len(keys) == len(_registry.questions())


def test_each_has_a_name_to_read_of_its_own(discovered: dict[str, Any]) -> None:
    names = {each.name: each.pretty_name for each in discovered.values()}
    assert len(set(names.values())) == len(names)
    assert names["batching.Comparison.track_steady_time"] == "batching: steady time"


def test_units_are_seconds_and_bytes_only(discovered: dict[str, Any]) -> None:
    """asv reads "larger" as "worse", whatever the unit."""
    assert {each.unit for each in discovered.values()} == {"seconds", "bytes"}
    assert all(each.unit == "bytes" for name, each in discovered.items() if "memory" in name or "mem_" in name)


def test_what_asv_times_itself_runs_once(discovered: dict[str, Any]) -> None:
    own = [each for name, each in discovered.items() if name.endswith(".Drain.time_epoch")]
    assert {(each.rounds, each.repeat, each.number, each.warmup_time) for each in own} == {(1, 1, 1, 0)}


def test_asv_knows_the_benchmarks_that_there_are(discovered: dict[str, Any]) -> None:
    """What is published, and what is left out as older, goes by this file: ``asv run --bench just-discover``."""
    held = json.loads((ROOT / "results/benchmarks.json").read_text("utf-8"))
    del held["version"]
    assert {name: each["version"] for name, each in held.items()} == {
        name: each.version for name, each in discovered.items()
    }


def test_parameters_are_the_registry_of_the_working_tree() -> None:
    params, names = _base.parameters("resize")
    assert params[0] == list(_registry.variants("resize"))
    assert (params[1], names) == (["scale 224x224", "scale 0.5", "scale 2.0", "scale 3.5"], ["strategy", "case"])


def test_only_cases_that_comparisons_run_are_parameters() -> None:
    for name, question in _registry.questions().items():
        params, names = _base.parameters(name)
        assert params[1:] == ([[case_in_words(case) for case in question.cases]] if question.axes else [])
        assert len(params) == len(names)


def test_a_file_with_the_registry_spares_asking_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {"selection": {"strategies": [{"name": "of_a_file"}], "cases": {"images 7": {"images": "7"}}}}
    (tmp_path / "list.json").write_text(json.dumps(listed))
    monkeypatch.setenv("LOADERS_LIST", str(tmp_path / "list.json"))
    _base.listed.cache_clear()
    try:
        assert _base.parameters("selection") == ([["of_a_file"], ["images 7"]], ["strategy", "case"])
    finally:
        _base.listed.cache_clear()


def _hand_out(records: list[Record], strategy: str, images: str = "500", metric: str = "epoch_time") -> Any:
    comparison, case = benchmarks.selection.Comparison(), f"images {images}"
    comparison.setup(records, strategy, case)
    return getattr(comparison, f"track_{metric}")(records, strategy, case)


RECORDS = [
    record("mixed_copy", 0, time=2.0, peak=1),
    record("mixed_copy", 1, time=3.0, peak=2),
    record("mixed_copy", 1, status="failed"),
    record("list_to_list", 0, status="over_budget"),
    record("mixed_tolist", 0, status="skipped"),
]


def test_samples_are_those_of_good_trials() -> None:
    assert _hand_out(RECORDS, "mixed_copy") == {"samples": [2.0, 3.0], "number": 1}
    assert _hand_out(RECORDS, "mixed_copy", metric="peak_memory")["samples"] == [2**20, 2**21]


def test_a_strategy_that_went_wrong_is_failed_not_fast() -> None:
    assert _hand_out(RECORDS, "list_to_list") is None


def test_start_figures_are_those_of_fresh_trials_and_all_others_those_of_forks_if_there_are_any() -> None:
    metrics = [Metrics(epoch_time=1.0 + index, first_batch_time=0.1 + index) for index in range(2)]
    records = [record("numpy_to_numpy", index, metrics=each) for index, each in enumerate(metrics)]
    records[1] = msgspec.structs.replace(records[1], process="forked")
    assert _hand_out(records, "numpy_to_numpy", metric="first_batch_time") == {"samples": [0.1], "number": 1}
    assert _hand_out(records, "numpy_to_numpy") == {"samples": [2.0], "number": 1}
    assert _hand_out(records[:1], "numpy_to_numpy") == {"samples": [1.0], "number": 1}


def test_a_metric_that_does_not_apply_is_not_a_number() -> None:
    assert math.isnan(_hand_out(RECORDS, "mixed_copy", metric="retained_memory"))


@pytest.mark.parametrize(
    ("strategy", "images"), [("numpy_to_list", "500"), ("mixed_copy", "2000"), ("mixed_tolist", "500")]
)
def test_what_was_not_compared_is_skipped(strategy: str, images: str) -> None:
    with pytest.raises(NotImplementedError):
        _hand_out(RECORDS, strategy, images)


@pytest.mark.python
@pytest.mark.usefixtures("corpus")
def test_the_second_instrument_drains_each_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADERS_SIZE", "tiny")
    drain: Any = benchmarks.selection.Drain()
    drain.setup("permutation_index")
    drain.time_epoch("permutation_index")
    with pytest.raises(NotImplementedError, match="does not have the strategy"):
        drain.setup("of_tomorrow")
    variant = _registry.find_variant("selection", "permutation_index")
    known = {**_registry.variants("selection"), "elsewhere": dataclasses.replace(variant, optional=("not_there",))}
    monkeypatch.setattr(_registry, "variants", lambda _: known)
    monkeypatch.setattr(_registry, "find_variant", lambda _, name: known[name])
    with pytest.raises(NotImplementedError, match="not installed"):
        drain.setup("elsewhere")


@pytest.fixture
def full_suite(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, _registry.Question]]:
    """Return what sets the full suite up with some of the questions, and returns them."""
    large = dataclasses.replace(corpus, manifest=msgspec.structs.replace(corpus.manifest, size="full"))
    monkeypatch.setattr(_base, "corpus", lambda: large)
    monkeypatch.setenv("LOADERS_FULL", "1")

    def asks(*names: str, apart: str = "") -> dict[str, _registry.Question]:
        asked = {name: dataclasses.replace(_registry.find_question(name), apart=name == apart) for name in names}
        monkeypatch.setattr(_registry, "questions", lambda: asked)
        return asked

    return asks


def test_the_full_suite_begins_with_the_default_cases_that_answers_rest_on(
    full_suite: Callable[..., dict[str, _registry.Question]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["selection", "resize", "calibration", "decode"]
    asked = full_suite(*names, apart="decode")
    stand_in_for_trials(monkeypatch, Runner())
    monkeypatch.setenv("LOADERS_ROUNDS", "1")
    found = {name: _base.compare(name) for name in names}

    logged = log.read(log.log_path("tested"))
    assert len(logged) == sum(map(len, found.values())), "nothing is measured twice"
    is_default = [each.question != "decode" and each.case in asked[each.question].default_cases for each in logged]
    first = sum(is_default)
    assert is_default == [True] * first + [False] * (len(logged) - first)
    assert {each.question for each in logged[:first]} == {"selection", "resize", "calibration"}
    assert logged[0].question == "calibration"
    for name in names:
        assert {tuple(each.case.items()) for each in found[name]} == {tuple(each.items()) for each in asked[name].cases}
    assert [_base.compare(name) for name in names] == [*found.values()], "a whole suite finds everything there"
    assert len(log.read(log.log_path("tested"))) == len(logged)


def test_an_interrupted_full_suite_goes_on_where_it_stopped(
    full_suite: Callable[..., dict[str, _registry.Question]], monkeypatch: pytest.MonkeyPatch
) -> None:
    full_suite("selection", "resize")
    runner = Runner()
    stand_in_for_trials(monkeypatch, runner)
    monkeypatch.setenv("LOADERS_ROUNDS", "1")
    runner.stop_at = 20
    with pytest.raises(KeyboardInterrupt):
        _base.compare("selection")
    runner.stop_at = None
    found = _base.compare("selection")
    assert max(Counter(runner.ran).values()) == 1
    assert {each.strategy for each in found} == set(_registry.variants("selection"))


def test_the_full_suite_runs_default_cases_eight_times_and_then_what_is_open(
    full_suite: Callable[..., dict[str, _registry.Question]], monkeypatch: pytest.MonkeyPatch
) -> None:
    full_suite("resize")
    begun: list[_compare.Plan] = []

    def run_together(plans: Sequence[_compare.Plan], **_: object) -> dict[str, list[Record]]:
        begun.extend(plans)
        return {}

    def run(planned: _compare.Plan, **_: object) -> list[Record]:
        begun.append(planned)
        return []

    monkeypatch.setattr(_compare, "run_together", run_together)
    monkeypatch.setattr(_compare, "run", run)
    _base.compare("resize")
    assert [(each.rounds, each.until, len(each.cases)) for each in begun] == [(8, None, 1), (24, 0.05, 4)]


@pytest.mark.usefixtures("corpus")
def test_nothing_is_drained_while_a_comparison_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADERS_SIZE", "tiny")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    drain: Any = benchmarks.selection.Drain()
    with log.exclusive("tested"), pytest.raises(InputError, match="under way"):
        drain.setup("permutation_index")
    drain.setup("permutation_index")
    with pytest.raises(InputError, match="under way"), log.exclusive("tested"):
        pass
    drain.teardown("permutation_index")
    with log.exclusive("tested"):
        pass


@pytest.mark.usefixtures("corpus")
def test_what_a_killed_drain_has_left_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADERS_SIZE", "tiny")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    ours = owned(_base.DRAINED).removesuffix(f"{os.getpid()}-")
    (tmp_path / f"{ours}{ended.pid}-left").mkdir()
    drain: Any = benchmarks.selection.Drain()
    drain.setup("permutation_index")
    (there,) = tmp_path.glob("loaders-drain-*")
    assert there == drain.job.directory
    drain.teardown("permutation_index")
    assert not [*tmp_path.glob("loaders-drain-*")]


@pytest.mark.parametrize(
    ("variable", "value"), [("LOADERS_SIZE", "huge"), ("LOADERS_ROUNDS", "x"), ("LOADERS_ROUNDS", "0")]
)
def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InputError, match=f"{variable}={value}"):
        _base.compare("selection")
