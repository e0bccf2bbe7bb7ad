"""Handing in results: nothing of somebody's files is in them, and what others hand in is checked as hostile."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner, Result

from loaders import _registry, _submit
from loaders._cli import main
from loaders._errors import InputError
from loaders._report import sets
from loaders._trial import Record, log
from loaders._trial.metrics import Metrics
from loaders._trial.record import Environment
from tests.conftest import ROOT
from tests.test_rows import record

PRIVATE = "/home/ada/secret"
BUNDLED = f"{_submit.BUNDLED}1500 images, d5f6"


def _own(strategy: str = "numpy_to_numpy", **changes: Any) -> Record:
    environment = Environment(
        machine="adas-laptop",
        cpu="A CPU @ 3.0GHz",
        cores=4,
        system="Linux",
        kernel=f"6.1.0-built-by-ada {PRIVATE}",
        python="3.11.7",
        packages={"numpy": "2.4.6", "adas-secret-package": "1.0", "tensorflow": f"2.21 {PRIVATE}"},
        variables={"MALLOC_ARENA_MAX": "1", "TF_SECRET_PATH": PRIVATE, "AWS_KEY": "x"},
        threads={"BLAS": 1, PRIVATE: 2},
        commit="c" * 40,
    )
    usual = {
        "environment": environment,
        "size": "small",
        "data": BUNDLED,
        "case": {"images": "500"},
        "run": "r",
        "planned": 1,
        "metrics": Metrics(epoch_time=0.5, peak_memory=2**20),
        "found": {PRIVATE: PRIVATE},
    }
    return record(strategy, 0, **{**usual, **changes})


def test_only_what_is_on_the_list_is_handed_in() -> None:
    failed = _own("mixed_copy", status="failed", message=f"ValueError: {PRIVATE} is not an image", run=PRIVATE)
    given = _submit.submission([_own(), failed], "ada")
    text = _submit.encoded(given).decode()
    assert PRIVATE not in text
    assert "secret" not in text.lower()
    assert "laptop" not in text
    first, second = given
    assert first.environment.machine == "ada"
    assert first.environment.kernel == "6.1.0"
    assert first.environment.packages == {"numpy": "2.4.6", "tensorflow": ""}
    assert first.environment.variables == {"MALLOC_ARENA_MAX": "1"}
    assert first.metrics.epoch_time == 0.5
    assert (second.status, second.message) == ("failed", "ValueError")


def test_a_field_that_is_added_to_a_record_is_handed_in_only_by_decision() -> None:
    """Each field of a record and its surroundings is named here: a new one fails until somebody looked at it."""
    assert {field.name for field in msgspec.structs.fields(Record)} == {
        *("question", "strategy", "status", "message", "metrics", "environment", "case", "size", "data", "seed"),
        *("started", "seconds", "epochs", "run", "round", "planned", "limited_by", "process", "tries", "checked"),
        *("found", "schema"),
    }
    described = msgspec.json.schema(Metrics)["$defs"]
    texts = [
        (name, key)
        for name, each in described.items()
        for key, value in each.get("properties", {}).items()
        if value.get("type") == "string" and "enum" not in value
    ]
    assert texts == [("Growth", "message")], "figures are numbers; this text is left out"


@pytest.mark.parametrize(
    "changes",
    [
        {"data": "own folder, 12 images, abcd"},
        {"strategy": "my_own_strategy"},
        {"question": "my_question"},
        {"case": {"images": "7"}},
        {"size": "tiny"},
        {"schema": 1},
    ],
)
def test_what_is_ones_own_is_not_handed_in(changes: dict[str, Any]) -> None:
    own = msgspec.structs.replace(_own(), **changes)
    assert len(_submit.submission([_own(), own], "ada")) == 1
    with pytest.raises(InputError, match="run `make bench` first"):
        _submit.submission([own], "ada")


@pytest.mark.parametrize(
    "name",
    ["", "Ada", "../ada", "a b", "a" * 41, "-ada", "ada/x", "é", "reference-amd", "github-x", "local", "con", "com1"],
)
def test_a_name_is_a_folder_on_every_system(name: str) -> None:
    with pytest.raises(InputError, match="is no name"):
        _submit.submission([_own()], name)


@pytest.mark.parametrize(
    "changes",
    [{"cpu": "B"}, {"python": "3.12.1"}, {"packages": {"tensorflow": "2.20.0"}}, {"data": f"{BUNDLED}, 60 images"}],
)
def test_a_name_belongs_to_one_machine_and_its_versions_the_newest(changes: dict[str, Any]) -> None:
    changes = {"data": BUNDLED, **changes}
    data = changes.pop("data")
    older = _own("mixed_copy", started="2020-01-01T00:00:00+00:00", data=data)
    older = msgspec.structs.replace(older, environment=msgspec.structs.replace(older.environment, **changes))
    skipped = _own("mixed_tolist", status="skipped", message="jemalloc is not installed", environment=Environment())
    lost = msgspec.structs.replace(skipped, run="of the older one", data=data)
    given = _submit.submission([older, lost, _own(), skipped], "ada")
    assert [each.strategy for each in given] == ["numpy_to_numpy", "mixed_tolist"]


@pytest.mark.parametrize(
    ("variables", "handed_in"),
    [
        ({"TF_XLA_FLAGS": "client-acme", "TF_CPP_VLOG_FILENAME": "ada"}, {}),
        ({"MALLOC_ARENA_MAX": "ada"}, {}),
        ({"LD_PRELOAD": "libjemalloc.so.2"}, {"LD_PRELOAD": "libjemalloc.so.2"}),
        ({"PYTHONMALLOC": "malloc"}, {"PYTHONMALLOC": "malloc"}),
        ({"LD_PRELOAD": "libada.so"}, None),
    ],
)
def test_variables_say_which_allocator_it_was_and_nothing_else(
    variables: dict[str, str], handed_in: dict[str, str] | None
) -> None:
    own = _own()
    own = msgspec.structs.replace(own, environment=msgspec.structs.replace(own.environment, variables=variables))
    assert _submit.is_handed_in(own) == (handed_in is not None)
    if handed_in is not None:
        assert _submit.reduced(own, "ada").environment.variables == handed_in


def test_a_processor_with_a_slash_keeps_its_name() -> None:
    own = _own()
    name = "AMD Ryzen 7 7840U w/ Radeon 780M Graphics"
    own = msgspec.structs.replace(own, environment=msgspec.structs.replace(own.environment, cpu=name))
    assert _submit.reduced(own, "ada").environment.cpu == name


@pytest.fixture
def handed_in(tmp_path: Path) -> Path:
    """A folder as it is handed in."""
    folder = tmp_path / "results" / "ada"
    folder.mkdir(parents=True)
    (folder / log.NAME).write_bytes(_submit.encoded(_submit.submission([_own(), _own("mixed_copy")], "ada")))
    return folder


def test_what_is_handed_in_is_another_machine_on_the_page(handed_in: Path) -> None:
    assert _submit.check(handed_in) == 2
    (found,) = sets.collect(handed_in.parent)
    assert found.origin.machine == "ada"


def _changed(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda line: line.update(changes)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_changed(message="<script>alert(1)</script>"), "line 2, is not as"),
        (_changed(found={"a": 1}), "line 2, is not as"),
        (_changed(strategy="mine"), "line 2, is not of a built-in strategy"),
        (_changed(data="own folder, 3 images, a"), "line 2, is not of a built-in strategy"),
        (_changed(extra=1), "line 2, is not as"),
        (_changed(seconds="1"), "line 2, is no record"),
        (_changed(round=-1), "line 2, is no record"),
        (lambda line: line["environment"].update(machine="reference-amd"), "line 2, is not as"),
        (lambda line: line["environment"].update(hostname="x"), "line 2, is not as"),
        (lambda line: line["environment"].update(cpu="B"), "several processors"),
        (lambda line: line["environment"].update(python="3.12.1"), "several processors"),
        (_changed(started="2099-01-01T00:00:00+00:00"), "of the future"),
        (_changed(started=""), "2 lines, of which 1 count"),
        (_changed(strategy="numpy_to_numpy"), "2 lines, of which 1 count"),
        (lambda line: line["metrics"].update(epoch_time=-1.0), "line 2, is no record"),
        (lambda line: line["metrics"].update(cpu_by_role={"buy at https://evil.example": 1.0}), "line 2, is no record"),
        (lambda line: line["metrics"].update(odd_files={"turned": True, "rejected": ["<b>"]}), "line 2, is no record"),
    ],
)
def test_what_submit_would_not_write_is_refused(handed_in: Path, spoil: Callable[[Any], Any], said: str) -> None:
    path = handed_in / log.NAME
    first, second = path.read_bytes().splitlines()
    line = json.loads(second)
    spoil(line)
    path.write_bytes(first + b"\n" + json.dumps(line, separators=(",", ":")).encode() + b"\n")
    with pytest.raises(InputError, match=said):
        _submit.check(handed_in)


def test_a_trial_of_before_its_question_had_an_axis_is_taken(tmp_path: Path) -> None:
    older = _own("no_cache", question="caching", case={"data": "x4"})
    folder = tmp_path / "ada"
    folder.mkdir()
    (folder / log.NAME).write_bytes(_submit.encoded([_submit.reduced(older, "ada")]))
    assert _submit.check(folder) == 1


def test_anything_else_in_the_folder_is_refused(handed_in: Path) -> None:
    (handed_in / "setup.py").write_text("print()")
    with pytest.raises(InputError, match="and nothing else"):
        _submit.check(handed_in)
    (handed_in / "setup.py").unlink()
    path = handed_in / log.NAME
    path.rename(handed_in.parent / "elsewhere")
    path.symlink_to(handed_in.parent / "elsewhere")
    with pytest.raises(InputError, match="and nothing else"):
        _submit.check(handed_in)


def test_a_line_of_anything_is_refused(handed_in: Path) -> None:
    for line in (b"", b"\xff\xfe", b"[" * 100_000, b"{}", b'{"question":'):
        (handed_in / log.NAME).write_bytes(line + b"\n")
        with pytest.raises(InputError, match="line 1, is no record"):
            _submit.check(handed_in)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command, on a machine with two trials of its own."""
    monkeypatch.setenv("LOADERS_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("LOADERS_MACHINE", "mine")
    for each in (_own(), _own("mixed_copy")):
        log.append(tmp_path / "results" / "mine" / log.NAME, each)
    return lambda *arguments: CliRunner().invoke(main, ["submit", *arguments])


def test_the_file_is_shown_before_it_is_written(run: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "results" / "ada" / log.NAME
    asked = run("ada")
    assert asked.exit_code == 1
    assert not path.exists()
    assert "nothing was written" in asked.stderr
    done = run("ada", "--yes")
    assert done.exit_code == 0, done.output
    assert done.stdout == asked.stdout == path.read_text()
    assert "Nothing was sent" in done.stderr
    assert "git add --force" in done.stderr
    (path.parent.parent / "eve").mkdir()  # where a disk was full, or asv has left something
    there = run("eve", "--yes")
    assert (there.exit_code, "eve exists: choose another name" in there.stderr) == (2, True)
    again = run("ada", "--yes")
    assert (again.exit_code, "choose another name" in again.stderr) == (2, True)
    mine = run("mine", "--yes")
    assert (mine.exit_code, "delete" in mine.stderr, "stay there" in mine.stderr) == (2, False, True)
    checked = run("ada", "--check")
    assert (checked.exit_code, "2 trials, all as they should be" in checked.stdout) == (0, True)


def test_what_would_be_refused_for_its_size_is_not_written(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_submit, "MOST_BYTES", 1000)
    refused = run("ada", "--yes")
    assert (refused.exit_code, "these 2 trials are 0 MiB" in refused.stderr) == (2, True)
    assert not (tmp_path / "results" / "ada").exists()


def test_an_interruption_at_its_question_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """click makes Ctrl-C and the end of the input into an exception of its own."""

    def asked(**_: object) -> None:
        raise click.Abort

    monkeypatch.setattr(main.commands["submit"], "callback", asked)
    done = CliRunner().invoke(main, ["submit", "ada"])
    assert (done.exit_code, done.stderr) == (130, "interrupted; nothing was written\n")


def test_without_results_it_says_what_to_do(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADERS_MACHINE", "other")
    done = run("ada")
    assert (done.exit_code, "run `make bench` first" in done.stderr) == (2, True)
    same = run("other")
    assert (same.exit_code, "choose another name" in same.stderr) == (2, True)


OUR_OWN = {
    *("reference", "reference-amd", "reference-emerald", "reference-intel"),
    *("reference-zen3", "reference-zen4", "reference-zen5"),
}
"""Machines that the project itself runs; what these commit is not reduced. Nor is what its hosted runners do."""


def test_everything_that_was_handed_in_is_as_it_should_be() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--stage", "results"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert all(each.startswith("100644 ") for each in listed), "files, and no links"
    folders = {parts[1] for each in listed if len(parts := Path(each.split("\t")[1]).parts) > 2}
    known = {name for question in _registry.questions() for name in _registry.variants(question)}
    for name in sorted(folders - OUR_OWN):
        if re.fullmatch(r"github-[A-Za-z0-9-]+", name):
            assert {each.strategy for each in log.read(ROOT / "results" / name / log.NAME)} <= known
        else:
            assert _submit.check(ROOT / "results" / name)
