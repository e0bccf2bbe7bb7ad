"""Record format: what to put into a TFRecord.

*Asked.* A detector is trained on photographs, each with a label and boxes. In which form should they be stored: as
separate files, as encoded images in TFRecords, as tensors, compressed, reduced? What does the conversion cost, and
after how many epochs has it paid for itself?

*Held fixed.* ``data`` is 18, 75 or 300 of the photographs (x1, x4, x16), in five shards, with the same labels and boxes
(float32, serialised) in every format. Every reader parses and decodes with ``AUTOTUNE`` and delivers image (uint8),
label and boxes one sample at a time, because image sizes differ. A conversion runs in a process of its own, and its
time ends when the data is in the page cache. The page cache is *warm* (it holds all files) or *cold* (it holds none),
which the kernel confirms before the measurement; with a cold one, only the first epoch reads from the disk.

*Not measured.* Shuffling, augmentation, network disks; ``convert_time`` does not wait for the disk.

*Invisible when* a training step takes longer than decoding its images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loaders._contract import Quality, check_drawn_from, psnr
from loaders._registry import Batch, Case, Job, Question, Variant, variant

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf
    from numpy.typing import NDArray

    from loaders._corpus import Corpus

RECORDS = 300
"""Enough for an epoch of half a second, and few enough to be written as PNG within seconds."""

SHARDS = 5
SIDE = 224
"""Height and width in pixels of images that are reduced before writing."""


@dataclass(frozen=True)
class Annotated:
    """The photographs with their annotations.

    Attributes
    ----------
    paths
        JPEG files.
    labels
        One integer per photograph.
    boxes
        One float32 array of relative coordinates per photograph, of shape (n, 4) with n from 1 to 8.
    """

    paths: list[str]
    labels: list[int]
    boxes: list[NDArray[np.float32]]


def _prepare(corpus: Corpus, case: Case, seed: int) -> Annotated:  # noqa: ARG001 - every round reads alike
    import numpy as np

    paths, labels = corpus.image_paths, corpus.image_labels
    chosen = corpus.evenly(corpus.amount(case["data"], RECORDS))
    corners = [np.random.default_rng(index).random((1 + index % 8, 2, 2), np.float32) for index in chosen]
    return Annotated(
        paths=[paths[index] for index in chosen],
        labels=[labels[index] for index in chosen],
        boxes=[np.sort(each, axis=1).reshape(-1, 4) for each in corners],
    )


def _check(job: Job[Annotated], variant: Variant, batches: Iterable[Batch]) -> Quality:
    import tensorflow as tf

    data = job.inputs
    written = {"resized_uint8": _reduced, "encoded_quality_75": _at_75, "encoded_quality_50": _at_50}
    kept = written.get(variant.name, lambda picture: picture)
    pictures = (tf.io.decode_jpeg(tf.io.read_file(path), channels=3) for path in data.paths)
    worst = 99.0

    def universe() -> Iterator[tuple[Any, ...]]:
        nonlocal worst
        for picture, label, boxes in zip(pictures, data.labels, data.boxes, strict=True):
            expected = kept(picture).numpy()
            if expected.shape == picture.shape:
                worst = min(worst, psnr(expected, picture.numpy()))
            yield expected, label, boxes

    check_drawn_from(universe(), len(data.paths), batches)
    return Quality(psnr=worst if variant.name.startswith("encoded_quality") else None)


def _reads(job: Job[Annotated], variant: Variant) -> Sequence[str]:
    return _files(job) if variant.convert else job.inputs.paths


QUESTION = Question(
    prepare=_prepare,
    check=_check,
    when="store photographs in TFRecords",
    reads=_reads,
    axes={"page_cache": ("warm", "cold"), "data": ("x1", "x4", "x16")},
    slices=(
        {"page_cache": "warm", "data": "x16"},
        {"page_cache": "warm", "data": "x1"},
        {"page_cache": "warm", "data": "x4"},
        {"page_cache": "cold", "data": "x16"},
    ),
    size_axis="data",
    ranked_by="steady_time",
    tracks=("convert_time", "convert_memory", "disk_bytes"),
    epochs=2,
    quick_epochs=2,
)


def _files(job: Job[Annotated]) -> list[str]:
    """Return the TFRecord files that the conversion has written."""
    return sorted(str(path) for path in job.directory.iterdir())


def _write(job: Job[Annotated], features: Callable[[str], dict[str, Any]], compression: str = "") -> None:
    """Write all records, one after another; ``features`` turns an image's path into its part of the record."""
    import tensorflow as tf

    data = job.inputs
    count = len(data.paths)
    for shard in range(SHARDS):
        path = str(job.directory / f"{shard:05}-of-{SHARDS:05}.tfrecord")
        with tf.io.TFRecordWriter(path, compression) as writer:
            for index in range(shard * count // SHARDS, (shard + 1) * count // SHARDS):
                boxes = tf.io.serialize_tensor(data.boxes[index]).numpy()
                feature = {
                    **features(data.paths[index]),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[data.labels[index]])),
                    "boxes": _bytes(boxes),
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def _bytes(value: bytes) -> tf.train.Feature:
    import tensorflow as tf

    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _decoded(path: str) -> tf.Tensor:
    import tensorflow as tf

    return tf.io.decode_jpeg(tf.io.read_file(path), channels=3)


