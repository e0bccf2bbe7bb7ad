"""Ray: ``ray.data``, whose blocks pass through shared memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import Files, _load


@variant(optional=("ray",), only={"data": ("x16",), "augment": ("off",)})  # a cluster takes seconds to start
def ray_data(job: Job[Files]) -> Iterable[Batch]:
    """Ray Data ``from_items(paths).map(…).iter_batches(batch_size=32)`` on a local cluster, which it starts itself."""
    import logging
    import os

    import ray

    data = job.inputs
    if not ray.is_initialized():
        ray.init(num_cpus=os.cpu_count(), include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False

    def load(row: dict[str, int]) -> dict[str, Any]:
        return {"image": _load(data, row["item"]), "label": data.labels[row["item"]]}

    def batches() -> Iterator[Batch]:
        loaded = ray.data.from_items(list(range(len(data.paths)))).map(load)
        for part in loaded.iter_batches(batch_size=job.batch_size, batch_format="numpy"):
            yield part["image"], part["label"]

    return batches()
