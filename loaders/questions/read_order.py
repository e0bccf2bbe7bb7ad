"""Read order: walk the records of a sharded, labelled data set.

*Asked.* A data set is stored in several TFRecord files, sorted by label. Which way of walking them is fastest and
leanest, how well does it mix the records, and what is to blame when memory keeps growing?

*Held fixed.* The same records in five shards are walked several times in one pass (``repeat``), with a warm page cache.
The pipeline has a shuffle buffer of a quarter of the records, parses, makes batches of 32 and prefetches two of them.
A record is an encoded JPEG (about 50 KB), a decoded tensor (about 0.5 MB) or one integer; integers have no shuffle
buffer, so that the order of reading shows. ``data`` is a sixteenth, a quarter or all of the records (x1, x4, x16).
*Mixed* strategies draw from two sources, the last shard and the others, with weights 0.1 and 0.9. Allocator settings
are set before a trial's process starts.

*Not measured.* Decoding, which would hide the reading; a slow disk.

*Invisible when* decoding or training takes longer than reading: the strategies then differ only in memory and order.
Growth shows only in long trials of some hundred batches (``--epochs``), and with large records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loaders._contract import Quality, check_drawn_from, order_quality
from loaders._registry import Batch, Case, Job, Question, Skip, Variant, variant

if TYPE_CHECKING:
    import tensorflow as tf

    from loaders._corpus import Corpus, Shard

PREFETCHED = 2
"""Batches. A number and not AUTOTUNE, so that it is known how much a pipeline may hold."""

PICTURES = {"record": ("jpeg", "tensor")}
TENSORS = {"record": ("tensor",), "data": ("x16",)}
"""The case in which an allocator's habits show; with smaller records there is little to cure."""


@dataclass(frozen=True)
class Records:
    """The records and where they are stored.

    Attributes
    ----------
    shards
        The TFRecord files.
    places
        For each record, in order: the number of its file, and the offset and length of its payload in bytes.
    shuffle_buffer
        The size of the shuffle buffer, in records.
    record
        What a record holds: the value of the case's ``record``.
    images
        For each record, in order: the index of its image in the corpus.
    """

    shards: list[Shard]
    places: list[tuple[int, int, int]]
    shuffle_buffer: int
    record: str
    images: list[int]

    @property
    def is_integer(self) -> bool:
        """Whether a record holds one integer instead of a picture and its label."""
        return self.record == "int64"

    @property
    def files(self) -> list[str]:
        """The shards' paths."""
        return [shard.path for shard in self.shards]


