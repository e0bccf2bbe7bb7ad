"""How malloc is kept from giving back what the next image needs."""

from __future__ import annotations

import contextlib
import ctypes

from loaders._folder.written.image import BATCH, HEIGHT, WIDTH

M_MMAP_THRESHOLD, LOWEST, HIGHEST = -3, 4 * 2**20, 32 * 2**20
"""A parameter of glibc's malloc, what holds an image of a million pixels, and the highest that it can be on 64 bits."""


def set_threshold_back() -> None:
    """Let malloc keep memory for the next image, as it did before ``from_generator``, which Keras uses too.

    The first one of a process sets a threshold of malloc to 128 KiB, for all of the process and for good (TensorFlow
    2.21), against memory that grows (tensorflow/tensorflow#65675). Every image then comes from new memory, which the
    system clears. A batch is still given back: it is larger.
    """
    batch = BATCH * HEIGHT * WIDTH * 3 * 4
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library has nothing to be set back
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, min(max(batch, LOWEST), HIGHEST))
