"""Batching: everything in memory, or a batch at a time.

*Asked.* A model is to be trained on a folder of labelled photographs. What does it cost to load them all first? Of the
strategies that read one batch at a time, which is fastest while keeping memory independent of the amount of data?

*Held fixed.* The JPEG files' paths are shuffled once, and most strategies keep this order in all epochs. Each image (of
500x375 pixels, where it is a bundled one) is decoded, reduced to 224x224 and scaled to float32 from -1 to 1; a batch
holds 32. ``data`` is 40, 160 or 640 of the photographs (x1, x4, x16), or a sixteenth, a quarter or all of a smaller
corpus; x64 is 2560. With ``augment`` each image is flipped, shifted and brightened by its own seeded amounts: the same
in all epochs, so that they can be checked, but in each epoch anew, as training would. What is loaded once and handed
out as it is cannot be augmented, and runs without. OpenCV decodes each image on one thread. Strategies that decode
with TensorFlow, or at a smaller size that still covers 224x224, are in another tier; those whose decoder gives
OpenCV's pixels are not.

*Not measured.* Training, which would hide the reading. Handing NumPy arrays over to TensorFlow, where a strategy yields
these: ``pool_from_generator_mmap_threshold`` differs from ``path_generator_pool`` by that and a prefetch, and
``pool_from_generator`` also by what ``from_generator`` does to malloc. Long epochs: what a loader does anew in each
one, as starting processes, weighs more in 640 images than in a million.

*Invisible when* a training step takes longer than decoding its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loaders._contract import Quality, check_alike, check_drawn_from, psnr
from loaders._errors import WrongOutputError
from loaders._registry import Batch, Case, Job, Question, Variant

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

BY_LABEL = "by-label"

UNCHANGED = {"augment": ("off",)}
"""For strategies whose library reads the files by itself, and for those that hand out what they have loaded once: it
would be changed once, where training changes it in each epoch."""

IN_THEIR_OWN_WAY = ("keras_image_dataset", "keras_image_dataset_grain", "turboloader")
"""Strategies whose library decodes and reduces by itself."""

WORST_PSNR = 20.0
"""In dB. A linear reduction with aliases reaches 25; swapped channels stay below."""

SAME_PIXEL = 1
"""In grey levels: by how much another decoder may differ from OpenCV's and still count as identical."""

CHECKING = 2
"""Threads that decode what is expected; a check takes as long as the rest of a trial."""

ALIGNED = 64
"""In bytes. TensorFlow takes an array that begins at a multiple of it as it is, and copies any other."""

MOST = 640
"""Most images in ``x16``: as float32 they take 385 MB, enough to tell loading everything from loading a batch."""


@dataclass(frozen=True)
class Files:
    """JPEG files in a shuffled order, and how each is changed.

    Attributes
    ----------
    paths, labels
        The path and the label of each file.
    changes
        int32 array of shape (n, 4): whether to flip, pixels down, pixels right, grey levels up. ``None`` if no image is
        to be changed: a strategy then leaves out the code that would.
    """

    paths: list[str]
    labels: NDArray[np.int64]
    changes: NDArray[np.int32] | None


def _prepare(corpus: Corpus, case: Case, seed: int) -> Files:
    import numpy as np

    random = np.random.default_rng(seed)
    paths, labels = corpus.image_paths, corpus.image_labels
    count = corpus.amount(case["data"], MOST)
    chosen = random.permutation(len(paths))[:count]
    most = np.array([1, SHIFT, SHIFT, BRIGHTEN])
    least = np.array([0, -SHIFT, -SHIFT, -BRIGHTEN])
    changes = random.integers(least, most + 1, (count, 4), np.int32) if case["augment"] == "on" else None
    return Files([paths[index] for index in chosen], np.array([labels[index] for index in chosen]), changes)


