from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from loaders import _registry
from loaders._advise import candidates
from loaders._advise.coverage import is_ours
from loaders._cli import main
from loaders._trial import log
from loaders._trial.log import PUBLISHED
from loaders._trial.record import Record
from tests.advise import made
from tests.conftest import ROOT

OWN = "mine"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOADERS_RESULTS", str(tmp_path))
    monkeypatch.setenv("LOADERS_MACHINE", OWN)
    return tmp_path


def write(root: Path, records: list[Record]) -> None:
    for each in records:
        log.append(root / each.environment.machine / "trials.jsonl", each)


def advise(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["advise", *arguments])


def answered(*arguments: str) -> dict[str, object]:
    done = advise("--json", *arguments)
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_the_published_results_answer_where_there_are_no_others(results: Path) -> None:
    write(results, made.run(where=made.environment(PUBLISHED)))
    found = answered()
    assert found["recommended"] == "tfdata_numpy_function"
    assert found["bottleneck"] is False
    assert str(found["because"]).startswith("Loading is not the bottleneck")
    assert found["settings"] == {"memory": 2**30, "step": 0.05, "batch": 32, "samples": 10_000, "epochs": 20}
    source = found["from"]
    assert isinstance(source, dict)
    assert (source["machine"], source["own"], source["rounds"], source["commit"]) == (PUBLISHED, False, 4, "a" * 8)
    strategies = found["strategies"]
    assert isinstance(strategies, list)
    assert {each["name"] for each in strategies} == set(_registry.variants("batching"))
    assert all(each["verdict"] for each in strategies)


def test_what_was_withdrawn_of_a_run_does_not_undo_its_answer(results: Path) -> None:
    published = made.run(where=made.environment(PUBLISHED))
    planned = [msgspec.structs.replace(each, planned=len(published) // 4) for each in published]
    write(results, [each for each in planned if each.strategy != "keras_pydataset_2"])
    assert answered()["recommended"] == "tfdata_numpy_function"


def test_what_is_committed_answers_a_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADERS_RESULTS", str(ROOT / "results"))
    monkeypatch.setenv("LOADERS_MACHINE", OWN)
    found = answered()
    assert found["recommended"], found["because"]
    source = found["from"]
    assert isinstance(source, dict)
    assert is_ours(source["machine"])


def test_the_machines_own_results_come_first(results: Path) -> None:
    write(results, made.run(where=made.environment(PUBLISHED), started="2027-01-01T00:00:00+00:00"))
    write(results, made.run(where=made.environment(OWN), rounds=3))
    source = answered()["from"]
    assert isinstance(source, dict)
    assert (source["machine"], source["own"], source["rounds"]) == (OWN, True, 3)


def test_own_results_that_tell_no_law_leave_the_answer_to_the_published_ones(results: Path) -> None:
    write(results, made.run(where=made.environment(PUBLISHED)))
    write(results, made.run(where=made.environment(OWN), amounts={"x16": 640}))
    source = answered()["from"]
    assert isinstance(source, dict)
    assert source["machine"] == PUBLISHED


def test_older_records_answer_nothing(results: Path) -> None:
    write(results, [msgspec.structs.replace(each, schema=1) for each in made.run()])
    found = answered()
    assert (found["recommended"], found["from"]) == (None, None)
    assert "python -m loaders compare batching" in str(found["because"])


def test_what_was_not_measured_is_said(results: Path) -> None:
    few = {name: made.BATCHING[name] for name in ("load_all", "path_generator", "tf1_queue")}
    write(results, made.run(few))
    found = answered()
    assert found["recommended"] == "path_generator"
    assert f"This covers 3 of {len(_registry.variants('batching'))} strategies" in str(found["because"])


def test_what_was_left_out_for_want_of_a_law_is_named(results: Path) -> None:
    """As after the first minutes of `make bench`, when all but the main strategies have run once."""
    few = {name: made.BATCHING[name] for name in ("path_generator", "tf1_queue", "tfdata_numpy_function")}
    write(results, [each for each in made.run(few) if each.round == 0 or each.strategy != "tfdata_numpy_function"])
    found = answered()
    assert found["recommended"] == "path_generator"
    assert "Left out, as what memory they need is unknown: tfdata_numpy_function." in str(found["because"])
    write(results, made.run(few, started="2026-02-02T03:04:05+00:00", name="later"))
    assert "Left out" not in str(answered()["because"])


def test_where_nothing_fits_the_least_memory_is_named(results: Path) -> None:
    write(results, made.run())
    found = answered("--memory", "8MiB")
    assert found["recommended"] is None
    assert "path_generator would fit into " in str(found["because"])


def test_where_no_law_is_known_it_says_what_to_measure(results: Path) -> None:
    write(results, made.run(amounts={"x4": 160, "x16": 640}))
    found = answered()
    assert found["recommended"] is None
    assert "10000 samples need is unknown for every eligible strategy" in str(found["because"])
    assert "a law needs 3" in str(found["because"])
    assert "To measure it: python -m loaders compare batching --case augment=off" in str(found["because"])
    assert answered("--samples", "640")["recommended"], "as much as was measured is known"


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ("small", "To measure it: python -m loaders compare batching --case augment=off --size full"),
        ("full", "The amounts that are measured by default end at 640 samples."),
        ("large", "The amounts that are measured by default end at 640 samples."),
    ],
)
def test_no_command_is_named_that_measures_no_more_than_there_is(results: Path, size: str, said: str) -> None:
    grows = {"path_generator": made.Planted(0.0016, memory=lambda samples: 20 + samples**0.5)}
    write(results, [msgspec.structs.replace(each, size=size) for each in made.run(grows)])
    found = answered()
    assert found["recommended"] is None
    assert said in str(found["because"])
    assert ("To measure it" in str(found["because"])) == (size == "small")


