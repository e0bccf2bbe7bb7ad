"""How questions and strategies are declared, and found.

A strategy is a function under ``@variant``. Its question is the module that it stands in, its name is the
function's, its label is the first line of the docstring. Everything else (asv parameters, contract tests,
the command line, the page) reads this registry, so adding a strategy edits one file.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.util
import inspect
import itertools
import os
import pkgutil
import sys
import threading
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from loaders._errors import InputError

if TYPE_CHECKING:
    from loaders._contract import Quality
    from loaders._corpus import Corpus, Shard

Batch: TypeAlias = Any
"""What a strategy yields: an array or tensor whose first axis counts samples, or a tuple (features, labels)
of these. A list of per-sample values stands for an array."""

Case: TypeAlias = Mapping[str, str]
"""One value for each axis of a question, such as ``{"scale": "0.5"}``."""

Inputs = TypeVar("Inputs")
Build = Callable[["Job[Any]"], Iterable[Batch]]
Convert = Callable[["Job[Any]"], None]
BuildT = TypeVar("BuildT", bound=Build)

TIERS = ("identical", "same purpose", "as typed")


class Skip(Exception):  # noqa: N818 - it reads `raise Skip("jemalloc is not installed")`, and is no error
    """Raised by a strategy that cannot run here; the reason stands in the record and on the page."""


class Meter:
    """Counts what runs at once and what stands waiting, in one process; ``with meter:`` stands around a body.

    Attributes
    ----------
    most_running
        Bodies in flight at the same time, at the most.
    most_waiting
        Elements that bodies had finished and the consumer had not taken yet, at the most.
    """

    def __init__(self) -> None:
        self.most_running = self.most_waiting = self.finished = 0
        self._running = self._taken = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1
            self.most_running = max(self.most_running, self._running)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            self.finished += 1
            self.most_waiting = max(self.most_waiting, self.finished - self._taken)

    def take(self, count: int) -> None:
        """Note that the consumer has taken elements."""
        with self._lock:
            self._taken += count


@dataclass(frozen=True)
class Job(Generic[Inputs]):
    """What a strategy is given to work on.

    Attributes
    ----------
    corpus
        The data on disk.
    inputs
        What the question's ``prepare`` made; it exists before the memory baseline is read.
    case
        The value of each of the question's axes.
    seed
        The same for every strategy of a round, another in the next round.
    batch_size
        Samples in a batch, where the strategy batches.
    epochs
        How many epochs a strategy delivers in one pass; 1 unless the question ``repeats``.
    directory
        The strategy's own on disk: what ``convert`` writes into, and the place for a cache.
    meter
        Counts the Python bodies that run and the elements that wait: ``with job.meter:`` around the body.
    """

    corpus: Corpus
    inputs: Inputs
    case: Case
    seed: int
    batch_size: int = 32
    epochs: int = 1
    directory: Path = Path("data")
    meter: Meter = field(default_factory=Meter)


@dataclass(frozen=True)
class Question:
    """What all strategies of one module have in common. The module's docstring explains it.

    Attributes
    ----------
    prepare
        Makes ``Job.inputs`` from the corpus, the case and the seed, before the memory baseline is read.
    check
        Consumes all batches of a strategy and returns their quality, or raises ``WrongOutputError``.
    axes
        Named parameters with their values, the first of which is the default. Values are strings because
        asv, JSON and the command line know them by name.
    floor
        Returns the bytes that a strategy must hold at least, where its buffers are known.
    shards
        Returns the TFRecord files that all strategies read, so that a failure can be traced to one of them.
    reads
        Returns the files that a strategy reads, for ``disk_bytes`` and the state of the page cache; with an axis
        ``page_cache`` they are brought into that state (``warm`` or ``cold``) first.
    quick
        The strategies that a quick comparison runs; all of them where none is named.
    epochs
        How many epochs a trial takes for published numbers.
    quick_epochs
        The same for all other numbers.
    repeats
        A strategy delivers ``Job.epochs`` epochs in one pass, as a pipeline with ``repeat`` does, and fills its buffers
        once. Otherwise it is drained anew for each epoch.
    slices
        The cases that comparisons run, where not every combination of the axes' values answers something.
    sweeps
        What the strategies of a series differ in: the title of a chart's axis.
    size_axis
        The axis whose values are amounts of the same data, for a question from which a loader can be chosen: memory is
        held against it, and each trial ends with an epoch for a slow consumer.
    step_time
        Returns the seconds that the consumer takes for each batch, as a training step would.
    ranked_by
        The metric (``loaders._trial.record.Metrics``) that stands for time on the page.
    keeps_output
        The batches are the product: they are held while ``retained_memory`` is read. Otherwise a batch
        is dropped as soon as the next is asked for, as a training loop does.
    calibrates
        Its strategies have a ``truth``: it tells how far to trust the instruments, and not which loader to choose.
    """

    prepare: Callable[[Corpus, Case, int], Any]
    check: Callable[[Job[Any], Variant, Iterable[Batch]], Quality]
    axes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    floor: Callable[[Job[Any], Variant], int | None] | None = None
    shards: Callable[[Job[Any]], Sequence[Shard]] | None = None
    reads: Callable[[Job[Any], Variant], Sequence[str]] | None = None
    quick: Sequence[str] = ()
    epochs: int = 1
    quick_epochs: int = 1
    repeats: bool = False
    slices: Sequence[Case] = ()
    sweeps: str = ""
    size_axis: str = ""
    step_time: Callable[[Case], float] = lambda _: 0.0
    ranked_by: str = "epoch_time"
    keeps_output: bool = False
    calibrates: bool = False
    name: str = ""
    doc: str = ""

    @property
    def title(self) -> str:
        """The first line of the module's docstring."""
        return self.doc.partition("\n")[0].rstrip(".")

    @property
    def default_case(self) -> dict[str, str]:
        """The first of the slices, else the first value of every axis."""
        if self.slices:
            return dict(self.slices[0])
        return {axis: values[0] for axis, values in self.axes.items()}

    @property
    def default_cases(self) -> list[dict[str, str]]:
        """The default with every amount of data, so that memory can be held against it."""
        first = self.default_case
        return [
            case for case in self.cases if all(case[axis] == first[axis] for axis in case if axis != self.size_axis)
        ]

    @property
    def cases(self) -> list[dict[str, str]]:
        """What comparisons run, the default first: the slices, else every combination of the axes' values."""
        if self.slices:
            return [dict(each) for each in self.slices]
        return [dict(zip(self.axes, values, strict=True)) for values in itertools.product(*self.axes.values())]


