"""A Python generator loads a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import Files, _aligned, _batch, _filled, _from_generator, _load, _parts


@variant(baseline=True, quick=True)
def path_generator(job: Job[Files]) -> Iterable[Batch]:
    """A Python generator over batches of paths: one image after another, on one thread."""
    for part in _parts(job):
        yield _batch(job.inputs, part)


@variant(engine="tf.data")
def path_generator_from_generator(job: Job[Files]) -> Iterable[Batch]:
    """The same generator through ``Dataset.from_generator`` and prefetch."""
    return _from_generator(lambda: (_batch(job.inputs, part) for part in _parts(job)))


@variant(engine="tf.data")
def path_generator_aligned(job: Job[Files]) -> Iterable[Batch]:
    """The same through ``from_generator``, from arrays that begin at a multiple of 64 bytes, which are not copied."""
    return _from_generator(lambda: (_filled(job.inputs, part, _aligned(len(part)), _load) for part in _parts(job)))