def _check(job: Job[Files], variant: Variant, batches: Iterable[Batch]) -> Quality:
    """Hold each image against what its decoder makes of the file, and some of these against OpenCV's."""
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np

    data = job.inputs
    own = _decoder_of(data, variant)
    load = own or (lambda index: _load(data, index))

    def pixels(images: Any) -> NDArray[np.uint8]:
        # TensorFlow may multiply by 1 / 127.5 where the code divides, so whole grey levels are compared.
        levels = np.add(np.asarray(images), np.float32(1), dtype=np.float32)
        levels *= np.float32(127.5)
        return np.rint(levels, out=levels).astype(np.uint8)

    def expected() -> Iterator[tuple[Any, Any]]:
        with ThreadPoolExecutor(CHECKING) as pool:
            for part in _parts(job):  # all at once, it would hold all images
                yield from zip(pool.map(lambda index: pixels(load(index)), part), data.labels[list(part)], strict=True)

    def delivered() -> Iterator[Batch]:
        for images, labels in batches:
            if len(labels) > job.batch_size:  # a step of training would be spent on more than others spend it on
                raise WrongOutputError(f"a batch holds {len(labels)} samples, at most {job.batch_size} expected")
            array = np.asarray(images)
            # Anything but float32 is left as it is, and so fails the comparison.
            yield (pixels(array) if array.dtype == np.float32 else array, labels)

    if variant.name in IN_THEIR_OWN_WAY or (variant.is_outside and variant.tier != "identical"):
        universe = list(enumerate(data.labels.tolist()))
        return Quality(psnr=check_alike(universe, lambda index: pixels(_load(data, index)), delivered(), WORST_PSNR))
    check_drawn_from(expected(), len(data.paths), delivered())
    if own is None:
        return Quality()
    few = range(0, len(data.paths), max(1, len(data.paths) // 20))
    pairs = [(pixels(own(each)), pixels(_load(data, each))) for each in few]
    difference = max(float(np.abs(one.astype(np.int16) - other).max()) for one, other in pairs)
    if variant.tier == "identical" and difference > SAME_PIXEL:
        raise WrongOutputError(
            f"an image differs from OpenCV's by up to {difference:.0f} grey levels, at most {SAME_PIXEL} expected"
        )
    worst = min(psnr(*pair) for pair in pairs)
    if worst < WORST_PSNR:
        raise WrongOutputError(f"an image has {worst:.1f} dB against OpenCV's, at least {WORST_PSNR} expected")
    return Quality(psnr=worst, max_difference=difference)


def _decoder_of(data: Files, variant: Variant) -> Callable[[int], Any] | None:
    """Return what loads the image at an index with the decoder that a strategy uses; ``None`` if that is OpenCV."""
    by_others: dict[str, Callable[[int], Any]] = {
        "pool_simplejpeg": lambda index: _load_simplejpeg(data, index, reduced=False),
        "pool_reduced": lambda index: _load_simplejpeg(data, index, reduced=True),
        "hf_datasets": lambda index: _load_pillow(data, index),
    }
    natively = {"tfdata_reduced": _native_reduced_steps, "tfdata_paths_bilinear": _native_bilinear_steps}
    if variant.tier == "same purpose" and variant.name not in by_others:
        return _native(data, natively.get(variant.name, _native_steps))
    return by_others.get(variant.name)


QUESTION = Question(
    prepare=_prepare,
    check=_check,
    when="train on a folder of photographs",
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
    # The order in which results know the strategies; a new module follows these without being named here.
    modules=("memory", "generator", "pool", "keras", "tf1", "tfdata", "mapped"),
)


def _load(data: Files, index: int) -> NDArray[np.float32]:
    """Decode, reduce, change and scale one image with OpenCV."""
    return _finished(data, index, _picture(data.paths[index]))


def _load_simplejpeg(data: Files, index: int, *, reduced: bool) -> NDArray[np.float32]:
    """Decode with simplejpeg, at the smallest size that still covers 224x224 if ``reduced``, and go on as ``_load``."""
    from pathlib import Path

    from simplejpeg import decode_jpeg

    least = {"min_height": SIDE, "min_width": SIDE, "min_factor": 1} if reduced else {}
    return _finished(data, index, decode_jpeg(Path(data.paths[index]).read_bytes(), **least))


def _load_pillow(data: Files, index: int) -> NDArray[np.float32]:
    """Decode with Pillow, and go on as ``_load``."""
    import numpy as np
    from PIL import Image

    with Image.open(data.paths[index]) as image:
        return _finished(data, index, np.asarray(image.convert("RGB")))


def _by_label(job: Job[Files]) -> None:
    """Write a folder of links to the files, with a subfolder for each label, as Keras and others want it."""
    from pathlib import Path

    data = job.inputs
    for label in range(max(data.labels) + 1):  # an empty one too: labels are counted
        (job.directory / BY_LABEL / f"{label:04}").mkdir(parents=True, exist_ok=True)
    for number, (path, label) in enumerate(zip(data.paths, data.labels, strict=True)):
        link = job.directory / BY_LABEL / f"{label:04}" / f"{number:06}.jpg"
        link.symlink_to(Path(path).absolute())


def _picture(path: str) -> NDArray[np.uint8]:
    """Decode an image file with OpenCV."""
    import cv2
    import numpy as np

    return np.asarray(cv2.cvtColor(np.asarray(cv2.imread(path)), cv2.COLOR_BGR2RGB), np.uint8)


def _reduced(picture: NDArray[Any]) -> NDArray[np.uint8]:
    """Reduce a decoded image."""
    import cv2
    import numpy as np

    return np.asarray(cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA), np.uint8)


def _levels(path: str) -> NDArray[np.uint8]:
    """Decode and reduce an image file, which is what can be kept of it as bytes."""
    return _reduced(_picture(path))


def _finished(data: Files, index: int, picture: NDArray[Any]) -> NDArray[np.float32]:
    """Reduce, change and scale a decoded image."""
    return _changed(data, index, _reduced(picture))


def _changed(data: Files, index: int, reduced: NDArray[Any]) -> NDArray[np.float32]:
    """Change a reduced image, if it is to be changed, and scale it."""
    import numpy as np

    if data.changes is not None:
        flip, down, right, up = (int(each) for each in data.changes[index])
        flipped = reduced[:, ::-1] if flip else reduced
        shifted = np.roll(flipped, (down, right), (0, 1))
        reduced = np.clip(shifted.astype(np.int16) + up, 0, 255)
    return np.asarray(reduced, np.float32) / np.float32(127.5) - np.float32(1)


def _batch(data: Files, indices: Iterable[int]) -> tuple[Any, Any]:
    """Load the images at these indices, one after another, into one array of shape (n, 224, 224, 3)."""
    chosen = list(indices)
    return _filled(data, chosen, _empty(len(chosen)), _load)


def _from_levels(data: Files, part: Iterable[int], levels: NDArray[np.uint8]) -> tuple[Any, Any]:
    """Change and scale the images at these indices of what was decoded and reduced before."""
    chosen = list(part)
    return _filled(data, chosen, _empty(len(chosen)), lambda data, index: _changed(data, index, levels[index]))


def _empty(count: int) -> NDArray[np.float32]:
    """Return an array for so many images."""
    import numpy as np

    return np.empty((count, SIDE, SIDE, 3), np.float32)


def _bytes(count: int) -> int:
    """Return the bytes of so many images."""
    return 4 * count * SIDE * SIDE * 3


def _aligned(count: int) -> NDArray[np.float32]:
    """Return an array for so many images that TensorFlow need not copy."""
    import numpy as np

    size = _bytes(count)
    memory = np.empty(size + ALIGNED, np.uint8)
    start = -memory.ctypes.data % ALIGNED
    return memory[start : start + size].view(np.float32).reshape(count, SIDE, SIDE, 3)


class Reiterable:
    """What is built once and read anew in each epoch, by a function that returns an iterator of its batches."""

    def __init__(self, batches: Callable[[], Iterator[Batch]]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Batch]:
        return self._batches()


def _from_generator(batches: Callable[[], Iterator[Batch]]) -> Any:
    """Return a dataset of what a function's generator yields, which is called for each epoch."""
    import tensorflow as tf

    signature = (tf.TensorSpec((None, SIDE, SIDE, 3), tf.float32), tf.TensorSpec((None,), tf.int64))
    return tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(tf.data.AUTOTUNE)


def _filled(
    data: Files, chosen: Sequence[int], images: NDArray[np.float32], load: Callable[[Files, int], Any]
) -> tuple[Any, Any]:
    """Load the images at these indices into an array."""
    for place, index in enumerate(chosen):
        images[place] = load(data, index)
    return images, data.labels[list(chosen)]


def _parts(job: Job[Files]) -> list[range]:
    """Return the indices of each batch."""
    count = len(job.inputs.paths)
    return [range(start, min(start + job.batch_size, count)) for start in range(0, count, job.batch_size)]


def _native(data: Files, steps: Callable[..., Any]) -> Callable[[int], tf.Tensor]:
    """Return a function that decodes, reduces, changes and scales the image at an index with TensorFlow."""
    import tensorflow as tf

    compiled, changes = tf.function(steps), data.changes
    if changes is None:
        return lambda index: compiled(tf.constant(data.paths[index]))
    return lambda index: compiled(tf.constant(data.paths[index]), tf.constant(changes[index]))


def _native_steps(path: tf.Tensor, change: tf.Tensor | None = None) -> tf.Tensor:
    import tensorflow as tf

    return _native_finished(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), change)