@dataclass(frozen=True)
class Variant:
    """One strategy for one question.

    Attributes
    ----------
    tier
        How its output relates to the others': *identical*, *same purpose* (the quality is stated beside
        the time) or *as typed* (what people write, whatever it returns).
    matches
        The strategy whose output this one reproduces by other means; the page shows the pair's ratio.
    variables
        Environment variables that are set before the process starts, and are a part of the strategy.
    preload
        A library that takes the place of the C library's malloc, such as ``jemalloc``.
    only
        The values of some axes to which comparisons keep it, because elsewhere it answers nothing.
    series, at
        Its line, and its place on it, in the chart of what the question ``sweeps``.
    convert
        Writes what the strategy reads into ``Job.directory``. It runs in a process of its own before the trial, and is
        measured there.
    truth
        What an exact instrument would read, by metric (see ``loaders._trial.record.Metrics``), where that is known
        beforehand; of ``memory_growth`` the slope in bytes a step.
    historic
        It is kept because readers have that code, and is never recommended.
    ceiling
        A bare pool that shows what the machine can do, and is no loader to choose; the best of a question's is its
        ceiling.
    capacity
        Samples that all its buffers hold at the most, where that is declared in its code: beyond it memory is level.
    optional
        Modules that need not be installed: without them it is skipped, in words.
    """

    question: str
    name: str
    build: Build
    baseline: bool
    tier: str
    matches: str | None
    variables: Mapping[str, str] = field(default_factory=dict)
    preload: str | None = None
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    convert: Convert | None = None
    series: str = ""
    at: str = ""
    truth: Mapping[str, float] = field(default_factory=dict)
    historic: bool = False
    ceiling: bool = False
    capacity: int = 0
    optional: Sequence[str] = ()

    @property
    def is_outside(self) -> bool:
        """Whether a ``--with`` file declares it."""
        return not self.build.__module__.startswith("loaders.")

    def runs_in(self, case: Case) -> bool:
        """Whether a comparison runs it in a case."""
        return all(case[axis] in values for axis, values in self.only.items())

    @property
    def doc(self) -> str:
        """The function's docstring."""
        return inspect.getdoc(self.build) or ""

    @property
    def label(self) -> str:
        """The first line of the docstring."""
        return self.doc.partition("\n")[0]

    @property
    def settings(self) -> str:
        """What must be set for the process: ``MALLOC_ARENA_MAX=1``; empty for most."""
        variables = [f"{name}={value}" for name, value in self.variables.items()]
        return " ".join([*variables, f"LD_PRELOAD=lib{self.preload}.so"] if self.preload else variables)

    @property
    def source(self) -> str:
        """The code of the strategy, and of the functions of its module that it calls, for the page."""
        return _source_of(self.build)


