"""Batching: everything in memory, or a batch at a time.

*Asked.* A model is to be trained on a folder of labelled photographs. What does it cost to load them all first? Of the
strategies that read one batch at a time, which is fastest while keeping memory independent of the amount of data?

*Held fixed.* The JPEG files' paths are shuffled. Each image is decoded, reduced to 224x224 and scaled to float32 from
-1 to 1; a batch holds 32. ``data`` is 40, 160 or 640 of the photographs (x1, x4, x16), or a sixteenth, a quarter or all
of a smaller corpus; x64 is 2560. With ``augment`` each image is flipped, shifted and brightened by its own seeded
amounts. OpenCV decodes each image on one thread; strategies that decode with TensorFlow are in another tier.

*Not measured.* Training, which would hide the reading.

*Invisible when* a training step takes longer than decoding its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loaders._contract import Quality, check_drawn_from, psnr
from loaders._registry import Batch, Case, Job, Question, Variant, variant

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf
    from numpy.typing import NDArray

    from loaders._corpus import Corpus

SIDE = 224
SHIFT = 20
"""Largest shift in either direction, in pixels; what leaves on one side comes back on the other."""

BRIGHTEN = 40
"""Largest change up or down, in grey levels."""

MOST = 640
"""Most images in ``x16``: as float32 they take 385 MB, enough to tell loading everything from loading a batch."""

QUEUE = 64
"""Capacity of the TF1 queue, in images."""


@dataclass(frozen=True)
class Files:
    """JPEG files in a shuffled order, and how each is changed.

    Attributes
    ----------
    paths, labels
        The path and the label of each file.
    changes
        int32 array of shape (n, 4): whether to flip, pixels down, pixels right, grey levels up.
    """

    paths: list[str]
    labels: NDArray[np.int64]
    changes: NDArray[np.int32]


def _prepare(corpus: Corpus, case: Case, seed: int) -> Files:
    import numpy as np

    random = np.random.default_rng(seed)
    paths, labels = corpus.image_paths, corpus.image_labels
    count = corpus.amount(case["data"], MOST)
    chosen = random.permutation(len(paths))[:count]
    most = np.array([1, SHIFT, SHIFT, BRIGHTEN])
    least = np.array([0, -SHIFT, -SHIFT, -BRIGHTEN])
    changes = random.integers(least, most + 1, (count, 4), np.int32)
    if case["augment"] == "off":
        changes[:] = 0
    return Files([paths[index] for index in chosen], np.array([labels[index] for index in chosen]), changes)


def _check(job: Job[Files], variant: Variant, batches: Iterable[Batch]) -> Quality:
    import numpy as np

    data, is_native = job.inputs, variant.tier == "same purpose"

    def pixels(images: Any) -> NDArray[np.uint8]:
        # TensorFlow may multiply by 1 / 127.5 where the code divides, so whole grey levels are compared.
        return np.asarray(np.rint((np.asarray(images, np.float32) + np.float32(1)) * np.float32(127.5)), np.uint8)

    native = _native(data) if is_native else None

    def expected() -> Iterator[tuple[Any, Any]]:
        for index in range(len(data.paths)):
            yield (pixels(native(index) if native else _load(data, index)), data.labels[index])

    def delivered() -> Iterator[Batch]:
        for images, labels in batches:
            array = np.asarray(images)
            # Anything but float32 is left as it is, and so fails the comparison.
            yield (pixels(array) if array.dtype == np.float32 else array, labels)

    check_drawn_from(expected(), len(data.paths), delivered())
    if native is None:
        return Quality()
    few = range(0, len(data.paths), max(1, len(data.paths) // 20))
    return Quality(psnr=min(psnr(pixels(native(each)), pixels(_load(data, each))) for each in few))


QUESTION = Question(
    prepare=_prepare,
    check=_check,
    axes={"data": ("x1", "x4", "x16", "x64"), "augment": ("off", "on")},
    size_axis="data",
    ranked_by="steady_time",
    epochs=2,
    quick_epochs=2,
    slices=(
        {"data": "x16", "augment": "off"},
        {"data": "x1", "augment": "off"},
        {"data": "x4", "augment": "off"},
        {"data": "x4", "augment": "on"},
    ),
)


def _load(data: Files, index: int) -> NDArray[np.float32]:
    """Decode, reduce, change and scale one image with OpenCV."""
    import cv2
    import numpy as np

    picture = cv2.cvtColor(np.asarray(cv2.imread(data.paths[index])), cv2.COLOR_BGR2RGB)
    reduced = cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    flip, down, right, up = (int(each) for each in data.changes[index])
    if flip:
        reduced = reduced[:, ::-1]
    if down or right:
        reduced = np.roll(reduced, (down, right), (0, 1))
    if up:
        reduced = np.clip(reduced.astype(np.int16) + up, 0, 255)
    return np.asarray(reduced, np.float32) / np.float32(127.5) - np.float32(1)


def _batch(data: Files, indices: Iterable[int]) -> tuple[Any, Any]:
    """Load the images at these indices, one after another, into one array of shape (n, 224, 224, 3)."""
    import numpy as np

    chosen = list(indices)
    images = np.empty((len(chosen), SIDE, SIDE, 3), np.float32)
    for place, index in enumerate(chosen):
        images[place] = _load(data, index)
    return images, data.labels[chosen]


def _parts(job: Job[Files]) -> list[range]:
    """Return the indices of each batch."""
    count = len(job.inputs.paths)
    return [range(start, min(start + job.batch_size, count)) for start in range(0, count, job.batch_size)]


def _signature() -> Any:
    import tensorflow as tf

    return (tf.TensorSpec((None, SIDE, SIDE, 3), tf.float32), tf.TensorSpec((None,), tf.int64))


@variant(quick=True)
def load_all(job: Job[Files]) -> Iterable[Batch]:
    """Load everything into one array, then slice batches from it."""
    images, labels = _batch(job.inputs, range(len(job.inputs.paths)))
    return [(images[part.start : part.stop], labels[part.start : part.stop]) for part in _parts(job)]


@variant
def load_all_from_tensor_slices(job: Job[Files]) -> Iterable[Batch]:
    """Load everything into one array, then ``Dataset.from_tensor_slices``, which copies it."""
    import tensorflow as tf

    loaded = _batch(job.inputs, range(len(job.inputs.paths)))
    return tf.data.Dataset.from_tensor_slices(loaded).batch(job.batch_size).prefetch(tf.data.AUTOTUNE)


@variant(baseline=True, quick=True)
def path_generator(job: Job[Files]) -> Iterable[Batch]:
    """A Python generator over batches of paths: one image after another, on one thread."""
    for part in _parts(job):
        yield _batch(job.inputs, part)


@variant
def path_generator_from_generator(job: Job[Files]) -> Iterable[Batch]:
    """The same generator through ``Dataset.from_generator`` and prefetch."""
    import tensorflow as tf

    def generate() -> Iterator[Batch]:
        for part in _parts(job):
            yield _batch(job.inputs, part)

    return tf.data.Dataset.from_generator(generate, output_signature=_signature()).prefetch(tf.data.AUTOTUNE)


@variant(quick=True)
def path_generator_pool(job: Job[Files]) -> Iterable[Batch]:
    """A Python generator over batches of paths that a pool of threads decodes, with the next batch under way."""
    return _pooled(job, ahead=1)


@variant(ceiling=True)
def opencv_pool(job: Job[Files]) -> Iterable[Batch]:
    """The ceiling: a bare pool of OpenCV decoders, one thread per core, which is given everything at once."""
    return _pooled(job, ahead=len(job.inputs.paths))


@variant(ceiling=True)
def opencv_pool_batches(job: Job[Files]) -> Iterable[Batch]:
    """The ceiling, another way: a bare pool, one thread per core, each of which decodes whole batches."""
    import os
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(lambda part: _batch(job.inputs, part), _parts(job))


def _pooled(job: Job[Files], ahead: int) -> Iterator[Batch]:
    """Yield batches that a pool of threads decodes; ``ahead`` more batches are under way while one is in use."""
    import itertools
    import os
    from collections import deque
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np

    data, to_come = job.inputs, iter(_parts(job))
    with ThreadPoolExecutor(os.cpu_count()) as pool:

        def begin(part: range) -> tuple[range, Any, list[Any]]:
            images = np.empty((len(part), SIDE, SIDE, 3), np.float32)

            def put(place: int, index: int) -> None:
                images[place] = _load(data, index)

            return part, images, [pool.submit(put, place, index) for place, index in enumerate(part)]

        under_way = deque(begin(part) for part in itertools.islice(to_come, ahead + 1))
        while under_way:
            part, images, waiting = under_way.popleft()
            for each in waiting:
                each.result()
            under_way.extend(begin(part) for part in itertools.islice(to_come, 1))
            yield images, data.labels[part.start : part.stop]


def _pydataset(job: Job[Files], workers: int, *, use_multiprocessing: bool = False) -> Iterable[Batch]:
    """Read a ``PyDataset`` through the adapter that Keras uses in ``fit``: read by hand, it would use no workers."""
    import keras
    from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter

    data, parts = job.inputs, _parts(job)

    class Batches(keras.utils.PyDataset):  # type: ignore[misc] # keras ships without types
        def __len__(self) -> int:
            return len(parts)

        def __getitem__(self, index: int) -> tuple[Any, Any]:
            return _batch(data, parts[index])

    dataset = Batches(workers=workers, use_multiprocessing=use_multiprocessing, max_queue_size=10)
    adapter = PyDatasetAdapter(dataset, shuffle=False)

    def batches() -> Iterator[Batch]:
        adapter.on_epoch_begin()
        yield from adapter.get_tf_dataset()
        adapter.on_epoch_end()

    return batches()


@variant(capacity=(10 + 1 + 2) * 32)  # the queue, one batch per worker, two in hand
def keras_pydataset_1(job: Job[Files]) -> Iterable[Batch]:
    """Keras ``PyDataset`` through its adapter, one worker thread, ``max_queue_size=10``."""
    return _pydataset(job, workers=1)


@variant(capacity=(10 + 2 + 2) * 32)
def keras_pydataset_2(job: Job[Files]) -> Iterable[Batch]:
    """Keras ``PyDataset``, two worker threads."""
    return _pydataset(job, workers=2)


@variant(capacity=(10 + 4 + 2) * 32)
def keras_pydataset_4(job: Job[Files]) -> Iterable[Batch]:
    """Keras ``PyDataset``, four worker threads."""
    return _pydataset(job, workers=4)


@variant(capacity=(10 + 4 + 2) * 32)
def keras_pydataset_processes(job: Job[Files]) -> Iterable[Batch]:
    """Keras ``PyDataset``, four worker processes; their memory is in that of the process tree.

    It hangs now and then: the workers are forked from a process in which TensorFlow's threads hold locks.
    """
    return _pydataset(job, workers=4, use_multiprocessing=True)


@variant(historic=True, capacity=QUEUE + 2 * 32 + 4)  # the queue, two batches in hand, one picture per thread
def tf1_queue(job: Job[Files]) -> Iterable[Batch]:
    """The queues of TensorFlow 1: ``slice_input_producer`` and ``train.batch(num_threads=4, capacity=64)``."""
    import numpy as np
    import tensorflow as tf

    data, v1 = job.inputs, tf.compat.v1

    def load(index: Any) -> Any:
        return _load(data, int(index))

    graph = tf.Graph()
    with graph.as_default():
        indices = np.arange(len(data.paths))
        index, label = v1.train.slice_input_producer([indices, data.labels], num_epochs=1, shuffle=False)
        image = v1.py_func(load, [index], tf.float32)
        image.set_shape((SIDE, SIDE, 3))
        queued = v1.train.batch(
            [image, label], job.batch_size, num_threads=4, capacity=QUEUE, allow_smaller_final_batch=True
        )
        initial = tf.group(v1.global_variables_initializer(), v1.local_variables_initializer())
    with v1.Session(graph=graph) as session:
        session.run(initial)
        coordinator = v1.train.Coordinator()
        threads = v1.train.start_queue_runners(session, coordinator)
        try:
            while True:
                images, labels = session.run(queued)
                yield images, labels
        except tf.errors.OutOfRangeError:
            pass
        finally:
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=5)


def _native(data: Files) -> Callable[[int], tf.Tensor]:
    """Return a function that decodes, reduces, changes and scales the image at an index with TensorFlow."""
    import tensorflow as tf

    steps = tf.function(_native_steps)
    return lambda index: steps(tf.constant(data.paths[index]), tf.constant(data.changes[index]))


def _native_steps(path: tf.Tensor, change: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    picture = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    reduced = tf.cast(tf.round(tf.image.resize(picture, (SIDE, SIDE), method="area")), tf.int32)
    flipped = tf.where(change[0] > 0, reduced[:, ::-1], reduced)
    shifted = tf.roll(flipped, change[1:3], (0, 1))
    brighter = tf.clip_by_value(shifted + change[3], 0, 255)
    return tf.cast(brighter, tf.float32) / 127.5 - 1.0


def _tfdata(job: Job[Files], calls: int, image: Callable[[Any, Any], Any]) -> Any:
    import tensorflow as tf

    data = job.inputs
    files = tf.data.Dataset.from_tensor_slices((data.paths, data.changes, data.labels))
    loaded = files.map(lambda path, change, label: (image(path, change), label), num_parallel_calls=calls)
    return loaded.batch(job.batch_size).prefetch(tf.data.AUTOTUNE)


@variant(tier="same purpose")
def tfdata_paths_2(job: Job[Files]) -> Iterable[Batch]:
    """tf.data over paths, TensorFlow's own operations, two parallel calls."""
    return _tfdata(job, 2, _native_steps)


