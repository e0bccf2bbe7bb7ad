from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loaders._report import sets
from loaders._trial import log
from loaders._trial.record import Environment, Record
from tests.report.runs import run_of, write_log
from tests.test_rows import record


def test_the_newest_run_with_a_whole_round_is_shown(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("old", "2026-01-01T00:00:00+00:00"))
    write_log(tmp_path, run_of("new", "2026-02-01T00:00:00+00:00"))
    broken = run_of("broken off", "2026-03-01T00:00:00+00:00", rounds=1)[:1]
    write_log(tmp_path, [msgspec.structs.replace(each, planned=2) for each in broken])
    write_log(tmp_path, [record("numpy_to_list", 0, time=9.0, run="")])  # a single trial by hand
    newest, replaced = (each.comparisons[0].run for each in sets.collect(tmp_path))
    assert (newest, replaced) == ("new", "old")


def test_an_interrupted_run_does_not_displace_a_whole_one(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("whole", "2026-01-01T00:00:00+00:00"))
    part = [msgspec.structs.replace(each, planned=3) for each in run_of("part", "2026-02-01T00:00:00+00:00", rounds=1)]
    write_log(tmp_path, part)
    ((found,),) = [each.comparisons for each in sets.collect(tmp_path)]
    assert found.run == "whole"


@pytest.mark.parametrize(("rounds", "amounts", "shown"), [(4, 1, "old"), (5, 1, "new"), (1, 2, "new")])
@pytest.mark.parametrize("size", ["full", "small"])
def test_a_run_of_the_default_amount_alone_does_not_displace_one_with_laws_of_memory(
    tmp_path: Path, rounds: int, amounts: int, shown: str, size: str
) -> None:
    """At the published size the others begin with its fourth round."""

    def run(name: str, month: int, rounds: int, amounts: int) -> list[Record]:
        more: dict[str, Any] = {"started": f"2026-0{month}-01T00:00:00+00:00", "planned": 1, "size": size, "run": name}
        return [
            record("no_cache", index, time=1.0, question="caching", case={"data": data}, **more)
            for index in range(rounds)
            for data in ("x16", "x1")[:amounts]
        ]

    write_log(tmp_path, run("old", 1, 2, 2), commit="a" * 40)
    write_log(tmp_path, run("new", 2, rounds, amounts), commit="b" * 40)
    first, *_ = sets.collect(tmp_path)
    assert first.comparisons[0].run == (shown if size == "full" else "new")


@pytest.mark.parametrize(("amounts", "shown"), [(1, "old"), (2, "new")])
def test_a_run_whose_strategies_had_their_turn_is_not_shown_before_its_first_round_is_whole(
    tmp_path: Path, amounts: int, shown: str
) -> None:
    """On a large budget that round goes on after the turns, which are of the default amount."""

    def run(name: str, month: int, ran: list[tuple[int, str]]) -> list[Record]:
        more: dict[str, Any] = {
            "started": f"2026-0{month}-01T00:00:00+00:00",
            "planned": 2,
            "size": "small",
            "run": name,
        }
        return [
            record("no_cache", each, time=1.0, question="caching", case={"data": data}, **more) for each, data in ran
        ]

    write_log(tmp_path, run("old", 1, [(0, "x16"), (0, "x1")]), commit="a" * 40)
    write_log(tmp_path, run("new", 2, [(0, "x16"), (3, "x16"), (0, "x1")][: 1 + amounts]), commit="b" * 40)
    first, *_ = sets.collect(tmp_path)
    assert first.comparisons[0].run == shown
    assert first.comparisons[0].rounds == {"old": 1, "new": 2}[shown]


