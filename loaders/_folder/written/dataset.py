"""A generator's batches as a ``tf.data.Dataset``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from loaders._folder.written.image import HEIGHT, WIDTH, Batch
from loaders._folder.written.malloc import set_threshold_back


def dataset(epoch: Callable[[], Iterator[Batch]]) -> Any:
    """Return a ``tf.data.Dataset`` that calls ``epoch`` for each epoch, and has one batch ready."""

    def whole() -> Iterator[Batch]:
        set_threshold_back()
        for batch in epoch():
            if len(batch[1]):  # unless none of its images could be read
                yield batch

    pixels = tf.TensorSpec((None, HEIGHT, WIDTH, 3), tf.float32)
    labels = tf.TensorSpec((None,), tf.int64)
    return tf.data.Dataset.from_generator(whole, output_signature=(pixels, labels)).prefetch(1)
