"""Calibration: what every instrument reads where the truth is known.

*Asked.* How far can this suite's figures be trusted on this machine? Every strategy here waits, works, holds or leaks
a known amount, and the instruments' readings are compared with that amount.

*Held fixed.* 400 numbers, delivered in order. Waits end by the clock, because a sleep alone ends late. Every page of
an array is touched. TensorFlow is not imported, and no corpus is read.

*Not measured.* How much a loader varies by itself: work varies more than a wait does, and the interval of each
comparison accounts for that. Which loader to choose: ratios to the strategy that does nothing mean nothing.

*Invisible when* a difference is far above what the instruments resolve, as most differences on this page are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loaders._contract import Quality
from loaders._errors import WrongOutputError
from loaders._registry import Batch, Case, Job, Question, Skip, Variant, variant

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from loaders._corpus import Corpus

SAMPLES = 400
BATCHES = 10
WAITS = 5
"""Waits in an epoch. After each, draining a batch takes 0.1 ms instead of 0.015 ms because the caches are cold."""

MIB = 2**20
STEPS = 100
STEP = 0.01
"""Seconds. A trace needs some fifty readings. One takes up to 0.25 ms, and all may take 2 % of the time."""

PIECE = 2**16
"""Bytes. From 128 KiB upwards malloc would ask the system for each piece separately."""

LEAK = 4 * PIECE
"""Bytes per step. Over the 50 steps of a trace's tail that is six times what a verdict tolerates."""

AWAKE = 0.003
"""Seconds before the end of a wait when it stops sleeping: a sleep ends 0.1 ms late, some ms on a busy machine."""

ALIVE = 0.7
"""Seconds for which the child process lives: the trial looks for children every 0.25 s."""

OBJECT = 512
"""Size in bytes of the largest object that Python allocates from its own pools."""

POOL = 2**14
"""Size of a pool in bytes, with a header of 48. https://github.com/python/cpython/blob/3.11/Objects/obmalloc.c"""


@dataclass(frozen=True)
class Work:
    """The numbers to deliver, (400,) int64, and a place for what a strategy keeps as long as the job lasts."""

    numbers: NDArray[np.int64]
    kept: list[Any] = field(default_factory=list)


def _prepare(corpus: Corpus, case: Case, seed: int) -> Work:  # noqa: ARG001 - the truth is always the same
    import numpy as np

    return Work(np.arange(SAMPLES))


def _check(job: Job[Work], variant: Variant, batches: Iterable[Batch]) -> Quality:  # noqa: ARG001
    delivered = [int(number) for batch in batches for number in batch]
    if delivered != job.inputs.numbers.tolist():
        wrong = next((place for place, number in enumerate(delivered) if place != number), len(delivered))
        raise WrongOutputError(f"sample {wrong} of {SAMPLES} is missing or wrong, {len(delivered)} were delivered")
    return Quality()


QUESTION = Question(
    prepare=_prepare,
    check=_check,
    calibrates=True,
)


def _parts(job: Job[Work], count: int = BATCHES) -> list[Batch]:
    size = SAMPLES // count
    return [job.inputs.numbers[start : start + size] for start in range(0, SAMPLES, size)]


def _wait(seconds: float) -> None:
    """Sleep for most of the time, then watch the clock until the end."""
    import time

    end = time.monotonic() + seconds
    time.sleep(max(0.0, seconds - AWAKE))
    while time.monotonic() < end:
        pass


def _waiting(job: Job[Work], seconds: float) -> Iterator[Batch]:
    for batch in _parts(job, WAITS):
        _wait(seconds / WAITS)
        yield batch


def _stepping(job: Job[Work], step: Callable[[int], object]) -> Iterator[Batch]:
    """Do something before each of 100 batches, slowly enough for memory to be traced."""
    for index, batch in enumerate(_parts(job, STEPS)):
        step(index)
        _wait(STEP)
        yield batch


