"""What happens inside the fresh process: imports, baseline, one measured epoch, the check, the report.

Started by ``keeper`` as ``python -m loaders._trial.child REPORT`` would, with the trial on standard input. The report
is a file of JSON lines, so that what a strategy prints cannot spoil it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import random
import re
import statistics
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from loaders import _registry
from loaders._contract import samples
from loaders._corpus import Corpus, damage, load_corpus
from loaders._errors import InputError, WrongOutputError
from loaders._trial import machine, memory, pagecache, timing
from loaders._trial.drain import Tracer, cpu_time, drain
from loaders._trial.record import Converted, Measured, MemoryTrace, Metrics, Outcome, Progress, Trial, shortened

WALK_POINTS = 1000
"""Of a drawn order; more would be dots on dots."""


class ConversionError(Exception):
    """A conversion failed, in the words of its own process."""


def main() -> None:
    """Run the trial on standard input and write its report."""
    report, process = Path(sys.argv[1]).absolute(), os.getpid()
    trial = msgspec.json.decode(sys.stdin.buffer.read(), type=Trial)

    def tell(value: Progress | Measured | Outcome) -> None:
        if os.getpid() != process:  # a fork of the strategy's that has come back from it
            os._exit(1)
        with report.open("ab") as file:
            file.write(msgspec.json.encode(value) + b"\n")

    try:
        outcome = run(trial, tell)
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
    os._exit(0)  # the report is complete; a strategy's threads or exit handlers are not waited for


def run(trial: Trial, tell: Callable[[Progress | Measured], None]) -> Outcome:
    """Measure one strategy once, then check what it delivers."""
    before = machine.activity()
    _registry.load_files(trial.outside)
    question = _registry.find_question(trial.question)
    variant = _registry.find_variant(trial.question, trial.strategy)
    corpus = load_corpus(Path(trial.corpus))
    converted = _convert_apart(trial) if variant.convert else None
    threads = import_ahead(variant.build)
    malloc, peak = memory.Malloc(), memory.peak_instrument()
    warm_up(malloc, peak)
    passes, epochs = (trial.epochs, 1) if question.repeats else (1, trial.epochs)
    job = job_of(trial, question, corpus, epochs=passes)
    files = question.reads(job, variant) if question.reads else ()
    if state := trial.case.get("page_cache"):
        pagecache.bring(files, state)
    else:
        pagecache.read(files)

    surroundings = machine.environment(threads=threads, memory_method=peak.method, records=files)

    libraries_before = memory.libraries()
    baseline_pss = memory.proportional(os.getpid())

    # What preparing has freed must not be found again by the strategy, or its memory would look free.
    gc.collect()
    malloc.trim()
    baseline = memory.resident()
    in_use_before, held_before = malloc.in_use_and_held()
    tell(Progress(baseline, baseline_pss, surroundings))

    def read_memory() -> tuple[int, int, int]:
        in_use, held = malloc.in_use_and_held()
        return memory.resident() - baseline, in_use - in_use_before, held - held_before

    if not variant.convert:
        job.directory.mkdir()
    tracer, step_time = Tracer(read_memory), question.step_time(trial.case)
    cpu_before = cpu_time()
    peak.reset()
    timelines, product = drain(
        lambda: variant.build(job),
        tracer,
        epochs=epochs,
        keep=question.keeps_output,
        step_time=step_time,
        take=job.meter.take,
    )
    cpu_after = cpu_time()
    peak_memory = peak.read() - baseline
    code_memory = memory.libraries() - libraries_before
    gc.collect()
    retained = memory.resident() - baseline
    held = malloc.in_use_and_held()[1] - held_before if malloc.available else None

    tell(Measured())
    disturbance = machine.disturbance(before, machine.activity())
    written = sum(file.stat().st_size for file in job.directory.rglob("*") if file.is_file())

    timeline, later = timelines[0], timelines[1:]
    delivered = sum(timeline.samples)
    for epoch, each in enumerate(later, 2):
        if sum(each.samples) != delivered:
            raise WrongOutputError(f"delivered {delivered} samples in epoch 1 and {sum(each.samples)} in epoch {epoch}")
    # From inputs made afresh: a strategy may have overwritten those that it was given.
    directory = job.directory if variant.convert else Path("again")  # a cache must be filled anew
    fresh = job_of(trial, question, corpus, directory=directory)
    directory.mkdir(exist_ok=True)
    sizes: list[int] = []
    again = product if question.keeps_output else _again(variant, fresh, delivered, passes, sizes)
    quality = question.check(fresh, variant, again)
    steps = _drawn_steps(len(quality.walk or ()))
    sample_time = timing.sample_time(timeline)
    return Outcome(
        "ok",
        f"lost {quality.lost} of {quality.lost + delivered // passes} samples" if quality.lost else "",
        metrics=Metrics(
            epoch_time=timing.epoch_time(timeline) / passes,
            later_epoch_time=statistics.median(map(timing.epoch_time, later)) if later else None,
            first_batch_time=timing.first_batch_time(timeline),
            sample_time=sample_time,
            throughput=1 / sample_time if sample_time else None,
            batch_time=timing.batch_time(timeline),
            cpu_time=(cpu_after - cpu_before) / trial.epochs,
            peak_memory=max(0, peak_memory - code_memory),
            memory_floor=question.floor(job, variant) if question.floor else None,
            retained_memory=retained - code_memory,
            code_memory=code_memory,
            convert_time=converted.time if converted else None,
            convert_memory=converted.memory if converted else None,
            disk_bytes=sum(Path(file).stat().st_size for file in files) or written or None,
            bodies_in_flight=job.meter.most_running or None,
            waiting=job.meter.most_waiting if job.meter.finished else None,
            waiting_bytes=job.meter.most_waiting * max(sizes, default=0) if job.meter.finished else None,
            lost=quality.lost or None,
            allocator_held=held,
            memory_trace=MemoryTrace(
                step=[point[0] for point in tracer.points],
                seconds=[round(point[1] - timeline.start, 6) for point in tracer.points],
                resident=[point[2] for point in tracer.points],
                in_use=[point[3] for point in tracer.points] if malloc.available else None,
                held=[point[4] for point in tracer.points] if malloc.available else None,
            ),
            samples=delivered // passes,
            batches=-(-len(timeline.samples) // passes),
            psnr=quality.psnr,
            max_difference=quality.max_difference,
            order_quality=quality.order,
            steps=steps or None,
            walk=[quality.walk[step] for step in steps] if quality.walk else None,
            disturbance=disturbance,
        ),
    )


def job_of(trial: Trial, question: _registry.Question, corpus: Corpus, **more: Any) -> _registry.Job[Any]:
    """Prepare what the trial's strategy works on; ``more`` are further attributes of ``Job``."""
    return _registry.Job(corpus, question.prepare(corpus, trial.case, trial.seed), trial.case, trial.seed, **more)


