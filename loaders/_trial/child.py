"""What happens inside the fresh process: imports, baseline, the measured epochs, the check, the report.

Started by ``keeper`` as ``python -m loaders._trial.child REPORT`` would, with the trial on standard input. The report
is a file of JSON lines, so that what a strategy prints cannot spoil it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import os
import random
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path
from typing import Any

import msgspec

from loaders import _registry
from loaders._contract import samples
from loaders._corpus import Corpus, damage, load_corpus
from loaders._errors import InputError, WrongOutputError
from loaders._trial import machine, memory, pagecache, timing
from loaders._trial.drain import Slow, Tracer, cpu_time, drain
from loaders._trial.record import (
    Converted,
    Imported,
    Measured,
    MemoryTrace,
    Metrics,
    Outcome,
    Progress,
    Trial,
    shortened,
)

WALK_POINTS = 1000
"""Number of points drawn of an order; more would overlap."""

SLOWER, LEAST_STEP, LONGEST = 3.0, 0.01, 2.0
"""The slow consumer spends three times as long on a batch as the batch took, so that three in four batches can wait in
a buffer. It spends at least 10 ms on a batch, but at most two seconds on an epoch."""


class ConversionError(Exception):
    """A conversion failed; the message is what its own process said."""


class ImportedError(Exception):
    """Modules were imported while something was measured; the figures are void."""

    def __init__(self, modules: list[str]) -> None:
        super().__init__(f"imported while it was measured: {', '.join(modules)}")
        self.modules = modules


def main() -> None:
    """Run the trial on standard input and write its report."""
    report, process = Path(sys.argv[1]).absolute(), os.getpid()
    trial = msgspec.json.decode(sys.stdin.buffer.read(), type=Trial)

    def tell(value: Progress | Measured | Imported | Outcome) -> None:
        if os.getpid() != process:  # a fork made by the strategy has returned here
            os._exit(1)
        with report.open("ab") as file:
            file.write(msgspec.json.encode(value) + b"\n")

    try:
        outcome = run(trial, tell)
    except ImportedError as error:
        tell(Imported(error.modules))
        os._exit(0)
    except _registry.Skip as skip:
        outcome = Outcome("skipped", str(skip))
    except WrongOutputError as error:
        outcome = Outcome("wrong_output", str(error))
    except MemoryError as error:
        outcome = Outcome("failed", f"MemoryError: {error}")
    except BaseException as error:  # noqa: BLE001 - the strategy's failure is the result
        outcome = Outcome("failed", in_words(error))
    if outcome.status in ("failed", "wrong_output"):
        outcome = msgspec.structs.replace(outcome, message="; ".join([outcome.message, *_damage(trial)]))
    tell(msgspec.structs.replace(outcome, message=shortened(outcome.message)))
    with contextlib.suppress(ValueError, OSError):  # a strategy may have closed them
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)  # the report is complete; do not wait for a strategy's threads or exit handlers


def run(trial: Trial, tell: Callable[[Progress | Measured | Imported | Outcome], None]) -> Outcome:
    """Measure one strategy once, then check what it delivers."""
    before = machine.activity()
    _registry.load_files(trial.outside)
    question = _registry.find_question(trial.question)
    variant = _registry.find_variant(trial.question, trial.strategy)
    require(variant)
    corpus = load_corpus(Path(trial.corpus))
    converted = _convert_apart(trial) if variant.convert else None
    threads = import_ahead(variant.build, trial.imports)
    malloc, peak = memory.Malloc(), memory.peak_instrument()
    warm_up(malloc, peak)
    state = trial.case.get("page_cache", "")
    in_all = 1 if state == "cold" else trial.epochs  # a later epoch would not be cold
    passes, epochs = (in_all, 1) if question.repeats else (1, in_all)
    job = job_of(trial, question, corpus, epochs=passes)
    files = question.reads(job, variant) if question.reads else ()
    if state:
        pagecache.bring(files, state)
    else:
        pagecache.read(files)

    surroundings = machine.environment(threads=threads, memory_method=peak.method, records=files)
    memory.map_code()

    # Give back what the preparation freed: if the strategy reused it, its memory would seem to cost nothing.
    gc.collect()
    malloc.trim()
    baseline, baseline_tree = memory.held(), memory.proportional(os.getpid())
    in_use_before, held_before = malloc.in_use_and_held()
    tell(Progress(baseline, baseline_tree, surroundings))

    seen = memory.Held()  # the highest of each kind, each at its own time

    def read_memory() -> tuple[memory.Held, int, int]:
        nonlocal seen
        now = memory.held() - baseline
        seen = seen.most(now)
        in_use, held = malloc.in_use_and_held()
        return now, in_use - in_use_before, held - held_before

    if not variant.convert:
        job.directory.mkdir()
    tracer = fast = Tracer(read_memory)
    fast_peak, cpu_after, slow_step = 0, 0.0, None

    def slow_down(last: timing.Timeline) -> float:
        """End the measurement with the fast consumer, and return how slow the next one is."""
        nonlocal tracer, fast_peak, cpu_after, slow_step
        tracer, fast_peak, cpu_after = Tracer(read_memory), peak.read() - baseline.total, cpu_time()
        batches = _an_epoch(last, passes)
        slow_step = min(max(SLOWER * timing.epoch_time(last) / passes / batches, LEAST_STEP), LONGEST / batches)
        return slow_step

    is_chosen = bool(question.size_axis)
    imported = frozenset(sys.modules)
    cpu_before = cpu_time()
    peak.reset()
    timelines, product = drain(
        lambda: variant.build(job),
        lambda step, now: tracer(step, now),  # noqa: PLW0108 - it becomes another
        epochs=epochs,
        keep=question.keeps_output,
        step_time=question.step_time(trial.case),
        take=job.meter.take,
        slow=Slow(slow_down, lambda last: _an_epoch(last, passes)) if is_chosen else None,
    )
    highest = peak.read() - baseline.total
    if not is_chosen:
        fast_peak, cpu_after = highest, cpu_time()
    gc.collect()
    retained = memory.resident() - baseline.total
    held = malloc.in_use_and_held()[1] - held_before if malloc.available else None
    refuse_imports(imported)

    tell(Measured())
    disturbance = machine.disturbance(before, machine.activity())
    written = sum(file.stat().st_size for file in job.directory.rglob("*") if file.is_file())

    slow_epoch = timelines.pop() if is_chosen else None
    timeline = timelines[0]
    delivered = sum(timeline.samples)
    for epoch, each in enumerate(timelines[1:], 2):
        if sum(each.samples) != delivered:
            raise WrongOutputError(f"delivered {delivered} samples in epoch 1 and {sum(each.samples)} in epoch {epoch}")
    if passes > 1:
        timelines = timing.passes(timeline, passes)
    shared = passes if len(timelines) == 1 else 1  # too few batches to cut: every pass gets an equal share
    # The check uses fresh inputs: a strategy may have overwritten the ones it was given.
    directory = job.directory if variant.convert else Path("again")  # a cache must be filled anew
    fresh = job_of(trial, question, corpus, directory=directory)
    directory.mkdir(exist_ok=True)
    sizes: list[int] = []
    again = product if question.keeps_output else _again(variant, fresh, delivered, passes, sizes)
    quality = question.check(fresh, variant, again)
    steps = _drawn_steps(len(quality.walk or ()))
    first = timelines[0]
    sample_time, steady_time = timing.sample_time(first), timing.steady_time(timelines)
    return Outcome(
        "ok",
        f"lost {quality.lost} of {quality.lost + delivered // passes} samples" if quality.lost else "",
        began=timeline.start,
        ended=timeline.end if passes > 1 else timelines[-1].end,
        metrics=Metrics(
            epoch_time=timing.epoch_time(first) / shared,
            steady_time=steady_time,
            start_time=timing.start_time(timelines),
            wait_time=timing.wait_time(slow_epoch) if slow_epoch else None,
            slow_step=slow_step,
            first_batch_time=timing.first_batch_time(first),
            sample_time=sample_time,
            throughput=delivered / passes / steady_time if steady_time else 1 / sample_time if sample_time else None,
            batch_time=timing.batch_time(timelines[-1]),
            cpu_time=(cpu_after - cpu_before) / in_all,
            peak_memory=max(0, fast_peak),
            peak_memory_slow=max(0, highest) if is_chosen else None,
            needed_memory=max(0, highest - max(0, seen.file), seen.kept),
            anonymous_memory=seen.anonymous,
            file_memory=seen.file,
            shared_memory=seen.shared,
            memory_floor=question.floor(job, variant) if question.floor else None,
            retained_memory=retained,
            convert_time=converted.time if converted else None,
            convert_memory=converted.memory if converted else None,
            disk_bytes=sum(Path(file).stat().st_size for file in files) or written or None,
            bodies_in_flight=job.meter.most_running or None,
            waiting=job.meter.most_waiting if job.meter.finished else None,
            waiting_bytes=job.meter.most_waiting * max(sizes, default=0) if job.meter.finished else None,
            lost=quality.lost or None,
            allocator_held=held,
            memory_trace=MemoryTrace(
                step=[point[0] for point in fast.points],
                seconds=[round(point[1] - timeline.start, 6) for point in fast.points],
                resident=[point[2].total for point in fast.points],
                in_use=[point[3] for point in fast.points] if malloc.available else None,
                held=[point[4] for point in fast.points] if malloc.available else None,
                file=[point[2].file for point in fast.points],
            ),
            samples=delivered // passes,
            batches=_an_epoch(timeline, passes),
            psnr=quality.psnr,
            max_difference=quality.max_difference,
            order_quality=quality.order,
            steps=steps or None,
            walk=[quality.walk[step] for step in steps] if quality.walk else None,
            disturbance=disturbance,
        ),
    )


def job_of(trial: Trial, question: _registry.Question, corpus: Corpus, **more: Any) -> _registry.Job[Any]:
    """Prepare the job of the trial's strategy; ``more`` are further attributes of ``Job``."""
    return _registry.Job(corpus, question.prepare(corpus, trial.case, trial.seed), trial.case, trial.seed, **more)


