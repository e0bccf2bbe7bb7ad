"""How a claim is declared: a function under ``@claim``, in the module named after its question.

The page shows the docstring as the rule.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from loaders._claims._evidence import Figures, Part

Found = tuple[list[Part], str]
"""The parts of a claim, and the sentence with the figures that decide it."""

Judge = Callable[[Figures], Found]


class Claim(msgspec.Struct, frozen=True):
    """A claim from a write-up, and the rule that decides it here.

    Attributes
    ----------
    rule
        What ``judge`` does, in words.
    unasked
        Why the setting here cannot decide it; empty for most.
    issue
        For a bug report: where it is, such as ``tensorflow/tensorflow#65675``.
    reported
        For a bug report: with which version, and whether it is still open.
    package
        For a bug report: the package whose version decides.
    """

    id: str
    question: str
    text: str
    rule: str
    judge: Judge
    unasked: str = ""
    issue: str = ""
    reported: str = ""
    package: str = ""

    @property
    def address(self) -> str:
        """Where the bug report is."""
        repository, _, number = self.issue.partition("#")
        return f"https://github.com/{repository}/issues/{number}" if number else ""


_claims: dict[str, Claim] = {}


def claim(name: str, text: str, *, issue: str = "", reported: str = "", package: str = "") -> Callable[[Judge], Judge]:
    """Declare a claim of the question that the module is named after; returns the function unchanged."""

    def register(judge: Judge) -> Judge:
        if name in _claims:
            raise ValueError(f"two claims are named {name}")
        words = " ".join((inspect.getdoc(judge) or "").split())
        rule = words[:1].lower() + words[1:].rstrip(".")
        question = judge.__module__.rpartition(".")[2]
        _claims[name] = Claim(name, question, text, rule, judge, issue=issue, reported=reported, package=package)
        return judge

    return register


def unasked(name: str, question: str, text: str, why: str) -> None:
    """Declare a claim that the setting here cannot decide either way, and why."""

    def not_asked(_: Figures) -> Found:
        """Not asked here."""
        return [], why

    claim(name, text)(not_asked)
    _claims[name] = msgspec.structs.replace(_claims[name], question=question, unasked=why)


@functools.cache
def claims() -> list[Claim]:
    """Return all claims, in the order of their ids."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if not module.name.startswith("_"):
            importlib.import_module(f"loaders._claims.{module.name}")

    return sorted(_claims.values(), key=lambda each: (each.id[:1], int(each.id[1:])))
