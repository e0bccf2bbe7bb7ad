"""The process of a trial: prepare, measure, check, assemble, and report each.

Started by ``keeper`` as ``python -m loaders._trial.child REPORT`` would, with the trial on standard input. The report
is a file of JSON lines, so that what a strategy prints cannot spoil it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from loaders import _registry
from loaders._contract import Quality, samples
from loaders._errors import WrongOutputError
from loaders._trial import assemble, convert, failure, imports, machine, timing, workers
from loaders._trial import steady as steadily
from loaders._trial.assemble import Readings
from loaders._trial.drain import Slow, Tracer, busy, children_ended, cpu_time, cpu_time_of_children, drain
from loaders._trial.memory import AboveBaseline, together
from loaders._trial.metrics import Disturbance
from loaders._trial.prepare import Prepared, job_of, prepare
from loaders._trial.record import Imported, Measured, Outcome, Progress, Timed, Trial, shortened

Said = Progress | Timed | Measured | Imported | Outcome


def main() -> None:
    """Run the trial on standard input and write its report."""
    report, process = Path(sys.argv[1]).absolute(), os.getpid()
    trial = msgspec.json.decode(sys.stdin.buffer.read(), type=Trial)

    def tell(value: Said) -> None:
        if os.getpid() != process:  # a fork made by the strategy has returned here
            os._exit(1)
        with report.open("ab") as file:
            file.write(msgspec.json.encode(value) + b"\n")

    try:
        outcome = run(trial, tell, report)
    except imports.ImportedError as error:
        tell(Imported(error.modules))
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - the strategy's failure is the result
        outcome = failure.outcome(error, trial)
    tell(msgspec.structs.replace(outcome, message=shortened(outcome.message)))
    with contextlib.suppress(ValueError, OSError):  # a strategy may have closed them
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)  # the report is complete; do not wait for a strategy's threads or exit handlers


def run(trial: Trial, tell: Callable[[Said], None], report: Path) -> Outcome:
    """Measure one strategy once, then check what it delivers."""
    with contextlib.ExitStack() as serving:
        return _run(trial, tell, report, serving)


def _run(trial: Trial, tell: Callable[[Said], None], report: Path, serving: contextlib.ExitStack) -> Outcome:
    before = machine.activity()
    prepared = prepare(trial, convert.apart, serving)
    tell(Progress(prepared.above.baseline, prepared.above.baseline_tree, prepared.environment))

    readings, product, disturbance = measure(prepared, before, tell, report, slow=trial.slow, turns=trial.turns)
    disk_bytes = _disk_bytes(prepared)

    question, variant, job = prepared.question, prepared.variant, prepared.job
    found: dict[str, Any] = {}
    if question.audit:
        quality, sample_bytes, found = Quality(), 0, question.audit(job, trial.checked)
    else:
        quality, sample_bytes = check(trial, prepared, readings, product)
    return assemble.outcome(
        readings,
        quality,
        sample_bytes=sample_bytes,
        memory_floor=question.floor(job, variant) if question.floor else None,
        disk_bytes=disk_bytes,
        converted=prepared.converted,
        disturbance=disturbance,
        found=found,
    )


def measure(
    prepared: Prepared,
    started: machine.Activity,
    tell: Callable[[Timed | Measured], None],
    report: Path,
    *,
    slow: bool,
    turns: str = "",
) -> tuple[Readings, list[Any], Disturbance | None]:
    """Drain the strategy: for a fast consumer and, if ``slow`` and a loader can be chosen by its question, a slow one.

    It says ``Timed``, then ``Measured`` when all but the steady time is known. Only then are epochs repeated that were
    short or disturbed, so that the number of epochs behind every figure but that and the memory of workers is the same
    for all strategies. With ``turns``, they run in turn with those of another trial instead.

    Returns what the instruments read, the last epoch's batches if the question keeps them, and what else the machine
    did since it had ``started``.
    """
    question, job, above, passes = prepared.question, prepared.job, prepared.above, prepared.passes
    tracer = fast = Tracer(above.read)
    peak, used, looked = 0, 0.0, 0.0
    step: float | None = None
    built: Iterable[Any] | None = None
    looks: list[machine.Activity] = []

    def build() -> Iterable[Any]:
        nonlocal built
        built = prepared.variant.build(job)
        return built

    def again() -> Iterable[Any]:
        return build() if built is None or isinstance(built, Iterator) else built

    def look(epoch: int) -> None:
        """Read what the machine has done, before the steady epochs and after them; this is in no figure.

        An import makes all figures void, and the first epoch shows most: no further one is run then.
        """
        nonlocal looked
        begun = time.thread_time()
        if epoch:
            imports.refuse(imported)
        if epoch in (min(1, prepared.epochs - 1), prepared.epochs):
            looks.append(machine.activity())
        looked += time.thread_time() - begun

    def instruments() -> float:
        return looked + fast.used + (tracer.used if tracer is not fast else 0.0)

    def used_so_far() -> float:
        return cpu_time() - cpu_before - instruments() + cpu_time_of_children()

    def slow_down(last: timing.Timeline) -> float:
        """End the measurement with the fast consumer, and return how slow the next one is."""
        nonlocal tracer, peak, used, step
        tracer, peak, used = Tracer(above.read), above.peak(), used_so_far()
        step = timing.slow_step(last, passes) if given is None else given
        return step

    given = question.consumer_step(job.case) if question.consumer_step else None
    trains = question.training_step(job.case)
    step_time, spend = (trains, busy) if trains else (question.step_time(job.case), time.sleep)
    then = None
    if slow and (question.size_axis or given is not None):
        then = Slow(slow_down, lambda last: timing.slow_batches(last, passes, given))
    imported = frozenset(sys.modules)
    ended = children_ended()
    cpu_before = cpu_time_of_children() + cpu_time()  # in this order: looking for children takes a millisecond
    came = machine.received() if prepared.variant.serve else None
    roles = _roles(job)
    above.reset_peak()
    timelines, product = drain(
        build,
        lambda step, now: tracer(step, now),  # noqa: PLW0108 - it becomes another
        epochs=prepared.epochs,
        keep=question.keeps_output,
        step_time=step_time,
        spend=spend,
        take=job.meter.take,
        slow=then,
        begin=look,
    )
    if then is None:
        used = used_so_far()
    if came is not None:
        came = (machine.received() or came) - came
    roles = {name: now - roles[name] for name, now in _roles(job).items()}
    if roles:
        roles["client"] -= instruments()
    held = _held(job, above)
    highest = above.peak()
    if then is None:
        peak = highest
        look(prepared.epochs)
    tell(Timed())
    slow_epoch = timelines.pop() if then else None
    further: list[timing.Timeline] = []
    process = os.getpid()

    def epochs() -> Sequence[timing.Timeline]:
        """Read the data once more. If that is several passes, the first includes the start, and does not count."""
        product.clear()
        more, kept = drain(again, keep=question.keeps_output, step_time=step_time, spend=spend, take=job.meter.take)
        if os.getpid() != process:  # a fork made by the strategy has returned here, and would run epochs of its own
            os._exit(1)
        product.extend(kept)
        further.extend(more)
        # With fewer batches than passes there is none to cut off: ``check`` will say how many samples are missing.
        return timing.cut(more, passes)[1:] or more if passes > 1 else more

    def to_be_read() -> None:
        nonlocal built
        if isinstance(built, list):
            built = None  # its workers worked while it was built
        epochs()

    had_workers = workers.run_until_read(report, ended, to_be_read)
    tell(Measured())
    first, *steady = timing.cut(timelines, passes)
    during = steadily.Stretch(steady, list(zip(looks[::2], looks[1::2], strict=True)))
    is_steady = timing.steady_time([first, *steady], question.least_batches) is not None
    if had_workers and is_steady and not question.reports:
        during = steadily.Stretch()  # their memory was read during their first epochs, which took part of a core
    if is_steady and turns:
        imports.refuse(imported)  # before another trial waits for this one
        during = steadily.in_turn(during, Path(turns), epochs)
    elif is_steady:
        during = steadily.least_disturbed(during, epochs)
    built = None
    gc.collect()
    retained, allocator_held = above.resident(), above.allocator_held()
    imports.refuse(imported)
    readings = Readings(
        timelines=timelines,
        passes=passes,
        slow=slow_epoch,
        slow_step=step,
        cpu_time=used,
        peak=peak,
        peak_slow=highest,
        most=above.most,
        retained=retained,
        allocator_held=allocator_held,
        trace=fast.points,
        meter=job.meter,
        steady=during.epochs if is_steady else (),
        further=further,
        trains=bool(trains),
        wire=came,
        roles=roles,
        held=held,
        had_workers=had_workers,
        step_time=step_time,
    )
    return readings, product, machine.disturbance(started, during.looks[-1][1], during.looks)


def _roles(job: _registry.Job[Any]) -> dict[str, float]:
    """Return the processor time of the process that trains and of those that serve it; empty if nobody can tell."""
    told = getattr(job.served, "processor_time", None)
    return {"client": cpu_time(), **told()} if told else {}


def _held(job: _registry.Job[Any], above: AboveBaseline) -> dict[str, int]:
    """Return what the process that trains holds above its baseline, and those that serve it in all, if any do."""
    serving = getattr(job.served, "processes", None)
    if serving is None:
        return {}
    return {"client": max(0, above.resident()), **{name: together(pids) for name, pids in serving().items()}}


def _disk_bytes(prepared: Prepared) -> int | None:
    """Return the bytes of the files that the strategy reads, or else of those that it has written."""
    written = sum(file.stat().st_size for file in prepared.job.directory.rglob("*") if file.is_file())
    return sum(Path(file).stat().st_size for file in prepared.files) or written or None


def check(trial: Trial, prepared: Prepared, readings: Readings, product: list[Any]) -> tuple[Quality, int]:
    """Verify that the strategy delivers what its question asks for, and as much in each epoch.

    The check uses fresh inputs: a strategy may have overwritten the ones it was given. If the trial is not to be
    ``checked``, only the number of samples is compared.

    Returns the quality, and the bytes of the largest sample if the strategy was built again.
    """
    question, variant = prepared.question, prepared.variant
    for epoch, each in enumerate([*readings.timelines[1:], *readings.further], 2):
        if sum(each.samples) != readings.delivered:
            raise WrongOutputError(
                f"delivered {readings.delivered} samples in epoch 1 and {sum(each.samples)} in epoch {epoch}"
            )
    if not trial.checked:
        return Quality(), 0
    directory = prepared.job.directory
    if not variant.convert:
        directory = directory.with_name("again")  # a cache must be filled anew
    fresh = job_of(trial, question, prepared.job.corpus, directory=directory, served=prepared.job.served)
    directory.mkdir(exist_ok=True)
    sizes: list[int] = []
    again = product if question.keeps_output else _again(question, variant, fresh, readings, sizes)
    return question.check(fresh, variant, again), max(sizes, default=0)


def _again(
    question: _registry.Question,
    variant: _registry.Variant,
    job: _registry.Job[Any],
    readings: Readings,
    sizes: list[int],
) -> Iterator[Any]:
    """Build the strategy again for the check, and verify that it delivers as much as in each measured pass.

    If later epochs of what was built are what it is ranked by, such a one is checked: what a cache gives back must be
    what was put into it. The bytes of one sample from each batch are added to ``sizes``.
    """
    delivered, measured = 0, readings.delivered
    built = variant.build(job)
    has_later = len(readings.timelines) > 1 and not question.repeats and not isinstance(built, Iterator)
    if has_later and question.ranked_by == "steady_time":
        first = sum(len(list(samples(batch))) for batch in built)
        if first != measured:
            raise WrongOutputError(f"delivered {measured} samples when measured and {first} when built again")
    for batch in built:
        parts = list(samples(batch))
        delivered += len(parts)
        sizes += [sum(getattr(feature, "nbytes", 0) for feature in part) for part in parts[:1]]
        del parts
        yield batch
    if delivered * readings.passes != measured:
        raise WrongOutputError(
            f"delivered {measured} samples when measured and {delivered * readings.passes} when checked"
        )


if __name__ == "__main__":
    main()