def _touched(mebibytes: int) -> NDArray[np.float64]:
    import numpy as np

    return np.ones(mebibytes * MIB // 8)


@variant(
    baseline=True,
    truth={
        **dict.fromkeys(("epoch_time", "first_batch_time", "sample_time", "cpu_time"), 0),
        **dict.fromkeys(("peak_memory", "retained_memory", "allocator_held"), 0),
    },
    quick=True,
)
def nothing(job: Job[Work]) -> Iterable[Batch]:
    """Do nothing: deliver ten batches that are ready."""
    return _parts(job)


@variant(truth={"epoch_time": 0.1, "first_batch_time": 0.02, "sample_time": 0.1 / SAMPLES}, quick=True)
def wait_100ms(job: Job[Work]) -> Iterable[Batch]:
    """Wait for 0.1 s: 20 ms before each of five batches."""
    return _waiting(job, 0.1)


@variant(truth={"epoch_time": 0.5, "first_batch_time": 0.1, "sample_time": 0.5 / SAMPLES})
def wait_500ms(job: Job[Work]) -> Iterable[Batch]:
    """Wait for 0.5 s: 0.1 s before each of five batches."""
    return _waiting(job, 0.5)


@variant(truth={"epoch_time": 0.2, "first_batch_time": 0.2})
def wait_first(job: Job[Work]) -> Iterable[Batch]:
    """Wait for 0.2 s before the first of ten batches, and not at all after it."""
    _wait(0.2)
    return _parts(job)


@variant(truth={"cpu_time": 0.2})
def work_200ms(job: Job[Work]) -> Iterable[Batch]:
    """Take 0.2 s of processor time before the first batch."""
    import time

    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass
    return _parts(job)


@variant(truth={"peak_memory": MIB, "retained_memory": MIB})
def array_1_kept(job: Job[Work]) -> Iterable[Batch]:
    """Touch an array of 1 MiB and keep it."""
    job.inputs.kept.append(_touched(1))
    return _parts(job)


@variant(truth={"peak_memory": 16 * MIB, "retained_memory": 0}, quick=True)
def array_16_freed(job: Job[Work]) -> Iterable[Batch]:
    """Touch an array of 16 MiB and free it."""
    _touched(16)
    return _parts(job)


@variant(truth={"peak_memory": 256 * MIB, "retained_memory": 256 * MIB}, quick=True)
def array_256_kept(job: Job[Work]) -> Iterable[Batch]:
    """Touch an array of 256 MiB and keep it."""
    job.inputs.kept.append(_touched(256))
    return _parts(job)


@variant(truth={"peak_memory": 256 * MIB, "retained_memory": 0})
def array_256_freed(job: Job[Work]) -> Iterable[Batch]:
    """Touch an array of 256 MiB and free it."""
    _touched(256)
    return _parts(job)


@variant(truth={"memory_growth": 0, "peak_memory": 0})
def steady(job: Job[Work]) -> Iterable[Batch]:
    """Take 100 steps and keep nothing."""
    return _stepping(job, lambda _: None)


@variant(truth={"memory_growth": 0})
def warm_up(job: Job[Work]) -> Iterable[Batch]:
    """Keep 1 MiB more in each of the first 16 of 100 steps, and nothing more after them."""

    def fill(index: int) -> None:
        if index < 16:
            job.inputs.kept.append(_touched(1))

    return _stepping(job, fill)


@variant(truth={"memory_growth": LEAK})
def leak_objects(job: Job[Work]) -> Iterable[Batch]:
    """Keep 256 KiB more of small Python objects in each of 100 steps: sixteen pools of them."""
    import sys

    blank = OBJECT - sys.getsizeof(b"")
    each_step = LEAK // POOL * ((POOL - 48) // OBJECT)
    kept: list[bytes | None] = [None] * (STEPS * each_step)  # allocated at once: a list that grows would leak, too
    job.inputs.kept.append(kept)

    def leak(index: int) -> None:
        for place in range(index * each_step, (index + 1) * each_step):
            kept[place] = bytes(blank)

    return _stepping(job, leak)


@variant(truth={"memory_growth": LEAK})
def leak_malloc(job: Job[Work]) -> Iterable[Batch]:
    """Leave 256 KiB more of malloc's memory unfreed in each of 100 steps, in four pieces."""
    import ctypes

    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p

    def leak(_: int) -> None:
        for _ in range(LEAK // PIECE):
            ctypes.memset(libc.malloc(PIECE), 1, PIECE)

    return _stepping(job, leak)


@variant(truth={"allocator_held": 64 * MIB, "retained_memory": 64 * MIB})
def freed_and_held_64(job: Job[Work]) -> Iterable[Batch]:
    """Free 64 MiB in pieces that malloc cannot give back, since a piece above them is in use.

    Up to 200 KiB of them, it depends on the layout of addresses, lie where malloc had room before.
    """
    import ctypes

    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    pieces = [ctypes.c_void_p(libc.malloc(PIECE)) for _ in range(64 * MIB // PIECE + 1)]
    for piece in pieces:
        ctypes.memset(piece, 1, PIECE)
    for piece in pieces[:-1]:
        libc.free(piece)
    return _parts(job)


@variant(truth={"peak_memory_tree": 256 * MIB})
def child_process(job: Job[Work]) -> Iterable[Batch]:
    """Touch 256 MiB in a child process, forked so that it shares everything else."""
    import os
    import sys
    import warnings

    if sys.platform != "linux":
        raise Skip("only Linux tells what the processes of a tree share")
    said, say = os.pipe()
    awaited, end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about forking with threads; the child needs none
        child = os.fork()
    if child == 0:
        os.close(end)
        held = b"\1" * (256 * MIB)
        os.write(say, held[:1])
        os.read(awaited, 1)  # returns when the parent closes its end or exits
        os._exit(0)
    os.close(say)
    os.close(awaited)
    os.read(said, 1)
    _wait(ALIVE)
    os.close(end)
    os.close(said)
    os.waitpid(child, 0)
    return _parts(job)


@variant(truth={"bodies_in_flight": 2, "waiting": 2})
def two_bodies(job: Job[Work]) -> Iterable[Batch]:
    """Run two bodies at once, both of which end before anything is taken."""
    import threading

    both = threading.Barrier(2)

    def body() -> None:
        with job.meter:
            both.wait()

    threads = [threading.Thread(target=body) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _parts(job)


@variant(truth={"disk_bytes": MIB})
def file_of_1_mib(job: Job[Work]) -> Iterable[Batch]:
    """Write a file of 1 MiB into the strategy's own directory."""
    (job.directory / "file").write_bytes(bytes(MIB))
    return _parts(job)
