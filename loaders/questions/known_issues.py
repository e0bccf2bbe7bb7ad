"""Known issues: what bug reports say of loaders, and whether it is so here.

*Asked.* Somebody reported that memory grows or is filled, or that an epoch never ends. Does that happen with these
versions? Each strategy is a report's code, reduced to what it is about.

*Held fixed.* Samples are bytes with their number. ``data`` is ``steps`` (16000 samples of 256 bytes, in batches of 32),
``sizes`` (6000 samples of 25 to 150 kB, one at a time), ``pictures`` (6000 PNG files of 64x64 pixels) or ``paths``
(400000 strings, in batches of 1000, of which the files are read); a small corpus has fewer. Four epochs are read in one
pass, so memory is watched over one long run. ``python_loop`` is the control, where nothing is wrong.

*Not measured.* Speed: nothing is decoded, so no loader can be chosen from these times.

*Invisible when* a run is short: a leak of a few bytes a sample takes many steps to show.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loaders._contract import Quality, check_drawn_from, order_quality
from loaders._registry import Batch, Case, Job, Question, Variant, variant
from loaders.questions.service import nodes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from loaders._corpus import Corpus

COUNTS = {"steps": 16_000, "sizes": 6_000, "pictures": 6_000, "paths": 400_000}
"""Samples in an epoch."""

WHOLE = 1500
"""Photographs of the corpus for which the counts hold."""

BYTES = 256
"""Of a sample of ``steps``."""

LEAST, SPREAD = 25_000, 125_000
"""Of the samples of ``sizes``: the fewest bytes, and by how much they may differ."""

SIDE = 64
"""Of the pictures, in pixels: 1024 of them are 48 MiB in float32."""

PATHS_IN_BATCH = 1000
WORKERS = 2
BUFFER = 128
"""Samples of ``sizes`` in a shuffle buffer."""

ABANDONED_AFTER = 4
"""Batches that are read of an epoch which is then given up."""

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - Linux has its shared memory there
SECONDS_TO_TIDY_UP = 3.0


@dataclass(frozen=True)
class Work:
    """What is delivered.

    Attributes
    ----------
    name
        The value of the case's ``data``.
    files
        The corpus's photographs, of which ``paths`` has the checksums.
    """

    name: str
    count: int
    files: list[str]

    def sample(self, index: int) -> NDArray[Any]:
        """Return the content of a sample, a ``uint8`` array; of a path, the checksum of its file."""
        import numpy as np

        if self.name == "paths":
            return np.asarray(_checksum_once(self.files[index % len(self.files)]))
        if self.name == "pictures":
            return np.tile(np.array([index & 255, index >> 8 & 255, index >> 16], np.uint8), SIDE * SIDE)
        length = BYTES if self.name == "steps" else LEAST + index * 7919 % SPREAD
        return np.full(length, index % 251, np.uint8)

    def batch(self, indices: Sequence[int]) -> Batch:
        """Return the samples at these indices, and the indices."""
        import numpy as np

        return np.stack([self.sample(index) for index in indices]), np.asarray(indices, np.int64)

    @property
    def batch_size(self) -> int:
        """How many samples a batch has: those of ``sizes`` differ in length and come alone."""
        return {"sizes": 1, "paths": PATHS_IN_BATCH}.get(self.name, 32)

    @property
    def parts(self) -> list[range]:
        """The indices of each batch of an epoch."""
        size = self.batch_size
        return [range(start, min(start + size, self.count)) for start in range(0, self.count, size)]


def _checksum(path: str | bytes) -> int:
    """Read a file."""
    import zlib

    with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs more than the read
        return zlib.crc32(file.read())


_checksum_once = functools.cache(_checksum)


def _prepare(corpus: Corpus, case: Case, seed: int) -> Work:  # noqa: ARG001 - every round reads alike
    files = corpus.image_paths
    share = min(1.0, len(files) / WHOLE)
    return Work(case["data"], max(1, round(COUNTS[case["data"]] * share)), list(files))


def _check(job: Job[Work], variant: Variant, batches: Iterable[Batch]) -> Quality:  # noqa: ARG001
    import gc
    import time

    work = job.inputs
    before = _shared(work)
    universe = ((work.sample(index), index) for index in range(work.count))
    order = check_drawn_from(universe, work.count, batches)
    gc.collect()
    tidy_by = time.monotonic() + SECONDS_TO_TIDY_UP
    while (left := _shared(work) - before) and time.monotonic() < tidy_by:
        time.sleep(0.1)
    nothing = [0] * work.count
    stayed = sum(size for _, size in left) if SHARED_MEMORY.is_dir() else None
    return Quality(order=order_quality(order, nothing, nothing), left_behind=stayed)


def _shared(work: Work) -> set[tuple[str, int]]:
    """Return the names and sizes of the pieces of shared memory as large as one of the batches' arrays.

    They are known by their size, as others on the machine may use shared memory too.
    """
    sizes = {BYTES * work.batch_size, 8 * work.batch_size}
    found = set()
    for each in SHARED_MEMORY.glob("*") if SHARED_MEMORY.is_dir() else ():
        try:
            size = each.stat().st_size
        except OSError:  # gone meanwhile, or somebody else's
            continue
        if size in sizes:
            found.add((each.name, size))
    return found


QUESTION = Question(
    prepare=_prepare,
    check=_check,
    axes={"data": tuple(COUNTS)},
    epochs=4,
    quick_epochs=2,
    repeats=True,
    reports=True,
    apart=True,
)

OF_STEPS, OF_SIZES, OF_PICTURES, OF_PATHS = ({"data": (name,)} for name in COUNTS)


@variant(baseline=True, quick=True)
def python_loop(job: Job[Work]) -> Iterable[Batch]:
    """The control: a loop that makes each batch with NumPy."""
    work = job.inputs
    return (work.batch(part) for _ in range(job.epochs) for part in work.parts)


def _numbers(job: Job[Work]) -> Any:
    import tensorflow as tf

    return tf.data.Dataset.range(job.inputs.count)


def _natively(work: Work) -> Any:
    """Return a function from an index to its sample, of TensorFlow's own operations."""
    import tensorflow as tf

    def sample(index: Any) -> tuple[Any, Any]:
        length = BYTES if work.name == "steps" else LEAST + index * 7919 % SPREAD
        return tf.fill([length], tf.cast(index % 251, tf.uint8)), index

    return sample


