"""Keras: ``PyDataset`` with its workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from loaders._registry import Batch, Job, variant
from loaders.questions.batching import BY_LABEL, SIDE, UNCHANGED, Files, Reiterable, _batch, _by_label, _parts


class Epochs:
    """A ``PyDataset`` through the adapter that Keras uses in ``fit``: read by hand, it would use no workers.

    As in ``fit`` (``TFEpochIterator``), two batches are read for their shapes once, and before there are workers: those
    that are forked while OpenCV decodes its first image here wait for ever for its list of decoders.
    """

    def __init__(self, dataset: Any) -> None:
        from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter

        self._adapter = PyDatasetAdapter(dataset, shuffle=False)
        self._dataset = self._adapter.get_tf_dataset()

    def __iter__(self) -> Iterator[Batch]:
        self._adapter.on_epoch_begin()
        try:
            yield from self._dataset
        finally:  # also where an epoch is not read to its end: the next one could not begin
            self._adapter.on_epoch_end()
            if self._adapter.enqueuer:  # it keeps what was made ahead, and the next epoch would begin with that
                self._adapter.enqueuer.ready_queue.queue.clear()


QUEUE, SHORT = 10, 2
"""Batches: ``max_queue_size``, by default and where it is to be reached."""


def _pydataset(
    job: Job[Files], workers: int, *, queue: int = QUEUE, use_multiprocessing: bool = False
) -> Iterable[Batch]:
    how = {"workers": workers, "use_multiprocessing": use_multiprocessing, "max_queue_size": queue}
    return Epochs(_dataset(job.inputs, _parts(job), **how))


def _dataset(data: Files, parts: Sequence[range], **how: Any) -> Any:
    """Return a ``PyDataset`` of batches; a worker process that is no fork makes its own of the same ones."""
    import keras

    class Batches(keras.utils.PyDataset):  # type: ignore[misc] # keras ships without types
        def __len__(self) -> int:
            return len(parts)

        def __getitem__(self, index: int) -> tuple[Any, Any]:
            return _batch(data, parts[index])

        def __reduce__(self) -> tuple[Any, ...]:
            return _dataset, (data, parts)

    return Batches(**how)


@variant()
def keras_pydataset_1(job: Job[Files]) -> Iterable[Batch]:
    """Keras ``PyDataset``, ``workers=1``, for which Keras starts none: a generator and ``prefetch(AUTOTUNE)``."""
    return _pydataset(job, workers=1)


@variant(capacity=(QUEUE + 2 + 2) * 32)  # the queue, one batch per worker, two in hand
def keras_pydataset_2(job: Job[Files]) -> Iterable[Batch]:
    """Keras ``PyDataset`` through its adapter, two worker threads, ``max_queue_size=10``."""
    return _pydataset(job, workers=2)


@variant(capacity=(SHORT + 2 + 2) * 32)
def keras_pydataset_2_short_queue(job: Job[Files]) -> Iterable[Batch]:
    """The same with ``max_queue_size=2``, which a slow consumer fills."""
    return _pydataset(job, workers=2, queue=SHORT)


@variant(capacity=(QUEUE + 4 + 2) * 32)
def keras_pydataset_4(job: Job[Files]) -> Iterable[Batch]:
    """Keras ``PyDataset``, four worker threads."""
    return _pydataset(job, workers=4)


@variant(capacity=(QUEUE + 4 + 2) * 32)
def keras_pydataset_processes(job: Job[Files]) -> Iterable[Batch]:
    """Keras ``PyDataset``, four worker processes; their memory is in that of the process tree."""
    return _pydataset(job, workers=4, use_multiprocessing=True)


def _image_dataset(job: Job[Files], **how: Any) -> Any:
    import keras

    return keras.utils.image_dataset_from_directory(
        str(job.directory / BY_LABEL),
        image_size=(SIDE, SIDE),
        batch_size=job.batch_size,
        seed=job.seed,
        verbose=False,
        **how,
    )


@variant(tier="same purpose", only=UNCHANGED, convert=_by_label)
def keras_image_dataset(job: Job[Files]) -> Iterable[Batch]:
    """Keras ``image_dataset_from_directory``, as its guide writes it; what most users start from."""
    return _image_dataset(job).map(lambda images, labels: (images / 127.5 - 1.0, labels))


@variant(tier="same purpose", only=UNCHANGED, convert=_by_label, optional=("grain",))
def keras_image_dataset_grain(job: Job[Files]) -> Iterable[Batch]:
    """Keras ``image_dataset_from_directory(format="grain")``."""
    import numpy as np

    dataset = _image_dataset(job, format="grain")

    def batches() -> Iterator[Batch]:
        for images, labels in dataset:
            yield np.asarray(images, np.float32) / np.float32(127.5) - np.float32(1), np.asarray(labels)

    return Reiterable(batches)
