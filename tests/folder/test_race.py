"""Which trials a race runs, and what follows from them."""

from __future__ import annotations

import os
import statistics
import time
import tracemalloc
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders._advise.command import source_in_words
from loaders._corpus import NO_CORPUS
from loaders._errors import WrongOutputError
from loaders._folder import advice, command, question, race, words
from loaders._folder.look import HELD, Look
from loaders._folder.written.files import File, files_of
from loaders._trial import Record, log, machine, run_trial
from loaders._trial.metrics import Metrics
from tests.folder import made

AMOUNTS = [12, 24, 48]

SEEN = Look(
    "photos", 1000, {"a": 500, "b": 500}, {"png": 1000}, {}, 10**8, 1000, 1000, [], 0, (640, 480), (640, 480), 500.0
)


def advised(asked: race.Wanted, trials: list[Record], amounts: list[int] = AMOUNTS) -> advice.Advice:
    return advice.advice(SEEN, made.raced(asked, amounts, trials), "answered", "python -m loaders advise photos")


@given(
    images=st.integers(1, 10**6),
    batch=st.integers(1, 512),
    rate=st.floats(0.5, 1e5),
    step=st.sampled_from([0.0, 0.01, 0.05, 2.0]),
)
def test_amounts_are_of_whole_batches_and_within_the_folder(images: int, batch: int, rate: float, step: float) -> None:
    found = race.amounts_of(images, batch, rate, step)
    if images // batch < race.WHOLE:
        assert found == [images]
    else:
        assert len(set(found)) == 3
        assert found == sorted(found)
        assert all(each % batch == 0 for each in found)
        assert found[-1] <= min(images, race.MOST * batch)
        assert found[-1] // batch >= min(race.FEWEST, images // batch)


def test_the_first_round_begins_with_all_loaders_and_the_decoder() -> None:
    planned = list(made.raced(made.wanted(), AMOUNTS, [])._round(0))
    first = planned[: len(made.QUIET)]
    assert {name for name, _ in first} == {*made.QUIET}
    assert {amount for _, amount in first} == {12}, "the slow ones drop out before more images are read"
    assert ("decoding", 48) in planned


def test_what_is_much_slower_than_what_surely_fits_drops_out() -> None:
    asked = made.wanted(step=0.0)
    found = made.raced(asked, AMOUNTS, made.records([48], 1))
    assert found.running() == ["load_all", "memory_map"]
    assert "as slow as the best" in found.dropped()["path_generator"]
    # Everything decoded needs 20 + 0.5 * 1000 MiB: with less, it may not be what the others are held against.
    tight = made.raced(msgspec.structs.replace(asked, memory=300 * made.MIB), AMOUNTS, made.records(AMOUNTS, 3))
    assert "load_all" in tight.running()
    only = {name: each for name, each in made.QUIET.items() if name != "memory_map"}
    tight = made.raced(msgspec.structs.replace(asked, memory=300 * made.MIB), AMOUNTS, made.records(AMOUNTS, 3, only))
    assert "path_generator_pool" in tight.running()


def test_where_the_simplest_keeps_up_the_others_are_not_needed() -> None:
    found = made.raced(made.wanted(step=1.0), AMOUNTS, made.records([48], 1))
    assert len(found.running()) <= 2, "it, and the fastest"
    assert "path_generator" in found.running()
    assert all("path_generator keeps up" in why for why in found.dropped().values())


def test_a_loader_that_fails_twice_is_not_run_again() -> None:
    trials = [
        msgspec.structs.replace(each, status="failed", message="no") if each.strategy == "load_all" else each
        for each in made.records(AMOUNTS, 1)
    ]
    assert "load_all" not in made.raced(made.wanted(step=0.0), AMOUNTS, trials).running()


def test_a_loader_that_fails_once_drops_no_other_one() -> None:
    """Nobody would be advised to take it, however fast it was in its other trials."""
    three = {name: made.QUIET[name] for name in ("path_generator", "path_generator_pool", "load_all")}
    trials = made.records(AMOUNTS, 3, three)
    asked = made.wanted(step=0.0)
    assert "path_generator_pool" in made.raced(asked, AMOUNTS, trials).dropped()
    failed = next(index for index, each in enumerate(trials) if each.strategy == "load_all")
    trials[failed] = msgspec.structs.replace(trials[failed], status="failed", message="no")
    assert "path_generator_pool" not in made.raced(asked, AMOUNTS, trials).dropped()


