"""Python in the pipeline: how ``map`` runs a Python body, and what piles up behind it.

*Asked.* ``Dataset.map`` calls a Python body. How many bodies really run at once, what does asking for more cost in
memory, and which wrapper, order, prefetch and thread pool is best?

*Held fixed.* One body, chosen by ``work``: ``decode`` (OpenCV decodes 200 JPEG files and reduces them to 224x224);
``scalar`` (an array of 40 MiB is filled, dropped after 10 ms, and one number returned); ``array`` (the same, but the
array is returned); ``gil`` (10 ms of Python that never lets go of the interpreter). For ``scalar`` and ``array`` the
consumer is slow, 0.1 s a step; ``array_fast`` is ``array`` with a consumer that does nothing but take. There is no
prefetch unless the strategy's name says so. tf.data's own optimisations (``map_parallelization``,
``inject_prefetch``) are off, except in strategies named ``default``.

*Not measured.* Batching and shuffling; processes.

*Invisible when* the body takes a small part of a training step and returns little data.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loaders._contract import Quality, psnr
from loaders._errors import WrongOutputError
from loaders._registry import Batch, Case, Facts, Job, Question, Variant, variant

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf
    from numpy.typing import NDArray

    from loaders._corpus import Corpus

IMAGES = 200
ARRAYS = 24
"""Arrays of 40 MiB each. With a slow consumer an epoch takes more than two seconds."""

FLOATS = 10 * 2**20
"""Values in one array: 40 MiB (the write-up that this is taken from calls it 10 MB)."""

SLEEP = 0.01
SPINS = 250_000
"""Rounds of a Python loop, which take about 10 ms."""

SLOW_STEP = 0.1
SIDE = 224
REBUILT_EVERY = 2
"""In images: a hundred rebuilds in an epoch."""

CLOSE = 30.0
"""In dB. Below this, two pictures are not the same photograph reduced by different code."""


@dataclass(frozen=True)
class Work:
    """The work of the body, which is given one number per element: for ``decode`` the index of a file.

    Attributes
    ----------
    name
        The value of the case's ``work``.
    paths
        JPEG files.
    """

    name: str
    paths: list[str]

    @property
    def count(self) -> int:
        """The number of elements."""
        return len(self.paths) if self.name == "decode" else ARRAYS

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array that a body returns; the first axis counts samples."""
        return {"decode": (1, SIDE, SIDE, 3), "array": (1, FLOATS), "array_fast": (1, FLOATS)}.get(self.name, (1,))

    @property
    def dtype(self) -> str:
        """The dtype of the array that a body returns."""
        return "uint8" if self.name == "decode" else "float32"


def _prepare(corpus: Corpus, case: Case, seed: int) -> Work:  # noqa: ARG001 - every round does the same work
    paths = corpus.image_paths
    return Work(case["work"], [paths[index] for index in corpus.evenly(IMAGES)])


def _check(job: Job[Work], variant: Variant, batches: Iterable[Batch]) -> Quality:
    import numpy as np

    work, seen, worst = job.inputs, set(), 99.0
    for batch in batches:
        value, number = (np.asarray(each) for each in batch)
        place = int(number.reshape(-1)[0])
        if place in seen or not 0 <= place < work.count:
            raise WrongOutputError(f"element {place} was delivered twice, or does not exist")
        seen.add(place)
        if value.dtype != work.dtype or value.shape != work.shape:
            raise WrongOutputError(
                f"element {place}: got {value.dtype}{list(value.shape)}, expected {work.dtype}{list(work.shape)}"
            )
        if work.name == "decode":
            likeness = psnr(value[0], _decoded(work, place)[0])
            if likeness < (CLOSE if variant.tier == "same purpose" else 99.0):
                raise WrongOutputError(f"element {place} is not the picture: {likeness:.1f} dB")
            worst = min(worst, likeness)
        elif not bool((value == (_spun(place) if work.name == "gil" else place)).all()):
            raise WrongOutputError(f"element {place} holds another value")
    if len(seen) != work.count:
        raise WrongOutputError(f"delivered {len(seen)} samples instead of {work.count}")
    return Quality(psnr=worst if work.name == "decode" else None)


DECODE = {"work": ("decode",)}
PILES = {"work": ("array",)}

QUESTION = Question(
    prepare=_prepare,
    check=_check,
    when="call Python that lets go of the interpreter, as OpenCV does, from `Dataset.map`",
    axes={"work": ("decode", "scalar", "array", "array_fast", "gil")},
    ranked_by="steady_time",
    epochs=2,
    quick_epochs=2,
    step_time=lambda case: SLOW_STEP if case["work"] in ("scalar", "array") else 0.0,
    sweeps="num_parallel_calls",
)


