"""Killed at random moments, a run loses nothing, leaves nothing behind, and the same command continues it.

``LOADERS_KILLS=100`` kills more often than the six times of the suite.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from loaders import _compare, _durable, _registry
from loaders._corpus import Corpus
from loaders._errors import InputError
from loaders._trial import Record, log, pages
from tests.conftest import ROOT, Command, Strategy, kept_as_evidence
from tests.test_compare import Runner, stand_in_for_trials
from tests.trial.conftest import marked
from tests.trial.test_log import RECORD

KILLS = int(os.environ.get("LOADERS_KILLS", "6"))
ROUNDS = max(1, min(8, KILLS // 10))  # in later ones only what is still open would run
HOW = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
MINE = """
import os, subprocess, time
from loaders import variant

{strategies}
"""
STRATEGY = '''
@variant(question="selection")
def mine_{number}(job):
    """Has a worker, and one that has left its session and its parent."""
    import numpy as np
    {imports}
    worker = subprocess.Popen(["sleep", "100"])
    subprocess.run("setsid sleep 100 & echo x > kept", shell=True)
    time.sleep({seconds})
    return [np.random.default_rng(job.seed).choice(job.inputs.images, job.inputs.draws, replace=False)]
'''

OWN = 4
"""The number of strategies like this one."""

TENSORFLOW = """
class data:
    class Dataset:
        range = range
"""
"""Stands in for the package, so that trials come from a server that is there in a moment."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can end a killed parent's processes")