@pytest.mark.parametrize(
    ("key", "case", "shown"),
    [
        ("same", {"images": "500"}, {("500", "list_to_list")}),
        ("other", {"images": "500"}, set()),
        ("same", {"images": "2000"}, {("500", "list_to_list"), ("2000", "mixed_copy")}),
    ],
)
def test_what_measures_the_same_again_is_shown_once_it_has_got_as_far(
    tmp_path: Path, key: str, case: dict[str, str], shown: set[tuple[str, str]]
) -> None:
    """On a time budget a run begins with few strategies: they must not hide what is known of all."""

    def run(name: str, month: int, strategies: tuple[str, ...], case: dict[str, str]) -> list[Record]:
        started = f"2026-0{month}-01T00:00:00+00:00"
        return [
            record(each, index, time=1.0, run=name, started=started, case=case, planned=len(strategies))
            for index in range(2)
            for each in strategies
        ]

    every = ("numpy_to_numpy", "mixed_copy", "list_to_list")
    write_log(tmp_path, run("old-same", 1, every, {"images": "500"}))
    write_log(tmp_path, run(f"new-{key}", 2, every[:2], case))
    (found,) = sets.collect(tmp_path)[0].comparisons
    told = {(row.case["images"], row.strategy) for row in found.rows if row["time"]}
    told -= {("500", "numpy_to_numpy"), ("500", "mixed_copy"), ("2000", "numpy_to_numpy")}
    assert told == shown
    write_log(tmp_path, run(f"new-{key}", 2, every[2:], case))
    (found,) = sets.collect(tmp_path)[0].comparisons
    assert any(row.case == case and row.strategy == "list_to_list" and row["time"] for row in found.rows)
    assert case["images"] == "2000" or found.run == f"new-{key}", "it has got as far"


def test_a_run_that_was_broken_off_stands_where_there_is_no_other(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("broken off", rounds=1)[:1])
    ((found,),) = [each.comparisons for each in sets.collect(tmp_path)]
    assert found.rounds == 1


