"""Hugging Face datasets: a folder of images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import BY_LABEL, UNCHANGED, Files, Reiterable, _by_label, _finished


@variant(optional=("datasets",), only=UNCHANGED, convert=_by_label)
def hf_datasets(job: Job[Files]) -> Iterable[Batch]:
    """Hugging Face ``load_dataset("imagefolder").with_transform(…)``: Pillow decodes in turn, label by label."""
    import numpy as np
    from datasets import disable_progress_bars, load_dataset

    disable_progress_bars()

    def ready(part: dict[str, list[Any]]) -> dict[str, list[Any]]:
        pictures = [np.asarray(image.convert("RGB")) for image in part["image"]]
        return {"image": [_finished(job.inputs, 0, each) for each in pictures], "label": part["label"]}

    cache = str(job.directory / "cache")
    whole = load_dataset("imagefolder", data_dir=str(job.directory / BY_LABEL), split="train", cache_dir=cache)
    chosen = whole.with_transform(ready)
    # A folder without images is not among its labels, so they are not the numbers that the folders are named for.
    labels = np.array([int(name) for name in whole.features["label"].names])

    def batches() -> Iterator[Batch]:
        for part in chosen.iter(batch_size=job.batch_size):
            yield np.stack(part["image"]), labels[part["label"]]

    return Reiterable(batches)
