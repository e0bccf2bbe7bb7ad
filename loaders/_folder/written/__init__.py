"""The loaders that can be handed out, and how one is written as a file that needs nothing of this package.

Each module here that is not ``SHARED`` is a loader: its ``pipeline`` makes the batches. What is
handed out, and what is measured, is one file: the modules that it imports from here, then its own, then ``end``.
"""

from __future__ import annotations

import ast
import pkgutil
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
SHARED = ("dataset", "decoded", "end", "files", "image", "malloc")


def names() -> list[str]:
    """Return the names of all loaders."""
    return [each.name for each in pkgutil.iter_modules([str(HERE)]) if each.name not in SHARED]


def label(name: str) -> str:
    """Return what a loader does, in a sentence."""
    return (ast.get_docstring(_parsed(name)) or "").partition("\n")[0]


def converts(name: str) -> bool:
    """Whether a loader writes its images in another form before it reads them."""
    return any(isinstance(node, ast.FunctionDef) and node.name == "convert" for node in _parsed(name).body)


def keeps_all(name: str) -> bool:
    """Whether a loader keeps the pixels of all images in memory: it says so itself."""
    return "\nKEEPS_ALL = True" in _text(name)


def is_on_one_thread(name: str) -> bool:
    """Whether a loader decodes one image at a time, not one for each core: it says so itself."""
    return "\nON_ONE_THREAD = True" in _text(name)


def lines(name: str) -> int:
    """Return how many lines of code are a loader's own."""
    own = [each for each in _parts(name) if each == "decoded" or each not in SHARED]
    return sum(bool(line.strip()) for part in own for line in _text(part).splitlines())


def stand_alone(name: str, heading: str, settings: Mapping[str, int]) -> str:
    """Return a loader as a file of its own.

    Parameters
    ----------
    heading
        Its docstring.
    settings
        Values of its constants: ``BATCH``, ``HEIGHT``, ``WIDTH``.
    """
    modules: set[str] = set()
    attributes: defaultdict[str, set[str]] = defaultdict(set)
    bodies = []
    for part in _parts(name):
        last = 0  # line of the imports
        for node in _parsed(part).body:
            if isinstance(node, ast.Import):
                modules.add(ast.unparse(node))
                last = node.lineno
            elif isinstance(node, ast.ImportFrom):
                attributes[node.module or ""].update(each.name for each in node.names)
                last = node.end_lineno or node.lineno
        bodies.append("\n".join(_text(part).splitlines()[last:]).strip("\n"))
    text = "\n\n\n".join(bodies)
    for constant, value in settings.items():
        text = re.sub(rf"^{constant} = \d+$", f"{constant} = {value}", text, flags=re.MULTILINE)
    imports = sorted(modules, key=str.lower) + [
        f"from {module} import {', '.join(sorted(names, key=lambda each: (not each.isupper(), each.islower(), each)))}"
        for module, names in sorted(attributes.items())
        if module != "__future__" and not module.startswith(__name__)
    ]
    own = [each for each in imports if each.split()[1].partition(".")[0] in sys.stdlib_module_names]
    others = [each for each in imports if each not in own]
    return "\n\n".join(
        [f'"""{heading}"""', "from __future__ import annotations", "\n".join(own), "\n".join(others), text, ""]
    ).removesuffix("\n")


def _parts(name: str) -> list[str]:
    """Return the modules of a loader's file, in their order."""
    found: list[str] = []

    def add(part: str) -> None:
        for node in _parsed(part).body:
            module = node.module if isinstance(node, ast.ImportFrom) and node.module else ""
            if module.startswith(__name__):
                add(module.rpartition(".")[2])
        if part not in found:
            found.append(part)

    add(name)
    return [*found, "end"]


def _parsed(part: str) -> ast.Module:
    return ast.parse(_text(part))


def _text(part: str) -> str:
    return (HERE / f"{part}.py").read_text("utf-8")
