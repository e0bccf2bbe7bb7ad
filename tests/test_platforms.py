"""A system that tells less of memory than Linux does: from its records to the words of the page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from loaders import _terminal
from loaders._advise import command
from loaders._advise.choose import Settings
from loaders._report import page, sets
from loaders._rows import comparison
from loaders._trial import log, memory
from loaders._trial.growth import Growth
from loaders._trial.metrics import Metrics
from loaders._trial.record import Environment, Record
from tests.advise import made
from tests.report.test_page import Parsed

MIB = 2**20
CASE = {"augment": "off"}
WORKERS = "keras_pydataset_processes"
NAMES = ("path_generator", "tfdata_numpy_function", WORKERS)
WHERE = msgspec.structs.replace(made.environment(), memory_method=memory.SampledPeak.method, system="Darwin")


def records(*, tells_tree: bool = False, where: Environment = WHERE, names: Sequence[str] = NAMES) -> list[Record]:
    """Return a run in which one strategy has worker processes; without ``tells_tree`` their sum counts shared pages."""
    found = []
    for each in made.run({name: made.BATCHING[name] for name in names}, where=where):
        metrics = each.metrics
        if each.strategy == WORKERS:
            growth = Growth("flat", 0, 0, 0, 0, 280 * MIB, 100, bound=1.0)
            metrics = msgspec.structs.replace(
                metrics,
                peak_memory_tree=metrics.peak_memory,
                anonymous_memory=metrics.peak_memory if tells_tree else None,
                memory_growth=growth,
            )
        found.append(msgspec.structs.replace(each, metrics=metrics))
    return found


def test_of_a_process_tree_nothing_is_known_and_of_a_process_its_resident_set() -> None:
    told, untold = (
        {(row.strategy, row.case["data"]): row for row in comparison(records(tells_tree=tells)).rows}
        for tells in (True, False)
    )
    for figure in ("peak", "peak_tree", "needed"):
        assert told[WORKERS, "x16"][figure] is not None
        assert untold[WORKERS, "x16"][figure] is None
    assert (told[WORKERS, "x16"].growth, untold[WORKERS, "x16"].growth) == ("flat", None)
    assert untold[WORKERS, "x16"].peak_ratio is None
    assert untold[WORKERS, "x16"].needs == untold[WORKERS, "x16"].peaks == {}
    assert untold[WORKERS, "x16"]["time"] is not None
    assert untold["path_generator", "x16"]["needed"] == told["path_generator", "x16"]["needed"]
    (laws,) = comparison(records()).laws
    assert laws.laws.keys() == set(NAMES) - {WORKERS}


def test_one_that_was_ended_early_still_shows_how_far_it_got() -> None:
    metrics = Metrics(peak_memory=10 * MIB, peak_memory_tree=90 * MIB)
    ended = msgspec.structs.replace(records()[-1], status="over_budget", metrics=metrics)
    (row,) = comparison([ended]).rows
    assert row["peak"] is not None
    assert row["peak"].value == 90 * MIB


def test_advice_rests_on_sampled_resident_sets_says_so_and_excludes_trees() -> None:
    asked = Settings(2**40, step=0.0, samples=640)
    found = command.advise(records(), "batching", CASE, asked, "box")
    kinds = {each.name: (each.kind, each.verdict) for each in found.strategies}
    reason = "memory unknown for 640 samples: how much its processes hold together could not be read"
    assert kinds[WORKERS] == ("memory unknown", reason)
    assert found.recommended in NAMES
    assert "(level), by resident sets sampled every 5 ms." in found.because
    told = command.advise(records(tells_tree=True), "batching", CASE, asked, "box")
    assert {each.name: each.kind for each in told.strategies}[WORKERS] != "memory unknown"
    linux = msgspec.structs.replace(WHERE, memory_method=memory.KernelPeak.method)
    assert "resident sets" not in command.advise(records(where=linux), "batching", CASE, asked, "box").because


def test_a_single_trial_does_not_show_what_could_not_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    untold = next(each for each in records() if each.strategy == WORKERS)
    for record, is_known in ((untold, False), (records(tells_tree=True)[-1], True)):
        assert record.strategy == WORKERS
        _terminal.show_trial(record)
        lines = capsys.readouterr().out.splitlines()
        said = [line.split(maxsplit=1)[1] for line in lines if line.split()[:1] in (["peak_memory"], ["needed_memory"])]
        assert len(said) == 2
        assert all(each.startswith("unknown: ") is not is_known for each in said)


def test_what_every_trial_imports_is_imported_on_windows_too() -> None:
    """Its module of signals has few of them, and it has neither forks nor process groups."""
    few = (
        "import os, signal, subprocess, multiprocessing.util, asyncio, selectors\n"
        "for name in ('SIGCHLD', 'SIGKILL', 'SIGSTOP', 'SIGHUP', 'pthread_sigmask', 'sigwait'): delattr(signal, name)\n"
        "for name in ('killpg', 'setsid', 'getppid', 'waitid', 'sched_getaffinity'): delattr(os, name)\n"
        "import loaders.__main__, loaders._cli.compare, loaders._compare, loaders._trial, loaders._trial.child\n"
        "import loaders._trial.keeper, loaders._trial.watch"
    )
    done = subprocess.run([sys.executable, "-c", few], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_where_only_a_tree_is_left_the_reason_is_named() -> None:
    found = command.advise(records(names=[WORKERS]), "batching", CASE, Settings(2**40, samples=640), "box")
    assert found.recommended is None
    assert f"{WORKERS}: how much its processes hold together could not be read" in found.because


def test_the_page_says_what_memory_rests_on(tmp_path: Path) -> None:
    def shown(where: Environment) -> str:
        path = tmp_path / where.memory_method / "box" / log.NAME
        for each in records(where=where):
            log.append(path, each)
        return Parsed(page.render(sets.collect(path.parents[1]))).text

    sampled = shown(WHERE)
    assert sampled.count("Memory rests on resident sets sampled every 5 ms") == 1
    assert "the memory of several processes is unknown" in sampled
    assert "samples in batches of 32, memory by resident sets sampled every 5 ms" in sampled
    assert "how much its processes hold together could not be read" in sampled
    linux = shown(msgspec.structs.replace(WHERE, memory_method=memory.KernelPeak.method))
    assert "resident sets sampled" not in linux
