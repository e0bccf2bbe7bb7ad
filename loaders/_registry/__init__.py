"""How questions and strategies are declared, and found.

A strategy is a function under ``@variant``. Its question is the module or package that defines it, its name is the
function's, and its label is the first line of its docstring. Everything else (asv parameters, contract tests, the
command line, the page) reads this registry, so adding a strategy edits one file.
"""

from loaders._registry.code import imports_of
from loaders._registry.declare import (
    also,
    baseline,
    declare_question,
    find_question,
    find_variant,
    questions,
    quick,
    variant,
    variants,
)
from loaders._registry.outside import load_files, outside_files
from loaders._registry.values import Batch, Case, Facts, Job, Meter, Question, Serve, Skip, Variant

__all__ = [
    "Batch",
    "Case",
    "Facts",
    "Job",
    "Meter",
    "Question",
    "Serve",
    "Skip",
    "Variant",
    "also",
    "baseline",
    "declare_question",
    "find_question",
    "find_variant",
    "imports_of",
    "load_files",
    "outside_files",
    "questions",
    "quick",
    "variant",
    "variants",
]
