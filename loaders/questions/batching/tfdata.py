"""tf.data: ``map`` over paths or indices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import (
    SIDE,
    Files,
    _load,
    _native_bilinear_steps,
    _native_reduced_steps,
    _native_steps,
)

if TYPE_CHECKING:
    import tensorflow as tf


def _tfdata(job: Job[Files], calls: int, image: Callable[..., Any]) -> Any:
    import tensorflow as tf

    data = job.inputs
    changes = () if data.changes is None else (data.changes,)
    files = tf.data.Dataset.from_tensor_slices((data.paths, data.labels, *changes))
    loaded = files.map(lambda path, label, *change: (image(path, *change), label), num_parallel_calls=calls)
    return loaded.batch(job.batch_size).prefetch(tf.data.AUTOTUNE)


@variant(tier="same purpose")
def tfdata_paths_2(job: Job[Files]) -> Any:
    """tf.data over paths, TensorFlow's own operations, two parallel calls."""
    return _tfdata(job, 2, _native_steps)


@variant(tier="same purpose")
def tfdata_paths_2_untuned(job: Job[Files]) -> Iterable[Batch]:
    """The same with ``options.autotune.enabled = False``, which starts no thread that the end of an epoch waits for."""
    import tensorflow as tf

    options = tf.data.Options()
    options.autotune.enabled = False
    return tfdata_paths_2(job).with_options(options)


@variant(tier="same purpose")
def tfdata_paths_autotune(job: Job[Files]) -> Iterable[Batch]:
    """tf.data over paths, TensorFlow's own operations, ``AUTOTUNE``."""
    import tensorflow as tf

    return _tfdata(job, tf.data.AUTOTUNE, _native_steps)


@variant(tier="same purpose")
def tfdata_paths_bilinear(job: Job[Files]) -> Iterable[Batch]:
    """The same with ``tf.image.resize``'s default method, bilinear, as in TensorFlow's tutorials: it has aliases."""
    import tensorflow as tf

    return _tfdata(job, tf.data.AUTOTUNE, _native_bilinear_steps)


@variant(tier="same purpose")
def tfdata_reduced(job: Job[Files]) -> Iterable[Batch]:
    """tf.data with ``decode_jpeg(ratio=…, fancy_upscaling=False)``: the smallest of four sizes that covers 224x224.

    A photograph of less than 448 pixels is decoded whole, as all are that ship with scikit-image.
    """
    import tensorflow as tf

    return _tfdata(job, tf.data.AUTOTUNE, _native_reduced_steps)


@variant
def tfdata_numpy_function(job: Job[Files]) -> Iterable[Batch]:
    """tf.data over indices, the same OpenCV code in a ``numpy_function``, ``AUTOTUNE``."""
    import tensorflow as tf

    data = job.inputs

    def load(index: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        image = tf.numpy_function(lambda each: _load(data, int(each)), [index], tf.float32)
        return tf.ensure_shape(image, (SIDE, SIDE, 3)), label

    indices = tf.data.Dataset.range(len(data.paths))
    both = tf.data.Dataset.zip((indices, tf.data.Dataset.from_tensor_slices(data.labels)))
    loaded = both.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    return loaded.batch(job.batch_size).prefetch(tf.data.AUTOTUNE)