class Run:
    """A comparison of strategies that have workers, in a world of its own."""

    def __init__(self, directory: Path, results: Path, rounds: int, *, forks: bool = False) -> None:
        self.directory, self.log = directory, results / "tested" / log.NAME
        imports = "import tensorflow" if forks else "pass"
        strategies = "\n".join(STRATEGY.format(number=each, seconds=each / 10, imports=imports) for each in range(OWN))
        (directory / "mine.py").write_text(MINE.format(strategies=strategies))
        if forks:
            (directory / "tensorflow.py").write_text(TENSORFLOW)
        (directory / "tmp").mkdir()
        self.command = [sys.executable, "-m", "loaders", "compare", "selection", "--size", "tiny", "--quick"]
        self.command += ["--rounds", str(rounds), "--with", "mine.py"]
        self.variables = {"TMPDIR": str(directory / "tmp"), "LOADERS_TEST_MARK": str(directory)}

    def start(self, **variables: str) -> subprocess.Popen[str]:
        """Start it, or go on with it."""
        return subprocess.Popen(
            self.command,
            cwd=self.directory,
            env={**os.environ, **self.variables, "PYTHONPATH": f"{ROOT}{os.pathsep}{self.directory}", **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def left(self) -> list[str]:
        """Return which of its processes are left once it has ended."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            found = list(_alive(marked(str(self.directory))))
            if not found:
                return []
            time.sleep(0.02)
        return found

    def read(self) -> bytes:
        """Return the log, which need not be there yet."""
        return self.log.read_bytes() if self.log.exists() else b""


def _alive(processes: list[psutil.Process]) -> Iterator[str]:
    """Yield what runs, as its number and command; it may end at any moment."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                yield f"{process.pid} {' '.join(process.cmdline())}"


def _wait_until(holds: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.usefixtures("corpus")
def test_killed_at_random_moments_it_loses_nothing_and_leaves_nothing(tmp_path: Path, results: Path) -> None:
    run, moments = Run(tmp_path, results, rounds=ROUNDS, forks=True), random.Random(1)
    killed: Counter[str] = Counter()
    wrong = {"a kill of a comparison leaves a process": 0, "a kill of a comparison loses a record": 0}
    leaves, loses = wrong
    finished = 0
    while killed.total() < KILLS:
        before = run.read()
        process = run.start()
        how = moments.choice(HOW)
        try:
            process.wait(moments.uniform(0, 3))
        except subprocess.TimeoutExpired:
            killed[how.name] += 1
            process.send_signal(how)
        _, errors = process.communicate(timeout=60)
        # Python ends as SIGINT does, which a shell shows as 130 too, where the interrupt came out of an `exec`.
        assert process.returncode in (0, 130, -signal.SIGINT, -how), errors
        finished += process.returncode == 0
        wrong[leaves] += run.left() != []
        after = run.read()
        wrong[loses] += not after.startswith(before) or after[-1:] not in (b"", b"\n")  # gone, or half written
    kept_as_evidence("kills of comparisons", killed.total(), wrong)
    assert not any(wrong.values()), wrong
    said: list[str] = []
    process = run.start()
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    records = log.read(run.log, said.append)
    assert said == []
    trials = Counter((each.run, each.round, each.strategy) for each in records)
    assert set(trials.values()) == {1}
    assert {each.status for each in records} == {"ok"}
    assert {each.process for each in records} == {"forked" if pages.AVAILABLE else "fresh"}
    runs = Counter(each.run for each in records)
    strategies = len(_registry.quick("selection")) + OWN
    assert set(runs.values()) == {strategies * ROUNDS}, "each run was continued to its end, and then a new one begun"
    assert len(runs) > finished, (
        "a finished one is not continued; one may also be killed between its last trial and its end"
    )
    assert [path for path in (tmp_path / "tmp").iterdir() if not _is_pythons(path)] == []
    assert sorted(path.name for path in run.log.parent.iterdir()) == [".running", log.NAME]
    print(f"{dict(killed)}; {len(records)} trials in {len(runs)} runs")  # noqa: T201 - with -s, by signal


@pytest.mark.slow
def test_killed_while_it_builds_a_corpus_it_builds_it_again_and_tidies_up(tmp_path: Path, results: Path) -> None:
    run, cache = Run(tmp_path, results, rounds=1), tmp_path / "cache"
    moments = random.Random(2)
    for _ in range(2):
        process = run.start(LOADERS_CACHE=str(cache))
        _wait_until(lambda: cache.exists() and any(cache.iterdir()))
        time.sleep(moments.uniform(0, 1))
        process.kill()
        process.communicate()
        assert run.left() == []
        assert [path for path in cache.iterdir() if not path.name.startswith(".loaders-building-")] == []
    process = run.start(LOADERS_CACHE=str(cache))
    _wait_until(run.read)
    process.terminate()
    assert process.wait(60) == 130
    assert [path.name.split("-")[0] for path in cache.iterdir()] == ["photographs"]


@pytest.mark.slow
@pytest.mark.usefixtures("corpus")
def test_of_two_at_once_one_runs_and_the_other_says_so(tmp_path: Path, results: Path) -> None:
    run = Run(tmp_path, results, rounds=1)
    first = run.start()
    _wait_until((results / "tested" / log.RESERVE).exists)
    second = run.start()
    _, errors = second.communicate(timeout=60)
    assert (second.returncode, "another comparison is under way" in errors) == (2, True), errors
    assert first.poll() is None
    first.kill()
    first.communicate()
    before = log.read(run.log)
    third = run.start()
    _wait_until(lambda: len(log.read(run.log)) > len(before))
    third.terminate()
    _, errors = third.communicate(timeout=60)
    assert third.returncode == 130, errors
    assert len({each.run for each in log.read(run.log)}) == 1, "the lock of a killed run holds nobody up"


class TestPowerCut:
    """What was synced is there after it; of what was not, any part may be."""

    def test_a_record_is_on_the_disk_when_it_counts_as_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synced: list[tuple[str, int]] = []

        def note(handle: int) -> None:
            synced.append((str(Path(f"/proc/self/fd/{handle}").readlink()), os.fstat(handle).st_size))

        monkeypatch.setattr(os, "fsync", note)
        path = tmp_path / "deep" / log.NAME
        for _ in range(2):
            log.append(path, RECORD)
            assert (str(path), path.stat().st_size) in synced
        assert str(path.parent) in dict(synced), "nor is a new file's name"

    @pytest.mark.parametrize("tail", [b"", b"\x00" * 100])
    def test_a_run_whose_log_was_cut_anywhere_continues_from_what_is_whole(
        self, tmp_path: Path, results: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch, tail: bytes
    ) -> None:
        planned = _compare.Plan("selection", ("mixed_copy", "list_to_list"), ({"images": "500"},), 3, corpus, 2**30, 60)
        path, moments = log.log_path("tested"), random.Random(3)
        stand_in_for_trials(monkeypatch, runner := Runner())
        runner.stop_at = 5
        with pytest.raises(KeyboardInterrupt):
            _compare.run(planned)
        whole, runner.stop_at = path.read_bytes(), None
        for cut in moments.sample(range(len(whole)), 30):
            path.write_bytes(whole[:cut] + tail)
            kept = log.read(path)
            assert len(kept) in (whole[:cut].count(b"\n"), whole[: cut + 1].count(b"\n"))
            records = _compare.run(planned)
            assert log.read(path) == records
            assert records[: len(kept)] == kept
            assert set(Counter((each.round, each.strategy) for each in records).values()) == {1}
            assert len(records) == 6


def _is_pythons(path: Path) -> bool:
    """Whether it is the file with which Python tries if it can write to a directory (``tempfile.gettempdir``)."""
    return bool(re.fullmatch("[a-z0-9_]{8}", path.name)) and path.is_file() and path.read_bytes() in (b"", b"blat")


class TestFullDisk:
    """On a file system of 2.5 MiB in memory, where this process may mount one."""

    @pytest.fixture
    def disk(self, tmp_path: Path) -> Iterator[Path]:
        disk = tmp_path / "disk"
        disk.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2560k", "none", str(disk)], capture_output=True, text=True, check=False
        )
        if mounted.returncode:
            pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
        yield disk
        subprocess.run(["umount", "--lazy", str(disk)], check=True)

    @staticmethod
    def fill(disk: Path, but: int = 0) -> None:
        """Fill it, but for some bytes."""
        with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        os.truncate(disk / "filler", (disk / "filler").stat().st_size - but)

    @pytest.mark.parametrize("but", [0, 4096])
    def test_the_trial_under_way_is_kept_and_the_same_command_continues(
        self, disk: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch, but: int
    ) -> None:
        monkeypatch.setenv("LOADERS_RESULTS", str(disk))
        planned = _compare.Plan("selection", ("mixed_copy", "list_to_list"), ({"images": "500"},), 3, corpus, 2**30, 60)
        runner = Runner()

        def fills(*arguments: object, **more: object) -> Record:
            if len(runner.ran) == 2:
                self.fill(disk, but)
            record = runner(*arguments, **more)  # type: ignore[arg-type]
            return msgspec.structs.replace(record, message="x" * 10_000)

        stand_in_for_trials(monkeypatch, fills)
        with pytest.raises(
            InputError, match=r"No space left on device; free .*; this trial and the earlier ones are kept"
        ):
            _compare.run(planned)
        path = log.log_path("tested")
        assert len(log.read(path)) == len(runner.ran) == 3
        with pytest.raises(InputError, match=r"No space left on device; free .*; nothing was run"):
            _compare.run(planned)
        assert len(runner.ran) == 3
        (disk / "filler").unlink()
        assert len(_compare.run(planned)) == len(log.read(path)) == len(runner.ran) == 6

    def test_a_record_without_room_leaves_no_part_of_itself(self, disk: Path) -> None:
        path = disk / log.NAME
        log.append(path, RECORD)
        before = path.read_bytes()
        self.fill(disk, 4096)
        with pytest.raises(InputError, match="earlier trials are kept"):
            log.append(path, msgspec.structs.replace(RECORD, message="x" * 20_000))
        assert path.read_bytes() == before

    def test_a_written_file_is_the_old_one_or_the_new_one(self, disk: Path) -> None:
        page = disk / "page.html"
        _durable.write(page, "old")
        self.fill(disk, 4096)
        with pytest.raises(OSError, match="No space left"):
            _durable.write(page, "x" * 20_000)
        assert sorted(path.name for path in disk.iterdir()) == ["filler", "page.html"]
        assert page.read_text() == "old"

    def test_a_trial_without_room_to_work_says_so(
        self, disk: Path, strategy: Strategy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(disk))
        page = "open(sys.argv[1], 'ab').write(b'\\n' * (4096 - os.path.getsize(sys.argv[1])))"  # of the report's
        rest = "try:\n    open('much', 'wb').write(bytes(2**22))\nexcept OSError:\n    pass"
        record = strategy(f"{page}\n{rest}\nreturn right")
        assert (record.status, "no room is left where" in record.message) == ("failed", True), record.message
        assert strategy("return right").status == "ok"

    def test_nor_does_one_whose_workers_are_watched_on_a_full_disk(
        self, disk: Path, strategy: Strategy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(disk))
        rest = "try:\n    open('much', 'wb').write(bytes(2**22))\nexcept OSError:\n    pass"
        record = strategy(f"{rest}\nsubprocess.Popen(['sleep', '100'])\ntime.sleep(3)\nreturn right")
        assert (record.status, "no room is left where" in record.message) == ("failed", True), record.message

    def test_where_others_have_filled_the_disk_no_strategy_has_failed(
        self, disk: Path, strategy: Strategy, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(disk))
        planned = _compare.Plan("selection", ("list_to_list",), ({"images": "500"},), 1, corpus, 2**30, 60)
        refused = pytest.raises(InputError, match=rf"no room is left in {disk}, where trials work: free space there")
        self.fill(disk)
        with refused:
            _compare.run(planned)
        os.truncate(disk / "filler", 2**20)
        with refused:  # it fills up while the trial works
            strategy(f"open({str(disk / 'filler')!r}, 'ab').write(bytes(2**22))\nreturn right")
        (disk / "filler").unlink()
        assert [each.status for each in _compare.run(planned)] == ["ok"]
        assert len(log.read(log.log_path("tested"))) == 1

    @pytest.mark.usefixtures("corpus")
    def test_what_cannot_be_kept_is_shown(self, command: Command, disk: Path) -> None:
        self.fill(disk)
        done = command("trial", "selection", "mixed_copy", "--size", "tiny", LOADERS_RESULTS=str(disk))
        assert done.returncode == 2
        assert "cannot append" in done.stderr
        assert "mixed_copy" in done.stdout


def test_a_page_that_may_not_grow_so_large_is_not_written_half(command: Command, tmp_path: Path) -> None:
    """As on a full disk, without one: the kernel refuses to make a file longer."""
    page = tmp_path / "page.html"
    page.write_text("old")
    code = (
        "import resource, sys; from pathlib import Path; from loaders import _durable\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        f"_durable.write(Path({str(page)!r}), 'x' * 20_000)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "File too large" in done.stderr
    assert (page.read_text(), sorted(path.name for path in tmp_path.glob(".*page*"))) == ("old", [])
