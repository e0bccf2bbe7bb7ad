"""In the trial's process, before anything is measured: imports, inputs, files, instruments, and the baseline."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loaders import _garbage, _registry
from loaders._corpus import NO_CORPUS, Corpus, load_corpus
from loaders._trial import imports, machine, memory, pagecache
from loaders._trial.drain import Tracer, cpu_time, drain
from loaders._trial.record import Converted, Environment, Trial

TURN_PASSES = 12
"""A trial in turns asks for at least so many epochs at once if its question repeats its data and ranks by steady
epochs: the first of them includes the start and does not count. With two, four seconds of those of ``read_order`` took
fifteen. ``known_issues`` repeats too, but an epoch takes seconds there."""


class ConversionError(Exception):
    """A conversion failed; the message is what its own process said."""


@dataclass(frozen=True)
class Prepared:
    """What a measurement starts from.

    Attributes
    ----------
    question, variant, job
        What is measured.
    passes, epochs
        The number of epochs that the strategy delivers in one pass, if its question ``repeats``, and how often it is
        drained. One of the two is 1.
    files
        The files that the strategy reads.
    converted
        What its conversion took, if it has one.
    environment
        What the figures must be quoted with.
    above
        The instruments of memory, with the baseline.
    """

    question: _registry.Question
    variant: _registry.Variant
    job: _registry.Job[Any]
    passes: int
    epochs: int
    files: Sequence[str]
    converted: Converted | None
    environment: Environment
    above: memory.AboveBaseline


def prepare(trial: Trial, convert: Callable[[Trial], Converted], serving: contextlib.ExitStack) -> Prepared:
    """Do everything that belongs to no figure, and read the baseline last.

    ``convert`` runs the strategy's conversion, if it has one, in a process of its own. ``serving`` ends what the
    strategy's ``serve`` starts; the baseline is that of this process alone, so the memory of the others counts.

    Raises
    ------
    Skip
        If the strategy lacks a package, or its files cannot be brought into the page cache's state that the case asks.
    ConversionError, ImportedError
        If the conversion failed, or imported modules while it was measured.
    """
    _registry.load_files(trial.outside)
    question = _registry.find_question(trial.question)
    variant = _registry.find_variant(trial.question, trial.strategy)
    require(variant)
    import_modules(trial.ahead)  # before the conversion, a fork of this process, which would import them as well
    converted = convert(trial) if variant.convert else None
    corpus = corpus_of(trial)
    passes, epochs = passes_and_epochs(trial, question)
    further, served = () if question.audit else trial.imports, None
    if variant.serve:
        # Before any runtime starts its threads: what serves may be forks of this process.
        import_modules(needed(variant.build, further))
        served = serving.enter_context(variant.serve(job_of(trial, question, corpus, epochs=passes)))
    threads = import_ahead(variant.build, further)
    malloc, peak = warm_instruments()
    job = job_of(trial, question, corpus, epochs=passes, served=served)
    if question.audit:  # a user's file comes before what it was seen to import: it may set variables for that
        import_modules(dict.fromkeys(trial.imports, ()))
        threads = start_runtimes(pinned=False)
    files = question.reads(job, variant) if question.reads else ()
    pagecache.bring(files, trial.case.get("page_cache", ""))
    if not variant.convert:
        job.directory.mkdir()
    environment = machine.environment(threads=threads, memory_method=peak.method, records=files)
    return Prepared(
        question, variant, job, passes, epochs, files, converted, environment, above=read_baseline(malloc, peak)
    )


def passes_and_epochs(trial: Trial, question: _registry.Question) -> tuple[int, int]:
    """Return the number of epochs in one pass, and how often a strategy is drained; one of the two is 1."""
    in_turn = TURN_PASSES if trial.turns and question.repeats and question.ranked_by == "steady_time" else 0
    in_all = pagecache.epochs(max(trial.epochs, in_turn), trial.case.get("page_cache", ""))
    return (in_all, 1) if question.repeats else (1, in_all)


def corpus_of(trial: Trial) -> Corpus:
    """Return what a trial reads; one without a corpus brings its own data."""
    return load_corpus(Path(trial.corpus)) if trial.corpus else NO_CORPUS


APART = {"torchvision": "it needs a build of torch that it fits, see docs/engines.md"}
"""Packages that ``make engines`` leaves out, and why."""


def require(variant: _registry.Variant) -> None:
    """Raise ``Skip`` if a package that the strategy declares as optional is missing."""
    for name in variant.optional:
        if not imports.is_found(name):
            raise _registry.Skip(f"{name} is not installed: {APART.get(name, 'run `make engines`')}")


def job_of(trial: Trial, question: _registry.Question, corpus: Corpus, **more: Any) -> _registry.Job[Any]:
    """Prepare the job of the trial's strategy; ``more`` are further attributes of ``Job``."""
    more = {"directory": Path("data").absolute(), **more}  # a question may change the working directory
    return _registry.Job(corpus, question.prepare(corpus, trial.case, trial.seed), trial.case, trial.seed, **more)