def test_the_race_is_over_once_nothing_is_left_open() -> None:
    asked = made.wanted()
    assert not made.raced(asked, AMOUNTS, made.records(AMOUNTS, 2)).is_over(2)
    assert made.raced(asked, AMOUNTS, made.records(AMOUNTS, 6)).is_over(6)
    assert made.raced(asked, AMOUNTS, []).is_over(race.MOST_ROUNDS)


def test_the_fastest_that_fits_is_advised_and_what_more_memory_would_change() -> None:
    trials = made.records(AMOUNTS, 6)
    found = advised(made.wanted(step=0.0), trials)
    assert found.answer.recommended == "load_all"
    assert found.changes == []
    assert found.disk is None
    less = made.wanted(step=0.0, memory=200 * made.MIB)
    found = advised(less, trials)
    assert found.answer.recommended == "memory_map"
    assert found.disk is not None
    assert found.disk == 1000 * 16 * 16 * 3
    assert "It writes 0.7 MiB to disk, once." in words.answer(found)
    slower = [each for each in trials if each.strategy != "memory_map"]
    found = advised(less, slower)
    assert found.answer.recommended == "path_generator_pool"
    (change,) = found.changes
    assert change.loader == "load_all"
    assert 520 < change.memory / made.MIB < 600
    (said,) = words.changes(found)
    assert said.startswith("With 5")
    assert "faster" in said


def test_with_too_little_memory_the_least_that_would_do_is_said() -> None:
    found = advised(made.wanted(memory=10 * made.MIB), made.records(AMOUNTS, 6))
    assert found.answer.recommended is None
    (change,) = found.changes
    assert change.judged is None
    assert change.loader == "memory_map"
    said = words.answer(found)
    assert said[0] == "No loader can be recommended."
    assert any("The least memory that would do is " in each for each in said)
    assert 25 < change.memory / made.MIB < 35


def test_a_folder_of_few_batches_is_predicted_from_itself() -> None:
    trials = made.records([20], 4)
    found = advice.advice(SEEN, made.raced(made.wanted(step=0.0), [20], trials, images=20), "answered", "")
    assert found.answer.recommended in ("load_all", "memory_map")


@pytest.mark.parametrize(
    ("rates", "step", "said"),
    [
        ([100.0, 101.0, 99.0], 0.01, "cannot keep up"),
        ([1000.0, 1010.0, 990.0], 0.05, "a good loader keeps up"),
        ([60.0, 100.0, 80.0], 0.05, "undecided"),
    ],
)
def test_the_ceiling_is_held_against_what_training_asks_for(rates: list[float], step: float, said: str) -> None:
    trials = made.records(AMOUNTS, 3)
    for index, rate in enumerate(rates):
        like = trials[0]
        metrics = msgspec.structs.replace(like.metrics, samples=48, steady_time=48 / rate)
        trials.append(msgspec.structs.replace(like, strategy="decoding", metrics=metrics, round=index))
    assert said in words.ceiling(advised(made.wanted(step=step), trials))


def test_the_docstring_of_the_loader_ends_where_it_should() -> None:
    found = advised(made.wanted(), made.records(AMOUNTS, 6))
    hostile = msgspec.structs.replace(found, folder=msgspec.structs.replace(SEEN, name='a"""\\b'))
    text = made.written.stand_alone("load_all", words.heading(hostile, "2026-11-20"), {})
    compile(text, "loader.py", "exec")
    assert max(map(len, text.splitlines())) <= 120


def noisy(spread: float, more: float = 0.5) -> list[Record]:
    """Trials of two rounds, whose memory varies so much that no law can be seen in it."""
    truth = {**made.QUIET, "load_all": (0.1, 1.0, 100.0, more), "path_generator": (2.0, 0.0, 100.0, more - 0.5)}
    found = []
    for each in made.records(AMOUNTS, 2, truth):
        places = {"12": (-1, 1), "24": (1, -1), "48": (-1, 1)}[each.case["images"]]
        needed = round((each.metrics.needed_memory or 0) + spread * made.MIB * places[each.round])
        found.append(msgspec.structs.replace(each, metrics=msgspec.structs.replace(each.metrics, needed_memory=needed)))
    return found


