"""Read order: walk the records of a sharded, labelled data set.

*Asked.* A data set lies in several TFRecord files, sorted by label. Which way of walking them is fastest and
leanest, and how well does it mix?

*Held fixed.* The same records in five shards, each an encoded JPEG (about 50 KB) and a label; one shuffle
buffer of a quarter of the records, parsing, batches of 32, one epoch, a warm page cache.

*Not measured.* Decoding, which would hide the reading; a slow disk.

*Invisible when* decoding or training takes longer than reading: the strategies then differ in memory and order only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loaders._contract import Quality, check_drawn_from, order_quality
from loaders._registry import Batch, Case, Job, Question, Variant, variant

if TYPE_CHECKING:
    import tensorflow as tf

    from loaders._corpus import Corpus


@dataclass(frozen=True)
class Records:
    """Where the records are.

    Attributes
    ----------
    files
        The shards' paths.
    places
        For each record in order its file's number, the offset of its payload and its length, in bytes.
    shuffle_buffer
        In records.
    """

    files: list[str]
    places: list[tuple[int, int, int]]
    shuffle_buffer: int


def _prepare(corpus: Corpus, case: Case, seed: int) -> Records:  # noqa: ARG001 - one case, shuffling is seeded later
    places = [
        (number, offset, length)
        for number, shard in enumerate(corpus.shards)
        for offset, length in zip(shard.offsets, shard.lengths, strict=True)
    ]
    return Records(corpus.shard_paths, places, max(1, len(places) // 4))


def _check(job: Job[Records], variant: Variant, batches: Iterable[Batch]) -> Quality:  # noqa: ARG001
    from pathlib import Path

    images = [Path(path).read_bytes() for path in job.corpus.image_paths]
    labels = job.corpus.image_labels
    universe = list(zip(images, labels, strict=True))
    order = check_drawn_from(universe, len(universe), batches)
    shards = [number for number, _, _ in job.inputs.places]
    return Quality(order=order_quality(order, labels, shards))


QUESTION = Question(prepare=_prepare, check=_check)


def _parse(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the JPEG's bytes and the label of a serialised record."""
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    example = tf.io.parse_single_example(record, features)
    return example["image"], example["label"]


def _shuffled_batches(records: tf.data.Dataset, job: Job[Records]) -> Any:
    """Return what all but range indexing do after reading: shuffle, parse, batch, prefetch."""
    import tensorflow as tf

    return (
        records.shuffle(job.inputs.shuffle_buffer, seed=job.seed)
        .map(_parse, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(job.batch_size)
        .prefetch(tf.data.AUTOTUNE)
    )


@variant(baseline=True)
def range_indexed(job: Job[Records]) -> Iterable[Batch]:
    """``Dataset.range(n)``, shuffled whole, then fetch record i from its place in its file."""
    import tensorflow as tf

    places = job.inputs.places

    def fetch(index: int) -> bytes:
        number, offset, length = places[index]
        with open(job.inputs.files[number], "rb") as file:  # noqa: PTH123 - in a hot path
            file.seek(offset)
            return file.read(length)

    def record(index: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(tf.numpy_function(fetch, [index], tf.string), [])

    return (
        tf.data.Dataset.range(len(places))
        .shuffle(len(places), seed=job.seed)
        .map(record, num_parallel_calls=tf.data.AUTOTUNE)
        .map(_parse, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(job.batch_size)
        .prefetch(tf.data.AUTOTUNE)
    )


@variant
def sequential(job: Job[Records]) -> Iterable[Batch]:
    """One shard after another, then a shuffle buffer."""
    import tensorflow as tf

    return _shuffled_batches(tf.data.TFRecordDataset(job.inputs.files), job)


@variant
def parallel_reads(job: Job[Records]) -> Iterable[Batch]:
    """``TFRecordDataset(files, num_parallel_reads=4)`` with the default read buffer."""
    import tensorflow as tf

    return _shuffled_batches(tf.data.TFRecordDataset(job.inputs.files, num_parallel_reads=4), job)


@variant
def interleave(job: Job[Records]) -> Iterable[Batch]:
    """``list_files(shuffle).interleave(TFRecordDataset)`` over all shards at once, 4 parallel calls."""
    import glob

    import tensorflow as tf

    # `list_files` takes patterns; a path that holds [ or * must not act as one.
    files = tf.data.Dataset.list_files([glob.escape(path) for path in job.inputs.files], shuffle=True, seed=job.seed)
    records = files.interleave(
        tf.data.TFRecordDataset, cycle_length=len(job.inputs.files), block_length=1, num_parallel_calls=4
    )
    return _shuffled_batches(records, job)
