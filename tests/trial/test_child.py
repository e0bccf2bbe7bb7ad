from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from loaders import _registry
from loaders._corpus import Corpus
from loaders._errors import WrongOutputError
from loaders._trial import Trial, child, run_trial
from loaders._trial.timing import FEW, LONG
from tests.conftest import EACH_START, Strategy

MIB = 2**20


@EACH_START
def test_what_a_strategy_prints_closes_or_changes_does_not_spoil_the_record(strategy: Strategy) -> None:
    record = strategy(
        "print('x' * 5_000_000)\nsys.stderr.write('y' * 5_000_000)\n"
        "os.chdir('/')\nsys.stdout.close()\nos.close(1)\nreturn right"
    )
    assert (record.status, record.message) == ("ok", "")


def test_short_epochs_are_repeated_and_their_memory_is_in_no_peak(strategy: Strategy) -> None:
    """A mebibyte more is held after each epoch."""
    grows = "sys.__dict__.setdefault('grown', []).append(np.ones(2**17))\nyield from np.split(right[0], 4)"
    metrics = strategy(grows, epochs=2).metrics
    assert metrics.steady_epochs == 20
    assert metrics.peak_memory is not None
    assert metrics.needed_memory is not None
    assert metrics.retained_memory is not None
    assert metrics.peak_memory < 12 * MIB
    assert metrics.needed_memory < 12 * MIB
    assert metrics.retained_memory > 20 * MIB
    assert metrics.memory_trace is not None
    assert max(metrics.memory_trace.step) <= 8


@pytest.mark.slow
def test_long_epochs_are_not_repeated(strategy: Strategy) -> None:
    waits = "for part in np.split(right[0], 4):\n    time.sleep({})\n    yield part"
    metrics = strategy(waits.format(0.15), epochs=2).metrics
    assert metrics.steady_epochs == FEW, "long enough, but the median of one is not"
    metrics = strategy(waits.format(LONG / 4), epochs=2).metrics
    assert metrics.steady_epochs == 1
    assert metrics.disturbance is not None
    assert metrics.disturbance.over is not None
    assert metrics.steady_time is not None
    # In seconds of all processors: of the steady epoch, without the first, which is as long.
    assert metrics.disturbance.over / (os.cpu_count() or 1) < 1.8 * metrics.steady_time


def test_an_epoch_of_one_object_that_is_repeated_must_deliver_as_much(strategy: Strategy) -> None:
    tires = (
        "class Tires:\n    count = 0\n    def __iter__(self):\n        self.count += 1\n"
        "        return iter(np.split(right[0], 4)[: 4 if self.count < 6 else 3])\nreturn Tires()"
    )
    record = strategy(tires, epochs=2)
    assert record.status == "wrong_output"
    assert record.message.startswith("delivered 100 samples in epoch 1 and 75 in epoch 6"), record.message


@pytest.mark.parametrize(
    ("imported", "instrument"),
    [("psutil", "psutil.Process.children"), ("loaders._trial.memory", "loaders._trial.memory.AboveBaseline.read")],
)
def test_looking_for_child_processes_and_at_memory_is_not_in_the_processor_time(
    strategy: Strategy, imported: str, instrument: str
) -> None:
    takes_long = (
        f"import {imported}, time\n"
        f"look = {instrument}\n"
        "def takes_long(*given, **named):\n"
        "    until = time.thread_time() + 0.5\n"
        "    while time.thread_time() < until:\n"
        "        pass\n"
        "    return look(*given, **named)\n"
        f"{instrument} = takes_long"
    )
    record = strategy("return right", also=takes_long)
    assert record.status == "ok", record.message
    assert record.metrics.cpu_time is not None
    assert record.metrics.cpu_time < 0.5


READ_ONCE = """
from loaders import variant

@variant(question="read_order")
def planted(job):
    \"\"\"Planted by a test: an object that can be read once, whatever it says.\"\"\"
    class Once:
        left = [[0]] * 40
        def __iter__(self):
            while self.left:
                yield self.left.pop()
    return Once()
"""


