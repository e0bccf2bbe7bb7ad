"""Everything is decoded into one array before the first batch; every epoch is read from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loaders._folder.written.dataset import dataset
from loaders._folder.written.decoded import epoch_of, fill
from loaders._folder.written.files import File
from loaders._folder.written.image import HEIGHT, WIDTH

KEEPS_ALL = True  # the pixels of all images, one byte a colour


def pipeline(files: Sequence[File], random: np.random.Generator) -> Any:
    """Decode all images, then return the batches."""
    images = np.empty((len(files), HEIGHT, WIDTH, 3), np.uint8)
    there = fill(images, files)
    return dataset(lambda: epoch_of(images, there, files, random))