def _an_epoch(timeline: timing.Timeline, passes: int) -> int:
    """Return the number of batches in an epoch."""
    return -(-len(timeline.received) // passes)


def refuse_imports(before: Set[str]) -> None:
    """Raise ``ImportedError`` if modules were imported that the next process can import before it measures.

    Modules that TensorFlow's autograph and others write into the process's own directory and import from there belong
    to the work, and so do modules that are created in memory.
    """
    own = tempfile.gettempdir() + os.sep
    found = []
    for name in [each for each in sys.modules if each not in before]:
        spec = getattr(sys.modules[name], "__spec__", None)
        if spec is not None and not str(spec.origin).startswith(own) and _is_found(name):
            found.append(name)
    if found:
        raise ImportedError(found)


def _is_found(name: str) -> bool:
    with contextlib.suppress(ImportError, ValueError, AttributeError):
        return importlib.util.find_spec(name) is not None
    return False


def require(variant: _registry.Variant) -> None:
    """Raise ``Skip`` if a package that the strategy declares as optional is missing."""
    for name in variant.optional:
        if not _is_found(name):
            raise _registry.Skip(f"{name} is not installed")


def _drawn_steps(count: int) -> list[int]:
    """Choose which steps of an order to draw: at random, because a fixed stride would alias with the order's cycles."""
    return sorted(random.Random(0).sample(range(count), min(count, WALK_POINTS)))  # noqa: S311


def _again(
    variant: _registry.Variant, job: _registry.Job[Any], measured: int, passes: int, sizes: list[int]
) -> Iterator[Any]:
    """Build the strategy again for the check, and verify that it delivers as much as in each measured pass.

    The bytes of one sample from each batch are added to ``sizes``.
    """
    delivered = 0
    for batch in variant.build(job):
        parts = list(samples(batch))
        delivered += len(parts)
        sizes += [sum(getattr(feature, "nbytes", 0) for feature in part) for part in parts[:1]]
        del parts
        yield batch
    if delivered * passes != measured:
        raise WrongOutputError(f"delivered {measured} samples when measured and {delivered * passes} when checked")


def _damage(trial: Trial) -> list[str]:
    """Say which of the records that the strategy reads are damaged, as that may be why it failed."""
    with contextlib.suppress(Exception):  # any other fault has been reported already
        question = _registry.find_question(trial.question)
        if question.shards:
            job = job_of(trial, question, load_corpus(Path(trial.corpus)))
            return list(damage(question.shards(job)))
    return []


def _convert_apart(trial: Trial) -> Converted:
    """Run the strategy's conversion in its own process, so that it does not affect the memory of this one."""
    made = subprocess.run(
        [sys.executable, "-m", "loaders._trial.convert"],
        input=msgspec.json.encode(trial),
        stdout=subprocess.PIPE,
        check=False,
    )
    if made.returncode:
        said = made.stdout.decode(errors="replace").strip()
        raise ConversionError(said or f"the conversion ended with exit code {made.returncode}")
    found = msgspec.json.decode(made.stdout.splitlines()[-1], type=Converted | Imported)
    if isinstance(found, Imported):
        raise ImportedError(found.modules)
    return found


def import_ahead(function: Callable[..., Any], more: Iterable[str] = ()) -> dict[str, int]:
    """Import what a strategy's function will import and start the runtimes, so that neither is measured.

    The first guess is what its code names; ``more`` are the modules that earlier runs were seen to import beyond that.
    A module that cannot be imported is left to the strategy, which either fails in its own words or does without it.

    Returns the pinned thread counts.
    """
    import numpy as np  # noqa: F401 - every strategy meets it

    named = {**_registry.imports_of(function), **{name: set[str]() for name in more}}
    for module_name, attributes in named.items():
        with contextlib.suppress(ImportError):
            module = importlib.import_module(module_name)
            for attribute in sorted(attributes):
                if not hasattr(module, attribute):
                    with contextlib.suppress(ImportError):  # it is not a module
                        importlib.import_module(f"{module_name}.{attribute}")
    threads = {"BLAS": 1}
    if "cv2" in sys.modules:
        import cv2

        cv2.setNumThreads(1)
        threads["OpenCV"] = 1
    if "tensorflow" in sys.modules:
        import tensorflow as tf

        for _ in tf.data.Dataset.range(1):  # starts the eager context and the data service's thread pools
            pass
        threads["TensorFlow"] = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    return threads


def warm_up(malloc: memory.Malloc, peak: memory.Peak) -> None:
    """Use every instrument once, so that its own memory (about 1 MiB, mostly code) is in the baseline."""
    import numpy as np

    def read_memory() -> tuple[memory.Held, int, int]:
        return (memory.held(), *malloc.in_use_and_held())

    cpu_time()
    peak.reset()
    drain(lambda: [np.ones((1, 2**10))], Tracer(read_memory))  # small: freeing a large array would tune malloc
    peak.read()
    gc.collect()


def in_words(error: BaseException) -> str:
    """Return the exception and the first frame of its traceback outside this suite's machinery."""
    if isinstance(error, (InputError, ModuleNotFoundError, ConversionError)):
        return str(error)
    if inner := _raised_in_body(str(error)):
        return inner
    frames = traceback.extract_tb(error.__traceback__)
    machinery = str(Path(__file__).parent)
    own = [frame for frame in frames if not frame.filename.startswith(machinery)]
    where = f" ({Path(own[0].filename).name}, line {own[0].lineno}, in {own[0].name})" if own else ""
    return f"{type(error).__name__}: {error}{where}"


def _raised_in_body(message: str) -> str:
    """Return what a Python body inside a pipeline raised, and where; empty if no body raised it.

    TensorFlow puts the body's traceback, as text, into the message of its own error.
    """
    frames = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', message)
    own = [frame for frame in frames if f"{os.sep}tensorflow{os.sep}" not in frame[0] and "autograph" not in frame[0]]
    if "Traceback (most recent call last)" not in message or not own:
        return ""
    path, line, function = own[-1]
    raised = re.search(r"\b([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Iteration)): ?([^\n]*)", message)
    what = f"{raised[1]}: {raised[2]}".rstrip(": ") if raised else "an exception"
    return f"{what} ({Path(path).name}, line {line}, in {function}), raised in a body that TensorFlow called"


if __name__ == "__main__":
    main()
