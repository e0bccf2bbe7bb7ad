"""Grain and SPDL."""

import numpy as np

COUNT, BATCH = 800, 8


def _sample(number):
    return np.full(64, number, np.float32)


def sound_grain():
    import grain

    return grain.MapDataset.range(COUNT).map(_sample).batch(BATCH).to_iter_dataset()


def sound_spdl():
    """A pipeline that can be read once."""
    from spdl.pipeline import PipelineBuilder

    builder = PipelineBuilder().add_source(range(COUNT)).pipe(_sample, concurrency=2)
    return builder.aggregate(BATCH).pipe(np.stack).add_sink(4).build(num_threads=2)
