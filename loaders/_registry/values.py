"""What is declared: questions and strategies as values, and what a strategy is given to work on."""

from __future__ import annotations

import inspect
import itertools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypedDict, TypeVar

from loaders._contract import TIERS, Cause
from loaders._registry import code

if TYPE_CHECKING:
    from loaders._contract import Quality
    from loaders._corpus import Corpus, Shard

Batch: TypeAlias = Any
"""What a strategy yields: an array or tensor whose first axis counts samples, or a tuple (features, labels)
of these. A list of per-sample values counts as an array."""


Case: TypeAlias = Mapping[str, str]
"""One value for each axis of a question, such as ``{"scale": "0.5"}``."""


Inputs = TypeVar("Inputs")


Build = Callable[["Job[Any]"], Iterable[Batch]]


Convert = Callable[["Job[Any]"], None]


Serve = Callable[["Job[Any]"], AbstractContextManager[Any]]


BuildT = TypeVar("BuildT", bound=Build)


ENGINES = {
    "pool": "threads",
    "tfdata": "tf.data",
    "keras": "keras",
    "tf1": "tensorflow 1",
}
"""What puts a strategy's batches together, by the name of the module that holds such strategies. A module that is named
after the package that its strategies need goes by that name."""


class Skip(Exception):  # noqa: N818 - it reads `raise Skip("jemalloc is not installed")`, and is no error
    """Raised by a strategy that cannot run here; the record and the page give the reason."""


