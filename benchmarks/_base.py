"""What every question's benchmarks have in common; each asv attribute is explained once, here.

asv discovers classes with public names; ``of`` makes two for each question. asv identifies a setup cache by module and
line, and runs it once for all benchmarks that share it, so each question's cache is assigned to its own module.

* ``version`` is set by hand and changes only when *what is measured* changes, with a line in the change log.
  Otherwise asv would drop a benchmark's history whenever its code is touched.
* Every sample of a comparison is a trial in its own process, so asv may treat samples as independent.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, cast

from loaders import _compare, _registry
from loaders._corpus import SIZES, Corpus, open_corpus
from loaders._durable import owned, remove_abandoned
from loaders._errors import InputError
from loaders._trial import Record, imports, log, machine
from loaders._trial.prepare import import_ahead, import_modules, needed

Samples = dict[str, Any]

ROOT = Path(__file__).parents[1]

DRAINED = "loaders-drain-"
"""Prefix of the directories that ``Drain`` converts into, before the number of the process."""


@functools.cache
def listed() -> dict[str, Any]:
    """Return the output of the working tree's ``python -m loaders list --json``.

    asv runs these benchmarks with the ``loaders`` of the commit under test, and identifies a case by its position among
    the parameters. So the parameters come from the working tree, as the benchmarks do: with the commit's own, one
    strategy more or less would file every later one under a wrong name. asv begins thousands of processes that ask for
    it; ``LOADERS_LIST`` names a file that has it.
    """
    if known := os.environ.get("LOADERS_LIST"):
        return cast("dict[str, Any]", json.loads(Path(known).read_text("utf-8")))
    command = [sys.executable, "-m", "loaders", "list", "--json"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, check=True)
    return cast("dict[str, Any]", json.loads(found.stdout))


def parameters(question: str) -> tuple[list[list[str]], list[str]]:
    """Return asv's ``params`` and ``param_names``: the strategies, and where there are axes, the cases in words.

    An axis would be a parameter as well, but asv begins a process for every combination of parameters, and comparisons
    run a third of those.
    """
    names = [each["name"] for each in listed()[question]["strategies"]]
    cases = list(listed()[question]["cases"])
    return ([names], ["strategy"]) if cases == [""] else ([names, cases], ["strategy", "case"])


def corpus() -> Corpus:
    """Open the corpus named by ``LOADERS_SIZE`` and ``LOADERS_DATA``, by default the small one of photographs."""
    size = os.environ.get("LOADERS_SIZE", "small")
    if size not in SIZES:
        raise InputError(f"LOADERS_SIZE={size}: one of {', '.join(SIZES)} is expected")
    return open_corpus(size, os.environ.get("LOADERS_DATA"), say=print)


def compare(question: str) -> list[Record]:
    """Run the comparison of a question; each trial goes into the trial log at once.

    As a part of the full suite (``LOADERS_FULL``), the default cases of all questions but those that are ``apart`` come
    first, as answers rest on them, and what an interrupted suite has measured is not measured again.
    """
    given = os.environ.get("LOADERS_ROUNDS", "")
    if given and not (given.isdecimal() and int(given)):
        raise InputError(f"LOADERS_ROUNDS={given}: a number of rounds is expected")
    files = _registry.outside_files()
    _registry.load_files(files)
    rounds, outside = int(given) if given else None, tuple(files)
    planned = _compare.plan(question, corpus(), rounds=rounds, outside=outside)
    if not os.environ.get("LOADERS_FULL"):
        return _compare.run(planned, done=_print, say=print)
    first = [
        _compare.plan(each, planned.corpus, rounds=rounds or _compare.LEAST_ROUNDS, all_cases=False, outside=outside)
        for each, asked in _registry.questions().items()
        if not asked.apart
    ]
    _compare.run_together(_compare.weightiest_first(first), anew=False, done=_print, say=print)
    return _compare.run(planned, anew=False, done=_print, say=print)


def _print(record: Record) -> None:
    """Report a trial as it ends: asv's time-out counts the seconds without output."""
    print(f"round {record.round}: {record.strategy} {record.status} {record.message}", flush=True)  # noqa: T201


class _Comparison:
    """Hands asv the samples of a comparison run, metric by metric.

    A benchmark returns ``{"samples": ..., "number": 1}``, from which asv computes a median with its interval. A case
    that was not part of the comparison is skipped; a strategy that went wrong has no samples and shows as failed. The
    reason is in the trial log and on the comparison page.
    """

    version: ClassVar[str]
    timeout = 3600  # seconds without output (not in total): longer than one trial's own deadline
    params: ClassVar[list[list[str]]]
    param_names: ClassVar[list[str]]
    cases: ClassVar[dict[str, dict[str, str]]]

    def setup(self, records: list[Record], strategy: str, case: str = "") -> None:
        wanted = self.cases[case]
        self.records = [each for each in records if each.strategy == strategy and each.case == wanted]
        if not self.records or all(each.status == "skipped" for each in self.records):
            raise NotImplementedError("not part of this comparison")  # asv's word for "skip", in setup only

    def samples(self, metric: str, *, fresh_only: bool) -> Samples | float | None:
        """Return a metric of the forked trials, or of the fresh ones where there are no others: none joins the two."""
        good = [each for each in self.records if each.status == "ok"]
        if not good:
            return None  # asv's word for "failed"
        by_start = {
            start: [each for each in good if getattr(each, "process", "fresh") == start]
            for start in ("fresh", "forked")
        }
        good = by_start["fresh"] if fresh_only or not by_start["forked"] else by_start["forked"]
        values = [getattr(each.metrics, metric, None) for each in good]  # an older commit may not have it
        present = [float(value) for value in values if value is not None]
        return {"samples": present, "number": 1} if present else float("nan")  # NaN is "not applicable"


