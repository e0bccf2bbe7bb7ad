"""Ray Data on a cluster of its own: the other engine that people outgrow one machine with."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from loaders._registry import Batch, Job, variant
from loaders.questions.service import DECODERS, READS, SIDE, Files
from loaders.questions.service.workers import TWO

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def _by_opencv(path: str) -> NDArray[np.uint8]:
    import cv2
    import numpy as np

    picture = cv2.cvtColor(np.asarray(cv2.imread(path)), cv2.COLOR_BGR2RGB)
    return np.asarray(cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA), np.uint8)


DECODERS["ray_data"] = _by_opencv

SHORT = "/tmp" if os.name == "posix" else None  # noqa: S108 - what is made there has a name that nobody can know
"""Where the cluster's directory is: the name of a socket in it may be 107 bytes long, of which Ray needs 64."""


@contextlib.contextmanager
def _cluster(_: Job[Any]) -> Iterator[None]:
    """Start a cluster on this machine, and end it with its processes and files."""
    import logging

    import ray

    ray.shutdown()  # of one that something else in this process has left
    with tempfile.TemporaryDirectory(prefix="ray-", dir=SHORT, ignore_cleanup_errors=True) as directory:
        ray.init(
            num_cpus=os.cpu_count(),
            include_dashboard=False,
            logging_level=logging.ERROR,
            log_to_driver=False,
            _temp_dir=directory,
        )
        ray.data.DataContext.get_current().enable_progress_bars = False
        try:
            yield
        finally:
            ray.shutdown()


@variant(tier="same purpose", optional=("ray",), serve=_cluster, only={"storage": ("slow",)})
def ray_data(job: Job[Files]) -> Iterable[Batch]:
    """Ray Data, OpenCV decoding; as many tasks as two workers have reads, but its times are those of one at a time."""
    import time

    import ray

    data = job.inputs
    together = TWO * READS
    share = (os.cpu_count() or 1) / together

    def load(row: dict[str, int]) -> dict[str, Any]:
        time.sleep(data.late)
        return {"image": _by_opencv(data.paths[row["item"]]), "number": row["item"]}

    def batches() -> Iterator[Batch]:
        items = ray.data.from_items(list(range(len(data.paths))))
        loaded = items.map(load, num_cpus=min(1.0, share), concurrency=together)
        for part in loaded.iter_batches(batch_size=job.batch_size, batch_format="numpy"):
            yield part["image"], part["number"]

    return batches()
