"""How malloc is set back after ``Dataset.from_generator``, on which Keras's ``PyDataset`` rests too.

When the first generator of a process is about to be called, TensorFlow 2.21 sets a threshold of glibc's malloc to
128 KiB (``ApplyPython311MemoryPatch`` in ``libtensorflow_cc``; on Python 3.11 and 3.12). It does so once, for the whole
process, against memory that grows (tensorflow/tensorflow#65675). What is larger is then given back to the system
whenever it is freed, and every new array is in pages that the system clears first: for 640 images of 500x375 pixels,
decoded with OpenCV, 390 000 of them, and 4 000 with the highest threshold.
"""

from __future__ import annotations

import ctypes

M_MMAP_THRESHOLD, HIGHEST = -3, 32 * 2**20
"""The parameter, and the highest that it can be on 64 bits (``man mallopt``)."""


def has_threshold() -> bool:
    """Whether this C library has the parameter; those of macOS and Windows, and musl, do not."""
    try:
        return hasattr(ctypes.CDLL(None), "mallopt")
    except (OSError, TypeError):
        return False


def set_threshold_back(to: int) -> None:
    """Let malloc keep what is freed for what comes next.

    Parameters
    ----------
    to
        In bytes; ``HIGHEST`` if that is less. What is as large is still given back: with the bytes of a batch, where
        malloc by itself ends up, 640 images took as little memory as before, with ``HIGHEST`` six to ten batches more.
    """
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, min(to, HIGHEST))
