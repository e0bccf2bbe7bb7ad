"""What a user's function returns, as batches that can be drained and counted; nothing is copied."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from loaders._registry import Skip

SCALARS = (str, bytes, int, float, complex, bool)

FEATURES = 8
"""A list of more arrays of the same shape is taken for a list of samples rather than of features."""


class FailedError(Exception):
    """The pipeline raised an exception.

    Attributes
    ----------
    step
        The number of batches that came before, in all epochs.
    """

    def __init__(self, step: int, error: BaseException) -> None:
        super().__init__(str(error))
        self.step = step
        self.__cause__ = error


class Batch(tuple[Any, ...]):
    """The arrays of one batch, however it nests them; its first element has the number of samples as its length."""

    __slots__ = ()

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the pipeline delivered."""
        return self[1:]


class Batches:
    """A pipeline's batches, epoch after epoch.

    Attributes
    ----------
    made
        What the function has returned.
    failed
        What the pipeline raised, if it did. Then its epoch ends there, and each later one is empty.
    watch
        Called after each batch with its number in the epoch and the epoch's iterator.
    """

    def __init__(self, call: Callable[[], Any], steps: int | None, name: str) -> None:
        self._call, self._steps, self._name = call, steps, name
        self._source: Iterable[Any] | None = None
        self._endless: Iterator[Any] | None = None
        self.made: Any = None
        self.failed: FailedError | None = None
        self.watch: Callable[[int, Iterator[Any]], None] | None = None
        self._running: Iterator[Any] | None = None
        self._step = 0

    @property
    def is_keras(self) -> bool:
        """Whether Keras reads it, through a generator of its own."""
        return isinstance(self._source, _Keras)

    def build(self) -> Batches:
        """Call the user's function."""
        self._source, self._endless = None, None
        self._source = self._called()
        return self

    def drop(self) -> None:
        """Let go of what the function has returned, and of its iterators."""
        self._source, self._endless, self._running, self.made = None, None, None, None

    def _called(self) -> Iterable[Any]:
        self.made = self._call()
        return source(self.made, self._name, bounded=self._steps is not None)

    def __iter__(self) -> Iterator[Batch]:
        return _Epoch(self, self._delivered())

    def _delivered(self) -> Iterator[Batch]:
        if self.failed:
            return
        try:
            before = self._step
            yield from self._read()
            if self._step == before and self._source is not None:  # such as a pipeline of SPDL, which ends for good
                self._source = None
                yield from self._read()
        except Skip:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises
            self.failed = FailedError(self._step, error)

    def end_epoch(self) -> None:
        """Drop the iterator of an epoch and its buffers, unless the next goes on where this one has ended."""
        if self._steps is None:
            if self.made is self._running:  # the function has returned an iterator
                self.made = None
            self._running = None

    def _read(self) -> Iterator[Batch]:
        number = 0  # `enumerate` would hold a batch while the next one is made
        for batch in self._epoch():
            number += 1  # noqa: SIM113 - as said
            self._step += 1
            if self.watch and self._running is not None:
                self.watch(number, self._running)
            yield Batch((range(count(arrays := [*leaves(batch)])), *arrays))
            del batch, arrays

    def _epoch(self) -> Iterator[Any]:
        """Return an iterator over the next epoch; with a number of steps, it goes on where the last one ended."""
        if self._steps is None:
            return self._begun()
        if self._endless is None:
            self._endless = self._repeated()
        return itertools.islice(self._endless, self._steps)

    def _begun(self) -> Iterator[Any]:
        """Begin to read what the function has returned; if that can be read only once, call the function again."""
        made = self._called() if self._source is None else self._source
        self._running = iter(made)
        self._source = None if self._running is made else made
        return self._running

    def _repeated(self) -> Iterator[Any]:
        """Yield batches for ever, or until an epoch has none."""
        before = -1
        while self._step > before:
            before = self._step
            yield from self._begun()
            if self._step == before and self._source is not None:  # as in ``_delivered``
                self._source = None
                yield from self._begun()


class _Epoch(Iterator[Batch]):
    """The batches of one epoch; whoever drops it drops the pipeline's iterator, after the last batch and not with it.

    tf.data may take as long for that as for the epoch.
    """

    def __init__(self, batches: Batches, delivered: Iterator[Batch]) -> None:
        self._batches, self._delivered = batches, delivered

    def __next__(self) -> Batch:
        return next(self._delivered)

    def __del__(self) -> None:
        self._batches.end_epoch()


