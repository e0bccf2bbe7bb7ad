"""Decoded once, into a file that is mapped into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import SIDE, UNCHANGED, Files, _from_levels, _levels, _load, _parts

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

NAME = "images.npy"


def _write(job: Job[Files], dtype: DTypeLike, image: Callable[[int], NDArray[Any]]) -> None:
    import numpy as np

    count = len(job.inputs.paths)
    mapped = np.lib.format.open_memmap(str(job.directory / NAME), "w+", dtype, (count, SIDE, SIDE, 3))
    for index in range(count):
        mapped[index] = image(index)
    mapped.flush()


def _write_array(job: Job[Files]) -> None:
    import numpy as np

    _write(job, np.float32, lambda index: _load(job.inputs, index))


def _write_levels(job: Job[Files]) -> None:
    import numpy as np

    _write(job, np.uint8, lambda index: _levels(job.inputs.paths[index]))


@variant(quick=True, convert=_write_array, only=UNCHANGED)
def memory_map(job: Job[Files]) -> Iterable[Batch]:
    """Decoded once, on one thread, into a mapped file; copied from it in order; the system can reclaim its pages."""
    import numpy as np

    images = np.load(job.directory / NAME, mmap_mode="r")
    for part in _parts(job):
        yield np.array(images[part.start : part.stop]), job.inputs.labels[part.start : part.stop]


@variant(convert=_write_levels)
def memory_map_uint8(job: Job[Files]) -> Iterable[Batch]:
    """The same as bytes, a quarter of the file: each batch is changed and scaled when it is read, on one thread."""
    import numpy as np

    levels = np.load(job.directory / NAME, mmap_mode="r")
    for part in _parts(job):
        yield _from_levels(job.inputs, part, levels)
