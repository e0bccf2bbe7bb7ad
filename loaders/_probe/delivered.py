"""What the epochs of a pipeline delivered: how much, of which shape, and whether it was the same in each."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from loaders._probe.adapt import SCALARS, Batch, is_picture
from loaders._units import Count, Name

MOST_KINDS, MOST_ARRAYS = 8, 12
"""Kinds of batches that are named, and arrays of one; the others are counted."""


MOST_VALUES = 2**26
"""Values of a sparse tensor, with its zeros, up to which it is compared."""


class Epoch(msgspec.Struct, frozen=True):
    """One epoch.

    ``content`` is a digest of its samples, whatever their order.
    """

    batches: Count
    samples: Count
    content: Name


class Delivered(msgspec.Struct, frozen=True):
    """Two epochs that were read after the measurement, or none in a trial that was not to be checked.

    Attributes
    ----------
    kinds
        The shapes and dtypes of a batch's arrays, as ``float32[32, 224, 224, 3], int64[32]``; a number of samples other
        than the most frequent one does not make another kind.
    more_kinds
        How many more kinds there are.
    only_first, only_second
        The number of samples that only one of the two epochs has.
    same_order
        Whether they came in the same order.
    twice
        The number of samples that an epoch delivers more than once.
    failed
        What the pipeline raised while it was measured or read again, and ``after`` how many batches.
    whole
        Whether its arrays do not tell if a batch is one sample or several, because their lengths differ, for example.
        Its samples could not be told apart, and each batch counts as one.
    unread
        Why its samples could not be compared, though they were to be; then there are no epochs.
    """

    epochs: list[Epoch]
    kinds: list[Name]
    more_kinds: Count = 0
    only_first: Count = 0
    only_second: Count = 0
    same_order: bool = False
    twice: Count = 0
    failed: str = ""
    after: Count = 0
    whole: bool = False
    unread: str = ""


def read(epochs: Iterable[Iterable[Batch]]) -> Delivered:
    """Read two epochs, or none, and compare them by digests of their samples."""
    found: list[Epoch] = []
    orders: list[list[bytes]] = []
    kinds: Counter[str] = Counter()
    whole = False
    for epoch in epochs:
        batches, order = 0, list[bytes]()
        for batch in epoch:
            batches += 1
            kinds[_kind(batch)] += 1
            whole |= _is_whole(batch)
            order += digests(batch)
        found.append(Epoch(batches, len(order), _content(order)))
        orders.append(order)
    first, second = (Counter(order) for order in orders or ([], []))
    common = [kind for kind, _ in kinds.most_common()]
    return Delivered(
        epochs=found,
        kinds=common[:MOST_KINDS],
        more_kinds=max(0, len(common) - MOST_KINDS),
        only_first=(first - second).total(),
        only_second=(second - first).total(),
        same_order=bool(orders) and orders[0] == orders[1],
        twice=sum(count - 1 for count in first.values()),
        whole=whole,
    )


def _is_whole(batch: Batch) -> bool:
    """Whether a batch counts as one sample though it may hold several.

    So may an array alone that has the shape of a picture, as a batch of series or of clouds of points has.
    """
    if len(batch[0]) != 1:
        return False
    shapes: list[tuple[int, ...]] = [
        (len(each),) if isinstance(each, list) else tuple(getattr(each, "shape", ())) for each in batch.arrays
    ]
    lengths = [each[0] for each in shapes if each]
    if len(shapes) == 1:
        return is_picture(shapes[0]) and lengths[0] > 1
    if len(lengths) < len(shapes):
        return len(lengths) > 1 and min(lengths) > 1 and len(set(lengths)) == 1  # and a number for all of them
    if sum(map(is_picture, shapes)) == 1:
        return False  # one sample, which is a picture with something beside it
    return len(set(lengths)) > 1 and min(lengths) > 1


def digests(batch: Batch) -> Iterator[bytes]:
    """Yield a digest of each sample of a batch: of its values in every array, with their dtype and shape."""
    import numpy as np

    samples, arrays = len(batch[0]), batch.arrays
    columns = [_column(each, np) for each in arrays]
    is_single = any(len(each) != samples for each in columns) or samples == 1
    for index in range(samples):
        state = hashlib.blake2b(digest_size=8)
        for column in columns:
            value = np.asarray(column if is_single and len(column) != samples else column[index])
            state.update(f"{value.dtype.str}{value.shape}".encode())
            state.update(np.ascontiguousarray(value).tobytes() if value.dtype != object else _told(value))
        yield state.digest()


def _told(value: Any) -> bytes:
    """Return what an array of objects holds, all of it: the ``repr`` of a large array leaves most of it out."""
    said = repr(value.tolist())
    if " object at 0x" in said:
        raise ValueError("objects that are told apart by their addresses alone are not compared")
    return said.encode(errors="surrogatepass")


def _column(leaf: Any, np: Any) -> Any:
    """Return an array's values, so that they can be indexed; a single value becomes an array of one."""
    if isinstance(leaf, SCALARS):
        return np.asarray([leaf])
    if hasattr(leaf, "to_list"):  # a ragged tensor
        return leaf.to_list()
    if hasattr(leaf, "dense_shape"):  # a sparse tensor
        import tensorflow as tf

        if math.prod(leaf.dense_shape.numpy().tolist()) > MOST_VALUES:
            raise ValueError(f"a sparse tensor of {MOST_VALUES} values or more is not compared")
        leaf = tf.sparse.to_dense(tf.sparse.reorder(leaf))
    if hasattr(leaf, "detach"):  # a torch tensor
        leaf = leaf.detach().cpu()
    if isinstance(leaf, Sequence):
        return leaf
    return np.atleast_1d(np.asarray(leaf))


def _content(order: Sequence[bytes]) -> str:
    """Return a digest of samples that does not depend on their order."""
    return f"{sum(int.from_bytes(each, 'big') for each in order) % 2**64:016x}"


def _kind(batch: Batch) -> str:
    """Describe a batch's arrays; the number of samples is written as ``n``."""
    samples = len(batch[0])
    named = [_shape(each, samples)[:MOST_LETTERS] for each in batch.arrays[:MOST_ARRAYS]]
    more = len(batch.arrays) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])])


MOST_LETTERS = 36
"""Of an array's description: a record's texts are short, so that nothing can fill a log."""


def _shape(leaf: Any, samples: int) -> str:
    if not hasattr(leaf, "shape"):
        return type(leaf).__name__ if isinstance(leaf, SCALARS) else f"{type(leaf).__name__}[n]"
    kind = getattr(leaf.dtype, "name", str(leaf.dtype).removeprefix("torch."))
    shape = [str(each) for each in leaf.shape]
    if shape and samples > 1 and shape[0] == str(samples):
        shape[0] = "n"
    return f"{kind}[{', '.join(shape)}]"