@variant(only=OF_STEPS)
def from_generator(job: Job[Work]) -> Iterable[Batch]:
    """``Dataset.from_generator``, sample by sample (tensorflow#65675: memory grows).

    TensorFlow 2.21 lowers a threshold of malloc against that: see ``loaders._malloc``.
    """
    import tensorflow as tf

    work = job.inputs

    def samples() -> Iterator[tuple[NDArray[np.uint8], int]]:
        return ((work.sample(index), index) for index in range(work.count))

    signature = (tf.TensorSpec((BYTES,), tf.uint8), tf.TensorSpec((), tf.int64))
    dataset = tf.data.Dataset.from_generator(samples, output_signature=signature)
    return dataset.repeat(job.epochs).batch(work.batch_size)


@variant(only=OF_STEPS)
def py_function(job: Job[Work]) -> Iterable[Batch]:
    """``map`` with ``py_function``, sample by sample (tensorflow#61344: memory grows)."""
    import tensorflow as tf

    work = job.inputs

    def sample(index: Any) -> tuple[Any, Any]:
        found = tf.py_function(lambda number: work.sample(int(number)), [index], tf.uint8)
        return tf.ensure_shape(found, (BYTES,)), index

    return _numbers(job).map(sample).repeat(job.epochs).batch(work.batch_size)


