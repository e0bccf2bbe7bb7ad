"""Strategies that are declared outside the package: ``--with`` and ``LOADERS_WITH``."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from loaders._errors import InputError
from loaders._registry.declare import _variants, find_question, questions

_loaded_files: set[Path] = set()


def load_files(files: Iterable[str | Path]) -> None:
    """Register the strategies of files outside the package (``--with``, ``LOADERS_WITH``), each file once.

    Raises
    ------
    InputError
        For a file that is missing, fails to import, declares nothing or names an unknown question.
    """
    for file in files:
        path = Path(file)
        if not path.is_file():
            raise InputError(f"--with {file}: no such file")
        if path.resolve() in _loaded_files:
            continue
        before = {question: set(strategies) for question, strategies in _variants.items()}
        questions()
        # Two files may have one name, and a module's code is looked up by its own.
        digest = hashlib.blake2b(str(path.resolve()).encode(errors="surrogateescape"), digest_size=4).hexdigest()
        spec = importlib.util.spec_from_file_location(f"loaders_with_{path.stem}_{digest}", path)
        if spec is None or spec.loader is None:
            raise InputError(f"--with {file}: not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        try:
            spec.loader.exec_module(module)
        except InputError as error:
            raise InputError(f"--with {file}: {error}") from error
        except (Exception, SystemExit) as error:
            where = _line_in(error, path)
            raise InputError(f"--with {file} fails to import{where}: {type(error).__name__}: {error}") from error
        added = [
            (question, name)
            for question, strategies in _variants.items()
            for name, each in strategies.items()
            if each.build.__module__ == spec.name and name not in before.get(question, set())
        ]
        if not added:
            raise InputError(f"--with {file}: declares no @variant")
        for question, name in added:
            try:
                asked = find_question(question)
            except InputError as error:
                raise InputError(f"--with {file}: {name}: {error}") from error
            variant = _variants[question][name]
            if variant.baseline:
                raise InputError(f"--with {file}: {name}: {question} has a baseline already")
            for axis, values in variant.only.items():
                known = asked.axes.get(axis, ())
                if not known or not {*values} <= {*known}:
                    said = (
                        f"{axis} of {question} is one of {', '.join(known)}" if known else f"{question} has no {axis}"
                    )
                    raise InputError(f"--with {file}: {name}: only={{{axis!r}: {values!r}}}: {said}")
        _loaded_files.add(path.resolve())


def outside_files(given: Iterable[str] = ()) -> list[str]:
    """Return the ``--with`` files and those in ``LOADERS_WITH`` (separated as in ``PATH``), absolute."""
    from_environment = filter(None, os.environ.get("LOADERS_WITH", "").split(os.pathsep))
    return list(dict.fromkeys(str(Path(file).absolute()) for file in (*given, *from_environment)))


def _line_in(error: BaseException, path: Path) -> str:
    """Say where in the file an exception came from."""
    if isinstance(error, SyntaxError):
        return f" (line {error.lineno})"
    import traceback

    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == path.absolute() or Path(frame.filename) == path
    ]
    return f" (line {lines[-1]})" if lines else ""
