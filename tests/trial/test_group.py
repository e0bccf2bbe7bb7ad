from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from loaders._trial import group, machine


class TestGroup:
    """The files of a control group, played by ordinary ones; a kernel that has none makes ``limited_by`` say so."""

    @pytest.fixture
    def place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        place = tmp_path / "cgroup" / "app.slice"
        (place / "terminal.scope").mkdir(parents=True)
        (tmp_path / "cgroup" / "cgroup.controllers").write_text("memory pids\n")
        own = tmp_path / "own"
        own.write_text("1:name=systemd:/elsewhere\n0::/app.slice/terminal.scope\n")
        monkeypatch.setattr(group, "ROOT", tmp_path / "cgroup")
        monkeypatch.setattr(group, "OWN", own)
        return place

    def test_it_lies_beside_our_own_and_holds_memory_swap_and_tasks(self, place: Path) -> None:
        with group.created(12345, 99) as made:
            assert made is not None
            assert made.parent == place
            with group.created(None, 1) as other:
                assert other not in (None, made), "two trials may take turns"
            held = {file.name: file.read_text() for file in made.iterdir()}
        assert held == {"memory.max": "12345", "memory.oom.group": "1", "pids.max": "99", "memory.swap.max": "0"}

    @pytest.mark.parametrize(
        ("file", "limit"),
        [("memory.max", "2147483648"), ("cpu.max", "200000 100000"), ("cpuset.cpus", "0-1"), ("io.max", "8:0 rbps=9")],
    )
    def test_there_is_none_beside_our_own_where_that_is_limited(self, place: Path, file: str, limit: str) -> None:
        """A trial would leave it, and run without its limits."""
        own = place / "terminal.scope" / file
        for said, is_made in (("max 100000\n", True), ("\n", True), (f"{limit}\n", False)):
            own.write_text(said)
            with group.created(1, 1) as made:
                assert (made is not None) == is_made

    def test_what_a_killed_command_has_left_is_removed(self, place: Path) -> None:
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        names = [f"loaders-{ended.pid}-abcd", f"loaders-{os.getpid()}-abcd", "loaders-of-others"]
        for name in names:
            (place / name).mkdir()
        with group.created(1, 1):
            assert not (place / names[0]).exists()
            assert all((place / each).exists() for each in names[1:])

    def test_without_a_limit_memory_is_only_counted(self, place: Path) -> None:
        with group.created(None, 99) as made:
            assert made is not None
            assert (made / "memory.max").read_text() == "max"

    def test_there_is_none_where_the_kernel_has_none_or_does_not_hand_it_down(
        self, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(path: Path, text: str) -> int:
            raise PermissionError(13, "Permission denied")

        with monkeypatch.context() as patched:
            patched.setattr(Path, "write_text", refused)
            with group.created(1, 1) as made:
                assert made is None
        assert [each.name for each in place.iterdir()] == ["terminal.scope"]
        (group.ROOT / "cgroup.controllers").unlink()
        with group.created(1, 1) as made:
            assert made is None
        monkeypatch.setattr(group, "OWN", Path("/nowhere"))
        with group.created(1, 1) as made:
            assert made is None

    def test_the_kernel_tells_what_it_did(self, tmp_path: Path) -> None:
        (tmp_path / "cpu.stat").write_text("usage_usec 0\nuser_usec 0\n")
        (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\noom_group_kill 0\n")
        assert (group.held(tmp_path), group.out_of_memory(tmp_path)) == (False, False)
        (tmp_path / "cpu.stat").write_text("usage_usec 123\n")
        (tmp_path / "memory.events").write_text("oom 1\noom_kill 3\n")
        assert (group.held(tmp_path), group.out_of_memory(tmp_path)) == (True, True)
        (tmp_path / "memory.events").write_text("oom 0\noom_kill 1\n")  # memory ran out elsewhere
        assert (group.out_of_memory(tmp_path), group.was_killed(tmp_path)) == (False, True)
        gone = tmp_path / "gone"  # a keeper removes it if its server has ended
        assert (group.held(gone), group.out_of_memory(gone)) == (False, False)


GIB = 2**30


@pytest.mark.parametrize(
    ("told", "where", "version"),
    [
        ("0::/app.slice/terminal.scope", "app.slice", ""),  # of a parent
        ("0::/app.slice/loaders-1-ab", "app.slice", ""),  # of a trial, whose own limit is another matter
        ("0::/loaders-of-others.service", "loaders-of-others.service", ""),
        ("0::/", "", ""),  # in a container
        ("4:memory:/docker/1a2b", "memory", "memory"),
    ],
)
def test_a_containers_memory_is_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, where: str, version: str
) -> None:
    """Of 4 GiB, 3.5 are used, and one of these is page cache that can be given up."""
    for name, limit in (("terminal.scope", "max"), ("loaders-1-ab", "12345")):
        inner = tmp_path / "app.slice" / name
        inner.mkdir(parents=True)
        (inner / "memory.max").write_text(f"{limit}\n")
        (inner / "memory.current").write_text("1\n")
    place = tmp_path / where
    place.mkdir(exist_ok=True)
    _, most, used, cached, shared = group.MEMORY[version]
    (place / most).write_text(f"{4 * GIB}\n")
    (place / used).write_text(f"{7 * GIB // 2}\n")
    (place / "memory.stat").write_text(f"anon {2 * GIB}\n{cached} {3 * GIB // 2}\n{shared} {GIB // 2}\n")
    (tmp_path / "own").write_text(f"9:name=systemd:/x:y\n{told}\n")
    monkeypatch.setattr(group, "ROOT", tmp_path)
    monkeypatch.setattr(group, "OWN", tmp_path / "own")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=64 * GIB, available=60 * GIB))
    assert list(group.limits()) == [(4 * GIB, 3 * GIB // 2)]
    assert machine.memory() == 4 * GIB
    assert machine.default_memory_limit() == int(3 * GIB // 2 * machine.MEMORY_SHARE)
    (place / most).write_text(f"{2**63 - 4096}\n")
    assert machine.memory() == 64 * GIB, "no limit, as version 1 says it"


def test_without_control_groups_the_machines_memory_is_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "OWN", tmp_path / "none")
    assert list(group.limits()) == []
    assert machine.memory() == psutil.virtual_memory().total


@pytest.mark.parametrize(
    ("told", "files", "cores"),
    [
        ("0::/app.slice/terminal.scope", {"app.slice/cpu.max": "200000 100000"}, 2),
        ("0::/", {"cpu.max": "50000 100000"}, 1),
        ("0::/app.slice", {"app.slice/cpu.max": "max 100000"}, 8),
        ("0::/app.slice", {"app.slice/cpu.max": "1600000 100000"}, 8),
        ("4:cpu,cpuacct:/docker/1a", {"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3),
        ("4:cpu,cpuacct:/docker/1a", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        ("4:memory:/docker/1a", {"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 8),
    ],
)
def test_a_containers_quota_is_how_many_processors_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, files: dict[str, str], cores: int
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    (tmp_path / "own").write_text(f"{told}\n")
    monkeypatch.setattr(group, "ROOT", tmp_path)
    monkeypatch.setattr(group, "OWN", tmp_path / "own")
    monkeypatch.setattr(machine, "processors", lambda: 8)
    assert machine.cores() == cores
