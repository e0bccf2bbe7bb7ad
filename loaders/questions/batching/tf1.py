"""TensorFlow 1: its queues."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import SIDE, Files, _load

QUEUE = 64
"""Capacity of the queue, in images."""


@variant(historic=True, capacity=QUEUE + 2 * 32 + 4)  # the queue, two batches in hand, one picture per thread
def tf1_queue(job: Job[Files]) -> Iterable[Batch]:
    """The queues of TensorFlow 1: ``slice_input_producer`` and ``train.batch(num_threads=4, capacity=64)``."""
    import numpy as np
    import tensorflow as tf

    data, v1 = job.inputs, tf.compat.v1

    def load(index: Any) -> Any:
        return _load(data, int(index))

    graph = tf.Graph()
    with graph.as_default():
        indices = np.arange(len(data.paths))
        index, label = v1.train.slice_input_producer([indices, data.labels], num_epochs=1, shuffle=False)
        image = v1.py_func(load, [index], tf.float32)
        image.set_shape((SIDE, SIDE, 3))
        queued = v1.train.batch(
            [image, label], job.batch_size, num_threads=4, capacity=QUEUE, allow_smaller_final_batch=True
        )
        initial = tf.group(v1.global_variables_initializer(), v1.local_variables_initializer())
    with v1.Session(graph=graph) as session:
        session.run(initial)
        coordinator = v1.train.Coordinator()
        threads = v1.train.start_queue_runners(session, coordinator)
        try:
            while True:
                images, labels = session.run(queued)
                yield images, labels
        except tf.errors.OutOfRangeError:
            pass
        finally:
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=5)
