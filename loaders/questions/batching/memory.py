"""Everything is loaded first."""

from __future__ import annotations

from collections.abc import Iterable

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import (
    SIDE,
    UNCHANGED,
    Files,
    Reiterable,
    _batch,
    _from_levels,
    _levels,
    _parts,
)


@variant(quick=True, only=UNCHANGED)
def load_all(job: Job[Files]) -> Iterable[Batch]:
    """Load everything into one array, on one thread; then slice batches from it: views of it, always in one order."""
    images, labels = _batch(job.inputs, range(len(job.inputs.paths)))
    return [(images[part.start : part.stop], labels[part.start : part.stop]) for part in _parts(job)]


@variant(engine="tf.data", only=UNCHANGED)
def load_all_from_tensor_slices(job: Job[Files]) -> Iterable[Batch]:
    """Load everything into one array, on one thread; then ``Dataset.from_tensor_slices``, which copies it."""
    import tensorflow as tf

    loaded = _batch(job.inputs, range(len(job.inputs.paths)))
    return tf.data.Dataset.from_tensor_slices(loaded).batch(job.batch_size).prefetch(tf.data.AUTOTUNE)


@variant(quick=True)
def load_all_uint8(job: Job[Files]) -> Iterable[Batch]:
    """Load everything into one array of bytes, a quarter of the memory; each batch is changed and scaled when read."""
    import numpy as np

    levels = np.empty((len(job.inputs.paths), SIDE, SIDE, 3), np.uint8)
    for index, path in enumerate(job.inputs.paths):
        levels[index] = _levels(path)
    return Reiterable(lambda: (_from_levels(job.inputs, part, levels) for part in _parts(job)))
