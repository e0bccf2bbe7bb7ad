from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders._errors import InputError
from loaders._trial import log
from loaders._trial.metrics import MemoryTrace, Metrics
from loaders._trial.record import Environment, Record
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
)

OF_ANOTHER = Environment(machine="tested", cpu="another processor than this")


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "trials.jsonl"
    other = msgspec.structs.replace(RECORD, round=1)
    log.append(path, RECORD)
    log.append(path, other)
    assert log.read(path) == [RECORD, other]
    assert log.read(tmp_path / "nowhere.jsonl") == []


@pytest.mark.parametrize(
    ("question", "strategy", "case", "added"),
    [
        ("caching", "no_cache", {"data": "x4"}, {"onednn": "default"}),
        ("caching", "no_cache_onednn", {"data": "x4"}, {"onednn": "set"}),
        ("caching", "no_cache", {"data": "x4", "onednn": "set"}, {}),
        ("caching", "removed", {"data": "x4"}, {"onednn": "default"}),
        ("caching", "no_cache", {"bogus": "x4"}, {}),
        ("caching", "no_cache", {}, {}),
        ("read_order", "interleave", {"record": "tensor"}, {"data": "x16"}),
    ],
)
def test_a_trial_of_before_its_question_had_an_axis_is_read_with_it(
    tmp_path: Path, question: str, strategy: str, case: dict[str, str], added: dict[str, str]
) -> None:
    log.append(tmp_path / log.NAME, msgspec.structs.replace(RECORD, question=question, strategy=strategy, case=case))
    assert [each.case for each in log.read(tmp_path / log.NAME)] == [case | added]


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


def test_records_of_another_schema_are_kept_and_said_to_be_an_older_instruments(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    older = msgspec.structs.replace(RECORD, schema=1)
    log.append(path, older)
    log.append(path, RECORD)
    said: list[str] = []
    assert log.read(path, said.append) == [older, RECORD]
    (sentence,) = said
    assert "1 of its 2 records are of an older instrument" in sentence
    assert "python -m loaders compare` measures them anew" in sentence


def test_a_machines_name_belongs_to_one_processor(tmp_path: Path) -> None:
    path = tmp_path / "mine" / "trials.jsonl"
    measured = msgspec.structs.replace(RECORD, environment=msgspec.structs.replace(RECORD.environment, cpu="One"))
    log.refuse_other_processor(path, "Other")  # nothing is there
    log.append(path, msgspec.structs.replace(measured, schema=1))
    log.refuse_other_processor(path, "One")
    with pytest.raises(
        InputError, match=r"mine is the name of .* another processor \(One, this is Other\).*LOADERS_MACHINE="
    ):
        log.refuse_other_processor(path, "Other")


def test_a_log_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match=r"cannot append to .*LOADERS_RESULTS.*earlier trials are kept"):
        log.append(tmp_path / "file" / "trials.jsonl", RECORD)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_a_clear_error() -> None:
    with pytest.raises(InputError, match="No space left"):
        log.append(Path("/dev/full"), RECORD)


