from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from loaders._corpus import Corpus
from loaders._trial import run_trial
from loaders._trial.record import Converted, Trial
from tests.conftest import ROOT

MIB = 2**20

PLANTED = """
import time
from loaders import variant
def convert(job):
    {body}
@variant(question="record_format", convert=convert)
def planted(job):
    'Planted by a test.'
    return []
"""


APART = """
import os, sys, msgspec, numpy, psutil
from loaders._trial import convert, record
trial = msgspec.json.decode(sys.stdin.buffer.read(), type=record.Trial)
before = psutil.Process().memory_info().rss
print(msgspec.json.encode(convert.apart(trial)).decode())
assert psutil.Process().memory_info().rss < before + 2**22, "the conversion's memory is this process's"
"""


def _convert(root: Path, directory: Path, strategy: str, outside: list[str]) -> subprocess.CompletedProcess[bytes]:
    """Convert in a fork, as a trial does."""
    return _run(["-c", APART], root, directory, strategy, outside)


def _run(
    how: list[str], root: Path, directory: Path, strategy: str, outside: list[str]
) -> subprocess.CompletedProcess[bytes]:
    directory.mkdir()
    trial = Trial("record_format", strategy, {"page_cache": "warm", "data": "x16"}, str(root), 1, outside=outside)
    return subprocess.run(
        [sys.executable, *how],
        input=msgspec.json.encode(trial),
        cwd=directory,
        env={"PATH": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )


def _planted(corpus: Corpus, tmp_path: Path, body: str, how: tuple[str, ...] = ("-c", APART)) -> Converted:
    file = tmp_path / "planted.py"
    file.write_text(PLANTED.format(body=body))
    made = _run([*how], corpus.root, tmp_path / "work", "planted", [str(file)])
    assert made.returncode == 0, made.stdout
    return msgspec.json.decode(made.stdout.splitlines()[-1], type=Converted)


@pytest.mark.parametrize("how", [("-c", APART), ("-m", "loaders._trial.convert")], ids=["forked", "fresh"])
@pytest.mark.parametrize("size", [16, 128])
def test_memory_of_known_size(corpus: Corpus, tmp_path: Path, size: int, how: tuple[str, ...]) -> None:
    found = _planted(corpus, tmp_path, f"bytearray({size} * 2**20)", how)
    assert found.memory == pytest.approx(size * MIB, abs=MIB)


def test_a_sleep_of_known_length_and_what_is_printed_spoils_nothing(corpus: Corpus, tmp_path: Path) -> None:
    found = _planted(corpus, tmp_path, 'print("{no json"); time.sleep(0.5)')
    assert 0.5 <= found.time < 0.6


def test_what_a_conversion_does_wrong_is_said(corpus: Corpus, tmp_path: Path) -> None:
    file = tmp_path / "planted.py"
    for number, (body, words) in enumerate(
        [
            ("raise OSError('no room left')", b"the conversion failed: OSError: no room left"),
            ("import os; os._exit(3)", b"the conversion ended with exit code 3"),
            ("import os; os.abort()", b"the conversion ended with exit code -6"),
        ]
    ):
        file.write_text(PLANTED.format(body=body))
        made = _convert(corpus.root, tmp_path / f"work{number}", "planted", [str(file)])
        assert made.returncode == 1
        assert words in made.stderr


LOOKS = """
import sys
from loaders import variant
def convert(job):
    (job.directory / "said").write_text(str("late" in sys.modules))
@variant(question="selection", convert=convert)
def planted(job):
    'Planted by a test.'
    raise ValueError((job.directory / "said").read_text())
"""


@pytest.mark.parametrize(
    ("late", "has_it"),
    [
        ("", "True"),
        ("import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()", "False"),
    ],
    ids=["forked", "started, as there are threads"],
)
def test_it_has_what_its_trial_has_imported_unless_that_may_not_be_forked(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: str, has_it: str
) -> None:
    """To import TensorFlow again takes as long as all the rest of a trial."""
    (tmp_path / "late.py").write_text(late)
    (tmp_path / "planted.py").write_text(LOOKS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    trial = Trial(
        "selection",
        "planted",
        {"images": "500"},
        str(corpus.root),
        1,
        outside=[str(tmp_path / "planted.py")],
        ahead={"late": set()},
    )
    record = run_trial(trial, corpus)
    assert (record.status, record.message.split()[1]) == ("failed", has_it)


@pytest.mark.slow
def test_conversions_stream(corpus: Corpus, tmp_path: Path) -> None:
    """Six times the images need no more memory than a record or two and what the writer buffers.

    Of encoded bytes there are not enough in this corpus to tell.
    """
    few = tmp_path / "few"
    few.mkdir()
    (few / "images").symlink_to(corpus.root / "images")
    manifest = msgspec.structs.replace(corpus.manifest, images=corpus.manifest.images[::6])
    (few / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    for strategy in ("serialize_tensor", "resized_uint8"):
        memory = []
        for root in (few, corpus.root):
            made = _convert(root, tmp_path / f"{strategy}-{root.name}", strategy, [])
            assert made.returncode == 0, made.stdout
            memory.append(msgspec.json.decode(made.stdout, type=Converted).memory)
        assert memory[1] < memory[0] + 4 * MIB