def _decoded(work: Work, place: int) -> NDArray[np.uint8]:
    import cv2
    import numpy as np

    picture = cv2.cvtColor(np.asarray(cv2.imread(work.paths[place])), cv2.COLOR_BGR2RGB)
    return np.asarray(cv2.resize(picture, (SIDE, SIDE))[np.newaxis], np.uint8)


def _spun(place: int) -> float:
    total = place
    for _ in range(SPINS):
        total = (total * 31 + 7) % 8191
    return float(total)


def _body(job: Job[Work]) -> Callable[[int], Any]:
    """Return the body, a function from an element's number to an array of ``Work.shape``."""
    import time

    import numpy as np

    work, meter = job.inputs, job.meter

    def decode(place: int) -> Any:
        with meter:
            return _decoded(work, place)

    def allocate(place: int) -> Any:
        with meter:
            array = np.full((1, FLOATS), place, np.float32)
            time.sleep(SLEEP)
            return array[:, -1].copy() if work.name == "scalar" else array

    def hold(place: int) -> Any:
        with meter:
            return np.array([_spun(place)], np.float32)

    return {"decode": decode, "gil": hold}.get(work.name, allocate)


def _options(*, default: bool = False, threads: int | None = None) -> tf.data.Options:
    """Return options that switch off tf.data's own optimisations, unless ``default``."""
    import tensorflow as tf

    options = tf.data.Options()
    if not default:
        options.experimental_optimization.map_parallelization = False
        options.experimental_optimization.inject_prefetch = False
    if threads:
        options.threading.private_threadpool_size = threads
    return options


def _py_function(job: Job[Work]) -> Callable[[Any], Any]:
    """Return a function for ``map``: the body in a ``py_function``, which gets eager tensors."""
    import tensorflow as tf

    return _wrapped(job, tf.py_function)


def _numpy_function(job: Job[Work]) -> Callable[[Any], Any]:
    """Return a function for ``map``: the body in a ``numpy_function``, which gets arrays."""
    import tensorflow as tf

    return _wrapped(job, tf.numpy_function)