def import_ahead(function: Callable[..., Any], more: Iterable[str] = ()) -> dict[str, int]:
    """Import what a strategy's function will import and start the runtimes, so that neither is measured.

    The first guess is what its code names; ``more`` are the modules that earlier runs were seen to import beyond that.
    A module that cannot be imported is left to the strategy, which either fails in its own words or does without it.

    Returns the pinned thread counts.
    """
    import numpy as np  # noqa: F401 - every strategy meets it

    import_modules(needed(function, more))
    return start_runtimes(pinned=True)


def needed(function: Callable[..., Any], more: Iterable[str]) -> dict[str, set[str]]:
    """Return the modules that a strategy's function names, with what it uses of them, and ``more`` modules."""
    return {**_registry.imports_of(function), **{name: set[str]() for name in more}}


def start_runtimes(*, pinned: bool) -> dict[str, int]:
    """Start the runtimes of what has been imported, and return their thread counts if these are ``pinned``."""
    threads = {"BLAS": 1} if pinned else {}
    if pinned and "cv2" in sys.modules:
        import cv2

        cv2.setNumThreads(1)
        threads["OpenCV"] = 1
    if "tensorflow" in sys.modules:
        import tensorflow as tf

        for _ in tf.data.Dataset.range(1):  # starts the eager context and the data service's thread pools
            pass
        threads["TensorFlow"] = machine.processors()
    return threads


def import_modules(named: Mapping[str, Iterable[str]]) -> None:
    """Import modules and the attributes that are used of them, as far as they can be imported.

    A package that fails to be, with whatever error, is left to the strategies that need it: others can be measured.

    Collections would take a fifth of the import of TensorFlow. What they would have found is collected before a
    baseline is read.
    """
    with _garbage.uncollected():
        for module_name, attributes in named.items():
            with contextlib.suppress(Exception):
                module = importlib.import_module(module_name)
                for attribute in sorted(attributes):
                    if not hasattr(module, attribute):
                        with contextlib.suppress(Exception):  # it is not a module
                            importlib.import_module(f"{module_name}.{attribute}")
        if "tensorflow" in sys.modules:
            _import_operations()


@functools.cache
def _import_operations() -> None:
    """Import tf.data's operations, each of which TensorFlow imports when it is first used.

    Otherwise the first run of nearly every strategy would be void (``loaders._trial.imports``). It takes 50 ms, once in
    a process and its forks.
    """
    with contextlib.suppress(ImportError):
        from tensorflow.python.data import ops

        for found in pkgutil.iter_modules(ops.__path__, f"{ops.__name__}."):
            with contextlib.suppress(ImportError):
                importlib.import_module(found.name)


def warm_instruments() -> tuple[memory.Malloc, memory.Peak]:
    """Use every instrument once, so that its own memory (about 1 MiB, mostly code) is in the baseline."""
    import numpy as np

    malloc, peak = memory.Malloc(), memory.peak_instrument()

    def read_memory() -> tuple[memory.Held, int, int]:
        return (memory.held(), *malloc.in_use_and_held())

    cpu_time()
    peak.reset()
    drain(lambda: [np.ones((1, 2**10))], Tracer(read_memory))  # small: freeing a large array would tune malloc
    peak.read()
    return malloc, peak


def read_baseline(malloc: memory.Malloc, peak: memory.Peak) -> memory.AboveBaseline:
    """Read the baseline.

    What the preparation freed is given back first: if the strategy reused it, its memory would seem to cost nothing.
    """
    memory.map_code()
    gc.collect()  # in a fork of a server, whose own objects are frozen, it takes no time
    gc.unfreeze()  # a strategy that collects garbage goes through what was imported, as in a fresh process
    malloc.trim()
    machine.activity()  # it is read during the measurement as well, and leaves some 30 KiB behind
    return memory.AboveBaseline(malloc, peak)
