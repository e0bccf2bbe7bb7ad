"""What a strategy's code says: its source for the page, the modules that it imports, the helpers that it calls."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any


def imports_of(function: Callable[..., Any]) -> dict[str, set[str]]:
    """Return what a strategy imports when it runs: module names, each with the attributes that it uses.

    The trial imports these beforehand, so that no figure includes import time or memory; the attributes matter
    because NumPy, scikit-image and TensorFlow load parts of themselves on first access. Helper functions of the same
    question are followed. This is a first guess: what other code imports is found out by running it.
    """
    import dis

    found: dict[str, set[str]] = {}
    aliases: dict[str, str] = {}

    def scan(code: types.CodeType) -> None:
        module = stored = loaded = ""
        constant: object = None
        for instruction in dis.get_instructions(code):
            name, value = instruction.opname, instruction.argval
            if name == "IMPORT_NAME":
                # The constant before it is the `from` list; `import a.b` stores a, `import a.b as c` takes b from it.
                module, listed = value, constant if isinstance(constant, tuple) else ()
                stored = "" if listed else value.partition(".")[0]
                found.setdefault(module, set()).update(each for each in listed if each != "*")
            elif name == "IMPORT_FROM":
                stored = stored and module
            elif name.startswith("STORE_") and stored:
                aliases[value], stored = stored, ""
            elif name in ("LOAD_ATTR", "LOAD_METHOD") and loaded in aliases:
                found.setdefault(aliases[loaded], set()).add(value)
            constant = value if name == "LOAD_CONST" else constant
            # Python 3.13 loads two names with one instruction; the attribute belongs to the second.
            pair = name.startswith("LOAD_FAST") and isinstance(value, tuple)
            loaded = value[-1] if pair else value if name.startswith("LOAD_") else ""
        for each in code.co_consts:
            if isinstance(each, types.CodeType):
                scan(each)

    for helper in (inspect.unwrap(function), *_helpers_of(function)):
        for each in _functions_of(helper) if isinstance(helper, types.FunctionType | type) else ():
            scan(each.__code__)
    return found


def _helpers_of(function: Callable[..., Any]) -> list[types.FunctionType | type]:
    """Return the functions and classes of the same home that a function uses, and those that they use in turn."""
    unwrapped = inspect.unwrap(function)
    if not isinstance(unwrapped, types.FunctionType):
        return []
    home = _home(unwrapped)
    found: list[types.FunctionType | type] = []

    def used(code: types.CodeType, module_globals: dict[str, Any]) -> Iterator[Any]:
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                yield from used(constant, module_globals)
        for name in _globals_of(code):
            yield module_globals.get(name)

    def follow(user: types.FunctionType) -> None:
        defaults = (*(user.__defaults__ or ()), *(user.__kwdefaults__ or {}).values())
        for helper in (*used(user.__code__, user.__globals__), *defaults):
            if not isinstance(helper, types.FunctionType | type) or helper is unwrapped or helper in found:
                continue
            if _home(helper) == home:
                found.append(helper)
                for each in _functions_of(helper):
                    follow(each)

    follow(unwrapped)
    return found


@functools.cache
def _globals_of(code: types.CodeType) -> list[str]:
    """Return the names of globals that code loads, in their order, so that a page is the same each time.

    Not ``co_names``, which has attributes too: ``tf.py_function`` is no function of this module.
    """
    import dis

    return list(dict.fromkeys(each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL"))


def _functions_of(helper: types.FunctionType | type) -> list[types.FunctionType]:
    """Return a function itself, or the methods of a class."""
    every = (helper,) if isinstance(helper, types.FunctionType) else vars(helper).values()
    return [each for each in every if isinstance(each, types.FunctionType)]


def _home(function: Callable[..., Any]) -> str:
    """Return the module that defines a function or, for a question of several modules, their package."""
    parts = function.__module__.split(".")
    return ".".join(parts[:3] if parts[:2] == ["loaders", "questions"] else parts)


@functools.cache
def source_of(function: Callable[..., Any]) -> str:
    """Return the code of a function and of its question's functions and classes that it uses."""
    functions: list[Callable[..., Any] | type] = [function, *_helpers_of(function)]
    return "\n\n".join(map(_getsource, functions))


@functools.cache
def imported_by(function: Callable[..., Any]) -> list[str]:
    return sorted(imports_of(function))


_getsource = functools.cache(inspect.getsource)  # several strategies share a helper
