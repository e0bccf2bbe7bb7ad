"""A function in a user's file or module: found, imported without running it as a script, and called."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from loaders._errors import InputError

SYNTAX = "write FILE.py:FUNCTION or package.module:FUNCTION"


class Target(msgspec.Struct, frozen=True):
    """What is called.

    Attributes
    ----------
    place
        The path of a file, or the name of a module.
    function
        Its name; dots lead into classes and objects.
    arguments
        By name.
    directory
        Where it is called, for relative paths.
    """

    place: str
    function: str
    arguments: dict[str, Any] = {}
    directory: str = "."

    @property
    def is_file(self) -> bool:
        """Whether it is in a file rather than in a module with a name."""
        return self.place.endswith(".py")

    @property
    def name(self) -> str:
        """As a user would write it."""
        return f"{self.place}:{self.function}"


def parse(text: str, given: tuple[str, ...] = (), directory: Path | None = None) -> Target:
    """Return the target that a user has named, with arguments as ``name=value``.

    A value is a Python literal if it can be read as one (``4``, ``True``, ``[1, 2]``; a tuple becomes a list), else a
    text.

    Raises
    ------
    InputError
        If it does not say a file and a function, if there is no such file, or an argument has no value.
    """
    place, separator, function = text.rpartition(":")
    if not separator or not place or not function:
        raise InputError(f"{text}: {SYNTAX}")
    here = (directory or Path()).absolute()
    if place.endswith(".py") and not (here / place).is_file():
        raise InputError(f"{place}: no such file")
    arguments: dict[str, Any] = {}
    for each in given:
        name, separator, value = each.partition("=")
        if not separator or not name.isidentifier():
            raise InputError(f"--arg {each}: write name=value")
        arguments[name] = _literal(value)
        if not _arrives(arguments[name]):
            raise InputError(
                f"--arg {each}: keys of a dict must be texts, and it may hold texts, numbers, lists and dicts only; "
                f"name a function of your own that passes it"
            )
    return Target(place, function, arguments, str(here))


def _literal(text: str) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):  # the last of a set of lists, for example
        return text
    if isinstance(value, tuple):
        value = list(value)
    # What JSON has, so that it reaches the trial as it is.
    return value if isinstance(value, bool | int | float | str | list | dict | None) else text


def _arrives(value: Any) -> bool:
    """Whether a value reaches the trial as it is: through JSON."""
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


def load(target: Target) -> Callable[[], Any]:
    """Import what holds the function, and return a call of it with its arguments.

    The file's directory and the one that the command was given in can be imported from, as in a script's run.

    Raises
    ------
    InputError
        If there is no such module or function, if it cannot be imported, or if its arguments do not fit.
    """
    sys.path[:0] = [str(Path(target.directory, target.place).parent), target.directory]
    sys.argv = [target.place]  # without those of the trial's process
    try:
        place = Path(target.directory, target.place)
        module = from_file(place) if target.is_file else importlib.import_module(target.place)
    except (Exception, SystemExit) as error:
        missing = str(error.name) if isinstance(error, ModuleNotFoundError) else ""
        if missing and not target.is_file and f"{target.place}.".startswith(f"{missing}."):
            raise InputError(f"{target.place}: no such module; {SYNTAX}") from error
        hint = next((each for words, each in HINTS.items() if words in _said(error)), "")
        raise InputError(f"{target.place} cannot be imported{_line(error, target)}: {_said(error)}{hint}") from error
    function: Any = module
    for part in target.function.split("."):
        if not hasattr(function, part):
            names = [name for name, each in vars(module).items() if inspect.isfunction(each) and name[0] != "_"]
            there_are = f"; there are {', '.join(sorted(names))}" if names else ""
            raise InputError(f"{target.place} has no function {target.function!r}{there_are}")
        function = getattr(function, part)
    if not callable(function):
        raise InputError(f"{target.name} is no function, but a {type(function).__name__}")
    _fit(target, function)
    return lambda: function(**target.arguments)


HINTS = {
    "SystemExit": '; does it read the command line, or train? Put that under if __name__ == "__main__"',
    "relative import": "; name it as a module of its package: package.module:FUNCTION",
}
"""What to do, by what is said of an import that fails."""


def from_file(path: Path) -> ModuleType:
    """Import a file, as a module with its name."""
    name = path.stem if path.stem not in sys.modules else f"_{path.stem}"  # such as loaders.py
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # noqa: S101 - for the type checker: it ends in .py
    assert spec.loader is not None  # noqa: S101 - as above
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # worker processes import it by its name
    spec.loader.exec_module(module)
    return module


def _fit(target: Target, function: Callable[..., Any]) -> None:
    """Raise an error that names the arguments that are missing or too many."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a function that is not written in Python
        return
    try:
        signature.bind(**target.arguments)
    except TypeError as error:
        needed = [
            name
            for name, each in signature.parameters.items()
            if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        ]
        missing = [name for name in needed if name not in target.arguments]
        if missing:
            options = " ".join(f"--arg {name}=…" for name in missing)
            raise InputError(f"{target.name} needs arguments: {options}") from error
        there_are = ", ".join(signature.parameters) or "none"
        raise InputError(f"{target.name}: {error}; its arguments are {there_are}") from error


def _line(error: BaseException, target: Target) -> str:
    """Say in which line of the user's file it went wrong."""
    import traceback

    if isinstance(error, SyntaxError):
        return f" (line {error.lineno})"
    path = str(Path(target.directory, target.place))
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return f" (line {lines[-1]})" if lines else ""


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
