"""Images that are decoded once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from loaders._folder.written.files import File
from loaders._folder.written.image import Batch, empty, pixels_of, scale, shuffled

AT_ONCE = 1024
"""Images whose decoding waits in the pool."""


def fill(images: NDArray[np.uint8], files: Sequence[File]) -> NDArray[np.int64]:
    """Decode all images, on all cores; return the places of those that could be read."""

    def put_pixels(into: NDArray[np.uint8], path: str) -> bool:
        pixels = pixels_of(path)
        if pixels is not None:
            into[:] = pixels
        return pixels is not None

    is_read = np.empty(len(files), np.bool_)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start in range(0, len(files), AT_ONCE):  # a pool holds all that it is given
            part = slice(start, start + AT_ONCE)
            is_read[part] = list(pool.map(put_pixels, images[part], [path for path, _ in files[part]]))
    return np.flatnonzero(is_read)


def epoch_of(
    images: NDArray[np.uint8], there: NDArray[np.int64], files: Sequence[File], random: np.random.Generator
) -> Iterator[Batch]:
    """Yield the batches of an epoch of decoded images."""
    for places in shuffled(len(there), random):
        batch = empty([files[place] for place in there[places]])
        scale(images[there[places]], batch[0])
        yield batch
