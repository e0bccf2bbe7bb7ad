"""SPDL: a pipeline of threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import Files, _load


@variant(optional=("spdl",))
def spdl_threads(job: Job[Files]) -> Iterable[Batch]:
    """SPDL ``PipelineBuilder``: an image at a time on each core, batches of 32; its queues hold about ten."""
    import os

    import numpy as np
    from spdl.pipeline import PipelineBuilder

    data, cores = job.inputs, os.cpu_count() or 1

    # Beside the three of its sink, the queue behind each stage holds two, and each stage another one that waits.
    def load(index: int) -> tuple[Any, Any]:
        return _load(data, index), data.labels[index]

    def together(loaded: Sequence[tuple[Any, Any]]) -> Batch:
        return np.stack([image for image, _ in loaded]), np.array([label for _, label in loaded])

    def batches() -> Iterator[Batch]:
        pipeline = (
            PipelineBuilder()
            .add_source(range(len(data.paths)))
            .pipe(load, concurrency=cores)
            .aggregate(job.batch_size)
            .pipe(together)
            .add_sink(3)
            .build(num_threads=cores + 1)
        )
        with pipeline.auto_stop():
            yield from pipeline.get_iterator()

    return batches()
