"""Caching: where to put ``cache()``.

*Asked.* A heavy Python step decodes and reduces photographs, epoch after epoch. Where does a cache save time, what does
it cost in memory and on disk, and after how many epochs has it paid for itself?

*Held fixed.* ``data`` is 75, 300 or 1200 JPEG files (x1, x4, x16). Each is read, then decoded and reduced to 224x224
(float32) by OpenCV in a ``numpy_function`` with ``AUTOTUNE``; batches hold 32 and are prefetched. One pipeline runs for
at least three epochs: the first fills the cache, and the later ones, which strategies are ranked by, read from it. They
all count in the total over several epochs.

Without a cache it is also measured with oneDNN and without: which of them is the default depends on the processor, and
memory on where TensorFlow takes its tensors from. That is a case of its own, where ``onednn`` is ``set``;
``default`` is what TensorFlow chooses for the processor.

*Not measured.* Augmentation, which must come after a cache; a cache that another process has filled; one in files that
memory does not hold, as these are read from the page cache.

*Invisible when* the step before the cache is cheap, or a training step takes longer than it does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loaders._contract import Quality, check_drawn_from
from loaders._registry import Batch, Case, Job, Question, Variant, variant

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf
    from numpy.typing import NDArray

    from loaders._corpus import Corpus

IMAGES = 1200
SIDE = 224
EPOCHS = 3

DEFAULT, SET = {"onednn": ("default",)}, {"onednn": ("set",)}
"""Where variables are set, all trials start fresh, so that ratios hold. That is a case of its own: the others fork."""


@dataclass(frozen=True)
class Files:
    """JPEG files and their labels."""

    paths: list[str]
    labels: list[int]


def _prepare(corpus: Corpus, case: Case, seed: int) -> Files:  # noqa: ARG001 - every round reads alike
    paths, labels = corpus.image_paths, corpus.image_labels
    chosen = corpus.evenly(corpus.amount(case["data"], IMAGES))
    return Files([paths[index] for index in chosen], [labels[index] for index in chosen])


def _check(job: Job[Files], variant: Variant, batches: Iterable[Batch]) -> Quality:  # noqa: ARG001
    from pathlib import Path

    data = job.inputs
    universe = ((_heavy(Path(path).read_bytes()), label) for path, label in zip(data.paths, data.labels, strict=True))
    check_drawn_from(universe, len(data.paths), batches)
    return Quality()


QUESTION = Question(
    prepare=_prepare,
    check=_check,
    when="decode the same photographs in every epoch, before any random augmentation",
    axes={"data": ("x1", "x4", "x16"), "onednn": ("default", "set")},
    slices=(
        {"data": "x16", "onednn": "default"},
        {"data": "x1", "onednn": "default"},
        {"data": "x4", "onednn": "default"},
        {"data": "x4", "onednn": "set"},
    ),
    size_axis="data",
    ranked_by="steady_time",
    tracks=("disk_bytes",),
    epochs=EPOCHS,
    quick_epochs=EPOCHS,
)


def _heavy(encoded: bytes) -> NDArray[np.float32]:
    """Decode, reduce and scale one image: the step that a cache should spare, or whose output it must not hold."""
    import cv2
    import numpy as np

    picture = np.asarray(cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_COLOR))
    reduced = cv2.resize(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB), (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    return np.asarray(reduced.astype(np.float32) / 127.5 - 1.0, np.float32)


def _paths(job: Job[Files]) -> Any:
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices((job.inputs.paths, job.inputs.labels))


def _read(path: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    import tensorflow as tf

    return tf.io.read_file(path), label


def _decode(encoded: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    import tensorflow as tf

    picture = tf.numpy_function(_heavy, [encoded], tf.float32)
    return tf.ensure_shape(picture, (SIDE, SIDE, 3)), label


def _mapped(dataset: Any, *functions: Any) -> Any:
    import tensorflow as tf

    for function in functions:
        dataset = dataset.map(function, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset


def _batches(dataset: Any, job: Job[Files]) -> Any:
    import tensorflow as tf

    return dataset.batch(job.batch_size).prefetch(tf.data.AUTOTUNE)


@variant(baseline=True, quick=True)
def no_cache(job: Job[Files]) -> Iterable[Batch]:
    """Read, decode and reduce in every epoch."""
    return _batches(_mapped(_paths(job), _read, _decode), job)


@variant(quick=True, only=DEFAULT)
def cache_after_decode(job: Job[Files]) -> Iterable[Batch]:
    """``cache()`` in memory after the heavy step."""
    return _batches(_mapped(_paths(job), _read, _decode).cache(), job)


@variant(only=DEFAULT)
def cache_paths(job: Job[Files]) -> Iterable[Batch]:
    """``cache()`` of paths and labels before the heavy step: a write-up's "right structure"."""
    return _batches(_mapped(_paths(job).cache(), _read, _decode), job)


@variant(only=DEFAULT)
def cache_encoded(job: Job[Files]) -> Iterable[Batch]:
    """``cache()`` of the files' bytes, which are decoded in every epoch."""
    return _batches(_mapped(_mapped(_paths(job), _read).cache(), _decode), job)


@variant(only=DEFAULT)
def cache_to_file(job: Job[Files]) -> Iterable[Batch]:
    """``cache(filename)`` after the heavy step: on disk instead of in memory."""
    return _batches(_mapped(_paths(job), _read, _decode).cache(str(job.directory / "cache")), job)


@variant(quick=True, only=DEFAULT)
def snapshot_to_disk(job: Job[Files]) -> Iterable[Batch]:
    """``snapshot`` after the heavy step, uncompressed: later epochs read what the first one wrote."""
    return _batches(_mapped(_paths(job), _read, _decode).snapshot(str(job.directory), compression=None), job)


@variant(matches="no_cache", variables={"TF_ENABLE_ONEDNN_OPTS": "1"}, only=SET)
def no_cache_onednn(job: Job[Files]) -> Iterable[Batch]:
    """With oneDNN, the default on processors with AVX512-VNNI, AVX-VNNI or AMX: larger tensors come from a pool."""
    return no_cache(job)


@variant(matches="no_cache", variables={"TF_ENABLE_ONEDNN_OPTS": "0"}, only=SET)
def no_cache_without_onednn(job: Job[Files]) -> Iterable[Batch]:
    """Without oneDNN, the default on other processors: all tensors come from malloc."""
    return no_cache(job)
