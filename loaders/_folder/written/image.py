"""One image, and the batches of an epoch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from loaders._folder.written.files import File

BATCH = 32
HEIGHT = 224
WIDTH = 224

ALIGNED = 64

Batch = tuple[NDArray[np.float32], NDArray[np.int64]]
"""Pixels from -1 to 1, of shape (samples, HEIGHT, WIDTH, 3), in the order red, green, blue; and the labels."""

cv2.setNumThreads(1)  # as it was measured: several images at a time, each on one thread


def pixels_of(path: str) -> NDArray[np.uint8] | None:
    """Return an image at a batch's size, turned as its EXIF data says; warn, and return ``None``, if it is broken."""
    try:
        encoded = np.fromfile(path, np.uint8)
        picture = cv2.imdecode(encoded, cv2.IMREAD_COLOR) if encoded.size else None
    except (OSError, cv2.error):
        picture = None
    if picture is None:
        warnings.warn(f"{path} cannot be read and is left out", stacklevel=2)
        return None
    shrinks = picture.shape[0] >= HEIGHT and picture.shape[1] >= WIDTH
    resized = cv2.resize(picture, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    return np.asarray(cv2.cvtColor(resized, cv2.COLOR_BGR2RGB), np.uint8)


def scale(pixels: NDArray[np.uint8], into: NDArray[np.float32]) -> None:
    """Write pixels from -1 to 1."""
    np.divide(pixels, np.float32(127.5), out=into)
    np.subtract(into, np.float32(1), out=into)


def put(path: str, into: NDArray[np.float32]) -> bool:
    """Read an image into its place in a batch; return whether it could be read."""
    pixels = pixels_of(path)
    if pixels is not None:
        scale(pixels, into)
    return pixels is not None


def empty(files: Sequence[File]) -> Batch:
    """Return a batch with its labels, whose pixels are still to come.

    Its memory begins at a multiple of 64 bytes: TensorFlow takes such an array as it is, and copies any other.
    """
    shape = (len(files), HEIGHT, WIDTH, 3)
    size = 4 * math.prod(shape)
    memory = np.empty(size + ALIGNED, np.uint8)
    start = -memory.ctypes.data % ALIGNED
    pixels = memory[start : start + size].view(np.float32).reshape(shape)
    return pixels, np.array([label for _, label in files], np.int64)


def without(batch: Batch, read: Sequence[bool]) -> Batch:
    """Return a batch without the images that could not be read."""
    return batch if all(read) else (batch[0][np.array(read)], batch[1][np.array(read)])


def shuffled(count: int, random: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield the places of each batch's samples, for one epoch, in a new order."""
    order = random.permutation(count)
    for start in range(0, count, BATCH):
        yield order[start : start + BATCH]
