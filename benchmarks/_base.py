"""What every question's benchmarks have in common; each asv attribute is explained here, once.

asv discovers public, concrete classes, so these two are abstract. asv keys a ``setup_cache`` by file and line and
shares an inherited one among all subclasses, hence each question defines its own.

* ``version`` is set by hand and changes only when *what is measured* changes, with a line in the change log.
  Otherwise asv would drop the history of a benchmark whenever its code is touched.
* Every sample of a comparison is a trial in a process of its own, so asv may treat them as independent.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from loaders import _compare, _registry
from loaders._corpus import SIZES, Corpus, open_corpus
from loaders._errors import InputError
from loaders._trial import Record
from loaders._trial.child import import_ahead

Samples = dict[str, Any]
Track = TypeVar("Track", bound=Callable[..., Any])


ROOT = Path(__file__).parents[1]


@functools.cache
def _listed() -> dict[str, Any]:
    """Return what the working tree's ``python -m loaders list --json`` says.

    asv runs these benchmarks with the ``loaders`` of the commit under test, and names a case by its place among the
    parameters. So the parameters come from where the benchmarks come from, the working tree: were they the commit's,
    a strategy more or less would file every later one under a wrong name.
    """
    command = [sys.executable, "-m", "loaders", "list", "--json"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    listed = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, check=True)
    return cast("dict[str, Any]", json.loads(listed.stdout))


def parameters(question: str) -> tuple[list[list[str]], list[str]]:
    """Return asv's ``params`` and ``param_names``: the strategies, then the question's axes."""
    listed = _listed()[question]
    names = [each["name"] for each in listed["strategies"]]
    return [names, *listed["axes"].values()], ["strategy", *listed["axes"]]


def corpus() -> Corpus:
    """Open the corpus that ``LOADERS_SIZE`` and ``LOADERS_DATA`` name, by default the small one of photographs."""
    size = os.environ.get("LOADERS_SIZE", "small")
    if size not in SIZES:
        raise InputError(f"LOADERS_SIZE={size}: one of {', '.join(SIZES)} is expected")
    return open_corpus(size, os.environ.get("LOADERS_DATA"), say=print)


def compare(question: str) -> list[Record]:
    """Run the comparison of a question; the trial log keeps every trial at once."""
    given = os.environ.get("LOADERS_ROUNDS", "")
    if given and not (given.isdecimal() and int(given)):
        raise InputError(f"LOADERS_ROUNDS={given}: a number of rounds is expected")
    files = _registry.outside_files()
    _registry.load_files(files)
    planned = _compare.plan(question, corpus(), rounds=int(given) if given else None, outside=tuple(files))
    return _compare.run(planned, done=_print, say=print)


def _print(record: Record) -> None:
    """Report a trial as it ends: asv's time-out counts the seconds without output."""
    print(f"round {record.round}: {record.strategy} {record.status} {record.message}", flush=True)  # noqa: T201


def unit(name: str) -> Callable[[Track], Track]:
    """Tell asv the unit of a ``track_`` method."""

    def tell(track: Track) -> Track:
        cast("Any", track).unit = name
        return track

    return tell