def test_the_reserve_keeps_the_trial_under_way_in_a_folders_log_too(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, append = results / "mine" / "folders" / "key" / log.NAME, log._append

    def full(path: Path, lines: bytes) -> None:
        if (results / "mine" / log.RESERVE).exists():
            raise OSError(28, "No space left on device")
        append(path, lines)

    with log.exclusive("mine"):
        monkeypatch.setattr(log, "_append", full)
        with pytest.raises(InputError, match="this trial and the earlier ones are kept"):
            log.append(path, RECORD)
    assert log.read(path) == [RECORD]


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


def _with(path: str, value: Any) -> bytes:
    """Return the record as a line, with a value put in at a place such as ``metrics.epoch_time``."""
    document = json.loads(msgspec.json.encode(RECORD))
    *parents, last = path.split(".")
    inner = document
    for name in parents:
        inner = inner.setdefault(name, {})
    inner[last] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metrics.epoch_time", math.nan),
        ("metrics.epoch_time", math.inf),
        ("metrics.epoch_time", -1.0),
        ("metrics.epoch_time", 1e300),
        ("metrics.epoch_time", "0.25"),
        ("metrics.epoch_time", True),
        ("metrics.peak_memory", -1),
        ("metrics.peak_memory", 10**30),
        ("metrics.peak_memory", 1.5),
        ("metrics.samples", -3),
        ("metrics.psnr", 1e9),
        ("metrics.disturbance", {"others": 2.0}),
        ("metrics.memory_trace.step", [1, 2]),
        ("metrics.memory_trace.in_use", []),
        ("metrics.memory_trace.step", list(range(20_000))),
        ("metrics", {"steps": [1, 2], "walk": [3]}),
        ("environment.page_cache", 1.1),
        ("environment.machine", "x" * 100_000),
        ("environment.packages", {str(number): "1" for number in range(1000)}),
        ("strategy", "x" * 100_000),
        ("strategy", "\ud800"),
        ("status", "splendid"),
        ("started", "yesterday"),
        ("started", "2026-01-02T03:04:05"),
        ("started", "9999-01-02T03:04:05+00:00"),
        ("started", ""),
        ("round", -1),
        ("epochs", 0),
        ("tries", 0),
        ("case", {"images": 500}),
        ("case", None),
    ],
)
def test_what_cannot_be_is_left_out_with_its_line_and_the_reason(tmp_path: Path, path: str, value: Any) -> None:
    file = tmp_path / "trials.jsonl"
    file.write_bytes(_with(path, value) + b"\n")
    log.append(file, RECORD)
    said: list[str] = []
    assert log.read(file, said.append) == [RECORD]
    (words,) = said
    assert words.startswith(f"{file}: left out line 1, which cannot be read")
    assert len(words) < 500
    assert words.isprintable()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(
    line=st.binary(max_size=60)
    | st.builds(lambda value: json.dumps(value).encode(), JSON)
    | st.builds(
        _with,
        st.sampled_from(
            ["metrics", "environment", "metrics.memory_trace", "case", "metrics.steps", "started", "round"]
        ),
        JSON,
    )
)
def test_whatever_a_line_holds_costs_itself_only(tmp_path_factory: pytest.TempPathFactory, line: bytes) -> None:
    path = tmp_path_factory.mktemp("log") / "trials.jsonl"
    path.write_bytes(line + b"\n")
    log.append(path, RECORD)
    said: list[str] = []
    assert log.read(path, said.append)[-1] == RECORD
    assert all(each.isprintable() for each in said)


@pytest.mark.python
@pytest.mark.parametrize("line", [b'{"x":' + b"[" * 100_000, b"[" * 100_000, b'{"a":' * 100_000])
def test_a_line_nested_without_end_is_left_out(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_bytes(line + b"\n")
    log.append(path, RECORD)
    assert log.read(path) == [RECORD]


def test_a_trial_that_stands_there_twice_is_one_sample(tmp_path: Path) -> None:
    first = msgspec.structs.replace(RECORD, run="r")
    again = msgspec.structs.replace(first, message="again")
    elsewhere = msgspec.structs.replace(first, environment=Environment(machine="another"))
    by_hand = [RECORD, RECORD]
    for path in (tmp_path / "a" / log.NAME, tmp_path / "b" / log.NAME):  # the second directory is a copy of the first
        for record in (first, again, msgspec.structs.replace(first, round=1), elsewhere):
            log.append(path, record)
    for record in by_hand:
        log.append(path, record)
    said: list[str] = []
    read = log.read_all(tmp_path, said.append)
    assert read == [first, msgspec.structs.replace(first, round=1), elsewhere, *by_hand]
    assert [words.partition(": ")[2] for words in said] == [
        "left out 1 records of trials that it holds already",
        "left out 1 records of trials that it holds already",
        "left out 3 records that stand in several logs",
    ]


def test_a_log_that_cannot_be_opened_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "two\nlines" / log.NAME
    path.mkdir(parents=True)
    said: list[str] = []
    assert log.read_all(tmp_path, said.append) == []
    assert said == [f"{tmp_path}/two\\nlines/{log.NAME}: left out: Is a directory"]


@pytest.mark.parametrize(
    "machine", sorted(each.parent.name for each in (ROOT / "results").glob(f"reference*/{log.NAME}"))
)
def test_the_published_log_is_read_whole(machine: str) -> None:
    said: list[str] = []
    path = ROOT / "results" / machine / log.NAME
    assert len(log.read(path, said.append)) == len(path.read_bytes().splitlines())
    assert all("older instrument" in each for each in said)