def test_machines_and_data_are_kept_apart(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"), machine="one")
    write_log(tmp_path, run_of("b"), machine="two")
    write_log(
        tmp_path, [msgspec.structs.replace(each, data="own folder, 3 images, k") for each in run_of("c")], machine="two"
    )
    assert len({each.id for each in sets.collect(tmp_path)}) == 3


def test_foreign_lines_and_questions_are_said_and_left_out(tmp_path: Path) -> None:
    write_log(tmp_path, [*run_of("a"), record("x", 0, time=1.0, run="b", question="<b>unknown")])
    path = tmp_path / "box" / "trials.jsonl"
    path.write_bytes(path.read_bytes() + b'{"question": "sel')
    said: list[str] = []
    assert len(sets.collect(tmp_path, said.append)) == 1
    assert any("cannot be read" in line for line in said)
    assert any("a question that this version does not have" in line for line in said)


def test_a_case_that_was_run_again_takes_the_place_of_the_older_one_alone(tmp_path: Path) -> None:
    def run(name: str, started: str, images: list[str], time: float) -> list[Record]:
        return [
            record(strategy, 0, time=time, run=name, started=started, case={"images": each}, planned=2 * len(images))
            for each in images
            for strategy in ("numpy_to_numpy", "numpy_to_list")
        ]

    write_log(tmp_path, run("a", "2026-01-01T00:00:00+00:00", ["500", "2000"], 1.0))
    write_log(tmp_path, run("b", "2026-01-02T00:00:00+00:00", ["2000"], 5.0))
    (found,) = sets.collect(tmp_path)
    times = {(row.case["images"], row["time"].value) for row in found.comparisons[0].rows if row["time"]}
    assert {(images, round(time)) for images, time in times} == {("500", 1), ("2000", 5)}


def test_a_case_that_the_question_no_longer_has_gives_way_to_a_newer_run(tmp_path: Path) -> None:
    def run(name: str, started: str, case: dict[str, str]) -> list[Record]:
        names = ("numpy_to_numpy", "numpy_to_list")
        return [record(each, 0, time=1.0, run=name, started=started, case=case, planned=2) for each in names]

    write_log(tmp_path, run("a", "2026-01-01T00:00:00+00:00", {}))
    (before,) = sets.collect(tmp_path)
    assert [row.case for row in before.comparisons[0].rows] == [{}, {}]
    write_log(tmp_path, run("b", "2026-01-02T00:00:00+00:00", {"images": "500"}))
    after, _ = sets.collect(tmp_path)
    assert [row.case for row in after.comparisons[0].rows] == [{"images": "500"}] * 2


def test_python_and_tensorflow_are_kept_apart(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"), tensorflow="2.20.0")
    write_log(tmp_path, run_of("b", "2026-02-01T00:00:00+00:00"), tensorflow="2.21.0")
    newer, older = sets.collect(tmp_path)
    assert (newer.origin.tensorflow, older.origin.tensorflow) == ("2.21.0", "2.20.0")
    assert newer.title == "box, A CPU, tiny, photographs, Python 3.11.7, TensorFlow 2.21.0"


def test_a_trial_that_could_not_describe_its_surroundings_stays_with_its_run(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"), tensorflow="2.21.0")
    ended = record("mixed_copy", 0, status="timed_out", message="after 1 s", run="a")
    ended = msgspec.structs.replace(ended, environment=Environment(machine="box"))
    log.append(tmp_path / "box" / log.NAME, ended)
    (found,) = sets.collect(tmp_path)
    assert "mixed_copy" in {row.strategy for row in found.comparisons[0].rows}


def test_a_run_that_a_newer_one_replaced_can_be_picked_by_its_commit(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("old", "2026-01-01T00:00:00+00:00"), commit="a" * 40)
    broken_off = msgspec.structs.replace(run_of("part", "2025-01-01T00:00:00+00:00")[0], planned=2)
    write_log(tmp_path, [broken_off], commit="c" * 40)
    write_log(tmp_path, run_of("new", "2026-02-01T00:00:00+00:00"), commit="b" * 40)
    newest, replaced = sets.collect(tmp_path)
    assert [each.comparisons[0].run for each in (newest, replaced)] == ["new", "old"]
    assert (newest.commit, replaced.commit) == ("", "aaaaaaaa")
    assert replaced.title.endswith("replaced runs at aaaaaaaa")
    assert newest.id != replaced.id


def test_a_set_says_what_it_lacks(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"))
    (found,) = sets.collect(tmp_path)
    assert "selection" not in found.lacks
    assert "resize" in found.lacks


def test_names_that_look_alike_in_an_anchor_have_anchors_of_their_own(tmp_path: Path) -> None:
    for index, machine in enumerate(("a b", "a-b", "a\nb", "\u202e")):
        write_log(tmp_path, run_of(str(index)), machine=machine)
    ids = [each.id for each in sets.collect(tmp_path)]
    assert len(set(ids)) == 4
    assert not any(each.isspace() for anchor in ids for each in anchor)


def test_each_question_says_its_own_commit(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"), commit="1111111111")
    resize = [msgspec.structs.replace(each, question="resize", case={"scale": "0.5"}) for each in run_of("b")]
    write_log(tmp_path, resize, commit="2222222222")
    (found,) = sets.collect(tmp_path)
    assert {each.question: each.environment.commit for each in found.comparisons} == {
        "resize": "22222222",
        "selection": "11111111",
    }


@pytest.mark.parametrize(
    "other",
    [
        {"commit": "b" * 40},
        {"commit": "a" * 40, "numpy": "9.10"},
        {"commit": "a" * 40, "variables": {"MALLOC_ARENA_MAX": "1"}},
        {"commit": "a" * 40, "cores": 64},
    ],
)
def test_what_was_measured_otherwise_is_never_joined(tmp_path: Path, other: dict[str, Any]) -> None:
    """Of another commit, with other packages or variables, or on other cores."""

    def run(name: str, started: str, images: list[str]) -> list[Record]:
        names = ("numpy_to_numpy", "numpy_to_list")
        return [
            record(strategy, 0, time=1.0, run=name, started=started, case={"images": each}, planned=2 * len(images))
            for each in images
            for strategy in names
        ]

    write_log(tmp_path, run("a", "2026-01-01T00:00:00+00:00", ["500", "2000"]), commit="a" * 40)
    write_log(tmp_path, run("b", "2026-01-02T00:00:00+00:00", ["2000"]), **other)
    newest = sets.collect(tmp_path)[0]
    assert {row.case["images"] for row in newest.comparisons[0].rows} == {"2000"}
    assert {row.commit for row in newest.comparisons[0].rows} == {other["commit"][:8]}


@pytest.mark.parametrize(("key", "shown"), [("one", {"500", "2000"}), ("another", {"2000"})])
def test_what_was_measured_with_changes_that_are_not_committed_is_joined_only_if_they_are_the_same(
    tmp_path: Path, key: str, shown: set[str]
) -> None:
    def run(started: str, key: str, images: str) -> list[Record]:
        more: dict[str, Any] = {"run": f"{started}-{key}", "started": f"{started}T00:00:00+00:00", "planned": 2}
        names = ("numpy_to_numpy", "numpy_to_list")
        return [record(each, 0, time=1.0, case={"images": images}, **more) for each in names]

    write_log(tmp_path, run("2026-01-01", "one", "500"), commit="aaaaaaa+")
    write_log(tmp_path, run("2026-01-02", key, "2000"), commit="aaaaaaa+")
    (found,) = sets.collect(tmp_path)[0].comparisons
    assert {row.case["images"] for row in found.rows} == shown
    assert {row.commit for row in found.rows} == {"aaaaaaa+"}


def test_processors_are_kept_apart_whatever_the_machine_is_called(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"), cpu="one")
    write_log(tmp_path, run_of("b"), cpu="another")
    assert sorted(each.origin.cpu for each in sets.collect(tmp_path)) == ["another", "one"]


def test_what_an_older_instrument_measured_comes_last_and_answers_nothing(tmp_path: Path) -> None:
    write_log(
        tmp_path, [msgspec.structs.replace(each, schema=1) for each in run_of("older", "2026-05-01T00:00:00+00:00")]
    )
    write_log(tmp_path, run_of("newer"))
    said: list[str] = []
    first, last = sets.collect(tmp_path, said.append)
    assert (first.origin.schema, last.origin.schema) == (2, 1)
    assert (first.answers, last.answers) == (True, False)
    assert "older instrument (schema 1)" in last.title
    assert last.choices == []
    (sentence,) = said
    assert "older instrument" in sentence
    assert "python -m loaders compare" in sentence


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_rests_while_results_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, enabled: bool
) -> None:
    write_log(tmp_path, run_of("one", "2026-01-01T00:00:00+00:00"))
    was_enabled, seen, read = gc.isenabled(), [], log.read_all

    def watched(*given: Any) -> list[Record]:
        seen.append(gc.isenabled())
        return read(*given)

    monkeypatch.setattr(log, "read_all", watched)
    try:
        (gc.enable if enabled else gc.disable)()
        sets.collect(tmp_path)
        assert (seen, gc.isenabled()) == ([False], enabled)
        monkeypatch.setattr(log, "read_all", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sets.collect(tmp_path)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_runs_of_other_epochs_keep_their_own_number(tmp_path: Path) -> None:
    """What is concluded from the number of epochs would be concluded from that of the first."""
    for place, (data, epochs) in enumerate((("sizes", 20), ("steps", 4))):
        started = f"2026-0{place + 1}-01T00:00:00+00:00"
        case: dict[str, Any] = {"data": data}
        run = [
            record(name, 0, time=1.0, question="known_issues", case=case, run=data, started=started, epochs=epochs)
            for name in ("python_loop", "from_generator")
        ]
        write_log(tmp_path, [msgspec.structs.replace(each, planned=2) for each in run], commit="a" * 40)
    newest, *_ = sets.collect(tmp_path)
    (found,) = newest.comparisons
    assert {(row.case["data"], row.epochs) for row in found.rows} == {("sizes", 20), ("steps", 4)}
