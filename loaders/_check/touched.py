"""Which strategies a change can have touched: judged by what their code reaches, not by lines. Pure.

Comments, docstrings and code layout change no figure, so sources are compared as syntax trees.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Container, Iterable, Iterator, Mapping, Set
from pathlib import PurePosixPath

Sources = Mapping[str, str]
"""The text of files by their path in the repository."""

PACKAGE = "loaders"
MEASURES = ("_trial/child.py", "_trial/convert.py", "_trial/watch.py", "_trial/server.py", "_trial/forks.py")
"""Modules that every trial runs; whatever they import can change every figure."""

ORDERED = tuple(
    f"{PACKAGE}/{each}" for each in ("_compare/plans.py", "_check/serve.py", "_cli/trial.py", "_cli/options.py")
)
"""Modules that make a side's trials from what a check orders; what they import besides makes no trial."""

DEPENDENCIES = "pyproject.toml"


def touched(before: Sources, after: Sources, strategies: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """Return, for each question, the strategies whose figures may differ between two versions of the sources.

    Parameters
    ----------
    strategies
        For each question, the names of the strategies that both versions have.
    """
    shared = _imported(before) | _imported(after) | set(ORDERED)
    every = before.get(DEPENDENCIES) != after.get(DEPENDENCIES) or _differ(before, after, shared)
    found = {}
    for question, names in strategies.items():
        whole = every or _differ(before, after, _taken(before, question) | _taken(after, question))
        changed = _changed(before, after, question, names)
        found[question] = {name for name, parts in changed.items() if whole or parts}
    return {question: names for question, names in found.items() if names}


def edited(before: Sources, after: Sources, strategies: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """Return, for each question, the strategies whose own code differs, not only what all of them reach.

    See ``touched``, which returns these as well.
    """
    found = {}
    for question, names in strategies.items():
        changed = _changed(before, after, question, names)
        common = set.intersection(*changed.values()) if changed else set()
        found[question] = {name for name, parts in changed.items() if parts - common}
    return found


def _changed(before: Sources, after: Sources, question: str, names: Iterable[str]) -> dict[str, set[str]]:
    """Return, for each strategy of a question, which of the parts that it reaches differ."""
    parts = [_question_parts(sources, question) for sources in (before, after)]
    changed = {name for name in parts[0].keys() | parts[1].keys() if parts[0].get(name) != parts[1].get(name)}
    of_all = set[str]().union(*(_reached(each, "QUESTION") for each in parts))
    return {name: changed & of_all.union(*(_strategy_reaches(each, name) for each in parts)) for name in names}


def _question_parts(sources: Sources, question: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Return what the module of a question, or all modules of its package, define and borrow; see ``_parts``.

    Modules import each other's names as they are, so a name that several define counts as one.
    """
    parts: dict[str, tuple[str, frozenset[str]]] = {}
    for file in [*files_of(sources, question), *sorted(_borrowed(sources, question))]:
        for name, (text, uses) in _parts(sources[file], PurePosixPath(file).name).items():
            before, used = parts.get(name, ("", frozenset()))
            parts[name] = (before + text, used | uses)
    return parts


def _differ(before: Sources, after: Sources, paths: Iterable[str]) -> bool:
    return any(_parts(before.get(path, "")) != _parts(after.get(path, "")) for path in paths)


def _imported(sources: Sources) -> set[str]:
    """Return the machinery's files that a trial imports, directly or indirectly; question modules are left out."""
    return {path for path in reached(sources, []) if _is_machinery(path)}


def _taken(sources: Sources, question: str) -> set[str]:
    """Return the files that those of a question import, directly or indirectly, and not every trial does."""
    own = files_of(sources, question)
    return reached(sources, own) - _imported(sources) - set(own)


def _borrowed(sources: Sources, question: str) -> set[str]:
    """Return the files of other questions that those of a question import, directly or indirectly."""
    return {path for path in _taken(sources, question) if not _is_machinery(path)}


def _is_machinery(path: str) -> bool:
    return PurePosixPath(path).parts[1].startswith("_")


def reached(sources: Sources, modules: Iterable[str]) -> set[str]:
    """Return the package's files that a trial and some further files import, directly or indirectly, with these."""
    found: set[str] = set()
    waiting = [*(f"{PACKAGE}/{each}" for each in MEASURES), *modules]
    while waiting:
        path = waiting.pop()
        if path in found or path not in sources:
            continue
        found.add(path)
        waiting += _imports(sources[path])
    return found


@functools.cache  # all questions reach the same machinery
def _imports(source: str) -> list[str]:
    """Return the paths of the package's files that a source may import."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE:
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names if each.name.split(".")[0] == PACKAGE]
        for name in names:
            stem = name.replace(".", "/")
            found += [f"{stem}.py", f"{stem}/__init__.py"]
    return found


def files_of(sources: Sources, question: str) -> list[str]:
    """Return the files of a question: its module, or all modules of its package."""
    package = f"{PACKAGE}/questions/{question}/"
    alone = (f"{PACKAGE}/questions/{question}.py", f"{PACKAGE}/{question}.py")  # older commits: beside the machinery
    return [each for each in sources if each.startswith(package)] or [each for each in alone if each in sources][:1]


@functools.cache  # several questions borrow from the same files
def _parts(source: str, rest: str = "") -> dict[str, tuple[str, frozenset[str]]]:
    """Return what a module defines: for each name its syntax without docstrings, and the names that it uses.

    Statements that define nothing, such as imports, are kept under the name ``rest``, which all others use.
    """
    parts: dict[str, tuple[str, frozenset[str]]] = {}
    tree = ast.parse(source)
    modules = {name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in _borrowed_names(node)}
    for node in tree.body:
        for inner in ast.walk(node):
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and ast.get_docstring(inner):
                inner.body = inner.body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # the docstring of the module or of a constant
        else:
            names = []
        uses = frozenset({rest, *_uses(node, modules if names else ())})
        for name in names or [rest]:
            text, used = parts.get(name, ("", frozenset()))
            parts[name] = (f"{text}\n{ast.dump(node)}", used | uses)
    return parts


def syntax(source: str) -> object:
    """Return what a source says, without its comments and docstrings; itself, if it cannot be read."""
    try:
        return _parts(source)
    except SyntaxError:
        return source


def _borrowed_names(node: ast.ImportFrom) -> list[str]:
    """Return the names under which a statement imports from this package: some may be modules."""
    is_ours = node.module and node.module.split(".")[0] == PACKAGE
    return [each.asname or each.name for each in node.names] if is_ours else []


def _uses(node: ast.AST, modules: Container[str]) -> Iterator[str]:
    """Yield the names that a statement uses, and what it takes from ``modules``."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id in modules:
            yield each.attr


def _strategy_reaches(parts: Mapping[str, tuple[str, Set[str]]], name: str) -> set[str]:
    """Return the names that a strategy uses; every name if no function declares it.

    The function of a sweep lacks the place at the end of the strategy's name.
    """
    return _reached(parts, name) or _reached(parts, name.rpartition("_")[0]) or set(parts)


def _reached(parts: Mapping[str, tuple[str, Set[str]]], name: str) -> set[str]:
    """Return the names that a definition uses, directly or indirectly, including its own."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        each = waiting.pop()
        if each in parts and each not in found:
            found.add(each)
            waiting += parts[each][1]
    return found