def test_a_strategy_with_a_failed_trial_is_not_recommended(results: Path) -> None:
    write(results, made.failed(made.run(), "tfdata_numpy_function"))
    found = answered()
    assert found["recommended"] == "path_generator_pool"
    strategies = found["strategies"]
    assert isinstance(strategies, list)
    (said,) = [each["verdict"] for each in strategies if each["name"] == "tfdata_numpy_function"]
    assert said == "failed in 1 of 12 trials: failed: ValueError: planted"


def test_two_processors_are_never_joined_and_a_run_that_went_on_after_a_commit_is_one() -> None:
    """It goes on only if the package's code is the same: what was committed is text."""
    records = made.run(rounds=4)
    for change, rounds in (({"commit": "b" * 40}, 4), ({"cpu": "Another CPU"}, 2)):
        other = msgspec.structs.replace(records[0].environment, **change)
        later = [msgspec.structs.replace(each, environment=other) if each.round >= 2 else each for each in records]
        run = candidates.pick(later, "batching", {"augment": "off"}, "box")
        assert len({each.environment.cpu for each in run}) == 1
        assert len({each.round for each in run}) == rounds
    joined = candidates.source(records, {"augment": "off"}, [], "box")
    assert joined.commit == "a" * 8


def test_a_run_without_a_whole_round_answers_nothing() -> None:
    assert not candidates.pick(made.run(rounds=1)[:-1], "batching", {"augment": "off"}, "box")


def test_the_newest_run_answers() -> None:
    old, new = made.run(name="old"), made.run(name="new", started="2026-05-01T00:00:00+00:00")
    assert {each.run for each in candidates.pick([*new, *old], "batching", {"augment": "off"}, "box")} == {"new"}


def _full(records: Iterable[Record]) -> list[Record]:
    return [msgspec.structs.replace(each, size="full") for each in records]


def test_the_published_set_answers_before_newer_ones_of_other_machines() -> None:
    """The page and the command line say the same to a stranger."""
    published = _full(made.run(name="p", where=made.environment(PUBLISHED)))
    newer = made.run(name="n", where=made.environment("another"), started="2026-05-01T00:00:00+00:00")
    own = made.run(name="o", where=made.environment(OWN))
    for records, name in (([*newer, *published], "p"), ([*newer, *published, *own], "o"), ([*newer], "n")):
        assert {each.run for each in candidates.pick(records, "batching", {"augment": "off"}, OWN)} == {name}


@pytest.mark.parametrize(
    ("machine", "strategies", "rounds", "wins"),
    [
        ("reference-x", 15, 4, True),
        ("reference-x", 14, 5, True),
        ("reference-x", 14, 4, False),
        ("reference-x", 11, 5, False),
        ("reference-x", 15, 3, False),
        ("anybody", 15, 5, False),
    ],
)
def test_another_of_our_machines_answers_if_it_has_measured_more(
    machine: str, strategies: int, rounds: int, *, wins: bool
) -> None:
    def of(count: int, rounds: int, machine: str) -> list[Record]:
        planted = dict(list(made.BATCHING.items())[:count])
        return _full(made.run(planted, rounds, name=machine, where=made.environment(machine)))

    records = [*of(14, 4, PUBLISHED), *of(strategies, rounds, machine)]
    own = of(2, 1, OWN)
    assert {each.run for each in candidates.pick(records, "batching", {"augment": "off"}, OWN)} == {
        machine if wins else PUBLISHED
    }
    assert {each.run for each in candidates.pick([*records, *own], "batching", {"augment": "off"}, OWN)} == {OWN}