def test_what_noise_hides_of_memory_follows_from_the_code() -> None:
    found = made.raced(made.wanted(step=0.0), AMOUNTS, noisy(8.0)).reckoned()
    assert found.laws["load_all"].kind == "linear"
    assert found.laws["path_generator"].kind == "level"
    assert "by its code" in found.laws["path_generator"].why
    memory = found.memory["path_generator"]
    assert memory
    assert memory.high
    assert memory.value == pytest.approx(100 * made.MIB, rel=0.05)
    assert memory.high > 108 * made.MIB
    verdicts = {each.name: each.law for each in advised(made.wanted(step=0.0), noisy(8.0)).answer.strategies}
    assert verdicts["load_all"] == "linear", "the answer knows what the race knows"


def test_pixels_that_the_resolution_hides_in_a_few_images_count_in_millions() -> None:
    kept = 3 * 16 * 16
    truth = {**made.QUIET, "load_all": (0.1, 1.0, 20.0, kept / made.MIB)}
    found = made.raced(made.wanted(step=0.0), AMOUNTS, made.records(AMOUNTS, 6, truth))
    found.images = 5_000_000
    reckoned = found.reckoned()
    assert [reckoned.laws[name].kind for name in ("load_all", "path_generator")] == ["linear", "level"]
    memory = reckoned.memory["load_all"]
    assert memory
    assert memory.value == pytest.approx(20 * made.MIB + 5_000_000 * kept, rel=0.01)
    assert reckoned.decide(2**30).kinds["load_all"] == "does not fit"
    assert reckoned.decide(2**32).recommended == "load_all"


def test_memory_that_contradicts_the_code_stays_unknown() -> None:
    found = made.raced(made.wanted(step=0.0), AMOUNTS, noisy(8.0, more=3.0)).reckoned()
    assert found.laws["path_generator"].kind != "level"


def test_the_list_of_a_million_images_counts(tmp_path: Path) -> None:
    tracemalloc.start()
    listed = [(f"{tmp_path}/{place:07}.png", 0) for place in range(20_000)]
    held = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__)])
    tracemalloc.stop()
    size = sum(each.size for each in held.traces)  # only what was allocated here: others use the interpreter too
    each = race.listed(listed)
    assert each == pytest.approx(size / len(listed) + race.ORDERS, rel=0.2)  # tuples of a free list are not seen

    few, many = (made.raced(made.wanted(step=0.0), AMOUNTS, made.records(AMOUNTS, 6), n) for n in (1000, 10**6))
    few.listed = many.listed = each
    assert few.reckoned().laws["path_generator"].kind == "level"
    found = many.reckoned()
    assert found.laws["path_generator"].kind == "linear"
    memory = found.memory["path_generator"]
    assert memory
    assert memory.value == pytest.approx(40 * made.MIB + 10**6 * each, rel=0.05)


def test_images_larger_than_those_of_the_sample_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = made.records(AMOUNTS, 6)
    large = [300 * made.MIB, 200 * made.MIB]
    before, found = (made.raced(made.wanted(), AMOUNTS, trials, heavier=each) for each in ([], large))
    for name, more in (("path_generator", 300 * made.MIB), ("path_generator_pool", 500 * made.MIB)):
        known, expected = found.reckoned().memory[name], before.reckoned().memory[name]
        assert known
        assert expected
        assert known.value == pytest.approx(expected.value + more)
    tight = made.wanted(step=0.0, memory=500 * made.MIB)
    assert advised(tight, trials).answer.recommended == "memory_map"
    given = advice.advice(SEEN, made.raced(tight, AMOUNTS, trials, heavier=large), "answered", "")
    assert given.answer.recommended == "path_generator"
    assert "300 MiB of that memory are for images larger than those it was measured with." in words.answer(given)
    assert not any("larger than" in each for each in words.answer(advised(tight, trials)))
    assert not any("measured again" in each for each in words.answer(given))
    assert "It was not measured again." in words.answer(msgspec.structs.replace(given, module="loader"))

    monkeypatch.setenv("LOADERS_RESULTS", str(tmp_path / "results"))
    photos = made.folder(tmp_path / "photos", 60)
    prepared = race.prepare(made.wanted(photos), files_of(photos), 10.0, [10**6, 10**5])
    assert list(prepared.heavier) == [10**6 - HELD * 24 * 32, 10**5 - HELD * 24 * 32][: os.cpu_count()]