@variant(only=OF_STEPS)
def keras_pydataset_workers(job: Job[Work]) -> Iterable[Batch]:
    """Keras ``PyDataset`` with two worker threads, for TensorFlow (keras#20425, of PyTorch: an epoch never ends)."""
    import keras

    from loaders.questions.batching.keras import Epochs

    work = job.inputs
    parts = work.parts

    class Batches(keras.utils.PyDataset):  # type: ignore[misc] # keras ships without types
        def __len__(self) -> int:
            return len(parts)

        def __getitem__(self, index: int) -> Batch:
            return work.batch(parts[index])

    dataset = Epochs(Batches(workers=WORKERS))
    return (batch for _ in range(job.epochs) for batch in dataset)


class _Sample:
    """Makes the sample at an index. At the top of a module, so that processes can be given it."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def __call__(self, index: int) -> tuple[Any, Any]:
        return self.work.sample(index), index


@variant(only=OF_STEPS, optional=("grain",))
def grain_processes(job: Job[Work]) -> Iterable[Batch]:
    """grain with two processes, and before each epoch one that is given up (grain#1031: shared memory stays)."""
    import grain

    work = job.inputs

    def epoch() -> Any:
        read = grain.MapDataset.source(range(work.count)).map(_Sample(work)).batch(work.batch_size)
        return iter(read.to_iter_dataset().mp_prefetch(grain.MultiprocessingOptions(num_workers=WORKERS)))

    def batches() -> Iterator[Batch]:
        for _ in range(job.epochs):
            given_up = epoch()
            for _ in itertools.islice(given_up, ABANDONED_AFTER):
                pass
            del given_up
            yield from epoch()

    return batches()


def _native(job: Job[Work]) -> Any:
    return _numbers(job).map(_natively(job.inputs))


def _through_service(job: Job[Work], policy: str) -> Any:
    import tensorflow as tf

    service = tf.data.experimental.service
    mode = getattr(service.ShardingPolicy, policy)
    elements = _native(job).repeat(job.epochs)
    return elements.apply(service.distribute(mode, job.served.address)).batch(job.inputs.batch_size)


@variant(only=OF_STEPS, serve=nodes.workers(1))
def service_off(job: Job[Work]) -> Iterable[Batch]:
    """tf.data service with one worker, ``ShardingPolicy.OFF``, sample by sample."""
    return _through_service(job, "OFF")


@variant(only=OF_STEPS, serve=nodes.workers(1))
def service_dynamic(job: Job[Work]) -> Iterable[Batch]:
    """The same with ``ShardingPolicy.DYNAMIC`` (tensorflow#70541: extremely slow)."""
    return _through_service(job, "DYNAMIC")


@variant(only=OF_SIZES)
def tfdata_plain(job: Job[Work]) -> Iterable[Batch]:
    """The same samples by TensorFlow's own operations, with neither buffer nor cache."""
    return _native(job).repeat(job.epochs).batch(1)


@variant(only=OF_SIZES)
def shuffle_buffer(job: Job[Work]) -> Iterable[Batch]:
    """``shuffle`` of samples that differ in size (openvla#4, tensorflow#44176: it leaks)."""
    return _native(job).shuffle(BUFFER, seed=job.seed).repeat(job.epochs).batch(1)


@variant(only=OF_SIZES, variables={"MALLOC_ARENA_MAX": "1"})
def shuffle_buffer_one_arena(job: Job[Work]) -> Iterable[Batch]:
    """The same with one arena of glibc's malloc."""
    return shuffle_buffer(job)


@variant(only=OF_SIZES, preload="tcmalloc_minimal")
def shuffle_buffer_tcmalloc(job: Job[Work]) -> Iterable[Batch]:
    """The same with tcmalloc, which the reports recommend."""
    return shuffle_buffer(job)


@variant(only=OF_SIZES)
def cache_to_file(job: Job[Work]) -> Iterable[Batch]:
    """``cache(filename)`` (tensorflow#56404: it takes memory all the same)."""
    return _native(job).cache(str(job.directory / "cache")).repeat(job.epochs).batch(1)


FOLDER = "pictures"


def _pictures(job: Job[Work]) -> None:
    """Write the pictures, each of one colour which tells its number, into a folder of the only class."""
    import cv2

    folder = job.directory / FOLDER / "all"
    folder.mkdir(parents=True)
    for index in range(job.inputs.count):
        picture = job.inputs.sample(index).reshape(SIDE, SIDE, 3)
        cv2.imwrite(str(folder / f"{index:06}.png"), picture[:, :, ::-1])


def _shuffled_by_keras(job: Job[Work], batch_size: int | None) -> Any:
    import keras
    import tensorflow as tf

    def sample(images: Any) -> tuple[Any, Any]:
        pixels = tf.cast(images, tf.int64)
        first = pixels[..., 0, 0, :]
        index = first[..., 0] + 256 * first[..., 1] + 65536 * first[..., 2]
        flat = tf.concat([tf.shape(images)[:-3], [SIDE * SIDE * 3]], 0)
        return tf.reshape(tf.cast(pixels, tf.uint8), flat), index

    read = keras.utils.image_dataset_from_directory(
        str(job.directory / FOLDER),
        labels=None,
        image_size=(SIDE, SIDE),
        batch_size=batch_size,
        shuffle=True,
        seed=job.seed,
        verbose=False,
    )
    return read.repeat(job.epochs).map(sample)


@variant(only=OF_PICTURES, convert=_pictures)
def keras_image_dataset(job: Job[Work]) -> Iterable[Batch]:
    """Keras ``image_dataset_from_directory`` with ``batch_size=32``."""
    return _shuffled_by_keras(job, job.inputs.batch_size)


@variant(only=OF_PICTURES, convert=_pictures)
def keras_image_dataset_unbatched(job: Job[Work]) -> Iterable[Batch]:
    """The same with ``batch_size=None``, batched afterwards (keras#19502: 1024 images fill memory)."""
    return _shuffled_by_keras(job, None).batch(job.inputs.batch_size)


class _Checksums:
    """A map-style data set of as many paths as there are samples in all epochs; none is the same string as another."""

    def __init__(self, work: Work, epochs: int, *, as_array: bool) -> None:
        import numpy as np

        self.count = work.count
        files = [path.encode() for path in work.files]
        every = (files[index % self.count % len(files)] for index in range(self.count * epochs))
        self.paths: Any = np.array(list(every)) if as_array else [path.decode() for path in every]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[int, int]:
        return _checksum(self.paths[index]), index % self.count


class _Batches:
    """The indices of each batch of all epochs; made one by one, as a list of them would be copied like the paths."""

    def __init__(self, work: Work, epochs: int) -> None:
        self.work, self.epochs = work, epochs

    def __iter__(self) -> Iterator[list[int]]:
        for epoch in range(self.epochs):
            for part in self.work.parts:
                yield [epoch * self.work.count + index for index in part]


def _read_by_torch(job: Job[Work], *, as_array: bool) -> Iterator[Batch]:
    from torch.utils.data import DataLoader

    checksums = _Checksums(job.inputs, job.epochs, as_array=as_array)
    for found, indices in DataLoader(checksums, batch_sampler=_Batches(job.inputs, job.epochs), num_workers=WORKERS):
        yield found.numpy(), indices.numpy()


@variant(only=OF_PATHS, optional=("torch",))
def torch_dataloader_list(job: Job[Work]) -> Iterable[Batch]:
    """torch ``DataLoader`` over a list of 1.6 million strings (pytorch#13246: each worker ends up with a copy).

    Reading a string counts a reference to it, which writes to its page, and a page that is written to is copied.
    """
    return _read_by_torch(job, as_array=False)


@variant(only=OF_PATHS, optional=("torch",))
def torch_dataloader_array(job: Job[Work]) -> Iterable[Batch]:
    """The same paths in one NumPy array, whose elements count no references."""
    return _read_by_torch(job, as_array=True)