def test_what_delivers_less_when_it_is_read_once_more_is_wrong_and_not_waited_for(
    tmp_path: Path, corpus: Corpus
) -> None:
    """Four passes are one reading, and the next one has not as many batches."""
    file = tmp_path / "planted.py"
    file.write_text(READ_ONCE)
    case = _registry.find_question("read_order").default_case
    trial = Trial("read_order", "planted", case, str(corpus.root), 1, epochs=4, outside=[str(file)], deadline=60.0)
    record = run_trial(msgspec.structs.replace(trial, slow=False), corpus)
    assert record.status == "wrong_output"
    assert record.message == "delivered 40 samples in epoch 1 and 0 in epoch 2"


HAS_A_WORKER = """
import subprocess, sys, time
from loaders import variant
from loaders._trial import steady

steady.REPEATS = 0  # on a busy machine too

@variant(question={question!r})
def planted(job):
    \"\"\"Planted by a test.\"\"\"
    with open({built!r}, "a") as file:
        file.write(".")
    worker = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    parts = list({parts})
    for _ in range({passes}):
        for part in parts:
            time.sleep(0.75 / len(parts))
            yield part
    worker.communicate(b"\\n")
"""
"""A strategy of which three epochs are steady for long enough."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "case", "parts", "passes", "timed_again"),
    [
        ("known_issues", {"data": "paths"}, "map(job.inputs.batch, job.inputs.parts)", 4, False),
        ("read_order", {}, "[[0]] * 40", 4, True),
    ],
)
def test_epochs_in_which_workers_were_read_are_timed_again_where_times_are_asked_for(
    tmp_path: Path, corpus: Corpus, question: str, case: dict[str, str], parts: str, passes: int, *, timed_again: bool
) -> None:
    """Both read all of their epochs in one pass, which is built once, and again if there is another."""
    asked, file, built = _registry.find_question(question), tmp_path / "planted.py", tmp_path / "built"
    file.write_text(HAS_A_WORKER.format(question=question, parts=parts, passes=passes, built=str(built)))
    trial = Trial(
        question=question,
        strategy="planted",
        case=case or asked.default_case,
        corpus=str(corpus.root),
        seed=1,
        epochs=passes,
        outside=[str(file)],
        checked=False,
        slow=False,
    )
    record = run_trial(trial, corpus)
    assert record.status == "ok", record.message
    assert record.metrics.steady_time == pytest.approx(0.75, rel=0.5)
    assert (len(built.read_text()) > 1) == timed_again


class Cached:
    """Delivers what it should once, and then again something else."""

    def __init__(self) -> None:
        self.epoch = 0

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        self.epoch += 1
        return iter([(np.full((2, 1), self.epoch), np.arange(2))])


@pytest.mark.parametrize(
    ("ranked_by", "repeats", "epochs", "checked"),
    [
        ("steady_time", False, 3, 2),
        ("steady_time", False, 1, 1),
        ("steady_time", True, 3, 1),
        ("epoch_time", False, 3, 1),
    ],
)
def test_what_is_ranked_by_later_epochs_is_checked_in_one_of_these(
    ranked_by: str, repeats: bool, epochs: int, checked: int
) -> None:
    asked = dataclasses.replace(_registry.find_question("caching"), ranked_by=ranked_by, repeats=repeats)
    variant = dataclasses.replace(_registry.find_variant("caching", "no_cache"), build=lambda _: Cached())
    readings: Any = SimpleNamespace(delivered=2, passes=1, timelines=[None] * epochs)
    ((images, _),) = child._again(asked, variant, cast("Any", None), readings, [])
    assert (images == checked).all()


def test_the_epoch_that_fills_a_cache_must_deliver_as_much_too() -> None:
    class Short(Cached):
        def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
            batches = [*super().__iter__()]
            return iter([] if self.epoch == 1 else batches)

    asked = _registry.find_question("caching")
    variant = dataclasses.replace(_registry.find_variant("caching", "no_cache"), build=lambda _: Short())
    readings: Any = SimpleNamespace(delivered=2, passes=1, timelines=[None] * 3)
    with pytest.raises(WrongOutputError, match="delivered 2 samples when measured and 0 when built again"):
        list(child._again(asked, variant, cast("Any", None), readings, []))


def test_what_can_be_read_once_is_checked_in_its_first_epoch() -> None:
    asked = _registry.find_question("caching")
    variant = dataclasses.replace(_registry.find_variant("caching", "no_cache"), build=lambda _: iter(Cached()))
    readings: Any = SimpleNamespace(delivered=2, passes=1, timelines=[None] * 3)
    assert len(list(child._again(asked, variant, cast("Any", None), readings, []))) == 1
