"""A generator reads a batch at a time: one image after another, on one thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from loaders._folder.written.dataset import dataset
from loaders._folder.written.files import File
from loaders._folder.written.image import Batch, empty, put, shuffled, without

ON_ONE_THREAD = True  # it decodes one image at a time


def pipeline(files: Sequence[File], random: np.random.Generator) -> Any:
    """Return the batches."""

    def epoch() -> Iterator[Batch]:
        for places in shuffled(len(files), random):
            part = [files[place] for place in places]
            batch = empty(part)
            yield without(batch, [put(path, into) for (path, _), into in zip(part, batch[0], strict=True)])

    return dataset(epoch)
