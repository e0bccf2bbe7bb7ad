"""tf.data calls the decoder in a ``numpy_function``, as many at a time as ``AUTOTUNE`` chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from loaders._folder.written.files import File
from loaders._folder.written.image import BATCH, HEIGHT, WIDTH, put


def pipeline(files: Sequence[File], random: np.random.Generator) -> Any:
    """Return the batches."""

    def read(place: int) -> tuple[NDArray[np.float32], np.int64, bool]:
        path, label = files[place]
        image = np.empty((HEIGHT, WIDTH, 3), np.float32)
        is_read = put(path, image)
        return image, np.int64(label), is_read

    def as_tensors(place: Any) -> tuple[Any, Any, Any]:
        image, label, is_read = tf.numpy_function(read, [place], (tf.float32, tf.int64, tf.bool))
        return tf.ensure_shape(image, (HEIGHT, WIDTH, 3)), tf.ensure_shape(label, ()), tf.ensure_shape(is_read, ())

    def order() -> NDArray[np.int64]:
        return random.permutation(len(files))

    def places(_: int) -> Any:
        # A buffer that shuffles as many elements takes some hundred bytes for each.
        chosen = tf.numpy_function(order, [], tf.int64)
        return tf.data.Dataset.from_tensor_slices(tf.ensure_shape(chosen, (len(files),)))

    found = tf.data.Dataset.range(1).flat_map(places)
    found = found.map(as_tensors, num_parallel_calls=tf.data.AUTOTUNE)
    there = found.filter(lambda *sample: sample[2]).map(lambda *sample: sample[:2])
    return there.batch(BATCH).prefetch(1)