_variants: dict[str, dict[str, Variant]] = {}
_loaded_files: set[Path] = set()


@overload
def variant(build: BuildT) -> BuildT: ...
@overload
def variant(
    *,
    question: str | None = None,
    baseline: bool = False,
    tier: str = "identical",
    matches: str | None = None,
    variables: Mapping[str, str] | None = None,
    preload: str | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    convert: Convert | None = None,
    series: str = "",
    at: str = "",
    truth: Mapping[str, float] | None = None,
    historic: bool = False,
    ceiling: bool = False,
    capacity: int = 0,
    optional: Sequence[str] = (),
) -> Callable[[BuildT], BuildT]: ...
def variant(
    build: BuildT | None = None,
    *,
    question: str | None = None,
    baseline: bool = False,
    tier: str = "identical",
    matches: str | None = None,
    variables: Mapping[str, str] | None = None,
    preload: str | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    convert: Convert | None = None,
    series: str = "",
    at: str = "",
    truth: Mapping[str, float] | None = None,
    historic: bool = False,
    ceiling: bool = False,
    capacity: int = 0,
    optional: Sequence[str] = (),
) -> BuildT | Callable[[BuildT], BuildT]:
    """Declare a strategy; the function is returned as it was given.

    Parameters
    ----------
    question
        The question that it answers; by default the module of ``loaders`` that it stands in.
    baseline
        Ratios are taken to this strategy. Exactly one in a question.
    tier
        One of ``TIERS``.
    matches, variables, preload, only, convert, series, at, truth, historic, ceiling, capacity, optional
        See ``Variant``.

    Raises
    ------
    InputError
        For a function without a question or a docstring, an unknown tier, or a name that is taken.
    """

    def register(function: BuildT) -> BuildT:
        package, _, stem = function.__module__.rpartition(".")
        belongs_to = question or (stem if package == "loaders" else None)
        if belongs_to is None:
            raise InputError(
                f"{function.__name__}: a strategy outside the package says which question it answers: "
                f'@variant(question="selection")'
            )
        if tier not in TIERS:
            raise InputError(f"{function.__name__}: tier {tier!r} is none of {', '.join(TIERS)}")
        if not function.__doc__:
            raise InputError(f"{function.__name__} has no docstring; its first line is the strategy's label")
        strategies = _variants.setdefault(belongs_to, {})
        if function.__name__ in strategies:
            raise InputError(f"{belongs_to} already has a strategy named {function.__name__}")
        strategies[function.__name__] = Variant(
            question=belongs_to,
            name=function.__name__,
            build=function,
            baseline=baseline,
            tier=tier,
            matches=matches,
            variables=variables or {},
            preload=preload,
            only=only or {},
            convert=convert,
            series=series,
            at=at,
            truth=truth or {},
            historic=historic,
            ceiling=ceiling,
            capacity=capacity,
            optional=optional,
        )
        return function

    return register if build is None else register(build)


def questions() -> dict[str, Question]:
    """Every question of the package by name; importing their modules registers their strategies."""
    return dict(_declared())


