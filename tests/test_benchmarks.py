"""What asv is handed: samples, ``None`` for failed, NaN for not applicable, a skip for what was not compared."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import msgspec
import pytest
from asv_runner.discovery import disc_benchmarks

import benchmarks.selection
from benchmarks import _base
from loaders import _registry
from loaders._corpus import Corpus
from loaders._errors import InputError
from loaders._trial import Record, log
from loaders._trial.metrics import Metrics
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
    assert {(each.rounds, each.repeat, each.number) for each in own} == {(1, 1, 1)}


def test_parameters_are_the_registry_of_the_working_tree() -> None:
    params, names = _base.parameters("resize")
    assert params[0] == list(_registry.variants("resize"))
    assert (params[1], names) == (["0.5", "2.0", "3.5", "224x224"], ["strategy", "scale"])


def _hand_out(records: list[Record], strategy: str, images: str = "500", metric: str = "epoch_time") -> Any:
    comparison = benchmarks.selection.Comparison()
    comparison.setup(records, strategy, images)
    return getattr(comparison, f"track_{metric}")(records, strategy, images)


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


def test_the_full_suite_begins_with_the_default_cases_of_every_question(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _registry.questions()
    names = ["selection", "resize", "calibration"]
    runner = Runner()
    stand_in_for_trials(monkeypatch, runner)
    monkeypatch.setattr(
        _base,
        "corpus",
        lambda: dataclasses.replace(corpus, manifest=msgspec.structs.replace(corpus.manifest, size="full")),
    )
    monkeypatch.setattr(_registry, "questions", lambda: {name: asked[name] for name in names})
    monkeypatch.setenv("LOADERS_FULL", "1")
    monkeypatch.setenv("LOADERS_ROUNDS", "1")
    found = {name: _base.compare(name) for name in names}

    logged = log.read(log.log_path("tested"))
    assert len(logged) == sum(map(len, found.values())), "nothing is measured twice"
    is_default = [each.case in asked[each.question].default_cases for each in logged]
    first = sum(is_default)
    assert is_default == [True] * first + [False] * (len(logged) - first)
    assert {each.question for each in logged[:first]} == set(names)
    assert logged[0].question == "calibration"
    for name in names:
        assert {tuple(each.case.items()) for each in found[name]} == {tuple(each.items()) for each in asked[name].cases}
    assert [_base.compare(name) for name in names] == [*found.values()], (
        "an interrupted suite goes on from what is there"
    )
    assert len(log.read(log.log_path("tested"))) == len(logged)


@pytest.mark.parametrize(
    ("variable", "value"), [("LOADERS_SIZE", "huge"), ("LOADERS_ROUNDS", "x"), ("LOADERS_ROUNDS", "0")]
)
def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InputError, match=f"{variable}={value}"):
        _base.compare("selection")
