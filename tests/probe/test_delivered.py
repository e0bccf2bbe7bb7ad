"""What two epochs delivered is compared by content, whatever the order and the batches."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders._probe.adapt import Batch, count, leaves
from loaders._probe.delivered import Delivered, digests, read


def _batch(nested: Any) -> Batch:
    arrays = [*leaves(nested)]
    return Batch((range(count(arrays)), *arrays))


def _read(*epochs: list[Any]) -> Delivered:
    return read([[_batch(each) for each in epoch] for epoch in epochs])


NUMBERS = st.lists(st.integers(0, 50), min_size=1, max_size=30)


def _cut(numbers: list[int], size: int) -> list[Any]:
    return [
        (np.array(numbers[at : at + size]), np.array(numbers[at : at + size], np.float32)[:, None])
        for at in range(0, len(numbers), size)
    ]


def test_batches_whose_samples_cannot_be_told_apart_say_so() -> None:
    """Such as images with as many boxes as there are, or a list of pictures of different sizes."""
    boxes = (np.zeros((8, 4, 4, 3)), np.zeros((37, 6)))
    pictures = [np.zeros((size, 5, 3)) for size in range(20, 52)]
    assert _read([boxes], [boxes]).whole
    assert _read([pictures], [pictures]).whole
    beside = (np.zeros((32, 8, 8, 3)), np.zeros(32), np.int64(7))
    for several in (np.zeros((32, 1024, 3)), np.zeros((64, 48, 1)), beside, (beside[0][..., 0, :], *beside[1:])):
        assert _read([several], [several]).whole, "a batch, or a picture"
    alone = (np.zeros((224, 224, 3)), np.float32(1))
    for known in (alone, (alone[0], np.zeros(10)), (np.zeros((8, 4)), np.zeros(8)), {"text": "a", "number": 1}):
        assert not _read([known], [known]).whole


def test_samples_of_objects_are_compared_as_a_whole_or_not_at_all() -> None:
    """As padded words: what is printed of a long array leaves most of it out."""
    one, other = (np.full((2, 2000), "word", object) for _ in range(2))
    other[0, 1000] = "another"
    (first, second), (third, fourth) = (digests(_batch(each)) for each in (one, other))
    assert first == second == fourth != third
    nameless = np.full((2, 3), object(), object)
    with pytest.raises(ValueError, match="addresses"):
        [*digests(_batch(nameless))]


def test_samples_of_a_sparse_tensor_are_compared_by_their_values() -> None:
    import tensorflow as tf

    def made(order: list[int]) -> Any:
        values = np.arange(12.0).reshape(4, 3)[order]
        return tf.sparse.from_dense(values)

    found = _read([made([0, 1, 2, 3])], [made([2, 0, 3, 1])])
    assert (found.only_first, found.only_second, found.same_order) == (0, 0, False)
    assert _read([made([0, 1, 2, 3])], [made([0, 1, 2, 2])]).only_first == 1
    wide = tf.sparse.SparseTensor([[0, 0], [1, 10**8]], [1.0, 2.0], [2, 10**9])
    with pytest.raises(ValueError, match="is not compared"):
        _read([wide], [wide])


@given(NUMBERS, st.integers(1, 7), st.integers(1, 7), st.randoms(use_true_random=False))
def test_the_same_samples_are_the_same_in_any_order_and_batches(
    numbers: list[int], size: int, other: int, chance: Any
) -> None:
    shuffled = [*numbers]
    chance.shuffle(shuffled)
    found = _read(_cut(numbers, size), _cut(shuffled, other))
    assert (found.only_first, found.only_second) == (0, 0)
    assert found.epochs[0].content == found.epochs[1].content
    assert [each.samples for each in found.epochs] == [len(numbers)] * 2
    assert found.same_order == (numbers == shuffled)
    assert found.twice == len(numbers) - len(set(numbers))


@given(NUMBERS, NUMBERS, st.integers(1, 7))
def test_what_only_one_epoch_has_is_counted(one: list[int], other: list[int], size: int) -> None:
    found = _read(_cut(one, size), _cut(other, size))
    assert found.only_first - found.only_second == len(one) - len(other)
    assert (found.only_first == found.only_second == 0) == (sorted(one) == sorted(other))


@pytest.mark.parametrize(
    ("batch", "kind"),
    [
        ((np.zeros((4, 2), np.float32), np.zeros(4, np.int64)), "float32[n, 2], int64[n]"),
        ((np.zeros((8, 8, 3), np.uint8), 3), "uint8[8, 8, 3], int"),
        (["a", "b"], "list[n]"),
        (np.zeros((1, 5)), "float64[1, 5]"),
    ],
)
def test_a_batch_is_described_by_shapes_and_dtypes(batch: Any, kind: str) -> None:
    assert _read([batch], [batch]).kinds == [kind]


def test_a_batch_of_many_arrays_is_described_in_a_record_s_cell() -> None:
    """Such as one of a CSV file with a column for each feature."""
    wide = {f"column{number}": np.zeros((4, 224, 224), np.float32) for number in range(60)}
    found = _read([wide], [wide])
    assert msgspec.convert(msgspec.to_builtins(found), Delivered) == found
    assert found.kinds[0].endswith(", 48 more")


def test_kinds_beyond_the_most_are_counted() -> None:
    batches = [np.zeros((2, width)) for width in range(1, 12)]
    found = _read(batches, batches)
    assert (len(found.kinds), found.more_kinds) == (8, 3)


@pytest.mark.parametrize(
    "change",
    [
        lambda images, labels: (images.astype(np.float64), labels),
        lambda images, labels: (images[..., ::-1], labels),
        lambda images, labels: (images, labels + 1),
        lambda images, labels: (images.reshape(4, 3, 2), labels),
    ],
)
def test_a_sample_differs_by_any_value_dtype_or_shape(change: Any) -> None:
    images, labels = np.arange(24, dtype=np.float32).reshape(4, 2, 3), np.arange(4)
    same, other = (
        _read([(images, labels)], [(images.copy(), labels)]),
        _read([(images, labels)], [change(images, labels)]),
    )
    assert (same.only_first, other.only_first) == (0, 4)


def test_a_single_sample_has_one_digest() -> None:
    assert len([*digests(_batch((np.zeros((8, 8, 3)), 3)))]) == 1
    assert len([*digests(_batch(np.zeros((8, 8, 3))))]) == 1
