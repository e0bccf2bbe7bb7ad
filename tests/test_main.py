"""The command line, as a user meets it: real processes, exit codes, one message."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from PIL import Image

from loaders import _registry, _terminal
from loaders._cli import main
from loaders._cli.options import amount_of_memory, share
from loaders._cli.output import this_python
from loaders._trial import log
from tests.conftest import ROOT, Command, one_document

MINE = '''
from loaders import variant


@variant(question="selection")
def first_come(job):
    """The first ones of a random order of keys."""
    import numpy as np

    data = job.inputs.images
    return [data[np.argsort(np.random.default_rng(job.seed).random(len(data)))[: job.inputs.draws]]]
'''


@pytest.mark.usefixtures("corpus")
class TestTrial:
    @pytest.mark.python
    def test_json_is_one_document_with_what_it_promises(self, command: Command, results: Path) -> None:
        done = command("trial", "selection", "numpy_to_list", "--size", "tiny", "--json")
        assert done.returncode == 0, done.stderr
        document = one_document(done.stdout)
        assert (document["question"], document["strategy"], document["status"]) == ("selection", "numpy_to_list", "ok")
        assert document["metrics"].keys() >= {
            "epoch_time",
            "first_batch_time",
            "batch_time",
            "throughput",
            "cpu_time",
            "peak_memory",
            "retained_memory",
            "memory_trace",
        }
        assert document["environment"]["packages"]["numpy"]
        assert len(log.read(results / "tested" / log.NAME)) == 1

    def test_words_for_people(self, command: Command) -> None:
        done = command("trial", "selection", "permutation_index", "--size", "tiny")
        assert done.returncode == 0, done.stderr
        for words in (
            "selection permutation_index images 500: ok",
            "peak_memory",
            "MiB",
            "tensorflow",
            "single sample",
        ):
            assert words in done.stdout, words

    @pytest.mark.slow
    def test_a_case_can_be_chosen(self, command: Command) -> None:
        done = command("trial", "resize", "opencv_area", "--size", "tiny", "--case", "scale=224x224", "--json")
        assert one_document(done.stdout)["case"] == {"scale": "224x224"}
        wrong = command("trial", "resize", "opencv_area", "--size", "tiny", "--case", "scale=7")
        assert (wrong.returncode, "scale must be one of 224x224, 0.5, 2.0, 3.5" in wrong.stderr) == (2, True)

    def test_over_budget_is_exit_code_1(self, command: Command) -> None:
        done = command("trial", "selection", "numpy_to_list", "--size", "tiny", "--memory-limit", "300MiB", "--json")
        assert done.returncode == 1
        document = one_document(done.stdout)
        assert document["status"] == "over_budget"
        assert 100 * 2**20 < document["metrics"]["peak_memory"] < 400 * 2**20

    def test_a_strategy_outside_the_repository(self, command: Command, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text(MINE)
        by_option = command("trial", "selection", "first_come", "--size", "tiny", "--with", "mine.py", "--json")
        assert (by_option.returncode, one_document(by_option.stdout)["status"]) == (0, "ok")
        by_variable = command("trial", "selection", "first_come", "--size", "tiny", LOADERS_WITH="mine.py")
        assert by_variable.returncode == 0, by_variable.stderr

    @pytest.mark.slow
    def test_a_folder_of_odd_images(self, command: Command, tmp_path: Path) -> None:
        folder = tmp_path / "images" / "a"
        folder.mkdir(parents=True)
        Image.new("CMYK", (70, 50)).save(folder / "cmyk.jpg")
        Image.new("RGBA", (7, 5)).save(folder / "alpha.png")
        (folder / "cut.jpg").write_bytes((folder / "cmyk.jpg").read_bytes()[:300])
        arguments = ("trial", "read_order", "interleave", "--data", "images", "--size", "tiny", "--json")
        done = command(*arguments)
        assert done.returncode == 0, done.stderr
        document = one_document(done.stdout)
        assert (document["metrics"]["samples"], document["status"]) == (2, "ok")
        assert "left out a/cut.jpg" in done.stderr
        assert str(tmp_path) not in done.stdout, "a result must not carry a path of the user's"
        assert command(*arguments, "--strict").returncode == 2
        by_variable = command("trial", "resize", "opencv_area", "--size", "tiny", "--json", LOADERS_DATA="images")
        assert one_document(by_variable.stdout)["data"].startswith("own folder, 2 images")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trial", "selektion", "x"], "unknown question 'selektion'; did you mean 'selection'"),
        (["trial", "selection", "numpy_tolist"], "did you mean 'numpy_to_list'"),
        (["compare", "resise"], "did you mean 'resize'"),
        (["trial", "selection", "numpy_to_list", "--with", "nowhere.py"], "nowhere.py: no such file"),
        (["trial", "selection", "numpy_to_list", "--data", "nowhere"], "nowhere: no such folder"),
        (["trial", "selection", "numpy_to_list", "--data", "."], "no JPEG or PNG file"),
        (["trial", "selection", "numpy_to_list", "--memory-limit", "lots"], "write 2GiB or 512MiB"),
        (["trial", "selection", "numpy_to_list", "--size", "huge"], "'tiny', 'small', 'full'"),
        (["compare", "selection", "--until", "five"], "'five' is not a share; write 5%"),
        (["compare", "selection", "--until", "0%"], "'0%' is not a share; write 5%"),
        (["compare", "selection", "--until", "0.05"], "'0.05' is not a share; write 5%"),
        (["compare", "selection", "--minutes", "0"], "Invalid value for '--minutes'"),
        (["compare", "selection", "--minutes", "nan"], "'nan' is not a finite number"),
        (["trial", "selection", "numpy_to_list", "--deadline", "inf"], "'inf' is not a finite number"),
        (["trial", "selection", "numpy_to_list", "--seed", "-1"], "Invalid value for '--seed'"),
        (["trial", "selection"], "Missing argument"),
        (["selftest", "--faults", "--rounds", "2"], "--faults goes with no other option than --json"),
        (["selftest", "--rounds", "3"], "--questions and --rounds belong to --start"),
        (["selftest", "--start", "--checks", "5"], "--checks and --subject do not go with --start"),
        (
            ["compare", "batching", "--case", "augment=on", "--case", "data=x1", "--size", "tiny"],
            "no strategy of batching runs with augment=on data=x1; these values go together: "
            "data=x16 augment=off; data=x1 augment=off; data=x4 augment=off; data=x4 augment=on",
        ),
        (["compare", "selection", "resize", "--case", "images=500", "--size", "tiny"], "resize has scale="),
        (["report"], "no finished comparison"),
        (["readme"], "no full results"),
        (["frobnicate"], "No such command"),
    ],
)
def test_bad_usage_is_one_message_and_exit_code_2(command: Command, arguments: list[str], message: str) -> None:
    done = command(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGPIPE to be like")
@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"]])
def test_a_reader_that_has_gone_ends_it_quietly(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as stdout:  # noqa: PTH123 - a pipe has no path
        done = subprocess.run(
            [sys.executable, "-m", "loaders", *arguments],
            cwd=ROOT,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGPIPE to be like")
def test_rich_leaves_a_reader_that_has_gone_to_the_command() -> None:
    """It would end the command with 1, which means that a trial went wrong or a regression was confirmed."""
    reader, writer = os.pipe()
    os.close(reader)
    with contextlib.suppress(BrokenPipeError), open(writer, "w") as stdout:  # noqa: PTH123 - a pipe has no path
        console = _terminal.PLAIN(file=stdout)
        with pytest.raises(BrokenPipeError):
            console.print("x" * 10**6)


def test_a_cache_that_cannot_be_written_is_exit_code_2(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = command("trial", "selection", "mixed_copy", "--size", "tiny", LOADERS_CACHE=str(tmp_path / "file"))
    assert (done.returncode, "LOADERS_CACHE" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "count"),
    [("2GiB", 2 * 2**30), ("512MiB", 2**29), ("1.5G", 3 * 2**29), ("100 kb", 102400), ("12345", 12345), ("7B", 7)],
)
def test_amounts_of_memory(text: str, count: int) -> None:
    assert amount_of_memory(text) == count


def test_shares() -> None:
    assert share("5%") == share(" 5 ") == 0.05


def test_minutes_are_minutes_and_percent_are_percent(corpus: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def run(plans: list[Any], *, seconds: float, **_: Any) -> dict[str, list[Any]]:
        asked.append((seconds, plans[0].until, plans[0].staged, plans[0].turns))
        return {each.question: [] for each in plans}

    monkeypatch.setattr("loaders._cli.options.open_corpus", lambda *_, **__: corpus)
    monkeypatch.setattr("loaders._compare.run_together", run)
    for minutes in ("2", "15"):
        done = CliRunner().invoke(main, ["compare", "selection", "--minutes", minutes, "--until", "5%"])
        assert done.exit_code == 0, done.output
    assert asked == [(120.0, 0.05, True, False), (900.0, 0.05, True, True)]


@pytest.mark.python
def test_list_names_everything(command: Command, tmp_path: Path) -> None:
    document = one_document(command("list", "--json").stdout)
    assert document.keys() == _registry.questions().keys()
    for question, listed in document.items():
        engines = {name: each.engine for name, each in _registry.variants(question).items()}
        assert [(each["name"], each["engine"]) for each in listed["strategies"]] == list(engines.items())
    (tmp_path / "mine.py").write_text(MINE)
    assert "first_come" in command("list", "--with", "mine.py").stdout
    assert "first_come" not in command("list").stdout


@pytest.mark.slow
def test_one_file_is_all_that_a_new_strategy_needs(command: Command, tmp_path: Path, corpus: Any) -> None:
    """It is listed, compared, ranked, on the page and among asv's parameters."""
    (tmp_path / "mine.py").write_text(MINE)
    variables = {"LOADERS_WITH": str(tmp_path / "mine.py")}
    compared = command("compare", "selection", "--size", "tiny", "--rounds", "1", "--json", **variables)
    assert compared.returncode == 0, compared.stderr
    rows = {row["strategy"]: row for row in one_document(compared.stdout)["rows"]}
    assert rows["first_come"]["status"] == "ok"
    assert rows["first_come"]["ratio"]["ratio"]["value"] < 1
    assert rows["first_come"]["time"]["count"] == 1
    assert rows["first_come"]["steady"] is None
    assert "figures" not in rows["first_come"]
    reported = command("report", "--out", "page.html", **variables)
    assert reported.returncode == 0, reported.stderr
    assert "The first ones of a random order of keys." in (tmp_path / "page.html").read_text("utf-8")
    code = "from benchmarks.selection import Comparison; print(Comparison.params[0])"
    environment = {**os.environ, **variables}
    asked = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert "first_come" in asked.stdout, asked.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("corpus")
