"""What arrives in an epoch, undisturbed and when a process of the service fails in the middle of it.

``python -m loaders.questions.service.faults SETTINGS DIRECTORY`` runs experiments in a process of their own and prints
what came of each, as a client that waits for ever cannot be ended from within. ``UnderWay`` starts that process, bounds
its time, and leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from loaders._contract import Promise
from loaders._errors import InputError
from loaders._faults import UNDISTURBED, Seen, logged
from loaders._registry import Job, Skip, find_variant, variants
from loaders.questions.service import PROMISES, QUESTION
from loaders.questions.service.nodes import HEARTBEAT, Cluster, cluster

WORKERS = 2
DYNAMIC, FILE, OFF = "service_2", "service_2_file", "service_2_off"
"""The strategies whose processes fail, by their sharding policy."""

TOGETHER, BUSY = 9, 2
"""Experiments that run at a time: most of their time they wait; undisturbed they work, and fewer do."""

APART = 5.0
"""Seconds from the start of one to that of the next: nine clusters that start together would not be up in time."""

WAITS_FOR_EVER = 90.0
"""Seconds without a batch, after which the client counts as waiting for ever: three times the default heartbeat."""

MISSED_BEATS = 5
"""After so many heartbeats a dispatcher that is told to counts a worker as gone."""


@dataclass(frozen=True)
class Fault:
    """Something that fails.

    Attributes
    ----------
    does
        In words.
    act
        Makes it fail, and mends it where that is part of it.
    promise
        What is documented of the images of that epoch, by strategy; nothing where one is missing.
    settings
        Fields of ``DispatcherConfig`` that are set for it.
    keeps
        Whether the dispatcher has a ``work_dir``.
    """

    does: str
    act: Callable[[Cluster], None]
    promise: Mapping[str, Promise] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    keeps: bool = False


def _kill_worker(running: Cluster) -> None:
    running.kill(running.workers[0])


def _restart_worker(running: Cluster) -> None:
    running.kill(running.workers[0])
    running.restart(running.workers[0])


def _hang_worker(running: Cluster) -> None:
    running.hang(running.workers[0])


def _add_worker(running: Cluster) -> None:
    running.add_worker()


def _restart_dispatcher(running: Cluster) -> None:
    running.kill(running.dispatcher)
    running.restart(running.dispatcher)


ONCE, AT_MOST_ONCE = Promise(), Promise(0, 1, "every image at most once")
AGAIN = Promise(1, sys.maxsize, "every image at least once")
EACH_AGAIN = Promise(WORKERS, sys.maxsize, "every image at least once by each worker")
SOON = {"worker_timeout_ms": MISSED_BEATS * HEARTBEAT, "job_gc_check_interval_ms": HEARTBEAT}
SOON_IN_WORDS = "with " + " and ".join(f"{name}={value}" for name, value in SOON.items())

FAULTS: dict[str, Fault] = {
    UNDISTURBED: Fault("nothing fails", lambda _: None),
    "worker_killed": Fault("SIGKILL of one of two workers", _kill_worker, {DYNAMIC: AT_MOST_ONCE}),
    "worker_killed_soon_missed": Fault(
        f"SIGKILL of one of two workers, {SOON_IN_WORDS}",
        _kill_worker,
        {DYNAMIC: AT_MOST_ONCE},
        SOON,
    ),
    "worker_restarted": Fault(
        "SIGKILL of one of two workers, restarted on its port",
        _restart_worker,
        {DYNAMIC: AT_MOST_ONCE, FILE: AGAIN, OFF: EACH_AGAIN},
    ),
    "worker_added": Fault("a third worker joins", _add_worker, {DYNAMIC: ONCE}),
    "worker_hangs": Fault("one of two workers stops answering", _hang_worker, {DYNAMIC: AT_MOST_ONCE}),
    "worker_hangs_soon_missed": Fault(
        f"one of two workers stops answering, {SOON_IN_WORDS}",
        _hang_worker,
        {DYNAMIC: AT_MOST_ONCE},
        SOON,
    ),
    "dispatcher_restarted": Fault("SIGKILL of the dispatcher, restarted on its port", _restart_dispatcher),
    "dispatcher_restarted_with_work_dir": Fault(
        "SIGKILL of the dispatcher, restarted on its port with its work_dir",
        _restart_dispatcher,
        {DYNAMIC: AT_MOST_ONCE, FILE: ONCE},
        keeps=True,
    ),
}

CASE = {"storage": "slow"}

LATE, BATCH = 0.2, 8
"""Of an epoch in which something fails: files arrive so many seconds later, so that it lasts longer than a process
takes to start, in small batches, that show when throughput is back."""

BACK, AMONG = 0.8, 8
"""Throughput is back when so many batches come in a time that is worth this share of what it was."""


def asked() -> list[tuple[str, str]]:
    """Return the experiments: what fails, and under which strategy; every strategy that can run here undisturbed."""
    from loaders._trial.prepare import require

    found = []
    for name, variant in variants("service").items():
        with contextlib.suppress(Skip):
            require(variant)
            if variant.runs_in(CASE):
                found.append((UNDISTURBED, name))
    found += [(name, DYNAMIC) for name in FAULTS if name != UNDISTURBED]
    found += [(name, FILE) for name in ("worker_killed", "worker_restarted", "dispatcher_restarted_with_work_dir")]
    return [*found, *((name, OFF) for name in ("worker_killed", "worker_restarted"))]


class Settings(msgspec.Struct, frozen=True):
    """Of one experiment, or of several of one strategy in one process.

    Attributes
    ----------
    shares
        How much of each epoch has been read when the fault happens. Only undisturbed are there several epochs.
    waits
        Seconds without a batch, after which the client counts as waiting for ever.
    late
        Seconds by which each file arrives later, if something fails.
    """

    fault: str
    strategy: str
    corpus: str
    shares: tuple[float, ...]
    waits: float
    late: float


class UnderWay:
    """Experiments in a process of their own, with a session of its own, so that nothing of it is left."""

    def __init__(self, settings: Settings) -> None:
        from loaders._trial import machine

        self.settings = settings
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._until = time.monotonic() + 60 + 4 * settings.waits * len(settings.shares)
        self._read = 0
        self._directory = tempfile.TemporaryDirectory(prefix="loaders-faults-", ignore_cleanup_errors=True)
        self._said, self._errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - until ``end``
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "loaders.questions.service.faults",
                msgspec.json.encode(settings).decode(),
                self._directory.name,
            ],
            stdin=subprocess.PIPE,  # it ends with whoever has started it
            stdout=self._said,
            stderr=self._errors,
            start_new_session=True,
            env={**os.environ, **machine.PINNED, **machine.QUIET},  # with more threads it must not fork
        )

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or its time is up."""
        return self._process.poll() is not None or time.monotonic() > self._until

    def said(self) -> list[Seen]:
        """Return what it has seen since this was last asked."""
        unread = os.fstat(self._said.fileno()).st_size - self._read
        lines = os.pread(self._said.fileno(), unread, self._read).splitlines(keepends=True)
        whole = [each for each in lines if each.endswith(b"\n")]
        self._read += sum(map(len, whole))
        return [msgspec.structs.replace(msgspec.json.decode(each, type=Seen), started=self._started) for each in whole]

    def end(self) -> None:
        """End it with everything that it has started; nothing more can be asked.

        Raises
        ------
        InputError
            If it said nothing of use in its time.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._directory.cleanup()
        with self._said, self._errors:
            self._errors.seek(0)
            complaints = self._errors.read().decode(errors="replace").strip().splitlines()
        if not self._read:
            why = complaints[-1] if complaints else "it said nothing in its time"
            raise InputError(f"the experiment {self.settings.fault} ({self.settings.strategy}) did not end: {why}")


def main() -> None:
    """Run the experiments that the command line names, and print what came of each."""
    for seen in experiments(msgspec.json.decode(sys.argv[1].encode(), type=Settings), Path(sys.argv[2])):
        sys.stdout.buffer.write(msgspec.json.encode(seen) + b"\n")
        sys.stdout.flush()
    os._exit(0)  # a client that waits for ever keeps its thread


def _end_with_parent() -> None:
    """Wait until standard input ends, then end every process of this session."""
    sys.stdin.read()
    os.killpg(0, signal.SIGKILL)


def experiments(settings: Settings, directory: Path) -> Iterator[Seen]:
    """Read epochs; let something fail in the middle of each, and go on reading for as long as anything comes.

    It ends early after an epoch that did not end.
    """
    from loaders._corpus import load_corpus

    variant = find_variant("service", settings.strategy)
    corpus = load_corpus(Path(settings.corpus))
    job: Job[Any] = Job(corpus, QUESTION.prepare(corpus, CASE, 1), CASE, 1, directory=directory)
    if settings.fault != UNDISTURBED:
        inputs = dataclasses.replace(job.inputs, late=settings.late, pace=settings.late)
        job = dataclasses.replace(job, inputs=inputs, batch_size=BATCH)
    if variant.convert:
        variant.convert(job)
    import tensorflow  # noqa: F401 - what serves it are forks, which need not import it

    with _serving(settings, job) as running:
        threading.Thread(target=_end_with_parent, daemon=True).start()
        job = dataclasses.replace(job, served=running)
        dataset = variant.build(job)
        for share in settings.shares:
            seen = _epoch(settings, share, len(job.inputs.paths), dataset, running)
            yield seen
            if seen.ended != "whole":
                break
            if isinstance(dataset, Iterator):
                dataset = variant.build(job)


def _epoch(settings: Settings, share: float, total: int, dataset: Iterable[Any], running: Any) -> Seen:
    import numpy as np

    fault = FAULTS[settings.fault]
    undisturbed = PROMISES.get(settings.strategy, Promise())
    promise = fault.promise.get(settings.strategy, Promise(0, None, "nothing"))
    if settings.fault == UNDISTURBED:
        promise = undisturbed
    arrivals: list[tuple[float, list[int]]] = []
    told: list[str] = []

    def read() -> None:
        try:
            for _, numbers in dataset:
                arrivals.append((time.monotonic(), np.asarray(numbers).tolist()))
            told.append("")
        except Exception as error:  # noqa: BLE001 - what the client is told is the result
            told.append(f"{type(error).__name__}: {' '.join(str(error).split())}"[:300])

    client = threading.Thread(target=read, daemon=True)
    begun = time.monotonic()
    client.start()
    expected = total * max(1, undisturbed.least)
    while sum(len(numbers) for _, numbers in list(arrivals)) < share * expected and client.is_alive():
        time.sleep(0.005)
    failed = time.monotonic()
    is_before = not client.is_alive() and settings.fault != UNDISTURBED
    fault.act(running)
    acted = time.monotonic()
    while client.is_alive():
        last = max([acted, *(at for at, _ in list(arrivals)[-1:])])
        if time.monotonic() - last > settings.waits:
            break
        client.join(0.1)
    ended = time.monotonic()
    is_told = bool(told)
    times = [at for at, _ in arrivals]
    before = [at for at in times if at <= failed]
    later = [at for at in times if at > failed]
    after = [failed, *later, *([] if is_told and not told[0] else [ended])]
    came = Counter(number for _, numbers in arrivals for number in numbers)
    counts = [came[place] for place in range(total)]
    is_whole = is_told and not told[0]
    verdict = promise.held(counts).verdict
    is_open = verdict == "broken" and not is_whole and all(each <= (promise.most or 0) for each in counts)
    usually = undisturbed.held(counts)
    return Seen(
        fault=settings.fault,
        does=fault.does,
        strategy=settings.strategy,
        ended="before" if is_before else "waits" if not is_told else "failed" if told[0] else "whole",
        share=share,
        seconds=ended - begun,
        usual=max(_gaps(before), default=0.0),
        stalled=max(_gaps(after), default=0.0),
        recovered=None if settings.fault == UNDISTURBED else recovered(before, later, failed),
        followed=sum(at > acted for at in times),
        images=total,
        missing=usually.missing,
        repeated=usually.repeated,
        promised=promise.words,
        verdict="open" if is_open else verdict,  # what is missing may have been on its way
        message=told[0] if is_told else "",
    )


def _serving(settings: Settings, job: Job[Any]) -> contextlib.AbstractContextManager[Any]:
    """Return what starts the processes: those of the strategy, or those that a fault is to hit."""
    fault, variant = FAULTS[settings.fault], find_variant("service", settings.strategy)
    if settings.fault == UNDISTURBED:
        return variant.serve(job) if variant.serve else contextlib.nullcontext()
    work_dir = job.directory / "dispatcher" if fault.keeps else None
    return cluster(WORKERS, fixed=settings.strategy == FILE, forks=True, work_dir=work_dir, **fault.settings)


def recovered(before: list[float], later: list[float], failed: float) -> float | None:
    """Return the seconds after a fault until throughput was back, from the moments at which batches came.

    It is not back before the longest wait is over: what the client had already fetched may come fast before that.
    """
    if len(before) < 2 or before[-1] <= before[0] or not later:
        return None
    usual = (before[-1] - before[0]) / (len(before) - 1)
    waits = list(_gaps([failed, *later]))
    later = later[waits.index(max(waits)) :]
    for first, last in zip(later, later[AMONG:], strict=False):
        if (last - first) / AMONG <= usual / BACK:
            return first - failed
    return None


def _gaps(times: list[float]) -> Iterator[float]:
    return (later - earlier for earlier, later in itertools.pairwise(times))


def repeated(repetitions: int, corpus: Path, path: Path, done: Callable[[Seen], None] = lambda _: None) -> list[Seen]:
    """Repeat every experiment, each time at another moment of the epoch; what this commit has logged is not repeated.

    Each is saved when it ends. Some run at a time, round by round, so that an interrupted command has some of each;
    the undisturbed epochs of a strategy come first, and have one process.

    Raises
    ------
    InputError
        If an experiment says nothing of use; what was saved before stays.
    """
    from loaders._trial import log, machine

    packages = machine.packages()
    here = {
        "machine": machine.machine_name(),
        "cpu": machine.processor(),
        "versions": f"TensorFlow {packages['tensorflow']}, Python {platform.python_version()}",
        "commit": machine.commit(),
    }
    seen = [each for each in logged(path) if here.items() <= msgspec.structs.asdict(each).items()]
    for each in seen:
        done(each)

    def save(one: UnderWay) -> None:
        for each in one.said():
            seen.append(msgspec.structs.replace(each, **here))
            log.append(path, seen[-1])
            done(seen[-1])

    due = _due(repetitions, str(corpus), {(each.fault, each.strategy, each.share) for each in seen})
    under_way: list[UnderWay] = []
    began = -math.inf
    try:
        while due or under_way:
            most = BUSY if due and due[0].fault == UNDISTURBED else TOGETHER
            if due and len(under_way) < most and time.monotonic() >= began + APART:
                began = time.monotonic()
                under_way.append(UnderWay(due.pop(0)))
            for one in list(under_way):
                is_over = one.is_over
                save(one)
                if is_over:
                    under_way.remove(one)
                    one.end()
            time.sleep(0.05)
    finally:
        for one in under_way:
            save(one)
            with contextlib.suppress(InputError):
                one.end()
    return seen


def _due(repetitions: int, corpus: str, had: Container[tuple[str, str, float]]) -> list[Settings]:
    """Return what is still to be done, in its order."""
    calm: dict[str, list[float]] = {}
    rest: list[tuple[str, str, list[float]]] = []
    every = asked()
    for index in range(repetitions):
        for name, strategy in every:
            moment = _moment(name, strategy, index)
            if (name, strategy, moment) in had:
                continue
            if name == UNDISTURBED:
                calm.setdefault(strategy, []).append(moment)
            else:
                rest.append((name, strategy, [moment]))
    first = [(UNDISTURBED, strategy, moments) for strategy, moments in calm.items()]
    return [
        Settings(name, strategy, corpus, tuple(moments), WAITS_FOR_EVER, LATE)
        for name, strategy, moments in [*first, *rest]
    ]


def _moment(name: str, strategy: str, index: int) -> float:
    """Return how much of an epoch has been read when something fails in a repetition."""
    return random.Random(f"{name} {strategy} {index}").uniform(0.2, 0.8)  # noqa: S311


if __name__ == "__main__":
    main()
