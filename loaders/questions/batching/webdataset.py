"""WebDataset: samples in tar files, read in order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import Files, _finished

SHARD = 160
"""Samples in a tar file."""


def _into_tars(job: Job[Files]) -> None:
    """Write the files as they are, with their labels, into tar files."""
    from pathlib import Path

    from webdataset import ShardWriter

    data = job.inputs
    with ShardWriter(str(job.directory / "%05d.tar"), maxcount=SHARD, verbose=0) as writer:
        for index, (path, label) in enumerate(zip(data.paths, data.labels, strict=True)):
            writer.write({"__key__": f"{index:06}", "jpg": Path(path).read_bytes(), "cls": str(label).encode()})


@variant(optional=("webdataset",), convert=_into_tars)
def webdataset(job: Job[Files]) -> Iterable[Batch]:
    """WebDataset over tar files of 160 images, shuffled in a buffer of 100, one image after another on one thread."""
    import cv2
    import numpy as np
    from webdataset import WebDataset

    data = job.inputs

    def load(sample: dict[str, Any]) -> tuple[Any, int]:
        picture = cv2.imdecode(np.frombuffer(sample["jpg"], np.uint8), cv2.IMREAD_COLOR)
        index = int(sample["__key__"])
        return _finished(data, index, cv2.cvtColor(np.asarray(picture), cv2.COLOR_BGR2RGB)), int(sample["cls"])

    tars = sorted(str(each) for each in job.directory.glob("*.tar"))
    whole = WebDataset(tars, shardshuffle=False, empty_check=False).shuffle(100).map(load)
    return whole.batched(job.batch_size, partial=True)
