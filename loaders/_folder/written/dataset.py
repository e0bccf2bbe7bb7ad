"""A generator's batches as a ``tf.data.Dataset``."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from loaders._folder.written.image import HEIGHT, WIDTH, Batch

M_MMAP_THRESHOLD, HIGHEST = -3, 32 * 2**20
"""A parameter of glibc's malloc, and the highest that it can be on 64 bits."""


def dataset(epoch: Callable[[], Iterator[Batch]]) -> Any:
    """Return a ``tf.data.Dataset`` that calls ``epoch`` for each epoch, and has one batch ready."""

    def whole() -> Iterator[Batch]:
        _set_threshold_back()
        for batch in epoch():
            if len(batch[1]):  # unless none of its images could be read
                yield batch

    pixels = tf.TensorSpec((None, HEIGHT, WIDTH, 3), tf.float32)
    labels = tf.TensorSpec((None,), tf.int64)
    return tf.data.Dataset.from_generator(whole, output_signature=(pixels, labels)).prefetch(1)


def _set_threshold_back() -> None:
    """Let malloc keep memory for the next image, as it did before ``from_generator``.

    The first one of a process sets a threshold of malloc to 128 KiB, for all of the process and for good (TensorFlow
    2.21). Every image then comes from new memory, which the system clears: that takes as long as half of decoding it.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library has nothing to be set back
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, HIGHEST)