def test_an_interrupted_comparison_keeps_its_trials_and_is_continued(results: Path) -> None:
    command = [sys.executable, "-m", "loaders", "compare", "selection", "--size", "tiny", "--rounds", "1"]
    path = results / "tested" / log.NAME
    first = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while len(log.read(path)) < 2:
        assert time.monotonic() < deadline, "no trial was finished"
        time.sleep(0.02)
    first.send_signal(signal.SIGINT)
    _, errors = first.communicate(timeout=30)
    assert first.returncode == 130
    assert "the same command resumes" in errors
    assert "Traceback" not in errors
    before = log.read(path)
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode == 0, again.stderr
    assert "continuing the run" in again.stderr
    after = log.read(path)
    assert after[: len(before)] == before
    assert sorted(record.strategy for record in after) == sorted(_registry.variants("selection"))
    assert len({record.run for record in after}) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="has no such signal")
@pytest.mark.usefixtures("corpus")
def test_whoever_ignores_the_ends_of_its_own_children_may_start_it() -> None:
    """What ignores SIGCHLD hands that down, and nobody would learn that a trial has ended."""
    asked = ["trial", "selection", "permutation_index", "--size", "tiny", "--deadline", "20"]
    code = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, sys.executable, "-m", "loaders", *asked]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr + done.stdout


