"""grain: a ``MapDataset`` read by threads or processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import Files, _load

if TYPE_CHECKING:
    import numpy as np

WORKERS = 2
"""Processes."""


class _Load:
    """Loads the image at an index. At the top of a module, so that processes can be given it."""

    def __init__(self, data: Files) -> None:
        self.data = data

    def __call__(self, index: int) -> tuple[Any, np.int64]:
        return _load(self.data, index), self.data.labels[index]


def _dataset(job: Job[Files]) -> Any:
    import grain

    return grain.MapDataset.source(range(len(job.inputs.paths))).shuffle(seed=job.seed).map(_Load(job.inputs))


@variant(optional=("grain",))
def grain_threads(job: Job[Files]) -> Iterable[Batch]:
    """grain ``to_iter_dataset().batch(32)`` with its defaults: sixteen threads, and up to 500 images ahead."""
    return iter(_dataset(job).to_iter_dataset().batch(job.batch_size))


@variant(optional=("grain",))
def grain_threads_few(job: Job[Files]) -> Iterable[Batch]:
    """grain with one thread per core and two batches ahead: ``ReadOptions(prefetch_buffer_size=64)``."""
    import os

    import grain

    options = grain.ReadOptions(num_threads=os.cpu_count() or 1, prefetch_buffer_size=2 * job.batch_size)
    return iter(_dataset(job).to_iter_dataset(options).batch(job.batch_size))


@variant(optional=("grain",))
def grain_processes(job: Job[Files]) -> Iterable[Batch]:
    """grain ``mp_prefetch`` with two processes, started for each epoch, each with one thread and two batches ahead."""
    import grain

    def batches() -> Iterator[Batch]:
        options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)
        read = _dataset(job).batch(job.batch_size).to_iter_dataset(options)
        yield from read.mp_prefetch(grain.MultiprocessingOptions(num_workers=WORKERS))

    return batches()