def source(made: Any, name: str, *, bounded: bool) -> Iterable[Any]:
    """Return what yields batches when it is iterated over.

    Parameters
    ----------
    made
        What the function has returned: a tf.data pipeline, a Keras ``PyDataset``, any other iterable.
    bounded
        Whether the number of steps is given, so that it need not end.

    Raises
    ------
    Skip
        If it cannot be iterated over, or is known never to end.
    """
    if _is(made, "keras", "utils", "PyDataset"):
        return _through_adapter(made, name, bounded=bounded)
    if _is(made, "tensorflow", "data", "Dataset") and not bounded:
        import tensorflow as tf

        if made.cardinality() == tf.data.INFINITE_CARDINALITY:
            raise Skip(f"{name} returns a dataset that never ends; give the length of an epoch: --steps N")
    if isinstance(made, tuple | list) and any(_is(each, "tensorflow", "data", "Dataset") for each in made):
        raise Skip(f"{name} returns {len(made)} things, one of them a pipeline; name a function that returns it alone")
    if isinstance(made, str | bytes | Mapping) or not isinstance(made, Iterable):
        what = "nothing" if made is None else f"a {type(made).__name__}"
        more = "; name a function that makes the pipeline" if callable(made) else ""
        raise Skip(f"{name} returns {what}, and not an iterable of batches{more}")
    return made


def _is(made: Any, package: str, *names: str) -> bool:
    """Whether something is of a class of a package, which is not imported for this."""
    found: Any = sys.modules.get(package)
    for name in names:
        found = getattr(found, name, None)
    return isinstance(found, type) and isinstance(made, found)


class _Keras:
    """A ``PyDataset`` through the adapter that ``fit`` uses: read by hand, it would use no workers."""

    def __init__(self, dataset: Any) -> None:
        from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter

        self._adapter = PyDatasetAdapter(dataset, shuffle=False)
        self._is_finite = dataset.num_batches is not None  # else what was made ahead is what comes next
        self._batches: Any = None

    def __iter__(self) -> Iterator[Any]:
        if self._batches is None:  # as in fit: made once, which reads two for their shapes before workers are forked
            self._batches = self._adapter.get_tf_dataset()
        self._adapter.on_epoch_begin()
        try:
            yield from self._batches
        finally:  # whoever takes the last batch may not ask for another
            self._adapter.on_epoch_end()
            if self._adapter.enqueuer and self._is_finite:  # as in ``loaders.questions.batching.keras``
                self._adapter.enqueuer.ready_queue.queue.clear()


def _through_adapter(made: Any, name: str, *, bounded: bool) -> Iterable[Any]:
    if made.num_batches is None and not bounded:
        raise Skip(f"{name} returns a PyDataset without an end; give the length of an epoch: --steps N")
    return _Keras(made)


def leaves(batch: Any) -> Iterator[Any]:
    """Yield the arrays of a batch, whatever they are nested in, from left to right."""
    if isinstance(batch, Mapping):
        for value in batch.values():
            yield from leaves(value)
    elif isinstance(batch, tuple | list) and not _is_column(batch):
        for value in batch:
            yield from leaves(value)
    elif hasattr(batch, "__dataclass_fields__"):
        for name in batch.__dataclass_fields__:
            yield from leaves(getattr(batch, name))
    elif batch is not None:
        yield batch


def _is_column(values: Sequence[Any]) -> bool:
    """Whether a sequence holds one value for each sample, and not one for each feature."""
    if values and all(isinstance(each, SCALARS) for each in values):
        return True
    shapes = {tuple(each.shape) if hasattr(each, "shape") else None for each in values}
    return len(values) > FEATURES and len(shapes) == 1 and None not in shapes


def count(arrays: Sequence[Any]) -> int:
    """Return the number of samples in a batch: the first dimension of all its arrays, or 1 for a single sample.

    Raises
    ------
    Skip
        If there is something in it that has no shape and no length.
    """
    shapes = [_shape(each) for each in arrays]
    if not shapes:
        return 0
    first = {shape[0] if shape else None for shape in shapes}
    (length, *others) = first
    is_alone = len(shapes) == 1 and is_picture(shapes[0])
    return 1 if others or length is None or is_alone else length


def is_picture(shape: Sequence[int]) -> bool:
    """Whether an array of this shape seems to be one picture: height, width and channels."""
    return len(shape) == 3 and shape[-1] in (1, 3, 4)


def _shape(leaf: Any) -> tuple[int, ...]:
    if hasattr(leaf, "shape"):
        return tuple(int(each) if each is not None else 0 for each in leaf.shape)
    if isinstance(leaf, SCALARS):
        return ()
    if isinstance(leaf, Sequence):
        return (len(leaf), *(_shape(leaf[0]) if len(leaf) and hasattr(leaf[0], "shape") else ()))
    raise Skip(
        f"a batch holds a {type(leaf).__module__}.{type(leaf).__qualname__}, whose samples cannot be counted; "
        "deliver arrays, tensors, or tuples, lists and dicts of them"
    )