def _drawn_steps(count: int) -> list[int]:
    """Choose the steps of an order that is drawn: at random, because a fixed stride would beat with its cycles."""
    return sorted(random.Random(0).sample(range(count), min(count, WALK_POINTS)))  # noqa: S311


def _again(
    variant: _registry.Variant, job: _registry.Job[Any], measured: int, passes: int, sizes: list[int]
) -> Iterator[Any]:
    """Build the strategy a second time, for the check, and see that it delivers as much as in each measured pass.

    ``sizes`` gets the bytes of a sample of each batch.
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
    """Say which of the records that the strategy reads are damaged, if that is why it failed."""
    with contextlib.suppress(Exception):  # whatever else is wrong has been said
        question = _registry.find_question(trial.question)
        if question.shards:
            job = job_of(trial, question, load_corpus(Path(trial.corpus)))
            return list(damage(question.shards(job)))
    return []


def _convert_apart(trial: Trial) -> Converted:
    """Run the strategy's conversion in a process of its own, so that this one's memory begins untouched."""
    made = subprocess.run(
        [sys.executable, "-m", "loaders._trial.convert"],
        input=msgspec.json.encode(trial),
        stdout=subprocess.PIPE,
        check=False,
    )
    if made.returncode:
        said = made.stdout.decode(errors="replace").strip()
        raise ConversionError(said or f"the conversion ended with exit code {made.returncode}")
    return msgspec.json.decode(made.stdout.splitlines()[-1], type=Converted)


def import_ahead(function: Callable[..., Any]) -> dict[str, int]:
    """Import what a strategy's function will import and start the runtimes, so that neither is measured.

    Returns the pinned thread counts.
    """
    import numpy as np  # noqa: F401 - every strategy meets it

    for module_name, attributes in _registry.imports_of(function).items():
        module = importlib.import_module(module_name)
        for attribute in attributes:
            if not hasattr(module, attribute):
                with contextlib.suppress(ImportError):  # the strategy itself will fail, with its own words
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
    """Use every instrument once, so that what it needs itself (about 1 MiB, mostly code) is in the baseline."""
    import numpy as np

    def read_memory() -> tuple[int, int, int]:
        return (memory.resident(), *malloc.in_use_and_held())

    cpu_time()
    memory.libraries()
    peak.reset()
    drain(lambda: [np.ones((1, 2**10))], Tracer(read_memory))  # small: freeing a large array would tune malloc
    peak.read()
    gc.collect()


def in_words(error: BaseException) -> str:
    """Return the exception and, of its traceback, the frames outside of this suite's machinery."""
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
    """Return what a Python body inside a pipeline raised, and where; nothing where it was no body.

    TensorFlow puts the body's traceback, as text, into the message of an error of its own.
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
