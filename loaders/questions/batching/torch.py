"""torch: ``DataLoader`` with worker processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import Files, Reiterable, _load


class _Images:
    """A map-style data set. At the top of a module, so that workers that are not forked can be given it too."""

    def __init__(self, data: Files) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data.paths)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return _load(self.data, index), int(self.data.labels[index])


def _loaded(job: Job[Files], workers: int, **more: Any) -> Iterable[Batch]:
    """Return a ``DataLoader``'s batches as NumPy arrays; each epoch iterates it anew, as a training loop does."""
    from torch.utils.data import DataLoader

    images = _Images(job.inputs)
    loader = DataLoader(images, batch_size=job.batch_size, shuffle=True, num_workers=workers, **more)

    def batches() -> Iterator[Batch]:
        for pictures, labels in loader:
            yield pictures.numpy(), labels.numpy()

    return Reiterable(batches)


@variant(optional=("torch",), capacity=2 * 32)  # the batch in hand, and the one being made
def torch_dataloader_0(job: Job[Files]) -> Iterable[Batch]:
    """torch ``DataLoader`` with ``num_workers=0``: in the process that trains, one image after another."""
    return _loaded(job, workers=0)


@variant(optional=("torch",), capacity=(2 * 2 + 2) * 32)  # prefetch_factor=2 for each worker
def torch_dataloader_2(job: Job[Files]) -> Iterable[Batch]:
    """torch ``DataLoader`` with two worker processes, which are started for each epoch, as is the default."""
    return _loaded(job, workers=2)


@variant(optional=("torch",), capacity=(2 * 2 + 2) * 32)
def torch_dataloader_2_persistent(job: Job[Files]) -> Iterable[Batch]:
    """The same with ``persistent_workers=True``: started once, which is then in no steady epoch."""
    return _loaded(job, workers=2, persistent_workers=True)


@variant(optional=("torch",), capacity=(2 * 4 + 2) * 32)
def torch_dataloader_4(job: Job[Files]) -> Iterable[Batch]:
    """torch ``DataLoader`` with four worker processes."""
    return _loaded(job, workers=4)
