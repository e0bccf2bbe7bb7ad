"""The strategies of ``python -m loaders selftest``: the same work, as it is and with added time or memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from loaders import Batch, Job, variant
from loaders.questions.batching import Files, _native_steps

WORK = 300
"""Number of digests of ``BLOCK`` bytes: about a tenth of a second on one core."""

BLOCK, HELD = 2**18, 16
"""Bytes per digest; MiB that are held during the work."""


def _planted(name: str, more_time: int = 0, more_memory: int = 0) -> None:
    def strategy(job: Job[Any]) -> Iterable[Batch]:
        import numpy as np

        held = np.ones((HELD + more_memory) * 2**17)
        block = bytes(BLOCK)
        for _ in range(WORK * (100 + more_time) // 100):
            hashlib.sha256(block).digest()
        del held
        return [np.random.default_rng(job.seed).choice(job.inputs.images, job.inputs.draws, replace=False)]

    strategy.__name__ = strategy.__qualname__ = name
    strategy.__doc__ = f"Planted: {more_time} % more work, {more_memory} MiB more memory."
    register: Callable[..., Any] = variant(question="selection")
    register(strategy)


class _Loaded:
    """A dataset, and memory that is held as long as it is."""

    def __init__(self, dataset: Iterable[Any], held: object) -> None:
        self._dataset, self._held = dataset, held

    def __iter__(self) -> Iterator[Any]:
        return iter(self._dataset)


def _planted_in_tensorflow(name: str, more_time: int = 0, more_memory: int = 0) -> None:
    def strategy(job: Job[Files]) -> Iterable[Batch]:
        import numpy as np
        import tensorflow as tf

        held = np.ones(more_memory * 2**17)
        data = job.inputs
        count = len(data.paths)
        # Extra photographs are dropped behind the map: they cost what decoding costs, and deliver nothing.
        dropped = count * more_time // 100
        order = [*(index % count for index in range(dropped)), *range(count)]
        rows = ([data.paths[index] for index in order], data.labels[order], np.arange(len(order)) >= dropped)
        loaded = tf.data.Dataset.from_tensor_slices(rows).map(
            lambda path, label, is_kept: (_native_steps(path), label, is_kept),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
        kept = loaded.filter(lambda *row: row[2]).map(lambda *row: row[:2])
        return _Loaded(kept.batch(job.batch_size).prefetch(tf.data.AUTOTUNE), held)

    strategy.__name__ = strategy.__qualname__ = name
    strategy.__doc__ = f"Planted: {more_time} % more photographs decoded, {more_memory} MiB more memory."
    register: Callable[..., Any] = variant(question="batching", tier="same purpose")
    register(strategy)


for _percent in (0, 10, 20):
    _planted_in_tensorflow(f"tf_time_{_percent}" if _percent else "tf_same", more_time=_percent)
_planted_in_tensorflow("tf_memory_64", more_memory=64)

_planted("same")
for _percent in (5, 10, 20):
    _planted(f"time_{_percent}", more_time=_percent)
for _mebibytes in (1, 8, 64):
    _planted(f"memory_{_mebibytes}", more_memory=_mebibytes)
