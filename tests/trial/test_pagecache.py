from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from loaders._registry import Skip
from loaders._trial import pagecache
from loaders._trial.pagecache import resident_share

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mincore is asked on Linux only")


def _file(path: Path, mebibytes: int) -> Path:
    with path.open("wb") as file:
        file.write(os.urandom(mebibytes * 2**20))
        file.flush()
        os.fsync(file.fileno())
    return path


def _evict(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)


def test_what_was_written_is_in_the_cache_until_it_is_dropped(tmp_path: Path) -> None:
    warm, cold = _file(tmp_path / "warm", 4), _file(tmp_path / "cold", 4)
    assert resident_share([warm, cold]) == 1.0
    _evict(cold)
    if resident_share([cold]) == 1.0:
        pytest.skip("this file system keeps its pages (tmpfs does)")
    assert resident_share([cold]) == 0.0
    assert resident_share([warm, cold]) == pytest.approx(0.5)
    cold.read_bytes()
    assert resident_share([cold]) == 1.0


def test_asking_does_not_read_the_file(tmp_path: Path) -> None:
    cold = _file(tmp_path / "cold", 4)
    _evict(cold)
    first = resident_share([cold])
    assert resident_share([cold]) == first


def test_empty_files_and_no_files_have_no_share(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert resident_share([tmp_path / "empty"]) is None
    assert resident_share([]) is None


@pytest.mark.parametrize("state", ["", "cold", "warm"])
def test_a_missing_file_is_left_to_the_strategy(tmp_path: Path, state: str) -> None:
    missing = str(tmp_path / "missing")
    pagecache.bring([missing], state)
    assert resident_share([missing]) is None


def test_files_are_brought_in_and_out(tmp_path: Path) -> None:
    files = [str(_file(tmp_path / name, 2)) for name in ("a", "b")]
    try:
        pagecache.bring(files, "cold")
    except Skip as skip:
        pytest.skip(str(skip))
    assert resident_share(files) == 0.0
    pagecache.bring(files, "warm")
    assert resident_share(files) == 1.0


def test_without_a_state_files_are_read_and_nothing_is_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [str(_file(tmp_path / "a", 1)), str(tmp_path / "missing")]
    _evict(Path(files[0]))
    pagecache.bring(files, "")
    assert resident_share(files[:1]) == 1.0
    monkeypatch.setattr(pagecache, "resident_share", lambda _: 0.5)
    pagecache.bring(files, "")


def test_what_was_read_once_is_not_cold_any_more() -> None:
    assert [pagecache.epochs(5, state) for state in ("", "warm", "cold")] == [5, 5, 1]


@pytest.mark.parametrize(("state", "share"), [("cold", 0.5), ("warm", 0.5)])
def test_a_cache_that_does_not_follow_is_a_skip_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, share: float
) -> None:
    monkeypatch.setattr(pagecache, "resident_share", lambda _: share)
    with pytest.raises(Skip, match="50%"):
        pagecache.bring([str(_file(tmp_path / "a", 1))], state)


def test_whether_files_lie_in_memory_is_told_by_what_is_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mounted(*pairs: tuple[Path, str]) -> None:
        found = [SimpleNamespace(mountpoint=str(path), fstype=kind) for path, kind in pairs]
        monkeypatch.setattr(psutil, "disk_partitions", lambda **_: found)

    inner = tmp_path / "inner"
    inner.mkdir()
    root = Path(tmp_path.anchor)
    for kinds, expected in (
        ([(root, "ext4")], [False, False]),
        ([(root, "ext4"), (tmp_path, "tmpfs")], [True, True]),
        ([(root, "overlay"), (tmp_path, "tmpfs"), (inner, "xfs")], [True, False]),
        ([(root, "ext4"), (Path(f"{tmp_path}x"), "tmpfs")], [False, False]),
        ([(root, "ext4"), (tmp_path, "tmpfs"), (tmp_path, "ext4")], [False, False]),
        ([], [False, False]),
    ):
        mounted(*kinds)
        assert [pagecache.is_in_memory(each) for each in (tmp_path, inner)] == expected
