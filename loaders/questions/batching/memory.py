"""Everything is loaded first."""

from __future__ import annotations

from collections.abc import Iterable

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import Files, _batch, _parts


@variant(quick=True)
def load_all(job: Job[Files]) -> Iterable[Batch]:
    """Load everything into one array, on one thread; then slice batches from it: views of it, always in one order."""
    images, labels = _batch(job.inputs, range(len(job.inputs.paths)))
    return [(images[part.start : part.stop], labels[part.start : part.stop]) for part in _parts(job)]


@variant(engine="tf.data")
def load_all_from_tensor_slices(job: Job[Files]) -> Iterable[Batch]:
    """Load everything into one array, on one thread; then ``Dataset.from_tensor_slices``, which copies it."""
    import tensorflow as tf

    loaded = _batch(job.inputs, range(len(job.inputs.paths)))
    return tf.data.Dataset.from_tensor_slices(loaded).batch(job.batch_size).prefetch(tf.data.AUTOTUNE)
