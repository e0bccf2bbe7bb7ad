"""``make full``, with a stand-in for asv."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from asv.commands import make_argparser

from benchmarks import _base, _full
from loaders import _registry
from loaders._errors import InputError
from loaders._trial import log
from loaders._trial.record import Environment
from tests.conftest import ROOT, git
from tests.test_rows import record

QUESTIONS = sorted(_registry.questions())

STAND_IN = """
import json, os, sys
names = ("LOADERS_FULL", "LOADERS_SIZE", "LOADERS_MACHINE", "LOADERS_LIST")
with open("told", "a") as file:
    print(json.dumps([sys.argv[1:], [os.environ.get(each) for each in names]]), file=file)
sys.exit({code} if {failing!r} in " ".join(sys.argv) else 0)
"""

WAITING = """
import time
open("begun", "w").close()
try:
    time.sleep(60)
except KeyboardInterrupt:
    open("tidied up", "w").close()
    raise
"""


@pytest.fixture
def committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is measured, in a repository of its own, for which asv is a stand-in."""
    (tmp_path / "loaders").mkdir()
    file = tmp_path / "loaders" / "one.py"
    file.write_text("1")
    for words in (["init", "--quiet"], ["add", "loaders"], ["commit", "--quiet", "--message", "x"]):
        git(tmp_path, *words)
    monkeypatch.setattr(_base, "ROOT", tmp_path)
    monkeypatch.setattr(_base, "listed", lambda: {"selection": {}})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    _stand_in(tmp_path, monkeypatch)
    return file


def _stand_in(place: Path, monkeypatch: pytest.MonkeyPatch, failing: str = "nothing", code: int = 0) -> None:
    (place / "asv.py").write_text(STAND_IN.format(failing=failing, code=code), "utf-8")
    monkeypatch.setattr(_full, "ASV", [sys.executable, str(place / "asv.py")])


def _told(place: Path) -> list[tuple[list[str], list[str]]]:
    """Return the arguments and variables of each time that asv was called."""
    return [tuple(json.loads(line)) for line in (place / "told").read_text("utf-8").splitlines()]


@pytest.mark.usefixtures("committed")
def test_every_question_is_run_with_options_that_asv_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _full.main() == 0
    (registered, _), *told = _told(tmp_path)
    assert registered == ["machine", "--machine", "tested", "--yes"]
    assert len(told) == len(QUESTIONS) > 8
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert capsys.readouterr().out == f"measuring {commit} as tested\n"
    parser, _ = make_argparser()
    for question, (arguments, variables) in zip(QUESTIONS, told, strict=True):
        given = parser.parse_args(arguments)
        assert (given.machine, given.bench, given.skip_existing_successful) == ("tested", [rf"^{question}\."], True)
        assert given.range == f"{commit}^!"
        assert variables[:3] == ["1", "full", "tested"]
        assert json.loads(Path(variables[3]).read_text("utf-8")) == {"selection": {}}


@pytest.mark.usefixtures("committed")
def test_a_machine_that_asv_knows_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / ".asv-machine.json").write_text('{"tested": {"ram": "my own words"}, "version": 1}')
    assert _full.main() == 0
    assert len(_told(tmp_path)) == len(QUESTIONS)


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize(("code", "runs"), [(1, 1), (3, 1), (130, 1), (2, len(QUESTIONS))])
def test_it_stops_at_an_error_and_goes_on_after_a_benchmark_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int, runs: int
) -> None:
    _stand_in(tmp_path, monkeypatch, QUESTIONS[0], code)
    assert _full.main() == code
    assert sum(arguments[0] == "run" for arguments, _ in _told(tmp_path)) == runs
    assert (f"failures in {QUESTIONS[0]};" in capsys.readouterr().err) == (code == 2)


def test_it_does_not_begin_where_asv_would_measure_something_else(committed: Path) -> None:
    """asv takes the strategies from a commit, and says nothing of what is not in one."""
    (committed.parent / "two.py").write_text("2")
    with pytest.raises(InputError, match=r"commit it first.*: loaders/two.py$"):
        _full.main()
    committed.write_text("2")
    with pytest.raises(InputError, match=r"commit it first.*: loaders/one.py loaders/two.py"):
        _full.main()
    assert not (committed.parents[1] / "told").exists()


@pytest.mark.usefixtures("committed")
def test_it_does_not_begin_while_another_command_measures() -> None:
    """asv would skip every comparison without a word, and then drain."""
    with log.exclusive("tested"), pytest.raises(InputError, match="under way"):
        _full.main()
    log.append(log.log_path("tested"), record("mixed_copy", 0, environment=Environment(cpu="another")))
    with pytest.raises(InputError, match="another processor"):
        _full.main()


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize("name", ["LOADERS_DATA", "LOADERS_WITH"])
def test_it_does_not_begin_with_data_or_strategies_of_ones_own(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """asv's results do not say on what they were measured, and are kept for the commit."""
    monkeypatch.setenv(name, "mine")
    with pytest.raises(InputError, match=f"unset {name}: "):
        _full.main()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM")
@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
def test_asv_ends_with_it_in_its_own_way_when_it_is_terminated(tmp_path: Path, which: signal.Signals) -> None:
    """asv passes on no SIGTERM, and what it had begun went on measuring; begun in the background, it ignored SIGINT.

    Nor does it know of a SIGINT that did not come from its terminal.
    """
    (tmp_path / "asv.py").write_text(WAITING, "utf-8")
    code = f"""
import os, signal, sys
from benchmarks import _full
signal.signal(signal.SIGINT, signal.SIG_IGN)
_full._obey_signals()
_full.ASV = [sys.executable, {str(tmp_path / "asv.py")!r}]
os.chdir({str(tmp_path)!r})
_full._base.ROOT = {str(tmp_path)!r}
_full.GRACE = 1.0
_full._run([], dict(os.environ))
"""
    process: Any = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    ends = time.monotonic() + 60
    while not (tmp_path / "begun").exists() and time.monotonic() < ends:
        time.sleep(0.05)
    process.send_signal(which)
    assert process.wait(60) == (_full.TERMINATED if which == signal.SIGTERM else -signal.SIGINT)
    assert (tmp_path / "tidied up").exists()