SWALLOWS = f"""
import contextlib, os, signal, time

with contextlib.suppress(KeyboardInterrupt):
    os.kill(os.getpid(), signal.{{name}})
    time.sleep(60)
{MINE}
"""
"""Stands in for whatever ignores every exception: it is loaded after the command has begun."""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.usefixtures("corpus")
def test_an_interruption_that_is_swallowed_is_not_lost(
    name: str, command: Command, tmp_path: Path, results: Path
) -> None:
    (tmp_path / "mine.py").write_text(SWALLOWS.format(name=name))
    done = command("compare", "selection", "--size", "tiny", "--rounds", "1", "--with", str(tmp_path / "mine.py"))
    assert done.returncode == 130, done.stderr
    assert "the same command resumes" in done.stderr
    assert log.read(results / "tested" / log.NAME) == []


@pytest.mark.slow
@pytest.mark.usefixtures("corpus")
def test_a_comparison_whose_time_is_up_names_the_command_that_goes_on(
    command: Command, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # as the command is run there, on which its words depend
    asked = ["compare", "selection", "--size", "tiny", "--minutes", "0.05", "--until", "0.1%"]
    done = command(*asked)
    assert done.returncode == 0, done.stderr
    before = log.read(results / "tested" / log.NAME)
    known, ran = len(_registry.variants("selection")), len({each.strategy for each in before})
    lack = f", and {known - ran} of {known} strategies have not had their turn" if ran < known else ""
    assert f"the 0.05 minutes are up{lack}; to go on: {this_python()} -m loaders {' '.join(asked)}\n" in done.stderr
    again = command(*asked, "--json")
    assert again.returncode == 0, again.stderr
    after = log.read(results / "tested" / log.NAME)
    assert after[: len(before)] == before
    assert len({record.run for record in after}) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("corpus")
def test_a_strategy_that_goes_wrong_is_exit_code_1_and_spoils_nothing_else(command: Command, tmp_path: Path) -> None:
    wrong = MINE.replace("first_come", "wrong").replace("[: job.inputs.draws]", "[:3]")
    (tmp_path / "wrong.py").write_text(wrong)
    done = command("compare", "selection", "--size", "tiny", "--rounds", "1", "--with", "wrong.py", "--json")
    assert done.returncode == 1
    rows = {row["strategy"]: row for row in one_document(done.stdout)["rows"]}
    assert rows["wrong"]["status"] == "wrong output: delivered 3 samples instead of 100"
    assert rows["wrong"].get("time") is None
    assert all(row["status"] == "ok" for name, row in rows.items() if name != "wrong")


@pytest.mark.usefixtures("corpus")
def test_a_strategy_that_lacks_a_package_is_no_failure(command: Command, tmp_path: Path) -> None:
    lacking = MINE.replace('"selection")', '"selection", optional=("no_such_package",))')
    (tmp_path / "lacking.py").write_text(lacking)
    with_it = ("--size", "tiny", "--with", "lacking.py", "--json")
    done = command("trial", "selection", "first_come", *with_it)
    assert (done.returncode, one_document(done.stdout)["status"]) == (0, "skipped")
    done = command("compare", "selection", "--quick", "--rounds", "1", *with_it)
    rows = {row["strategy"]: row for row in one_document(done.stdout)["rows"]}
    assert (done.returncode, rows["first_come"]["status"].partition(":")[0]) == (0, "skipped")


@pytest.mark.parametrize(
    ("found", "executable", "said"),
    [
        (".venv/bin/python", ".venv/bin/python", "python"),
        ("/usr/bin/python", ".venv/bin/python", str(Path(".venv/bin/python"))),  # `make` has not activated it
        (None, "/opt/my own/bin/python3.12", "'/opt/my own/bin/python3.12'"),
    ],
)
def test_the_command_that_goes_on_is_run_by_the_same_python(
    monkeypatch: pytest.MonkeyPatch, found: str | None, executable: str, said: str
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: found and str(Path.cwd() / found))
    monkeypatch.setattr(sys, "executable", str(Path.cwd() / executable))
    assert this_python() == said


def _missing(name: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            _missing("jinja2"),
            2,
            "jinja2 is not installed: run `make setup`, or install the suite with its extra [report]",
        ),
        (_missing("loaders._nothing"), 70, "this is a bug in the suite"),
        (
            ImportError("libGL.so.1: cannot open shared object file: No such file or directory"),
            2,
            "OpenCV's wheel needs it; under Debian and Ubuntu: apt-get install libgl1 libglib2.0-0",
        ),
        (ImportError("cannot import name 'mine' from 'loaders'"), 70, "this is a bug in the suite"),
    ],
)
def test_what_is_missing_is_named_and_a_missing_part_of_the_suite_is_a_bug(
    monkeypatch: pytest.MonkeyPatch, error: ImportError, code: int, said: str
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setitem(main.commands, "list", click.Command("list", callback=fail))
    ended = CliRunner().invoke(main, ["list"])
    assert ended.exit_code == code
    assert said in ended.output