def _wrapped(job: Job[Work], wrapper: Callable[..., tf.Tensor]) -> Callable[[Any], Any]:
    import tensorflow as tf

    body, work = _body(job), job.inputs

    def mapped(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        value = wrapper(lambda each: body(int(each)), [number], work.dtype)
        return tf.ensure_shape(value, work.shape), number[tf.newaxis]

    return mapped


def _native(job: Job[Work]) -> Callable[[Any], Any]:
    """Return a function for ``map``: the same in TensorFlow's own operations, which never wait for the interpreter."""
    import tensorflow as tf

    paths = tf.constant(job.inputs.paths)

    def mapped(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        picture = tf.io.decode_jpeg(tf.io.read_file(paths[number]), channels=3)
        reduced = tf.cast(tf.round(tf.image.resize(picture, (SIDE, SIDE))), tf.uint8)
        return reduced[tf.newaxis], number[tf.newaxis]

    return mapped


def _map(
    job: Job[Work],
    function: Callable[[Any], Any],
    calls: int | str | None,
    *,
    prefetch: int | None = None,
    deterministic: bool | None = None,
    default: bool = False,
    threads: int | None = None,
) -> Any:
    import tensorflow as tf

    numbers = tf.data.Dataset.range(job.inputs.count)
    asked = tf.data.AUTOTUNE if calls == "AUTOTUNE" else calls
    mapped = numbers.map(function, num_parallel_calls=asked, deterministic=deterministic)
    if prefetch:
        mapped = mapped.prefetch(prefetch)
    return mapped.with_options(_options(default=default, threads=threads))


CALLS: Mapping[int | str, Facts] = {1: {}, 2: {}, 4: {}, 8: {}, "AUTOTUNE": {}}
"""What ``num_parallel_calls`` is swept over."""


@variant(sweep={**CALLS, 1: {"baseline": True, "quick": True}}, series="py_function")
def py_function(job: Job[Work], calls: int | str) -> Iterable[Batch]:
    """``py_function``, ``num_parallel_calls={at}``."""
    return _map(job, _py_function(job), calls)


@variant(sweep={**CALLS, 4: {"quick": True}}, only={"work": ("decode", "array")}, series="numpy_function")
def numpy_function(job: Job[Work], calls: int | str) -> Iterable[Batch]:
    """``numpy_function``, ``num_parallel_calls={at}``."""
    return _map(job, _numpy_function(job), calls)


@variant(sweep={**CALLS, 4: {"quick": True}}, tier="same purpose", only=DECODE, series="native")
def native(job: Job[Work], calls: int | str) -> Iterable[Batch]:
    """TensorFlow's operations, ``num_parallel_calls={at}``."""
    return _map(job, _native(job), calls)


@variant(only=DECODE)
def py_function_default(job: Job[Work]) -> Iterable[Batch]:
    """``py_function`` as users run it: no ``num_parallel_calls``, tf.data's own optimisations on."""
    return _map(job, _py_function(job), None, default=True)


@variant(only=DECODE)
def numpy_function_default(job: Job[Work]) -> Iterable[Batch]:
    """``numpy_function`` as users run it: no ``num_parallel_calls``, tf.data's own optimisations on."""
    return _map(job, _numpy_function(job), None, default=True)


@variant(tier="same purpose", only=DECODE)
def native_default(job: Job[Work]) -> Iterable[Batch]:
    """TensorFlow's operations as users run them: no ``num_parallel_calls``, tf.data's own optimisations on."""
    return _map(job, _native(job), None, default=True)


@variant(only={"work": ("decode", "array", "gil")})
def from_generator(job: Job[Work]) -> Iterable[Batch]:
    """The body in a Python generator under ``Dataset.from_generator``: one at a time.

    It also has TensorFlow lower a threshold of malloc, so its arrays are in new pages: see ``loaders._malloc``.
    """
    import numpy as np
    import tensorflow as tf

    body, work = _body(job), job.inputs

    def generate() -> Iterator[tuple[Any, Any]]:
        for number in range(work.count):
            yield body(number), np.array([number])

    signature = (tf.TensorSpec(work.shape, work.dtype), tf.TensorSpec((1,), tf.int64))
    return tf.data.Dataset.from_generator(generate, output_signature=signature).with_options(_options())


@variant(only=PILES)
def py_function_4_nondeterministic(job: Job[Work]) -> Iterable[Batch]:
    """``num_parallel_calls=4``, ``deterministic=False``."""
    return _map(job, _py_function(job), 4, deterministic=False)


@variant(only=PILES)
def py_function_8_nondeterministic(job: Job[Work]) -> Iterable[Batch]:
    """``num_parallel_calls=8``, ``deterministic=False``."""
    return _map(job, _py_function(job), 8, deterministic=False)


@variant(only=PILES)
def py_function_4_prefetch_2(job: Job[Work]) -> Iterable[Batch]:
    """``num_parallel_calls=4``, ``prefetch(2)``."""
    return _map(job, _py_function(job), 4, prefetch=2)


@variant(only=PILES)
def py_function_4_prefetch_8(job: Job[Work]) -> Iterable[Batch]:
    """``num_parallel_calls=4``, ``prefetch(8)``."""
    return _map(job, _py_function(job), 4, prefetch=8)


@variant(only=PILES)
def py_function_4_prefetch_autotune(job: Job[Work]) -> Iterable[Batch]:
    """``num_parallel_calls=4``, ``prefetch(AUTOTUNE)``."""
    import tensorflow as tf

    return _map(job, _py_function(job), 4, prefetch=tf.data.AUTOTUNE)


@variant(only={"work": ("decode", "scalar", "array")})
def py_function_8_private_threads(job: Job[Work]) -> Iterable[Batch]:
    """``num_parallel_calls=8`` in a private pool of eight threads."""
    return _map(job, _py_function(job), 8, threads=8)


@variant(only=DECODE)
def closure_rebuilt(job: Job[Work]) -> Iterable[Batch]:
    """A new closure and a new ``map`` for every two images, like a loop that rebuilds its pipeline each epoch."""
    return _rebuilding(job, lambda: None)


@variant(only=DECODE)
def closure_cleared(job: Job[Work]) -> Iterable[Batch]:
    """Like ``closure_rebuilt``, with Keras's ``clear_session`` and a garbage collection after every tenth ``map``."""
    import gc

    import keras

    rebuilt = itertools.count(1)

    def clear() -> None:
        if next(rebuilt) % 10 == 0:
            keras.backend.clear_session()
            gc.collect()

    return _rebuilding(job, clear)


def _rebuilding(job: Job[Work], after: Callable[[], None]) -> Iterator[Batch]:
    import tensorflow as tf

    numbers: Sequence[int] = range(job.inputs.count)
    for start in range(0, len(numbers), REBUILT_EVERY):
        part = tf.data.Dataset.from_tensor_slices(tf.constant(numbers[start : start + REBUILT_EVERY], tf.int64))
        yield from part.map(_py_function(job), num_parallel_calls=1).with_options(_options())
        after()