def _reduced(picture: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    return tf.cast(tf.round(tf.image.resize(picture, (SIDE, SIDE), antialias=True)), tf.uint8)


def _as_tensor(path: str) -> dict[str, Any]:
    import tensorflow as tf

    return {"image": _bytes(tf.io.serialize_tensor(_decoded(path)).numpy())}


def _read(
    job: Job[Annotated],
    image: Callable[[Any], tf.Tensor],
    *,
    integers: Sequence[str] = (),
    compression: str = "",
) -> Iterable[Batch]:
    """Read the records; ``image`` turns a parsed record into pixels and needs its ``integers`` for that."""
    import tensorflow as tf

    described = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "boxes": tf.io.FixedLenFeature([], tf.string),
        **{name: tf.io.FixedLenFeature([], tf.int64) for name in ("label", *integers)},
    }

    def parse(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        example = tf.io.parse_single_example(record, described)
        return image(example), example["label"], tf.io.parse_tensor(example["boxes"], tf.float32)

    records = tf.data.TFRecordDataset(_files(job), compression, num_parallel_reads=tf.data.AUTOTUNE)
    return records.map(parse, num_parallel_calls=tf.data.AUTOTUNE).batch(1).prefetch(tf.data.AUTOTUNE)


def _parsed_tensor(example: Any) -> tf.Tensor:
    import tensorflow as tf

    return tf.io.parse_tensor(example["image"], tf.uint8)


@variant
def separate_files(job: Job[Annotated]) -> Iterable[Batch]:
    """No conversion: read and decode each JPEG file, labels and boxes from memory."""
    import tensorflow as tf

    data = job.inputs
    boxes = [tf.io.serialize_tensor(each).numpy() for each in data.boxes]

    def load(path: tf.Tensor, label: tf.Tensor, serialised: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return _decoded(path), label, tf.io.parse_tensor(serialised, tf.float32)

    return (
        tf.data.Dataset.from_tensor_slices((data.paths, data.labels, boxes))
        .map(load, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(1)
        .prefetch(tf.data.AUTOTUNE)
    )


def _write_encoded(job: Job[Annotated]) -> None:
    import tensorflow as tf

    _write(job, lambda path: {"image": _bytes(tf.io.read_file(path).numpy())})


@variant(baseline=True, convert=_write_encoded, quick=True)
def encoded_bytes(job: Job[Annotated]) -> Iterable[Batch]:
    """The JPEG file's bytes as they are, decoded when they are read."""
    import tensorflow as tf

    return _read(job, lambda example: tf.io.decode_jpeg(example["image"], channels=3))


def _at(picture: tf.Tensor, quality: int) -> tf.Tensor:
    """Return a picture after it was encoded as a JPEG of this quality and decoded."""
    import tensorflow as tf

    return tf.io.decode_jpeg(tf.io.encode_jpeg(picture, quality=quality), channels=3)


def _at_75(picture: tf.Tensor) -> tf.Tensor:
    return _at(picture, 75)


def _at_50(picture: tf.Tensor) -> tf.Tensor:
    return _at(picture, 50)


def _write_quality(job: Job[Annotated], quality: int) -> None:
    import tensorflow as tf

    _write(job, lambda path: {"image": _bytes(tf.io.encode_jpeg(_decoded(path), quality=quality).numpy())})


def _write_75(job: Job[Annotated]) -> None:
    _write_quality(job, 75)


def _write_50(job: Job[Annotated]) -> None:
    _write_quality(job, 50)


@variant(tier="same purpose", convert=_write_75)
def encoded_quality_75(job: Job[Annotated]) -> Iterable[Batch]:
    """Re-encoded as JPEG at quality 75, like most photographs on the web, instead of 92."""
    return encoded_bytes(job)


@variant(tier="same purpose", convert=_write_50)
def encoded_quality_50(job: Job[Annotated]) -> Iterable[Batch]:
    """Re-encoded as JPEG at quality 50."""
    return encoded_bytes(job)


def _write_tensors(job: Job[Annotated]) -> None:
    _write(job, _as_tensor)


@variant(convert=_write_tensors, quick=True)
def serialize_tensor(job: Job[Annotated]) -> Iterable[Batch]:
    """Decoded pixels (uint8) by ``tf.io.serialize_tensor``, read by ``tf.io.parse_tensor``."""
    return _read(job, _parsed_tensor)


def _write_raw(job: Job[Annotated]) -> None:
    import tensorflow as tf

    def features(path: str) -> dict[str, Any]:
        pixels = _decoded(path).numpy()
        height, width = (tf.train.Feature(int64_list=tf.train.Int64List(value=[length])) for length in pixels.shape[:2])
        return {"image": _bytes(pixels.tobytes()), "height": height, "width": width}

    _write(job, features)


@variant(convert=_write_raw, quick=True)
def raw_pixels(job: Job[Annotated]) -> Iterable[Batch]:
    """Decoded pixels by ``tobytes``, read by ``tf.io.decode_raw``; height and width are features."""
    import tensorflow as tf

    def image(example: Any) -> tf.Tensor:
        return tf.reshape(tf.io.decode_raw(example["image"], tf.uint8), (example["height"], example["width"], 3))

    return _read(job, image, integers=("height", "width"))


def _write_png(job: Job[Annotated]) -> None:
    import tensorflow as tf

    _write(job, lambda path: {"image": _bytes(tf.io.encode_png(_decoded(path)).numpy())})


@variant(convert=_write_png)
def png(job: Job[Annotated]) -> Iterable[Batch]:
    """Decoded pixels as lossless PNG."""
    import tensorflow as tf

    return _read(job, lambda example: tf.io.decode_png(example["image"], channels=3))


def _write_floats(job: Job[Annotated]) -> None:
    import tensorflow as tf

    def features(path: str) -> dict[str, Any]:
        return {"image": _bytes(tf.io.serialize_tensor(tf.cast(_decoded(path), tf.float32)).numpy())}

    _write(job, features)


@variant(convert=_write_floats)
def float32_tensor(job: Job[Annotated]) -> Iterable[Batch]:
    """Decoded pixels as float32 by ``tf.io.serialize_tensor``: four times the bytes; cast to uint8 at the end."""
    import tensorflow as tf

    return _read(job, lambda example: tf.cast(tf.io.parse_tensor(example["image"], tf.float32), tf.uint8))


def _write_gzip(job: Job[Annotated]) -> None:
    _write(job, _as_tensor, "GZIP")


@variant(convert=_write_gzip)
def serialize_tensor_gzip(job: Job[Annotated]) -> Iterable[Batch]:
    """``serialize_tensor`` in files compressed with GZIP."""
    return _read(job, _parsed_tensor, compression="GZIP")


def _write_zlib(job: Job[Annotated]) -> None:
    _write(job, _as_tensor, "ZLIB")


@variant(convert=_write_zlib)
def serialize_tensor_zlib(job: Job[Annotated]) -> Iterable[Batch]:
    """``serialize_tensor`` in files compressed with ZLIB."""
    return _read(job, _parsed_tensor, compression="ZLIB")


def _write_reduced(job: Job[Annotated]) -> None:
    import tensorflow as tf

    _write(job, lambda path: {"image": _bytes(tf.io.serialize_tensor(_reduced(_decoded(path))).numpy())})


@variant(tier="same purpose", convert=_write_reduced)
def resized_uint8(job: Job[Annotated]) -> Iterable[Batch]:
    """Reduced to 224x224 (uint8) before writing: fewer pixels than the others deliver, but enough to train on."""
    return _read(job, _parsed_tensor)
