"""A pool of threads loads images, or whole batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from loaders._malloc import has_threshold, set_threshold_back
from loaders._registry import Batch, Job, Skip, variant
from loaders.questions.batching import (
    Files,
    _aligned,
    _batch,
    _bytes,
    _empty,
    _from_generator,
    _load,
    _load_simplejpeg,
    _parts,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Load = Callable[[Files, int], NDArray[np.float32]]
    Empty = Callable[[int], NDArray[np.float32]]


@variant(quick=True)
def path_generator_pool(job: Job[Files]) -> Iterable[Batch]:
    """A Python generator over batches of paths that a pool of threads decodes, with the next batch under way."""
    return _pooled(job, ahead=1)


@variant(engine="tf.data")
def pool_from_generator(job: Job[Files]) -> Iterable[Batch]:
    """The pool through ``Dataset.from_generator`` and prefetch, from arrays that TensorFlow need not copy."""
    return _from_generator(lambda: _pooled(job, ahead=1, empty=_aligned))


@variant(engine="tf.data", matches="pool_from_generator")
def pool_from_generator_mmap_threshold(job: Job[Files]) -> Iterable[Batch]:
    """``pool_from_generator`` with malloc's threshold set back, which TensorFlow lowers: images reuse memory."""
    if not has_threshold():
        raise Skip("this C library has no threshold that could be set back")

    def batches() -> Iterator[Batch]:
        set_threshold_back(_bytes(job.batch_size))
        yield from _pooled(job, ahead=1, empty=_aligned)

    return _from_generator(batches)


@variant(optional=("simplejpeg",))
def pool_simplejpeg(job: Job[Files]) -> Iterable[Batch]:
    """The pool with simplejpeg's decoder, which gives OpenCV's pixels."""
    return _pooled(job, ahead=1, load=lambda data, index: _load_simplejpeg(data, index, reduced=False))


@variant(optional=("simplejpeg",), tier="same purpose")
def pool_reduced(job: Job[Files]) -> Iterable[Batch]:
    """The pool with simplejpeg, which decodes at the smallest of sixteen sizes that still covers 224x224."""
    return _pooled(job, ahead=1, load=lambda data, index: _load_simplejpeg(data, index, reduced=True))


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


def _pooled(job: Job[Files], ahead: int, load: Load = _load, empty: Empty = _empty) -> Iterator[Batch]:
    """Yield batches that a pool of threads decodes; ``ahead`` more batches are under way while one is in use."""
    import itertools
    import os
    from collections import deque
    from concurrent.futures import ThreadPoolExecutor

    data, to_come = job.inputs, iter(_parts(job))
    with ThreadPoolExecutor(os.cpu_count()) as pool:

        def begin(part: range) -> tuple[range, Any, list[Any]]:
            images = empty(len(part))

            def put(place: int, index: int) -> None:
                images[place] = load(data, index)

            return part, images, [pool.submit(put, place, index) for place, index in enumerate(part)]

        under_way = deque(begin(part) for part in itertools.islice(to_come, ahead + 1))
        while under_way:
            part, images, waiting = under_way.popleft()
            for each in waiting:
                each.result()
            under_way.extend(begin(part) for part in itertools.islice(to_come, 1))
            yield images, data.labels[part.start : part.stop]