class Comparison(ABC):
    """Hands asv the samples of a comparison run, metric by metric.

    A benchmark returns ``{"samples": ..., "number": 1}``, of which asv makes a median with its interval. A case that
    was not part of the comparison is skipped; a strategy that went wrong has no samples and shows as failed: its
    reason is in the trial log and on the comparison page.
    """

    version = "1"
    timeout = 3600  # seconds without output (not in all): longer than one trial's own deadline
    params: ClassVar[list[list[str]]]
    param_names: ClassVar[list[str]]

    @abstractmethod
    def setup_cache(self) -> list[Record]:
        """Run the comparison once; asv hands the result to each method as its first argument."""

    def setup(self, records: list[Record], strategy: str, *values: str) -> None:
        case = dict(zip(self.param_names[1:], values, strict=True))
        self.records = [each for each in records if each.strategy == strategy and each.case == case]
        if not self.records or all(each.status == "skipped" for each in self.records):
            raise NotImplementedError("not part of this comparison")  # asv's word for "skip", in setup only

    def samples(self, metric: str) -> Samples | float | None:
        good = [each for each in self.records if each.status == "ok"]
        if not good:
            return None  # asv's word for "failed"
        values = [getattr(each.metrics, metric, None) for each in good]  # an older commit may not have it
        present = [float(value) for value in values if value is not None]
        return {"samples": present, "number": 1} if present else float("nan")  # NaN is "not applicable"

    @unit("seconds")
    def track_epoch_time(self, _records: list[Record], *_: str) -> Samples | float | None:
        return self.samples("epoch_time")

    @unit("seconds")
    def track_steady_time(self, _records: list[Record], *_: str) -> Samples | float | None:
        return self.samples("steady_time")

    @unit("seconds")
    def track_start_time(self, _records: list[Record], *_: str) -> Samples | float | None:
        return self.samples("start_time")

    @unit("seconds")
    def track_first_batch_time(self, _records: list[Record], *_: str) -> Samples | float | None:
        return self.samples("first_batch_time")

    @unit("seconds")
    def track_sample_time(self, _records: list[Record], *_: str) -> Samples | float | None:
        return self.samples("sample_time")

    @unit("seconds")
    def track_cpu_time(self, _records: list[Record], *_: str) -> Samples | float | None:
        return self.samples("cpu_time")

    @unit("bytes")
    def track_peak_memory(self, _records: list[Record], *_: str) -> Samples | float | None:
        return self.samples("peak_memory")

    @unit("bytes")
    def track_needed_memory(self, _records: list[Record], *_: str) -> Samples | float | None:
        return self.samples("needed_memory")

    @unit("bytes")
    def track_retained_memory(self, _records: list[Record], *_: str) -> Samples | float | None:
        return self.samples("retained_memory")


class Drain(ABC):
    """asv's own idiom over the same registry: a second instrument, and what ``asv profile`` takes.

    It times a whole epoch in asv's process, imports done, and reads asv's own peak memory, which includes imports
    and inputs. Only the default case is drained.
    """

    version = "1"
    timeout = 600  # seconds without output
    number = 1  # a second epoch in the same process would find memory that the first has left
    repeat = 1  # per process, likewise
    rounds = 3  # processes
    warmup_time = 0  # seconds; the first use is what is measured
    param_names: ClassVar[list[str]] = ["strategy"]
    params: ClassVar[list[list[str]]]

    @property
    @abstractmethod
    def question(self) -> str:
        """The question's name."""

    def setup(self, strategy: str) -> None:
        asked = _registry.find_question(self.question)
        _registry.load_files(_registry.outside_files())
        if strategy not in _registry.variants(self.question):
            raise NotImplementedError("this commit does not have the strategy")
        variant = _registry.find_variant(self.question, strategy)
        data, case = corpus(), asked.default_case
        if variant.variables or variant.preload or not variant.runs_in(case):
            raise NotImplementedError("it needs a process of its own, or another case")
        import_ahead(variant.build)
        self.directory = tempfile.TemporaryDirectory(prefix="loaders-drain-")
        prepared = asked.prepare(data, case, _compare.SEED)
        self.job = _registry.Job(data, prepared, case, _compare.SEED, directory=Path(self.directory.name))
        self.build = variant.build
        if variant.convert:
            variant.convert(self.job)

    def teardown(self, _strategy: str) -> None:
        if hasattr(self, "directory"):
            self.directory.cleanup()

    def time_epoch(self, _strategy: str) -> None:
        for _ in self.build(self.job):
            pass

    def peakmem_epoch(self, _strategy: str) -> None:
        for _ in self.build(self.job):
            pass