def _native_bilinear_steps(path: tf.Tensor, change: tf.Tensor | None = None) -> tf.Tensor:
    """Reduce as ``tf.image.resize`` does by default: from four neighbours, whatever lies between these."""
    import tensorflow as tf

    return _native_finished(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), change, method="bilinear")


def _native_reduced_steps(path: tf.Tensor, change: tf.Tensor | None = None) -> tf.Tensor:
    """Decode at the smallest of four sizes that still covers 224x224, and without interpolating colours."""
    import tensorflow as tf

    encoded = tf.io.read_file(path)
    factor = tf.reduce_min(tf.io.extract_jpeg_shape(encoded)[:2]) // SIDE

    def at(ratio: int) -> tf.Tensor:
        return tf.io.decode_jpeg(encoded, channels=3, ratio=ratio, fancy_upscaling=False)

    sizes = [(factor >= ratio, lambda ratio=ratio: at(ratio)) for ratio in (8, 4, 2)]
    return _native_finished(tf.case(sizes, default=lambda: at(1)), change)


def _native_finished(picture: tf.Tensor, change: tf.Tensor | None, method: str = "area") -> tf.Tensor:
    """Reduce, change and scale a decoded image."""
    import tensorflow as tf

    reduced = tf.round(tf.image.resize(picture, (SIDE, SIDE), method=method))
    if change is not None:
        flipped = tf.where(change[0] > 0, reduced[:, ::-1], reduced)
        shifted = tf.roll(flipped, change[1:3], (0, 1))
        reduced = tf.clip_by_value(shifted + tf.cast(change[3], tf.float32), 0.0, 255.0)
    return reduced / 127.5 - 1.0
