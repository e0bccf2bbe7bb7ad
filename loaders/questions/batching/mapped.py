"""Decoded once, into a file that is mapped into memory."""

from __future__ import annotations

from collections.abc import Iterable

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import SIDE, Files, _load, _parts


def _write_array(job: Job[Files]) -> None:
    import numpy as np

    data = job.inputs
    shape = (len(data.paths), SIDE, SIDE, 3)
    mapped = np.lib.format.open_memmap(str(job.directory / "images.npy"), "w+", np.float32, shape)
    for index in range(len(data.paths)):
        mapped[index] = _load(data, index)
    mapped.flush()


@variant(quick=True, convert=_write_array)
def memory_map(job: Job[Files]) -> Iterable[Batch]:
    """Decoded once, on one thread, into a mapped file; copied from it in order; the system can reclaim its pages."""
    import numpy as np

    images = np.load(job.directory / "images.npy", mmap_mode="r")
    for part in _parts(job):
        yield np.array(images[part.start : part.stop]), job.inputs.labels[part.start : part.stop]
