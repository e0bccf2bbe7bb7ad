"""The rooms keep to themselves; see CONTRIBUTING.md."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

import pytest

from loaders import _registry
from tests.conftest import ROOT

LOADERS = sorted((ROOT / "loaders").rglob("*.py"))
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def _imported_modules(source: str, modules: Set[str]) -> set[str]:
    """Return which of the modules a source imports, at its top or inside functions, but not for its types alone."""
    found = set()
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "a relative import"
            package = node.module or ""
            names = [f"{package}.{alias.name}" for alias in node.names]
            found |= {name if name in modules else package for name in names}
    return found & modules


def _in_circles(sources: Mapping[str, str]) -> set[str]:
    """Return the modules that import themselves by way of others; ``sources`` are texts by a module's full name."""
    imported = {name: _imported_modules(text, sources.keys()) for name, text in sources.items()}
    found = set()
    for name in sources:
        reached: set[str] = set()
        waiting = [*imported[name]]
        while waiting:
            each = waiting.pop()
            if each not in reached:
                reached.add(each)
                waiting += imported[each]
        found |= {name} & reached
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not inside a room, and not from room to room: an import inside a function hides a circle, and counts."""
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in LOADERS}
    sources = {name.removesuffix(".__init__"): path.read_text("utf-8") for path, name in names.items()}
    assert _in_circles(sources) == set()


@pytest.mark.parametrize(
    ("low", "found"),
    [
        ("from loaders._a import high", {"loaders._a.low", "loaders._a.high"}),
        ("from loaders._a.high import up", {"loaders._a.low", "loaders._a.high"}),
        ("def f():\n    import loaders._a.high", {"loaders._a.low", "loaders._a.high"}),
        ("if TYPE_CHECKING:\n    from loaders._a import high", set()),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    from loaders._a import high", {"loaders._a.low", "loaders._a.high"}),
        ("from loaders._a import os, up", {"loaders._a", "loaders._a.low", "loaders._a.high"}),
        ("import os", set()),
    ],
)
def test_a_circle_is_found_wherever_the_import_stands(low: str, found: set[str]) -> None:
    package, high = "from loaders._a.high import up", "from loaders._a.low import down\nup = down"
    assert _in_circles({"loaders._a": package, "loaders._a.high": high, "loaders._a.low": low}) == found


ROOMS = sorted(each.parent for each in (ROOT / "loaders").rglob("__init__.py") if "questions" not in each.parts)


@pytest.mark.parametrize("room", [*ROOMS, ROOT / "loaders" / "questions"], ids=lambda each: each.name)
def test_the_map_of_a_room_names_all_that_is_in_it(room: Path) -> None:
    described = room if room.name != "questions" else room.parent
    said = ast.get_docstring(ast.parse((described / "__init__.py").read_text("utf-8"))) or ""
    inside = {each.stem for each in room.iterdir() if each.suffix == ".py" or (each / "__init__.py").exists()}
    named = set(re.findall(r"^``(\w+)`` ", said, re.MULTILINE))
    if named & inside:  # small rooms have no map
        assert inside - named <= {"__init__", "__main__", "questions"}


def test_only_the_report_imports_asv() -> None:
    importers = {path for path in LOADERS if any(name.split(".")[0] == "asv" for name in _imports(path))}
    assert {path.parent.name for path in importers} == {"_report"}


def test_what_renders_reads_no_registry() -> None:
    """What a question and a strategy say of themselves comes with the rows."""
    rendering = [
        path
        for path in LOADERS
        if (path.parent.name in {"_report", "_claims"} and path.name not in {"sets.py", "__init__.py"})
        or path.name in {"_terminal.py", "_words.py"}
    ]
    for path in rendering:
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        names = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
        names |= set(_imports(path))
        assert not {"_registry", "loaders._registry"} & names, path


def _modules(question: str) -> list[Path]:
    """Return the module of a question, or all of its package."""
    place = ROOT / "loaders" / "questions" / question
    return sorted(place.glob("*.py")) if place.is_dir() else [place.with_suffix(".py")]


@pytest.mark.parametrize("question", sorted(_registry.questions()))
def test_one_stem_three_rooms(question: str) -> None:
    assert all(path.exists() for path in _modules(question))
    assert (ROOT / "benchmarks" / f"{question}.py").exists()
    assert (ROOT / "tests" / "questions" / f"test_{question}.py").exists()


@pytest.mark.parametrize("question", sorted(_registry.questions()))
def test_a_question_imports_nothing_heavy_and_no_instrument_at_its_top(question: str) -> None:
    top = {
        name
        for path in _modules(question)
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
    }
    light = {*sys.stdlib_module_names, "msgspec"}
    others = {name for name in top if name.partition(".")[0] not in light and not name.startswith("loaders.questions")}
    allowed = {f"loaders._{name}" for name in ("contract", "registry", "errors", "faults", "malloc", "units")}
    assert others <= allowed


def test_benchmarks_name_no_strategy() -> None:
    names = {name for question in _registry.questions() for name in _registry.variants(question)} - {"sequential"}
    for path in BENCHMARKS:
        words = {
            node.value
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not words & names


def test_only_the_drain_reads_a_clock_for_a_figure() -> None:
    readers = {
        path.relative_to(ROOT).as_posix()
        for path in LOADERS
        if any(clock in path.read_text("utf-8") for clock in ("perf_counter", "process_time", "getrusage", "os.times"))
    }
    assert readers == {"loaders/_trial/drain.py"}


def test_no_published_result_names_a_machine_or_a_path() -> None:
    published = [path for path in (ROOT / "results").rglob("*") if path.is_file()]
    names = [str(path.relative_to(ROOT)) for path in published if path.parent.name.startswith("reference")]
    assert not [name for name in names if "existing" in name or "_usr_" in name]


def test_every_variable_stands_in_the_table_of_variables_and_the_reverse() -> None:
    programs = [*LOADERS, *BENCHMARKS, *(ROOT / ".ci").iterdir(), ROOT / "Makefile"]
    used = {
        name
        for path in programs
        if path.is_file()
        for name in re.findall(r"LOADERS_[A-Z_]*[A-Z]", path.read_text("utf-8"))
    }
    table = re.findall(r"^\| `(LOADERS_[A-Z_]+)` \|", (ROOT / "docs/variables.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(used) == sorted(table)


def test_loading_anybodys_results_executes_nothing() -> None:
    """No pickle, no ``eval``: not in the suite, and not in what reads results beside it."""
    for path in [*LOADERS, *BENCHMARKS, *(ROOT / ".ci").glob("*.py")]:
        assert not {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"} & set(_imports(path)), path
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in {"eval", "exec", "compile", "__import__"}, path
                unsafe = {each.arg: ast.unparse(each.value) for each in node.keywords}
                assert unsafe.get("allow_pickle", "False") == "False", path
