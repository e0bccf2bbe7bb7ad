"""No import is measured: a run that imports while it is measured is void, and the next one does so beforehand.

An import reads, maps and runs code, and none of that is the strategy's work. Which modules are imported, at whatever
depth, is found by running the strategy: once for each strategy and version, and remembered beside the corpora.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import platform
import sys
import tempfile
from collections.abc import Iterable, Set
from pathlib import Path

import msgspec

from loaders import _durable
from loaders._corpus import cache_root
from loaders._trial import machine
from loaders._trial.record import Trial

NAME = "imports.json"

MOST = 1000
"""Maximum number of strategies remembered; the oldest are forgotten."""


class ImportedError(Exception):
    """Modules were imported while something was measured; the figures are void."""

    def __init__(self, modules: list[str]) -> None:
        super().__init__(f"imported while it was measured: {', '.join(modules)}")
        self.modules = modules


def refuse(before: Set[str]) -> None:
    """Raise ``ImportedError`` if modules were imported that the next process can import before it measures.

    Modules that TensorFlow's autograph and others write into the process's own directory and import from there belong
    to the work, and so do modules that are created in memory.
    """
    own = tempfile.gettempdir() + os.sep
    found = []
    for name in [each for each in sys.modules if each not in before]:
        spec = getattr(sys.modules[name], "__spec__", None)
        if spec is not None and not str(spec.origin).startswith(own) and is_found(name):
            found.append(name)
    if found:
        raise ImportedError(found)


def is_found(name: str) -> bool:
    """Whether a module can be imported."""
    with contextlib.suppress(ImportError, ValueError, AttributeError):
        return importlib.util.find_spec(name) is not None
    return False


def known(trial: Trial) -> list[str]:
    """Return the modules that earlier runs of a trial's strategy imported late, in import order."""
    return [*dict.fromkeys([*trial.imports, *_read().get(_key(trial), [])])]


def remember(trial: Trial, modules: Iterable[str]) -> list[str]:
    """Add modules to those known for a trial's strategy and return all; they are stored if the cache is writable."""
    every = [*dict.fromkeys([*known(trial), *modules])]
    kept = {**{key: each for key, each in _read().items() if key != _key(trial)}, _key(trial): every}
    newest = dict(list(kept.items())[-MOST:])
    with contextlib.suppress(OSError):
        _durable.write(_path(), msgspec.json.encode(newest).decode())
    return every


def _path() -> Path:
    return cache_root() / NAME


def _read() -> dict[str, list[str]]:
    try:
        return msgspec.json.decode(_path().read_bytes(), type=dict[str, list[str]])
    except (OSError, msgspec.MsgspecError):
        return {}


def _key(trial: Trial) -> str:
    """Return a key for a strategy and its version: the code of its question and of outside files, and the packages."""
    state = hashlib.blake2b(repr((platform.python_version(), machine.packages())).encode(), digest_size=8)
    questions = Path(__file__).parents[1] / "questions"
    modules = sorted((questions / trial.question).glob("[!.]*.py"))  # of a package
    for file in (questions / f"{trial.question}.py", *modules, *map(Path, trial.outside)):
        state.update(file.read_bytes() if file.is_file() else b"")
    state.update(trial.case.get("target", "").encode())  # of somebody's own pipeline
    return f"{trial.question}.{trial.strategy} {state.hexdigest()}"