def _prepare(corpus: Corpus, case: Case, seed: int) -> Records:  # noqa: ARG001 - shuffling is seeded later
    count = corpus.amount(case["data"], len(corpus.image_paths))
    shards = corpus.encoded(case["record"], count)
    places = [
        (number, offset, length)
        for number, shard in enumerate(shards)
        for offset, length in zip(shard.offsets, shard.lengths, strict=True)
    ]
    # The order of the integers is charted, and a shuffle buffer would hide how they were read.
    buffer = 1 if case["record"] == "int64" else max(1, len(places) // 4)
    return Records(shards, places, buffer, case["record"], corpus.evenly(count))


def _payload(inputs: Records, index: int) -> bytes:
    """Read one record from its place in its file."""
    number, offset, length = inputs.places[index]
    with open(inputs.shards[number].path, "rb") as file:  # noqa: PTH123 - in a hot path
        file.seek(offset)
        return file.read(length)


def _samples(corpus: Corpus, inputs: Records) -> Iterator[tuple[Any, ...]]:
    """Yield what every record should hold: of JPEG records the image file, of others what their place holds."""
    from pathlib import Path

    import tensorflow as tf

    if inputs.record == "jpeg":
        paths, labels = corpus.image_paths, corpus.image_labels
        for place in inputs.images:
            yield Path(paths[place]).read_bytes(), labels[place]
        return
    for index in range(len(inputs.places)):
        feature = tf.train.Example.FromString(_payload(inputs, index)).features.feature
        if inputs.is_integer:
            yield (feature["index"].int64_list.value[0],)
        else:
            yield (feature["image"].bytes_list.value[0], feature["label"].int64_list.value[0])


def _check(job: Job[Records], variant: Variant, batches: Iterable[Batch]) -> Quality:
    inputs = job.inputs
    order = check_drawn_from(_samples(job.corpus, inputs), len(inputs.places), batches, may_lose=variant.may_lose)
    shards = [number for number, _, _ in inputs.places]
    of_images = job.corpus.image_labels
    labels = shards if inputs.is_integer else [of_images[place] for place in inputs.images]
    return Quality(
        order=order_quality(order, labels, shards),
        walk=order if inputs.is_integer else None,
        lost=len(inputs.places) - len(order),
    )


def _floor(job: Job[Records], variant: Variant) -> int | None:
    """Return the bytes that a pipeline must hold at least: its shuffle buffer and the batch in hand.

    Prefetched batches are not counted: a consumer that only drains takes each as soon as it is ready.
    """
    inputs = job.inputs
    if inputs.is_integer:
        return None
    mean = sum(length for _, _, length in inputs.places) / len(inputs.places)
    shuffled = 0 if variant.name == range_indexed.__name__ else inputs.shuffle_buffer
    return int(mean * (shuffled + job.batch_size))


QUESTION = Question(
    prepare=_prepare,
    check=_check,
    when="read five TFRecord files of JPEG pictures through a shuffle buffer of a quarter of them, without decoding",
    floor=_floor,
    shards=lambda job: job.inputs.shards,
    reads=lambda job, _: job.inputs.files,
    axes={"record": ("jpeg", "tensor", "int64"), "data": ("x1", "x4", "x16")},
    slices=(
        {"record": "jpeg", "data": "x16"},
        {"record": "jpeg", "data": "x1"},
        {"record": "jpeg", "data": "x4"},
        {"record": "tensor", "data": "x16"},
        {"record": "int64", "data": "x16"},
    ),
    size_axis="data",
    ranked_by="steady_time",
    epochs=8,
    quick_epochs=5,  # the last pass is short by what the one before has read ahead, and must not be one of two
    repeats=True,
)


def _parser(job: Job[Records]) -> Any:
    """Return the function that parses a serialised record into a sample."""
    import tensorflow as tf

    features: dict[str, Any] = (
        {"index": tf.io.FixedLenFeature([], tf.int64)}
        if job.inputs.is_integer
        else {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    )

    def parse(record: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return tuple(tf.io.parse_single_example(record, features)[name] for name in features)

    return parse


def _batches(records: tf.data.Dataset, job: Job[Records], *, parsed: bool = False, prefetch: bool = True) -> Any:
    """Do what all strategies but range indexing do after reading: repeat, shuffle, parse, batch, prefetch."""
    import tensorflow as tf

    shuffled = records.repeat(job.epochs).shuffle(job.inputs.shuffle_buffer, seed=job.seed)
    if not parsed:
        shuffled = shuffled.map(_parser(job), num_parallel_calls=tf.data.AUTOTUNE)
    batched = shuffled.batch(job.batch_size)
    return batched.prefetch(PREFETCHED) if prefetch else batched


def _parallel(files: Sequence[str]) -> Any:
    import tensorflow as tf

    return tf.data.TFRecordDataset(files, num_parallel_reads=4)


def _interleaved(files: Sequence[str], seed: int, **options: Any) -> Any:
    """Read all files at once, one record from each in turn; TensorFlow wants no more calls than files."""
    import glob

    import tensorflow as tf

    # `list_files` takes patterns; a path that holds [ or * must not act as one.
    listed = tf.data.Dataset.list_files([glob.escape(path) for path in files], shuffle=True, seed=seed)
    return listed.interleave(tf.data.TFRecordDataset, cycle_length=len(files), block_length=1, **options)


def _sources(job: Job[Records]) -> tuple[list[str], list[str]]:
    """Return the files of the two sources to mix: all shards but the last, and the last."""
    files = job.inputs.files
    return files[:-1], files[-1:]


def _two_parallel(job: Job[Records]) -> list[Any]:
    return [_parallel(part) for part in _sources(job)]


def _two_interleaved(job: Job[Records]) -> list[Any]:
    return [_interleaved(part, job.seed, num_parallel_calls=min(4, len(part))) for part in _sources(job)]


def _mixed(sources: Sequence[Any], job: Job[Records]) -> Any:
    import tensorflow as tf

    # Draw until both sources are empty, so that an epoch holds every record once.
    return tf.data.Dataset.sample_from_datasets(sources, [0.9, 0.1], seed=job.seed, stop_on_empty_dataset=False)


@variant(baseline=True, quick=True)
def range_indexed(job: Job[Records]) -> Iterable[Batch]:
    """``Dataset.range(n)``, fully shuffled; then record i is fetched from its place in its file."""
    import tensorflow as tf

    inputs = job.inputs

    def record(index: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(tf.numpy_function(lambda i: _payload(inputs, i), [index], tf.string), [])

    return (
        tf.data.Dataset.range(len(inputs.places))
        .shuffle(len(inputs.places), seed=job.seed)
        .repeat(job.epochs)
        .map(record, num_parallel_calls=tf.data.AUTOTUNE)
        .map(_parser(job), num_parallel_calls=tf.data.AUTOTUNE)
        .batch(job.batch_size)
        .prefetch(PREFETCHED)
    )


@variant
def sequential(job: Job[Records]) -> Iterable[Batch]:
    """One shard after another, then a shuffle buffer."""
    import tensorflow as tf

    return _batches(tf.data.TFRecordDataset(job.inputs.files), job)


@variant(quick=True)
def parallel_reads(job: Job[Records]) -> Iterable[Batch]:
    """``TFRecordDataset(files, num_parallel_reads=4)`` with the default read buffer."""
    return _batches(_parallel(job.inputs.files), job)


@variant(only=PICTURES, historic=True)
def parallel_reads_100(job: Job[Records]) -> Iterable[Batch]:
    """Parallel reads with ``buffer_size=100``, as published: its author meant records, but the unit is bytes."""
    import tensorflow as tf

    records = tf.data.TFRecordDataset(job.inputs.files, buffer_size=100, num_parallel_reads=4)
    return _batches(records, job)


@variant(only={"record": ("jpeg",)}, may_lose=True)
def parallel_reads_ignore_errors(job: Job[Records]) -> Iterable[Batch]:
    """Parallel reads with ``ignore_errors()``, which drops damaged records; the result says how many were lost."""
    return _batches(_parallel(job.inputs.files).ignore_errors(), job)


@variant
def interleave(job: Job[Records]) -> Iterable[Batch]:
    """``list_files(shuffle).interleave(TFRecordDataset)`` over all shards at once, 4 parallel calls."""
    return _batches(_interleaved(job.inputs.files, job.seed, num_parallel_calls=4), job)


@variant(quick=True)
def interleave_sequential(job: Job[Records]) -> Iterable[Batch]:
    """Interleave without ``num_parallel_calls``: one thread takes from each shard in turn."""
    return _batches(_interleaved(job.inputs.files, job.seed), job)


@variant
def interleave_deterministic_false(job: Job[Records]) -> Iterable[Batch]:
    """Interleave that takes whichever shard is ready (``deterministic=False``)."""
    return _batches(_interleaved(job.inputs.files, job.seed, num_parallel_calls=4, deterministic=False), job)


@variant(only=PICTURES)
def interleave_autotune(job: Job[Records]) -> Iterable[Batch]:
    """Interleave with ``num_parallel_calls=AUTOTUNE``."""
    import tensorflow as tf

    return _batches(_interleaved(job.inputs.files, job.seed, num_parallel_calls=tf.data.AUTOTUNE), job)


@variant
def mixed_parallel_reads(job: Job[Records]) -> Iterable[Batch]:
    """Two sources of parallel reads under ``sample_from_datasets``, one parsing function after mixing."""
    return _batches(_mixed(_two_parallel(job), job), job)


@variant
def mixed_interleave(job: Job[Records]) -> Iterable[Batch]:
    """Two sources of interleaved reads under ``sample_from_datasets``, one parsing function after mixing."""
    return _batches(_mixed(_two_interleaved(job), job), job)


@variant(only=TENSORS)
def mixed_parallel_reads_no_prefetch(job: Job[Records]) -> Iterable[Batch]:
    """Elimination experiment: mixed parallel reads without ``prefetch``; tf.data may still read ahead by itself."""
    return _batches(_mixed(_two_parallel(job), job), job, prefetch=False)


@variant(only=TENSORS)
def mixed_interleave_no_prefetch(job: Job[Records]) -> Iterable[Batch]:
    """Elimination experiment: mixed interleave without ``prefetch``; tf.data may still read ahead by itself."""
    return _batches(_mixed(_two_interleaved(job), job), job, prefetch=False)


@variant(only=TENSORS)
def mixed_parallel_reads_map_apart(job: Job[Records]) -> Iterable[Batch]:
    """Elimination experiment: each source of mixed parallel reads is parsed by itself, before the shuffle buffer."""
    return _batches(_mixed([each.map(_parser(job)) for each in _two_parallel(job)], job), job, parsed=True)


@variant(only=TENSORS)
def mixed_interleave_map_apart(job: Job[Records]) -> Iterable[Batch]:
    """Elimination experiment: each source of mixed interleave is parsed by itself, before the shuffle buffer."""
    return _batches(_mixed([each.map(_parser(job)) for each in _two_interleaved(job)], job), job, parsed=True)


@variant(matches="interleave", variables={"MALLOC_ARENA_MAX": "1"}, only=TENSORS)
def interleave_arena_1(job: Job[Records]) -> Iterable[Batch]:
    """Interleave under ``MALLOC_ARENA_MAX=1``: all threads share one heap."""
    return interleave(job)


@variant(matches="interleave", variables={"MALLOC_ARENA_MAX": "2"}, only=TENSORS)
def interleave_arena_2(job: Job[Records]) -> Iterable[Batch]:
    """Interleave under ``MALLOC_ARENA_MAX=2``."""
    return interleave(job)


@variant(matches="interleave", variables={"MALLOC_MMAP_THRESHOLD_": "131072"}, only=TENSORS)
def interleave_mmap_threshold(job: Job[Records]) -> Iterable[Batch]:
    """Interleave under ``MALLOC_MMAP_THRESHOLD_=131072``: large blocks return to the system when freed."""
    return interleave(job)


@variant(matches="parallel_reads", variables={"MALLOC_MMAP_THRESHOLD_": "131072"}, only=TENSORS)
def parallel_reads_mmap_threshold(job: Job[Records]) -> Iterable[Batch]:
    """Parallel reads under ``MALLOC_MMAP_THRESHOLD_=131072``."""
    return parallel_reads(job)


@variant(matches="interleave", only=TENSORS)
def interleave_trim(job: Job[Records]) -> Iterable[Batch]:
    """Interleave, and ``malloc_trim(0)`` once an epoch."""
    import ctypes

    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        raise Skip("this C library has no malloc_trim") from None
    batches = interleave(job)
    an_epoch = -(-len(job.inputs.places) // job.batch_size)

    def trimmed() -> Iterator[Batch]:
        for number, batch in enumerate(batches, 1):
            yield batch
            if number % an_epoch == 0:
                trim(0)

    return trimmed()


@variant(matches="interleave", preload="tcmalloc_minimal", only=TENSORS)
def interleave_tcmalloc(job: Job[Records]) -> Iterable[Batch]:
    """Interleave with tcmalloc in place of glibc's malloc."""
    return interleave(job)


@variant(matches="interleave", preload="jemalloc", only=TENSORS)
def interleave_jemalloc(job: Job[Records]) -> Iterable[Batch]:
    """Interleave with jemalloc in place of glibc's malloc."""
    return interleave(job)