@variant(tier="same purpose")
def tfdata_paths_autotune(job: Job[Files]) -> Iterable[Batch]:
    """tf.data over paths, TensorFlow's own operations, ``AUTOTUNE``."""
    import tensorflow as tf

    return _tfdata(job, tf.data.AUTOTUNE, _native_steps)


@variant
def tfdata_numpy_function(job: Job[Files]) -> Iterable[Batch]:
    """tf.data over indices, the same OpenCV code in a ``numpy_function``, ``AUTOTUNE``."""
    import tensorflow as tf

    data = job.inputs

    def load(index: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        image = tf.numpy_function(lambda each: _load(data, int(each)), [index], tf.float32)
        return tf.ensure_shape(image, (SIDE, SIDE, 3)), label

    indices = tf.data.Dataset.range(len(data.paths))
    both = tf.data.Dataset.zip((indices, tf.data.Dataset.from_tensor_slices(data.labels)))
    loaded = both.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    return loaded.batch(job.batch_size).prefetch(tf.data.AUTOTUNE)


def _write_array(job: Job[Files]) -> None:
    import numpy as np

    data = job.inputs
    shape = (len(data.paths), SIDE, SIDE, 3)
    mapped = np.lib.format.open_memmap(str(job.directory / "images.npy"), "w+", np.float32, shape)
    for index in range(len(data.paths)):
        mapped[index] = _load(data, index)
    mapped.flush()


@variant(convert=_write_array)
def memory_map(job: Job[Files]) -> Iterable[Batch]:
    """Decoded once into a mapped file, whose pages count as resident although the system may take them back."""
    import numpy as np

    images = np.load(job.directory / "images.npy", mmap_mode="r")
    for part in _parts(job):
        yield np.array(images[part.start : part.stop]), job.inputs.labels[part.start : part.stop]