def test_what_has_no_room_on_the_disk_is_not_measured() -> None:
    trials = made.records(AMOUNTS, 6)
    less = made.wanted(step=0.0, memory=200 * made.MIB)
    needed = 1000 * 16 * 16 * 3
    assert made.raced(less, AMOUNTS, [], free=needed).running() == made.written.names()
    without = made.raced(less, AMOUNTS, [], free=needed - 1)
    assert without.running() == [name for name in made.written.names() if name != "memory_map"]
    given = advice.advice(SEEN, made.raced(less, AMOUNTS, trials, free=needed - 1), "answered", "").answer
    assert given.recommended == "path_generator_pool"
    (told,) = (each.verdict for each in given.strategies if each.name == "memory_map")
    assert told == "not measured: it would write 0.7 MiB to a disk with room for 0.7 MiB"


def test_what_the_machine_s_memory_does_not_hold_is_not_advised_by_how_fast_it_was_read_from_there() -> None:
    trials, less = made.records(AMOUNTS, 6), made.wanted(step=0.0, memory=200 * made.MIB)
    pixels = 1000 * 16 * 16 * 3
    held, larger = (
        advice.advice(SEEN, made.raced(less, AMOUNTS, trials, ram=ram), "answered", "").answer
        for ram in (pixels, pixels - 1)
    )
    assert held.recommended == "memory_map"
    assert larger.recommended == "path_generator_pool"
    (told,) = (each.verdict for each in larger.strategies if each.name == "memory_map")
    assert told == "not measured: it would read 0.7 MiB from disk, more than fits into memory"
    assert "memory_map" not in made.raced(less, AMOUNTS, [], ram=pixels - 1).running()


def test_images_that_memory_does_not_hold_must_come_from_a_disk_that_is_fast_enough() -> None:
    trials, less = made.records(AMOUNTS, 6), made.wanted(step=0.0, memory=200 * made.MIB)
    seen = msgspec.structs.replace(SEEN, size=10 * 2**30)
    held, read = (
        advice.advice(seen, made.raced(less, AMOUNTS, trials, ram=ram, free=1.0), "answered", "")
        for ram in (seen.size, seen.size - 1)
    )
    assert held.answer.recommended == read.answer.recommended == "path_generator_pool"
    assert held.from_disk is None
    (pool,) = (each for each in made.raced(less, AMOUNTS, trials).candidates() if each.name == "path_generator_pool")
    an_image = statistics.fmean(pool.largest.steady.values()) / pool.largest.samples
    assert read.from_disk
    assert advice._from_disk(seen, made.raced(less, AMOUNTS, trials, ram=1.0), "load_all") is None, "it reads them once"
    assert read.from_disk == pytest.approx(seen.size / seen.images / an_image)
    assert not any("the disk must deliver" in each for each in words.answer(held))
    (said,) = (each for each in words.answer(read) if "the disk must deliver" in each)
    assert said.startswith("Its images take 10240 MiB, more than this machine's memory")
    step = 1000 * an_image * less.batch
    slow = made.raced(made.wanted(step=step, memory=200 * made.MIB), AMOUNTS, trials, ram=1.0, free=1.0)
    assert advice._from_disk(seen, slow, "path_generator_pool") == pytest.approx(read.from_disk / 1000), "by its steps"


def test_a_trial_that_reads_every_image_often_may_take_as_long_as_that_takes() -> None:
    images = Path("images.json")
    quick, slow = (made.raced(made.wanted(), AMOUNTS, [], rate=rate) for rate in (1000.0, 1.0))
    assert quick.trial("path_generator", 64, images, 0, checked=True).deadline == race.DEADLINE
    for checked, times in ((False, race.READ), (True, race.READ * race.CHECKED)):
        assert slow.trial("path_generator", 100, images, 0, checked=checked).deadline >= 2 * 100 * times


