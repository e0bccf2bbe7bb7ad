"""A Python generator loads a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import SIDE, Files, _batch, _filled, _parts

ALIGNED = 64
"""In bytes. TensorFlow takes an array that begins at a multiple of it as it is, and copies any other."""


@variant(baseline=True, quick=True)
def path_generator(job: Job[Files]) -> Iterable[Batch]:
    """A Python generator over batches of paths: one image after another, on one thread."""
    for part in _parts(job):
        yield _batch(job.inputs, part)


@variant(engine="tf.data")
def path_generator_from_generator(job: Job[Files]) -> Iterable[Batch]:
    """The same generator through ``Dataset.from_generator`` and prefetch."""
    import tensorflow as tf

    def generate() -> Iterator[Batch]:
        for part in _parts(job):
            yield _batch(job.inputs, part)

    return tf.data.Dataset.from_generator(generate, output_signature=_signature()).prefetch(tf.data.AUTOTUNE)


@variant(engine="tf.data")
def path_generator_aligned(job: Job[Files]) -> Iterable[Batch]:
    """The same through ``from_generator``, from arrays that begin at a multiple of 64 bytes, which are not copied."""
    import numpy as np
    import tensorflow as tf

    def empty(count: int) -> Any:
        size = 4 * count * SIDE * SIDE * 3
        memory = np.empty(size + ALIGNED, np.uint8)
        start = -memory.ctypes.data % ALIGNED
        return memory[start : start + size].view(np.float32).reshape(count, SIDE, SIDE, 3)

    def generate() -> Iterator[Batch]:
        for part in _parts(job):
            yield _filled(job.inputs, part, empty(len(part)))

    return tf.data.Dataset.from_generator(generate, output_signature=_signature()).prefetch(tf.data.AUTOTUNE)


def _signature() -> Any:
    import tensorflow as tf

    return (tf.TensorSpec((None, SIDE, SIDE, 3), tf.float32), tf.TensorSpec((None,), tf.int64))