class Meter:
    """Counts running bodies and waiting elements in one process; wrap a body in ``with meter:``.

    Attributes
    ----------
    most_running
        Peak number of concurrent bodies.
    most_waiting
        Peak number of elements that bodies had finished and the consumer had not yet taken.
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
        The same for every strategy of a round; the next round has another.
    batch_size
        Samples in a batch, where the strategy batches.
    epochs
        How many epochs a strategy delivers in one pass; 1 unless the question ``repeats``.
    directory
        The strategy's own directory: ``convert`` writes into it, and a cache goes there.
    served
        What the strategy's ``serve`` started.
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
    served: Any = None
    meter: Meter = field(default_factory=Meter)


@dataclass(frozen=True)
class Question:
    """What all strategies of one module or package have in common. Its docstring explains it.

    Attributes
    ----------
    prepare
        Makes ``Job.inputs`` from the corpus, the case and the seed, before the memory baseline is read.
    check
        Consumes all batches of a strategy and returns their quality, or raises ``WrongOutputError``.
    axes
        Named parameters with their values, of which the first is the default. Values are strings because asv, JSON
        and the command line know them by name.
    floor
        Returns the minimum number of bytes that a strategy must hold, if its buffers are known.
    shards
        Returns the TFRecord files that all strategies read, so that a failure can be traced to one of them.
    reads
        Returns the files that a strategy reads, for ``disk_bytes`` and the state of the page cache; if there is an
        axis ``page_cache``, they are brought into that state (``warm`` or ``cold``) first.
    epochs
        Epochs per trial for published numbers. Short ones are repeated for the steady time
        (``loaders._trial.timing.is_settled``).
    quick_epochs
        Epochs per trial for all other numbers.
    repeats
        A strategy delivers ``Job.epochs`` epochs in one pass and fills its buffers once, as a pipeline with ``repeat``
        does. Otherwise it is drained anew for each epoch.
    slices
        The cases that comparisons run, if some combinations of the axes' values answer nothing.
    sweeps
        What varies along a series of strategies: the title of a chart's axis.
    size_axis
        The axis whose values are amounts of the same data, for a question from which a loader can be chosen: memory
        is compared along it, and each trial ends with an epoch for a slow consumer.
    laws_from
        The question that compares the same loaders with several amounts of data, if this one has a single amount: what
        it shows of how memory grows holds here too.
    step_time
        Returns the seconds that the consumer takes for each batch, as a training step would.
    training_step
        Returns the seconds for which the consumer keeps one core busy with each batch, as a training step would on the
        processor. How long it then waits for a batch is a figure.
    consumer_step
        Returns the seconds that the slow consumer takes for each batch, if they are given; ``None`` if there is to be
        no slow consumer. By default it is as slow as the strategy asks for.
    audit
        Says what a strategy delivers, in terms of its own, instead of ``check``: nothing that it delivers is wrong. If
        the trial is not to be checked, it is told so, and reads nothing again.
    least_batches
        Batches that an epoch needs before a steady epoch has a time of its own. With fewer, its start cannot be told
        from the rest; where only whole epochs are asked about, that does not matter.
    ranked_by
        The metric (``loaders._trial.metrics.Metrics``) that the page uses as time.
    tracks
        The metrics whose history asv keeps besides those that it keeps for every question (``loaders._figures``).
    keeps_output
        The batches are the product: they are held while ``retained_memory`` is read. Otherwise a batch is dropped as
        soon as the next is requested, as a training loop does.
    calibrates
        Its strategies have a ``truth``: it shows how far to trust the instruments, not which loader to choose.
    reports
        Its strategies are what bug reports are about: it shows whether these are true here, not which loader to choose.
    apart
        Not part of a comparison of all questions on a time budget: its trials take long, and no first answer needs it.
    fresh
        Published figures are of fresh processes alone: forks are not shown to measure the same (``selftest --start``).
    when
        What a reader does who has this question, as in *if you draw images at random from an array*: what the README
        and the page open with (``loaders._report.opening``).
    modules
        The modules of a package in the order in which their strategies are listed; modules that are not named here
        follow, by name.
    """

    prepare: Callable[[Corpus, Case, int], Any]
    check: Callable[[Job[Any], Variant, Iterable[Batch]], Quality]
    axes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    floor: Callable[[Job[Any], Variant], int | None] | None = None
    shards: Callable[[Job[Any]], Sequence[Shard]] | None = None
    reads: Callable[[Job[Any], Variant], Sequence[str]] | None = None
    epochs: int = 1
    quick_epochs: int = 1
    repeats: bool = False
    slices: Sequence[Case] = ()
    sweeps: str = ""
    size_axis: str = ""
    laws_from: str = ""
    step_time: Callable[[Case], float] = lambda _: 0.0
    training_step: Callable[[Case], float] = lambda _: 0.0
    consumer_step: Callable[[Case], float | None] | None = None
    audit: Callable[[Job[Any], bool], dict[str, Any]] | None = None
    least_batches: int = 3
    ranked_by: str = "epoch_time"
    tracks: Sequence[str] = ()
    keeps_output: bool = False
    calibrates: bool = False
    reports: bool = False
    apart: bool = False
    fresh: bool = False
    when: str = ""
    modules: Sequence[str] = ()
    name: str = ""
    doc: str = ""

    @property
    def title(self) -> str:
        """The first line of the module's docstring."""
        return self.doc.partition("\n")[0].rstrip(".")

    @property
    def chooses(self) -> bool:
        """Whether it shows which loader to choose."""
        return not (self.calibrates or self.reports)

    @property
    def default_case(self) -> dict[str, str]:
        """The first slice, or else the first value of every axis."""
        if self.slices:
            return dict(self.slices[0])
        return {axis: values[0] for axis, values in self.axes.items()}

    @property
    def default_cases(self) -> list[dict[str, str]]:
        """The default case with every amount of data, so that memory can be compared along it."""
        first = self.default_case
        return [
            case for case in self.cases if all(case[axis] == first[axis] for axis in case if axis != self.size_axis)
        ]

    @property
    def cases(self) -> list[dict[str, str]]:
        """The cases that comparisons run, the default first: the slices, or else all combinations of axis values."""
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
    engine
        What puts its batches together, one of ``ENGINES``; by default that of its module. Empty where the strategy's
        own code does, and in questions that do not say.
    matches
        The strategy whose output this one reproduces by other means; the page shows the pair's ratio.
    variables
        Environment variables that are set before the process starts; they are part of the strategy.
    preload
        A library that replaces the C library's malloc, such as ``jemalloc``.
    only
        The values of some axes that comparisons restrict it to, because elsewhere it answers nothing.
    series, at
        Its line, and its position on it, in the chart of what the question ``sweeps``.
    convert
        Writes what the strategy reads into ``Job.directory``. It runs in its own process before the trial, and is
        measured there.
    serve
        Starts the processes that the strategy reads from, and ends them: a context manager, whose value is
        ``Job.served``. They are up before the measurement begins; their memory and processor time count.
    truth
        What an exact instrument would read, by metric (see ``loaders._trial.metrics.Metrics``), if that is known
        beforehand; for ``memory_growth``, the slope in bytes a step.
    historic
        Kept because readers have that code; never recommended.
    ceiling
        A bare pool that shows what the machine can do and is no loader to choose; the best of these is the question's
        ceiling.
    capacity
        The most samples that all its buffers hold, if its code declares that: beyond it memory is level.
    optional
        Modules that need not be installed: without them it is skipped, with a reason.
    baseline
        Ratios are relative to it.
    quick
        A quick comparison of its question runs it; if no strategy is quick, all run.
    may_lose
        It may leave samples out without a word; the record says how many.
    ends_late
        By how many seconds it may learn late that an epoch is over, however long that is: a time in which it loads
        nothing.
    asv_differs
        Why asv's own benchmark reads another time of it, if that is known.
    """

    question: str
    name: str
    build: Build
    baseline: bool = False
    tier: str = TIERS[0]
    engine: str = ""
    matches: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    preload: str | None = None
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    convert: Convert | None = None
    serve: Serve | None = None
    series: str = ""
    at: str = ""
    truth: Mapping[str, float] = field(default_factory=dict)
    historic: bool = False
    ceiling: bool = False
    capacity: int = 0
    optional: Sequence[str] = ()
    quick: bool = False
    may_lose: bool = False
    ends_late: float = 0.0
    asv_differs: Cause | None = None

    @property
    def is_apart(self) -> bool:
        """Whether it is measured, and never recommended nor called the fastest."""
        return self.ceiling or self.historic or self.may_lose

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
        """What must be set for the process, such as ``MALLOC_ARENA_MAX=1``; empty for most."""
        variables = [f"{name}={value}" for name, value in self.variables.items()]
        return " ".join([*variables, f"LD_PRELOAD=lib{self.preload}.so"] if self.preload else variables)

    @property
    def source(self) -> str:
        """The code of the strategy, and of its question's functions that it calls, for the page."""
        return code.source_of(self.build)

    @property
    def imports(self) -> list[str]:
        """The modules that its code imports."""
        return code.imported_by(self.build)


class Facts(TypedDict, total=False):
    """What a strategy's declaration may say; see ``Variant``."""

    baseline: bool
    tier: str
    engine: str
    matches: str
    variables: Mapping[str, str]
    preload: str
    only: Mapping[str, Sequence[str]]
    convert: Convert
    serve: Serve
    series: str
    at: str
    truth: Mapping[str, float]
    historic: bool
    ceiling: bool
    capacity: int
    optional: Sequence[str]
    quick: bool
    may_lose: bool
    ends_late: float
    asv_differs: Cause
