"""A user's function is found, imported without running as a script, and called; what does not fit is said."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loaders._errors import InputError
from loaders._probe.target import Target, load, parse

TRAIN = """
import helper

def make(count=2, *, name="x"):
    return [helper.NAME, count, name]

def needs(folder, batch):
    return []

class Data:
    @staticmethod
    def make():
        return ["in a class"]

NUMBER = 3

if __name__ == "__main__":
    raise SystemExit("it was run as a script")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "helper.py").write_text("NAME = 'helped'\n")
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "data.py").write_text("def make():\n    return ['in a package']\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", ["keeper.py", "report"])
    known = {*sys.modules}
    yield tmp_path
    for name in {*sys.modules} - known:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("text", "arguments", "made"),
    [
        ("train.py:make", (), ["helped", 2, "x"]),
        ("train.py:make", ("count=4", "name=a b"), ["helped", 4, "a b"]),
        ("train.py:make", ("count=[1, 2]", "name=None"), ["helped", [1, 2], None]),
        ("train.py:make", ("count=4GiB",), ["helped", "4GiB", "x"]),
        ("train.py:make", ("count=(224, 224)",), ["helped", [224, 224], "x"]),
        ("train.py:make", ("count={{}}",), ["helped", "{{}}", "x"]),
        ("train.py:Data.make", (), ["in a class"]),
        ("package.data:make", (), ["in a package"]),
    ],
)
def test_a_function_is_called_with_its_arguments(
    folder: Path, text: str, arguments: tuple[str, ...], made: list[object]
) -> None:
    assert load(parse(text, arguments))() == made


def test_a_file_may_have_the_name_of_a_module_that_is_in_use(folder: Path) -> None:
    import loaders

    (folder / "loaders.py").write_text("def make():\n    return [1]\n")
    assert load(parse("loaders.py:make"))() == [1]
    assert sys.modules["loaders"] is loaders


def test_relative_paths_start_where_the_command_was_given(folder: Path) -> None:
    (folder / "sub").mkdir()
    found = parse("../train.py:make", directory=folder / "sub")
    assert found.directory == str(folder / "sub")
    assert load(found)() == ["helped", 2, "x"]


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("train.py", (), "train.py: write FILE.py:FUNCTION or package.module:FUNCTION"),
        (":make", (), "write FILE.py:FUNCTION"),
        ("train.py:", (), "write FILE.py:FUNCTION"),
        ("other.py:make", (), "other.py: no such file"),
        ("train.py:make", ("count",), "--arg count: write name=value"),
        ("train.py:make", ("a-b=1",), "--arg a-b=1: write name=value"),
        ("train.py:make", ("weight={0: 1.0}",), "--arg weight={0: 1.0}: keys of a dict must be texts"),
        ("train.py:make", ("size=[(1, 2)]",), "it may hold texts, numbers, lists and dicts only"),
        ("train.py:make", ("shapes={(1, 2): 3}",), "--arg shapes={(1, 2): 3}: keys of a dict must be texts"),
        ("train.py:make", ("names=[b'a']",), "it may hold texts, numbers, lists and dicts only"),
    ],
)
def test_what_cannot_be_meant_is_said_before_anything_runs(
    folder: Path, text: str, arguments: tuple[str, ...], said: str
) -> None:
    with pytest.raises(InputError) as error:
        parse(text, arguments)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("train.py:missing", (), "train.py has no function 'missing'; there are make, needs"),
        ("train.py:NUMBER", (), "train.py:NUMBER is no function, but a int"),
        ("train.py:needs", (), "train.py:needs needs arguments: --arg folder=… --arg batch=…"),
        ("train.py:needs", ("batch=2",), "needs arguments: --arg folder=…"),
        ("train.py:make", ("size=2",), "got an unexpected keyword argument 'size'; its arguments are count, name"),
        ("nowhere.data:make", (), "nowhere.data: no such module"),
        ("package.nothing:make", (), "package.nothing: no such module"),
    ],
)
def test_a_function_that_is_not_there_or_needs_more_is_said(
    folder: Path, text: str, arguments: tuple[str, ...], said: str
) -> None:
    with pytest.raises(InputError) as error:
        load(parse(text, arguments))
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_that_name", "broken.py cannot be imported (line 1): ModuleNotFoundError: No module named"),
        ("x = 1\nraise ValueError('no data')", "broken.py cannot be imported (line 2): ValueError: no data"),
        ("def make(:\n", "broken.py cannot be imported (line 1): SyntaxError"),
        ("raise SystemExit(3)", "broken.py cannot be imported (line 1): SystemExit: 3; does it read the command line"),
        ("from . import helper", "with no known parent package; name it as a module of its package"),
        ("import sys; raise ValueError(sys.argv)", "ValueError: ['broken.py']"),
    ],
)
def test_a_file_that_cannot_be_imported_is_said_with_its_line(folder: Path, text: str, said: str) -> None:
    (folder / "broken.py").write_text(text)
    with pytest.raises(InputError) as error:
        load(parse("broken.py:make"))
    assert said in str(error.value)


def test_a_file_is_known_by_its_name_to_worker_processes(folder: Path) -> None:
    load(parse("train.py:make"))
    assert sys.modules["train"].__name__ == "train"
    assert os.path.realpath(str(sys.modules["train"].__file__)) == os.path.realpath(folder / "train.py")


def test_a_package_that_is_missing_is_not_taken_for_the_module_that_needs_it(folder: Path) -> None:
    (folder / "torch_pipe.py").write_text("import torch_pip\n")
    with pytest.raises(InputError, match="torch_pipe cannot be imported"):
        load(parse("torch_pipe:make"))
    with pytest.raises(InputError, match=r"nowhere\.data: no such module"):
        load(parse("nowhere.data:make"))


def test_a_target_is_named_as_it_was_written() -> None:
    assert Target("train.py", "make").name == "train.py:make"