def test_of_two_that_have_measured_as_much_the_one_answers_whose_epochs_end_with_their_iterators() -> None:
    published = _full(made.run(name="p", where=made.environment(PUBLISHED)))
    closed = [
        msgspec.structs.replace(each, metrics=msgspec.structs.replace(each.metrics, closing_time=0.001))
        for each in _full(made.run(name="c", where=made.environment("reference-x")))
    ]
    for records in ([*published, *closed], [*closed, *published]):
        assert {each.run for each in candidates.pick(records, "batching", {"augment": "off"}, OWN)} == {"c"}


def test_somebodys_own_folder_answers_nothing_for_a_stranger() -> None:
    published = _full(made.run(name="p", where=made.environment(PUBLISHED)))
    more = _full(made.run(name="m", rounds=8, where=made.environment("reference-x")))
    own = [msgspec.structs.replace(each, data="own folder, 9 images, key") for each in more]
    assert {each.run for each in candidates.pick([*published, *own], "batching", {"augment": "off"}, OWN)} == {"p"}
    later = [msgspec.structs.replace(each, environment=made.environment(PUBLISHED)) for each in own]
    later = [msgspec.structs.replace(each, started="2026-06-01T00:00:00+00:00") for each in later]
    assert {each.run for each in candidates.pick([*published, *later], "batching", {"augment": "off"}, OWN)} == {"p"}


def test_less_than_the_published_size_of_data_answers_nothing_for_a_stranger() -> None:
    published = _full(made.run(name="p", where=made.environment(PUBLISHED)))
    more = made.run(name="m", rounds=8, where=made.environment("reference-x"))
    assert {each.run for each in candidates.pick([*published, *more], "batching", {"augment": "off"}, OWN)} == {"p"}


def test_the_newest_run_of_a_machine_stands_for_it() -> None:
    """As in the README, whose sets are of each question's newest run."""
    old = _full(made.run(name="old", rounds=8, where=made.environment(PUBLISHED)))
    new = made.run(name="new", rounds=4, where=made.environment(PUBLISHED), started="2026-05-01T00:00:00+00:00")
    assert {each.run for each in candidates.pick([*old, *_full(new)], "batching", {"augment": "off"}, OWN)} == {"new"}


def test_the_terminal_says_the_answer_first(results: Path) -> None:
    write(results, made.run(where=made.environment(PUBLISHED)))
    done = advise()
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Use tfdata_numpy_function.\nLoading is not the bottleneck")
    assert "published results, not from this machine" in done.stdout.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--step", "0"], "is not a duration"),
        (["--step", "0ms"], "is not a duration"),
        (["--step", "-5ms"], "is not a duration"),
        (["--step", "50"], "is not a duration"),
        (["--step", "nanms"], "is not a duration"),
        (["--step", "1e-200s"], "is not a duration"),
        (["--step", "1e308s"], "is not a duration"),
        (["--memory", "0"], "is not an amount of memory"),
        (["--batch", "0"], "--batch"),
        (["--samples", "0"], "--samples"),
        (["--epochs", "0"], "--epochs"),
        (["--question", "selection"], "does not help to choose a loader"),
        (["--question", "nonsense"], "nonsense"),
        (["--case", "data=x4"], "--samples"),
        (["--case", "augment=maybe"], "augment must be one of"),
    ],
)
def test_bad_input_is_one_message(results: Path, arguments: list[str], said: str) -> None:
    done = advise(*arguments)
    assert done.exit_code == 2
    assert said in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("step", "seconds"), [("none", 0.0), ("50ms", 0.05), ("0.2s", 0.2), ("2 s", 2.0), ("500us", 5e-4), ("7 µs", 7e-6)]
)
def test_a_step_is_a_time_or_none(results: Path, step: str, seconds: float) -> None:
    found = answered("--step", step)["settings"]
    assert isinstance(found, dict)
    assert found["step"] == pytest.approx(seconds)