def test_a_long_step_is_slept_through_and_no_standstill() -> None:
    for step in (0.0, 0.05, 30.0):
        found = made.raced(made.wanted(step=step), AMOUNTS, [])
        assert found.trial("path_generator", 64, Path("images.json"), 0, checked=True).still == 4 * step


@pytest.mark.parametrize("alike", [True, False])
def test_images_that_are_all_alike_have_no_order(tmp_path: Path, alike: bool) -> None:
    files = []
    for number in range(10):
        made.image(tmp_path / f"{number}.png", 0 if alike else number, 24, 32)
        files.append((str(tmp_path / f"{number}.png"), 0))
    images = np.stack([question._decoded(path, 16, 16) for path, _ in files])
    batches = [(images, np.zeros(10, np.int64))]
    module = SimpleNamespace(HEIGHT=16, WIDTH=16)
    job: Any = SimpleNamespace(inputs=SimpleNamespace(modules={"any": module}, files=files))
    variant: Any = SimpleNamespace(name="any", build=lambda _: batches)
    if alike:
        question._check(job, variant, batches)
        return
    with pytest.raises(WrongOutputError, match="the same order as the first"):
        question._check(job, variant, batches)


@pytest.mark.slow
def test_what_a_conversion_needs_counts_as_it_is_run_by_whoever_trains(results: Path, tmp_path: Path) -> None:
    side = 3000
    for number in range(8):
        made.image(tmp_path / "photos" / f"{number}.png", number, side, side)
    found = race.prepare(made.wanted(tmp_path / "photos"), files_of(tmp_path / "photos"), 10.0)
    record = run_trial(found.trial("memory_map", 8, found.directory / race.SAMPLE, 0, checked=True), NO_CORPUS)
    assert record.status == "ok", record.message
    assert record.metrics.needed_memory
    assert record.metrics.needed_memory >= 3 * side * side
    assert results in found.directory.parents


def test_a_folder_that_changes_meanwhile_is_said(tmp_path: Path) -> None:
    there = made.image(tmp_path / "there.png", 1)
    found = made.raced(made.wanted(), AMOUNTS, made.records(AMOUNTS, 6))
    found.held_out = [(str(there), 0), (str(tmp_path / "gone.png"), 0)]
    answer = advice.advice(SEEN, found, "answered", "").answer
    wrong = msgspec.structs.replace(
        found.records[0], status="wrong_output", message="too few", case=found.records[0].case | {"images": "2"}
    )
    told = advice.again(found, answer, wrong)
    assert told
    assert told.vanished == 1
    assert "failed, so that it is not written out: wrong output: too few. Images are gone meanwhile (1)" in words.again(
        told
    )


def test_an_answer_that_needs_more_than_there_is_when_measured_again_is_not_written_out() -> None:
    found = made.raced(made.wanted(memory=2**28), AMOUNTS, made.records(AMOUNTS, 6))
    answer = advice.advice(SEEN, found, "answered", "").answer
    assert answer.recommended
    for needed, problem in ((2**28, ""), (2**29, "it needed 512 MiB, more than the 256 MiB that there are")):
        metrics = msgspec.structs.replace(found.records[0].metrics, needed_memory=needed)
        told = advice.again(found, answer, msgspec.structs.replace(found.records[0], metrics=metrics))
        assert told
        assert told.problem == problem


def test_what_goes_on_with_a_race_is_said_as_it_works() -> None:
    """The loader that was written is not written over unless that is asked for."""
    found = advised(made.wanted(), made.records(AMOUNTS, 2))
    open_ = msgspec.structs.replace(found, ended="time")
    assert words.ended(open_).endswith("; the same command goes on.")
    assert words.ended(msgspec.structs.replace(open_, module="loader")).endswith(
        "; the same command with --force goes on."
    )


def test_batches_are_said_as_they_were_measured() -> None:
    found = advised(made.wanted(), made.records(AMOUNTS, 6)).answer
    assert f"samples in batches of {made.BATCH}." in source_in_words(found)
    larger = msgspec.structs.replace(found, settings=msgspec.structs.replace(found.settings, batch=64))
    assert "Memory with batches of 64 is extrapolated" in source_in_words(larger)
    assert "extrapolated" not in source_in_words(found)


