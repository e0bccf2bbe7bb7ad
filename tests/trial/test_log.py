from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders._errors import InputError
from loaders._trial import log
from loaders._trial.record import Environment, MemoryTrace, Metrics, Record
from tests.conftest import ROOT

RECORD = Record(
    question="selection",
    strategy="numpy_to_numpy",
    status="ok",
    message='with "quotes", ünïcode and\na line break',
    metrics=Metrics(epoch_time=0.25, peak_memory=3, memory_trace=MemoryTrace([1], [0.1], [5], None)),
    environment=Environment(machine="tested"),
    case={"images": "500"},
    size="tiny",
    data="photographs",
    seed=1,
    started="2026-01-02T03:04:05+00:00",
    seconds=1.5,
    run="r",
)


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "trials.jsonl"
    other = msgspec.structs.replace(RECORD, round=1)
    log.append(path, RECORD)
    log.append(path, other)
    assert log.read(path) == [RECORD, other]
    assert log.read(tmp_path / "nowhere.jsonl") == []


@given(cut=st.integers(1, 200))
def test_a_line_that_was_cut_costs_itself_only(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("log") / "trials.jsonl"
    for _ in range(2):
        log.append(path, RECORD)
    path.write_bytes(path.read_bytes()[:-cut])  # power was lost in the middle of the second record
    log.append(path, RECORD)
    said: list[str] = []
    records = log.read(path, said.append)
    if cut == 1:  # only the line break was lost
        assert records == [RECORD] * 3
    else:
        assert records == [RECORD] * 2
        assert len(said) == 1
        assert "line 2" in said[0]


@pytest.mark.parametrize("junk", [b"\xff\xfe\n", b"{}\n", b"null\n", b"[1, 2]\n", b"\x00" * 50 + b"\n", b"\n\n"])
def test_lines_of_something_else_are_left_out(tmp_path: Path, junk: bytes) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_bytes(junk)
    log.append(path, RECORD)
    assert log.read(path) == [RECORD]


def test_records_of_another_schema_are_left_out_and_said_so(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    log.append(path, msgspec.structs.replace(RECORD, schema=99))
    log.append(path, RECORD)
    said: list[str] = []
    assert log.read(path, said.append) == [RECORD]
    assert "another schema" in said[0]


def test_a_log_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match=r"cannot append to .*LOADERS_RESULTS.*earlier trials are kept"):
        log.append(tmp_path / "file" / "trials.jsonl", RECORD)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_a_clear_error() -> None:
    with pytest.raises(InputError, match="No space left"):
        log.append(Path("/dev/full"), RECORD)


def test_one_comparison_at_a_time_and_a_killed_one_holds_nothing() -> None:
    code = "from loaders._trial import log\nwith log.exclusive('tested'):\n    print('held', flush=True)\n    input()"
    holder = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(InputError, match=r"another comparison is under way.*wait for it"), log.exclusive("tested"):
        pass
    with log.exclusive("another machine"):
        pass
    holder.kill()
    holder.wait()
    with log.exclusive("tested"):
        pass


def test_writers_at_the_same_time_do_not_mix_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    code = (
        "import sys; from pathlib import Path; from loaders._trial import log\n"
        "from tests.trial.test_log import RECORD\n"
        "for _ in range(50): log.append(Path(sys.argv[1]), RECORD)"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path)], cwd=ROOT) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert log.read(path) == [RECORD] * 150
