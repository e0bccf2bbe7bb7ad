"""What happens to an epoch when a process of the service fails in the middle of it.

``python -m loaders.questions.service.faults SETTINGS`` runs one experiment in a process of its own and prints what came
of it, as a client that waits for ever cannot be ended from within. ``run`` starts that process, bounds its time, and
leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from loaders._contract import Promise
from loaders._errors import InputError
from loaders._registry import Job
from loaders._units import Count, Name, Seconds
from loaders.questions.service import QUESTION, READS, of_files, of_shards, write_shards
from loaders.questions.service.nodes import HEARTBEAT, Cluster, cluster

WORKERS = 2

WAITS_FOR_EVER = 90.0
"""Seconds without a batch, after which the client counts as waiting for ever: three times the default heartbeat."""

MISSED_BEATS = 5
"""After so many heartbeats ``worker_timeout`` declares a worker gone."""

Policy = Literal["DYNAMIC", "OFF", "FILE"]


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
        What is documented of the images of that epoch, by sharding policy; nothing where a policy is missing.
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
EACH = Promise(WORKERS, WORKERS, "every image once by each worker")
SOON = {"worker_timeout_ms": MISSED_BEATS * HEARTBEAT}

FAULTS: dict[str, Fault] = {
    "none": Fault("nothing fails", lambda _: None, {"DYNAMIC": ONCE, "FILE": ONCE, "OFF": EACH}),
    "worker_killed": Fault("SIGKILL of one of two workers", _kill_worker, {"DYNAMIC": AT_MOST_ONCE}),
    "worker_killed_soon_missed": Fault(
        "the same, and the dispatcher misses a worker after five heartbeats",
        _kill_worker,
        {"DYNAMIC": AT_MOST_ONCE},
        SOON,
    ),
    "worker_restarted": Fault(
        "SIGKILL of one of two workers, restarted on its port", _restart_worker, {"DYNAMIC": AT_MOST_ONCE}
    ),
    "worker_added": Fault("a third worker joins", _add_worker, {"DYNAMIC": ONCE}),
    "worker_hangs": Fault("one of two workers stops answering", _hang_worker, {"DYNAMIC": AT_MOST_ONCE}),
    "worker_hangs_soon_missed": Fault(
        "the same, and the dispatcher misses a worker after five heartbeats",
        _hang_worker,
        {"DYNAMIC": AT_MOST_ONCE},
        SOON,
    ),
    "dispatcher_restarted": Fault("SIGKILL of the dispatcher, restarted on its port", _restart_dispatcher),
    "dispatcher_restarted_with_work_dir": Fault(
        "the same with a work_dir", _restart_dispatcher, {"DYNAMIC": AT_MOST_ONCE, "FILE": ONCE}, keeps=True
    ),
}


ASKED: tuple[tuple[str, Policy], ...] = (
    *((name, "DYNAMIC") for name in FAULTS),
    *((name, "FILE") for name in ("none", "worker_killed", "worker_restarted", "dispatcher_restarted_with_work_dir")),
    *((name, "OFF") for name in ("none", "worker_killed", "worker_restarted")),
)
"""The experiments: what fails, and under which sharding policy."""

NAME = "faults.jsonl"
"""The log of the experiments, beside the trial log."""


class Settings(msgspec.Struct, frozen=True):
    """Of one experiment; ``share`` is how much of the epoch has been read when the fault happens."""

    fault: str
    policy: Policy
    corpus: str
    directory: str
    share: float
    waits: float = WAITS_FOR_EVER


class Seen(msgspec.Struct, frozen=True):
    """What came of one experiment.

    Attributes
    ----------
    ended
        *whole*: the epoch ended; *failed*: the client was told; *waits*: no batch came for ``WAITS_FOR_EVER``.
    stalled
        The longest wait for a batch after the fault, in seconds.
    missing, repeated
        Images that never came, and that came more than once (under OFF: more often than there are workers).
    verdict
        Whether that is what is documented.
    message
        What the client was told.
    """

    fault: Name
    policy: Name
    ended: Literal["whole", "failed", "waits"]
    share: float
    seconds: Seconds
    usual: Seconds
    stalled: Seconds
    images: Count
    missing: Count
    repeated: Count
    promised: Name
    verdict: Literal["kept", "broken", "not promised"]
    message: Name = ""


@dataclass(frozen=True)
class FaultTally:
    """What came of the repetitions of one experiment.

    Attributes
    ----------
    does, policy
        What failed, in words, and the sharding policy.
    repetitions
        How many there are; the other counts are of these.
    stalled
        The middle and the longest of the longest waits after the fault, in seconds.
    missing, repeated
        The most of one epoch.
    """

    does: str
    policy: str
    promised: str
    repetitions: int
    whole: int
    failed: int
    waits: int
    kept: int
    broken: int
    stalled: tuple[float, float]
    missing: int
    repeated: int
    message: str


def tallied(seen: Iterable[Seen]) -> list[FaultTally]:
    """Count what came of each experiment, in the order in which they are asked."""
    groups: dict[tuple[str, str], list[Seen]] = {}
    for each in seen:
        groups.setdefault((each.fault, each.policy), []).append(each)
    found = []
    for name, policy in ASKED:
        if not (own := groups.get((name, policy))):
            continue
        ended, verdicts = Counter(each.ended for each in own), Counter(each.verdict for each in own)
        found.append(
            FaultTally(
                FAULTS[name].does,
                policy,
                own[0].promised,
                len(own),
                ended["whole"],
                ended["failed"],
                ended["waits"],
                verdicts["kept"],
                verdicts["broken"],
                (statistics.median(each.stalled for each in own), max(each.stalled for each in own)),
                max(each.missing for each in own),
                max(each.repeated for each in own),
                next((each.message for each in own if each.message), ""),
            )
        )
    return found


def run(settings: Settings, within: float = 4 * WAITS_FOR_EVER) -> Seen:
    """Run one experiment in a process of its own, and end everything that it leaves.

    Raises
    ------
    InputError
        If it says nothing of use in its time.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "loaders.questions.service.faults", msgspec.json.encode(settings).decode()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
    )
    said = errors = b""
    with contextlib.suppress(subprocess.TimeoutExpired):
        said, errors = process.communicate(timeout=within)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()
    lines = said.splitlines()
    if not lines:
        why = errors.decode(errors="replace").strip().splitlines()[-1:] or [f"it said nothing for {within:.0f} s"]
        raise InputError(f"the experiment {settings.fault} ({settings.policy}) did not end: {why[0]}")
    return msgspec.json.decode(lines[-1], type=Seen)


