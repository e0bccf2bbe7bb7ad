"""A pool of threads decodes the images of a batch, while the batch before is in use."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from loaders._folder.written.dataset import dataset
from loaders._folder.written.files import File
from loaders._folder.written.image import Batch, empty, put, shuffled, without


def pipeline(files: Sequence[File], random: np.random.Generator) -> Any:
    """Return the batches."""

    def epoch() -> Iterator[Batch]:
        under_way: deque[tuple[Batch, list[Future[bool]]]] = deque()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for places in shuffled(len(files), random):
                part = [files[place] for place in places]
                batch = empty(part)
                reading = [pool.submit(put, path, into) for (path, _), into in zip(part, batch[0], strict=True)]
                under_way.append((batch, reading))
                if len(under_way) > 1:
                    yield _finished(*under_way.popleft())
            while under_way:
                yield _finished(*under_way.popleft())

    return dataset(epoch)


def _finished(batch: Batch, reading: Sequence[Future[bool]]) -> Batch:
    return without(batch, [each.result() for each in reading])