@functools.cache
def _declared() -> dict[str, Question]:
    found = {}
    for module_info in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module_info.name.startswith("_"):
            continue
        module = importlib.import_module(f"loaders.{module_info.name}")
        declared: Question = module.QUESTION
        found[module_info.name] = Question(
            **{**declared.__dict__, "name": module_info.name, "doc": inspect.cleandoc(module.__doc__ or "")}
        )
    return found


def find_question(name: str) -> Question:
    """Return one question by its name; an unknown one is an ``InputError`` with the nearest name."""
    known = questions()
    if name not in known:
        raise InputError(f"unknown question {name!r}{_nearest(name, known)}")
    return known[name]


def variants(question: str) -> dict[str, Variant]:
    """Return the strategies of a question in the order of their declaration, ``--with`` files last."""
    find_question(question)
    return dict(_variants.get(question, {}))


def find_variant(question: str, name: str) -> Variant:
    """Return one strategy; an unknown name is an ``InputError`` with the nearest one."""
    known = variants(question)
    if name not in known:
        raise InputError(f"{question} has no strategy {name!r}{_nearest(name, known)}")
    return known[name]


def baseline(question: str) -> Variant:
    """Return the strategy that ratios of this question are taken to."""
    (found,) = (each for each in variants(question).values() if each.baseline)
    return found


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
        spec = importlib.util.spec_from_file_location(f"loaders_with_{path.stem}", path)
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
                find_question(question)
            except InputError as error:
                raise InputError(f"--with {file}: {name}: {error}") from error
            if _variants[question][name].baseline:
                raise InputError(f"--with {file}: {name}: {question} has a baseline already")
        _loaded_files.add(path.resolve())


def outside_files(given: Iterable[str] = ()) -> list[str]:
    """Return the ``--with`` files and those in ``LOADERS_WITH`` (separated as in ``PATH``), absolute."""
    from_environment = filter(None, os.environ.get("LOADERS_WITH", "").split(os.pathsep))
    return list(dict.fromkeys(str(Path(file).absolute()) for file in (*given, *from_environment)))


def imports_of(function: Callable[..., Any]) -> dict[str, set[str]]:
    """Return what a strategy imports when it runs: module names, each with the attributes that are used of it.

    The trial imports these beforehand, so that import time and memory are in no figure; the attributes matter
    because NumPy, scikit-image and TensorFlow load parts of themselves when they are asked for. Helper functions
    of the same module are followed. It is a first guess: what others import is found out by running.
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
                # The constant before it is what `from` lists; `import a.b` stores a, `import a.b as c` takes b of it.
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
            # Python 3.13 loads two names with one instruction; the attribute is of the second.
            pair = name.startswith("LOAD_FAST") and isinstance(value, tuple)
            loaded = value[-1] if pair else value if name.startswith("LOAD_") else ""
        for each in code.co_consts:
            if isinstance(each, types.CodeType):
                scan(each)

    for each in (inspect.unwrap(function), *_helpers_of(function)):
        if isinstance(each, types.FunctionType):
            scan(each.__code__)
    return found


def _helpers_of(function: Callable[..., Any]) -> list[types.FunctionType]:
    """Return the functions of the same module that a function calls, and those that these call."""
    unwrapped = inspect.unwrap(function)
    if not isinstance(unwrapped, types.FunctionType):
        return []
    module_globals = unwrapped.__globals__
    found: dict[str, types.FunctionType] = {}

    def follow(code: types.CodeType) -> None:
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                follow(constant)
        for name in code.co_names:
            helper = module_globals.get(name)
            if not isinstance(helper, types.FunctionType) or helper is unwrapped or name in found:
                continue
            if helper.__globals__ is module_globals:
                found[name] = helper
                follow(helper.__code__)

    follow(unwrapped.__code__)
    return list(found.values())


@functools.cache
def _source_of(function: Callable[..., Any]) -> str:
    functions: list[Callable[..., Any]] = [function, *_helpers_of(function)]
    return "\n\n".join(map(_getsource, functions))


_getsource = functools.cache(inspect.getsource)  # several strategies share a helper


def _nearest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(names)}"


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
