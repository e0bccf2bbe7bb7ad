"""WebDataset: samples in tar files, read in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import Files, Reiterable, _finished

SHARD = 20
"""Samples in a tar file: few, so that the least data fill one for each worker."""

SHUFFLED = 100
"""Samples in the shuffle buffer, as they are in the files."""

WORKERS = 2
"""Processes."""


def _into_tars(job: Job[Files]) -> None:
    """Write the files as they are, with their labels, into tar files."""
    from pathlib import Path

    from webdataset import ShardWriter

    data = job.inputs
    with ShardWriter(str(job.directory / "%05d.tar"), maxcount=SHARD, verbose=0) as writer:
        for index, (path, label) in enumerate(zip(data.paths, data.labels, strict=True)):
            writer.write({"__key__": f"{index:06}", "jpg": Path(path).read_bytes(), "cls": str(label).encode()})


class _Decoded:
    """Decodes a sample. At the top of a module, so that worker processes can be given it."""

    def __init__(self, data: Files) -> None:
        self.data = data

    def __call__(self, sample: dict[str, Any]) -> tuple[Any, int]:
        import cv2
        import numpy as np

        picture = cv2.imdecode(np.frombuffer(sample["jpg"], np.uint8), cv2.IMREAD_COLOR)
        index = int(sample["__key__"])
        return _finished(self.data, index, cv2.cvtColor(np.asarray(picture), cv2.COLOR_BGR2RGB)), int(sample["cls"])


def _batched(job: Job[Files]) -> Any:
    from webdataset import WebDataset

    tars = sorted(str(each) for each in job.directory.glob("*.tar"))
    whole = WebDataset(tars, shardshuffle=False, empty_check=False).shuffle(SHUFFLED).map(_Decoded(job.inputs))
    return whole.batched(job.batch_size, partial=True)


@variant(optional=("webdataset",), convert=_into_tars)
def webdataset(job: Job[Files]) -> Iterable[Batch]:
    """WebDataset over tar files of 20 images, shuffled in a buffer of 100, one image after another on one thread."""
    return _batched(job)


# Of each worker two batches ahead and one that it makes, two in hand, and its shuffle buffer.
@variant(optional=("webdataset", "torch"), convert=_into_tars, capacity=(3 * WORKERS + 2) * 32 + WORKERS * SHUFFLED)
def webdataset_workers(job: Job[Files]) -> Iterable[Batch]:
    """The same through ``WebLoader(batch_size=None, num_workers=2)``: two processes, which share the tar files."""
    from webdataset import WebLoader

    loader = WebLoader(_batched(job), batch_size=None, num_workers=WORKERS)

    def batches() -> Iterator[Batch]:
        for pictures, labels in loader:
            yield pictures.numpy(), labels.numpy()

    return Reiterable(batches)