class _Drain:
    """Plain asv benchmarks over the same registry: a second instrument, and the target of ``asv profile``.

    It times a whole epoch in asv's process, imports done, and reads asv's own peak memory, which includes imports
    and inputs. Only the default case is drained. It holds a comparison's lock: it would disturb one that is under way.
    """

    version: ClassVar[str]
    timeout = 600  # seconds without output
    number = 1  # a second epoch in the same process would find memory left by the first
    repeat = 1  # per process, for the same reason
    rounds = 1  # processes: the comparison has the samples, this is a second opinion
    warmup_time = 0  # seconds; the first use is what is measured
    param_names: ClassVar[list[str]] = ["strategy"]
    params: ClassVar[list[list[str]]]
    question: ClassVar[str]

    def setup(self, strategy: str) -> None:
        asked = _registry.find_question(self.question)
        _registry.load_files(_registry.outside_files())
        if strategy not in _registry.variants(self.question):
            raise NotImplementedError("this commit does not have the strategy")
        variant = _registry.find_variant(self.question, strategy)
        data, case = corpus(), asked.default_case
        if variant.variables or variant.preload or not variant.runs_in(case):
            raise NotImplementedError("it needs a process of its own, or another case")
        if not all(map(imports.is_found, variant.optional)):
            raise NotImplementedError("what it needs is not installed")
        import_modules(needed(variant.build, ()))
        with contextlib.ExitStack() as held:
            held.enter_context(log.exclusive(machine.machine_name()))
            remove_abandoned(Path(tempfile.gettempdir()), DRAINED)  # asv ends a process that takes too long
            directory = held.enter_context(tempfile.TemporaryDirectory(prefix=owned(DRAINED)))
            prepared = asked.prepare(data, case, _compare.SEED)
            self.job = _registry.Job(data, prepared, case, _compare.SEED, directory=Path(directory))
            self.build = variant.build
            if variant.convert:
                variant.convert(self.job)
            if variant.serve:
                self.job = dataclasses.replace(self.job, served=held.enter_context(variant.serve(self.job)))
            import_ahead(variant.build)  # starts threads: what serves is forks of this process if it has none
            self.held = held.pop_all()

    def teardown(self, _strategy: str) -> None:
        if hasattr(self, "held"):
            self.held.close()

    def drain(self) -> None:
        for _ in self.build(self.job):
            pass


def of(question: str, version: str = "2", drain_version: str = "1") -> tuple[type[_Comparison], type[_Drain]]:
    """Return the benchmarks of one question: ``Comparison`` with its samples, and ``Drain``.

    Parameters
    ----------
    version, drain_version
        The ``version`` of each class.
    """
    params, param_names = parameters(question)
    fresh_only = listed()[question]["fresh_only"]

    class Comparison(_Comparison):
        """Samples of the comparison run: independent processes, rounds in shuffled order."""

        def setup_cache(self) -> list[Record]:
            return compare(question)

    class Drain(_Drain):
        """One epoch in asv's own process."""

        def time_epoch(self, _strategy: str) -> None:
            self.drain()

        def peakmem_epoch(self, _strategy: str) -> None:
            self.drain()

    def track(metric: str, unit: str) -> Callable[..., Samples | float | None]:
        def samples(self: _Comparison, _records: list[Record], *_: str) -> Samples | float | None:
            return self.samples(metric, fresh_only=metric in fresh_only)

        cast("Any", samples).unit = unit
        return samples

    for metric, unit in listed()[question]["tracked"].items():
        setattr(Comparison, f"track_{metric}", _named(track(metric, unit), f"{question}: {metric.replace('_', ' ')}"))
    _named(Drain.time_epoch, f"{question}: epoch in asv's own process")
    _named(Drain.peakmem_epoch, f"{question}: peak of asv's own process")
    Comparison.setup_cache.__module__ = f"benchmarks.{question}"
    Comparison.version, Comparison.params, Comparison.param_names = version, params, param_names
    Comparison.cases = listed()[question]["cases"]
    Drain.version, Drain.params, Drain.question = drain_version, params[:1], question
    return Comparison, Drain


def _named(method: Callable[..., Any], words: str) -> Callable[..., Any]:
    """Set the name that asv's pages show for a method."""
    cast("Any", method).pretty_name = words
    return method