def _leave(found: race.Race, amounts: list[int]) -> None:
    """Leave a round of trials with these amounts of images, as this machine and software make them."""
    for each in made.records(amounts, 1):
        environment = msgspec.structs.replace(
            each.environment, cpu=machine.processor(), commit=machine.commit(), packages=machine.packages()
        )
        ran = {"environment": environment, "started": datetime.now(UTC).isoformat(), "metrics": Metrics()}
        log.append(found.directory / log.NAME, msgspec.structs.replace(each, **ran))


def _old_photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> tuple[list[File], race.Wanted]:
    """Make so many photographs of long ago, and a place for trials."""
    monkeypatch.setenv("LOADERS_RESULTS", str(tmp_path / "results"))
    photos = made.folder(tmp_path / "photos", count)
    for path, _ in files_of(photos):
        os.utime(path, (1e9, 1e9))
    return files_of(photos), made.wanted(photos)


class _Later(datetime):
    """The clock a day from now."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) + race.WITHIN


@pytest.mark.parametrize(
    "change",
    [
        *("nothing", "written over", "replaced, with its old time", "gone", "another text", "another version"),
        *("another commit", "another processor", "a day later"),
    ],
)
def test_a_race_goes_on_only_with_the_same_images_and_software(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    files, asked = _old_photos(tmp_path, monkeypatch, 3 * made.BATCH)
    first = race.prepare(asked, files, 1000.0)
    _leave(first, first.amounts)
    if change == "written over":
        made.image(Path(files[0][0]), 7, 48, 64)
        os.utime(files[0][0], (time.time() + 60, time.time() + 60))
    if change == "replaced, with its old time":  # as `cp -p` and `tar` do
        time.sleep(1.1)
        made.image(Path(files[0][0]), 7, 24, 32)
        os.utime(files[0][0], (1e9, 1e9))
    if change == "another text":
        whole = made.written.stand_alone
        monkeypatch.setattr(made.written, "stand_alone", lambda *of: f"{whole(*of)}# another\n")
    if change == "gone":
        Path(files[0][0]).unlink()
    if change == "another version":
        monkeypatch.setattr(machine, "packages", lambda: {"tensorflow": "another"})
    if change == "another commit":
        monkeypatch.setattr(machine, "commit", lambda: "b" * 40)
    if change == "another processor":
        monkeypatch.setattr(machine, "processor", lambda: "another")
    if change == "a day later":
        monkeypatch.setattr(race, "datetime", _Later)
    assert bool(race.prepare(asked, files, 1000.0).records) is (change == "nothing")


@pytest.mark.parametrize(
    ("status", "is_barred"),
    [("ok", False), ("failed", False), ("over_budget", False), ("timed_out", False), ("wrong_output", True)],
)
def test_what_failed_for_want_of_memory_or_time_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: Any, is_barred: bool
) -> None:
    """Whoever frees memory, and runs it again, must not be told for a day that a loader does not work."""
    files, asked = _old_photos(tmp_path, monkeypatch, 40 * made.BATCH)
    first = race.prepare(asked, files, 1000.0)
    _leave(first, first.amounts)
    (kept, *_, last) = log.read(first.directory / log.NAME)
    for _ in range(race.GIVE_UP_AFTER):
        log.append(first.directory / log.NAME, msgspec.structs.replace(last, status=status, message="planted", round=1))
    again = race.prepare(asked, files, 1000.0)
    assert again.records[0] == kept, "the others are not run anew"
    (found,) = (each for each in again.candidates() if each.name == last.strategy)
    assert bool(found.problem) is is_barred
    assert (last.strategy not in again.running()) is is_barred


@pytest.mark.parametrize("batches", [3, 40])
def test_a_race_that_ended_in_its_first_amount_goes_on_with_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    files, asked = _old_photos(tmp_path, monkeypatch, batches * made.BATCH)
    first = race.prepare(asked, files, 1000.0)
    _leave(first, first.amounts[:1])
    again = race.prepare(asked, files, 10.0)  # and it now seems to be slower
    assert again.records
    assert (again.amounts, again.sample) == (first.amounts, first.sample)


def test_a_race_goes_on_though_another_look_finds_more_broken_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look decodes for some seconds; how many images that is depends on what else runs."""
    files, asked = _old_photos(tmp_path, monkeypatch, 40 * made.BATCH)
    first = race.prepare(asked, files, 1000.0)
    _leave(first, first.amounts)
    broken = {first.sample[3], first.held_out[5]}
    again = race.prepare(asked, [each for each in files if each not in broken], 1000.0, broken=len(broken))
    assert again.records
    assert (again.amounts, again.sample) == (first.amounts, first.sample)
    assert {*again.held_out} == {*first.held_out} - broken
    fewer = race.prepare(asked, files, 1000.0)
    assert (fewer.amounts, fewer.sample, {*fewer.held_out}) == (first.amounts, first.sample, {*first.held_out})
    assert not race.prepare(asked, [(path, label + 1) for path, label in files], 1000.0).records, "other labels"