def main() -> None:
    """Run the experiment that the command line names, and print what came of it."""
    import psutil

    settings = msgspec.json.decode(sys.argv[1].encode(), type=Settings)
    seen = experiment(settings)
    sys.stdout.buffer.write(msgspec.json.encode(seen) + b"\n")
    sys.stdout.flush()
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            child.kill()
    os._exit(0)  # a client that waits for ever keeps its thread


def experiment(settings: Settings) -> Seen:
    """Read an epoch, let something fail in the middle of it, and go on reading for as long as anything comes."""
    import tensorflow as tf

    from loaders._corpus import load_corpus

    fault = FAULTS[settings.fault]
    case = {"storage": "slow"}
    corpus = load_corpus(Path(settings.corpus))
    job: Job[Any] = Job(corpus, QUESTION.prepare(corpus, case, 1), case, 1, directory=Path(settings.directory))
    total = len(job.inputs.paths)
    is_static = settings.policy == "FILE"
    if is_static:
        write_shards(job)
    work_dir = Path(settings.directory) / "dispatcher" if fault.keeps else None
    arrivals: list[tuple[float, list[int]]] = []
    told: list[str] = []
    service = tf.data.experimental.service
    with cluster(WORKERS, fixed=is_static, work_dir=work_dir, **fault.settings) as running:
        pipeline = of_shards(job, READS) if is_static else of_files(job, READS)
        dataset = pipeline.apply(
            service.distribute(
                processing_mode=getattr(service.ShardingPolicy, settings.policy),
                service=running.address,
                max_outstanding_requests=2 * WORKERS,
            )
        )

        def read() -> None:
            try:
                for _, numbers in dataset:
                    arrivals.append((time.monotonic(), numbers.numpy().tolist()))
                told.append("")
            except Exception as error:  # noqa: BLE001 - what the client is told is the result
                told.append(f"{type(error).__name__}: {' '.join(str(error).split())}"[:300])

        client = threading.Thread(target=read, daemon=True)
        begun = time.monotonic()
        client.start()
        expected = total * (WORKERS if settings.policy == "OFF" else 1)
        while sum(len(numbers) for _, numbers in list(arrivals)) < settings.share * expected and client.is_alive():
            time.sleep(0.005)
        failed = time.monotonic()
        fault.act(running)
        while client.is_alive():
            last = max([failed, *(at for at, _ in list(arrivals)[-1:])])
            if time.monotonic() - last > settings.waits:
                break
            client.join(0.1)
        ended = time.monotonic()
        is_told = bool(told)
        times = [at for at, _ in arrivals]
        before = [at for at in times if at <= failed]
        after = [failed, *(at for at in times if at > failed), *([] if is_told and not told[0] else [ended])]
        came = Counter(number for _, numbers in arrivals for number in numbers)
        promise = fault.promise.get(settings.policy, Promise(0, None, "nothing"))
        delivery = promise.held(came[place] for place in range(total))
        return Seen(
            fault=settings.fault,
            policy=settings.policy,
            ended="waits" if not is_told else "failed" if told[0] else "whole",
            share=settings.share,
            seconds=ended - begun,
            usual=max(_gaps(before), default=0.0),
            stalled=max(_gaps(after), default=0.0),
            images=total,
            missing=delivery.missing,
            repeated=delivery.repeated,
            promised=promise.words,
            verdict=delivery.verdict,
            message=told[0] if is_told else "",
        )


def _gaps(times: list[float]) -> Iterator[float]:
    return (later - earlier for earlier, later in itertools.pairwise(times))


def repeated(repetitions: int, corpus: Path, path: Path, done: Callable[[Seen], None] = lambda _: None) -> list[Seen]:
    """Repeat every experiment, each time at another moment of the epoch; what is in the log is not repeated.

    Each is saved when it ends. Round by round, so that an interrupted command has some of each.
    """
    from loaders._trial import log

    lines = path.read_bytes().splitlines() if path.exists() else []
    seen = [msgspec.json.decode(line, type=Seen) for line in lines]
    for index in range(repetitions):
        for name, policy in ASKED:
            if sum((each.fault, each.policy) == (name, policy) for each in seen) > index:
                continue
            share = random.Random(f"{name} {policy} {index}").uniform(0.2, 0.8)  # noqa: S311
            with tempfile.TemporaryDirectory(prefix="loaders-faults-") as directory:
                seen.append(run(Settings(name, policy, str(corpus), directory, share)))
            log.append(path, seen[-1])
            done(seen[-1])
    return seen


if __name__ == "__main__":
    main()
