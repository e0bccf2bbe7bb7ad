"""A Keras ``PyDataset`` with a worker thread for each core."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from loaders._folder.written.files import File
from loaders._folder.written.image import BATCH, Batch, empty, put, without
from loaders._folder.written.malloc import set_threshold_back

QUEUE = 2
"""Batches that are made or wait to be used, at least: Keras counts both, so that fewer would leave threads idle."""


def pipeline(files: Sequence[File], random: np.random.Generator) -> Any:
    """Return the batches."""
    return Images(files, random)


class Images(keras.utils.PyDataset):  # type: ignore[misc] # keras ships without types
    """The images of a folder, a batch at a time."""

    def __init__(self, files: Sequence[File], random: np.random.Generator) -> None:
        threads = os.cpu_count() or 1
        super().__init__(workers=threads, max_queue_size=max(QUEUE, threads))
        self._files, self._random = files, random
        self.on_epoch_end()

    def __len__(self) -> int:
        return math.ceil(len(self._files) / BATCH)

    def __getitem__(self, index: int) -> Batch:
        set_threshold_back()
        part = [self._files[place] for place in self._order[index * BATCH : (index + 1) * BATCH]]
        batch = empty(part)
        read = [put(path, into) for (path, _), into in zip(part, batch[0], strict=True)]
        return without(batch, read) if any(read) else self._another(batch)

    def _another(self, batch: Batch) -> Batch:
        """Return a batch of the first image that can be read: ``fit`` takes no empty one, and waits for each batch."""
        pixels, labels = batch
        for path, label in self._files:
            if put(path, pixels[0]):
                labels[0] = label
                return pixels[:1], labels[:1]
        raise ValueError(f"none of the {len(self._files)} images can be read, such as {self._files[0][0]}")

    def on_epoch_end(self) -> None:
        """Choose the order of the next epoch."""
        self._order = self._random.permutation(len(self._files))