@pytest.mark.parametrize("first", [9, 10])
def test_a_race_goes_on_with_the_amounts_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """Nine batches are measured whole, and of ten two are held out; another look may find one image more or less."""
    files, asked = _old_photos(tmp_path, monkeypatch, 10 * made.BATCH)
    looks = {9: (files[1:], 1), 10: (files, 0)}
    (readable, broken), (others, more) = looks.pop(first), next(iter(looks.values()))
    before = race.prepare(asked, readable, 1000.0, broken=broken)
    _leave(before, before.amounts)
    again = race.prepare(asked, others, 1000.0, broken=more)
    assert again.records
    assert (again.amounts, again.sample) == (before.amounts, before.sample)
    assert bool(again.held_out) == (first == 10)


@pytest.mark.parametrize(
    ("images", "of", "held_out", "said"),
    [(57, 300, False, "on 57 of 300 images,"), (20, 20, False, "on all 20 images,"), (8, 9, True, "on 8 images that")],
)
def test_which_images_an_answer_was_measured_again_on_is_said(images: int, of: int, held_out: bool, said: str) -> None:
    assert said in words.again(advice.Again(images, of, held_out, 0.001, 1e8, None, None))


def test_a_full_disk_while_an_answer_is_measured_again_does_not_lose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given = advised(made.wanted(), made.records(AMOUNTS, 6))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(race.Race, "again", full)
    found = command._again(given, "load_all", made.raced(made.wanted(), AMOUNTS, []), 60.0, lambda _: None)
    assert found.answer == given.answer
    assert found.again is None
    said = words.answer(msgspec.structs.replace(found, module="loader"))
    assert "It was not measured again: [Errno 28] No space left on device." in said


@given(images=st.integers(100, 10**5), batch=st.integers(1, 64))
def test_enough_images_are_held_out_to_measure_an_answer_again(images: int, batch: int) -> None:
    batches = images // batch
    if batches >= race.WHOLE:
        assert images - race.amounts_of(images, batch, 1e4, 0.0)[-1] >= batches // race.HELD * batch


def test_small_batches_keep_all_cores_busy_in_the_ceiling() -> None:
    together, most = 0, 0

    def pixels_of(path: str) -> str | None:
        nonlocal together, most
        together += 1
        most = max(most, together)
        time.sleep(0.01)
        together -= 1
        return None if path == "3" else path

    module = SimpleNamespace(BATCH=1, pixels_of=pixels_of)
    files = [(str(index), 0) for index in range(16)]
    job: Any = SimpleNamespace(inputs=SimpleNamespace(modules={"any": module}, files=files))
    assert [*question.decoding(job)] == [[index != 3] for index in range(16)]
    assert most == min(16, os.cpu_count() or 1)


def test_no_trial_is_begun_that_would_not_end_in_time(results: Path) -> None:
    told: list[Record] = []
    found = made.raced(made.wanted(), AMOUNTS, [], rate=1.0)
    found.directory = results  # what a trial would leave stays out of the checkout
    found.run(30.0, told.append, lambda _: None)
    assert told == found.records == []
    assert found.needed > 60
