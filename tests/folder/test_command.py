"""``advise FOLDER`` on real folders, and what it says where it cannot."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from loaders._cli import main
from loaders._folder.look import look
from loaders._report import folder as page
from tests.conftest import Command
from tests.folder import made
from tests.folder.test_race import AMOUNTS, advised


def advise(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["advise", *arguments])


def refused(*arguments: str) -> str:
    done = advise(*arguments)
    assert done.exit_code == 2, done.output
    return done.output


def test_what_cannot_be_asked_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    photos = made.folder(tmp_path / "photos", 4)
    there = tmp_path / "loader.py"
    there.write_text("mine")
    assert "no such folder" in refused(str(tmp_path / "none"), "--out", str(tmp_path / "new.py"))
    (tmp_path / "empty").mkdir()
    assert "holds no images" in refused(str(tmp_path / "empty"), "--out", str(tmp_path / "new.py"))
    assert "is there already" in refused(str(photos), "--out", str(there))
    assert there.read_text() == "mine"
    assert "cannot write" in refused(str(photos), "--out", str(there / "below.py"))
    for name in ("keras", "random"):  # TensorFlow would import it, and it would import itself
        assert f"{name} is what others import" in refused(str(photos), "--out", str(tmp_path / f"{name}.py"))
    assert "nothing is written" in refused(str(photos), "--out", str(photos / "loader.py"))
    new = ("--out", str(tmp_path / "new.py"))
    assert "cannot write" in refused(str(photos), *new, "--report", str(there / "below.html"))
    for name in ("my-loader.py", "class.py", "loader.txt", "loader.v2.py"):
        assert "nothing could import that" in refused(str(photos), "--out", str(tmp_path / name))
    assert "is not a duration" in refused(str(photos), "--step", "0ms")
    assert "is not a size" in refused(str(photos), "--size", "224")
    assert "only without a folder" in refused(str(photos), "--samples", "10")
    assert "only with a folder" in refused("--out", "new.py")
    assert not (tmp_path / "results").exists(), "nothing was measured"


def test_results_that_cannot_be_kept_are_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOADERS_RESULTS", str(tmp_path / "file"))
    photos = made.folder(tmp_path / "photos", 4)
    assert "LOADERS_RESULTS" in refused(str(photos), "--out", str(tmp_path / "new.py"))
    monkeypatch.setenv("LOADERS_RESULTS", str(photos / "results"))
    assert "in the folder of the images, into which nothing is written" in refused(
        str(photos), "--out", str(tmp_path / "new.py")
    )


@pytest.mark.slow
def test_a_small_odd_folder_is_answered_with_a_loader_that_runs(tmp_path: Path, command: Command) -> None:
    photos = made.folder(tmp_path / "photos", 30)
    made.image(photos / "top.png", 150)
    (photos / "label0" / "broken.jpg").write_bytes(b"none")
    (photos / "label0" / "moving.gif").write_bytes(b"GIF89a")
    before = sorted(photos.rglob("*"))
    asked = ["advise", str(photos), "--minutes", "1.5", "--batch", str(made.BATCH), "--size", "16x16"]
    for _ in range(3):  # on a busy machine the minutes may be up before there is an answer; the same command goes on
        done = command(*asked, "--json", "--report", "advice.html")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        if found["answer"]["recommended"]:
            break
    assert "1 cannot be read" in done.stderr
    assert found["folder"]["images"] == 32
    assert found["answer"]["recommended"], found["answer"]["because"]
    assert found["module"] == "loader"
    loader = tmp_path / "loader.py"
    assert "Written by ``python -m loaders advise``" in loader.read_text()
    assert importlib.util.spec_from_file_location("loader", loader) is not None
    assert sorted(photos.rglob("*")) == before, "nothing is written into the folder"
    html = (tmp_path / "advice.html").read_text()
    assert found["answer"]["recommended"] in html
    assert "<svg" in html
    again = command(*asked)  # what was measured is kept, and so is the loader
    assert again.returncode == 2
    assert "is there already" in again.stderr


@pytest.mark.slow
def test_ctrl_c_gives_the_best_answer_so_far(tmp_path: Path, results: Path) -> None:
    photos = made.folder(tmp_path / "photos", 30)
    arguments = ["advise", str(photos), "--minutes", "5", "--batch", str(made.BATCH), "--step", "none", "--json"]
    running = subprocess.Popen(
        [sys.executable, "-m", "loaders", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 120
    while sum(len(each.read_bytes().splitlines()) for each in results.rglob("trials.jsonl")) < 3:
        assert time.monotonic() < end
        assert running.poll() is None
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    said, problems = running.communicate(timeout=60)
    assert running.returncode == 0, problems
    found = json.loads(said)
    assert found["ended"] == "interrupted"
    assert found["answer"]["because"]
    assert sum(len(each.read_bytes().splitlines()) for each in results.rglob("trials.jsonl")) >= 3


def test_the_page_is_safe_from_the_names_of_folders(tmp_path: Path) -> None:
    evil = made.folder(tmp_path / "<img src=x onerror=alert(1)>", 3)
    seen, _ = look(evil, 16, 16)
    import msgspec

    found = msgspec.structs.replace(advised(made.wanted(), made.records(AMOUNTS, 4)), folder=seen)
    html = page.render(found, f"python -m loaders advise '{evil}'")
    assert "<img" not in html
    assert html.count("<figure") == 2
