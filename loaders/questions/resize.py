"""Resize: scale one photograph.

*Asked.* scikit-image, OpenCV, Pillow and TensorFlow can all resize an image. How much does the choice cost in time and
memory, how much of the gap remains when they compute the same thing, and how good is the result?

*Held fixed.* 640x480 RGB photographs in memory, one at a time; each library runs on a single thread, except TensorFlow.
Time is of four images, once they have all been resized before: one whose memory is new to the process takes up to a
millisecond longer. Peak memory includes the first call.

*Not measured.* Reading and decoding.

*Invisible when* decoding (about 3 ms a photograph) or training takes longer than resizing, and memory is no concern.

*Quality* is the PSNR against an anti-aliased linear resize in floating point. The tiers differ in output: *as typed*
and *same purpose* strategies return 8-bit images of different quality; *identical* strategies come in pairs that return
the same floating-point image from different code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loaders._contract import Quality, psnr, samples
from loaders._errors import WrongOutputError
from loaders._registry import Batch, Case, Job, Question, Variant, variant

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from loaders._corpus import Corpus

SCALES = ("224x224", "0.5", "2.0", "3.5")
"""224x224 is what many classifiers take; a detector's augmentation draws from 0.5 to 3.5. At 0.5, OpenCV's linear
resize is the mean of four pixels, as its ``INTER_AREA`` is, and at 2.0 and 3.5 nothing is anti-aliased."""

WORST_PSNR = 20.0
"""In dB. A plain linear resize of these photographs reaches at least 29; swapped channels or axes stay below this."""

SAME_PIXEL = 0.5
"""In grey levels: the largest difference that still counts as the same output, as rounding to 8 bits would agree."""


@dataclass(frozen=True)
class Photographs:
    """The images to resize, and the size of the result.

    Attributes
    ----------
    images
        (n, 480, 640, 3) uint8, RGB.
    width, height
        Size of the result in pixels.
    """

    images: NDArray[np.uint8]
    width: int
    height: int

    @property
    def fx(self) -> float:
        """Horizontal scale factor."""
        return self.width / self.images.shape[2]

    @property
    def fy(self) -> float:
        """Vertical scale factor."""
        return self.height / self.images.shape[1]


def _prepare(corpus: Corpus, case: Case, seed: int) -> Photographs:  # noqa: ARG001 - nothing is drawn
    images = corpus.photographs()
    scale = case["scale"]
    if "x" in scale:
        width, height = (int(side) for side in scale.split("x"))
    else:
        width, height = round(images.shape[2] * float(scale)), round(images.shape[1] * float(scale))
    return Photographs(images, width, height)


def _check(job: Job[Photographs], variant: Variant, batches: Iterable[Batch]) -> Quality:
    import numpy as np

    inputs = job.inputs
    same_as = {"skimage_linear_float": _linear, "skimage_local_mean_float": _area}
    exact = same_as.get(variant.matches or variant.name, _antialiased)
    dtype = np.dtype(np.float32 if variant.tier == "identical" else np.uint8)
    worst_psnr, worst_difference, count = 99.0, 0.0, 0
    for batch in batches:
        for (image,) in samples(batch):
            if count == len(inputs.images):
                raise WrongOutputError(f"delivered more than {count} images")
            expected = (inputs.height, inputs.width, 3)
            if np.shape(image) != expected or image.dtype != dtype:
                raise WrongOutputError(
                    f"image {count} is {image.dtype}{list(np.shape(image))}, expected {dtype}{list(expected)}"
                )
            source = inputs.images[count].astype(np.float32)
            quality = psnr(image, _antialiased(source, inputs.width, inputs.height))
            if quality < WORST_PSNR:
                raise WrongOutputError(
                    f"image {count} has {quality:.1f} dB against the reference, at least {WORST_PSNR} expected "
                    f"(channels in RGB order? rows before columns? values 0 to 255?)"
                )
            worst_psnr = min(worst_psnr, quality)
            if variant.tier == "identical":
                difference = float(np.abs(image - exact(source, inputs.width, inputs.height)).max())
                if difference > SAME_PIXEL:
                    raise WrongOutputError(
                        f"image {count} differs by up to {difference:.3f} grey levels, at most {SAME_PIXEL} expected"
                    )
                worst_difference = max(worst_difference, difference)
            count += 1
    if count != len(inputs.images):
        raise WrongOutputError(f"delivered {count} images instead of {len(inputs.images)}")
    return Quality(psnr=worst_psnr, max_difference=worst_difference if variant.tier == "identical" else None)


QUESTION = Question(
    prepare=_prepare,
    check=_check,
    when="shrink photographs with scikit-image",
    axes={"scale": SCALES},
    ranked_by="steady_time",
    least_batches=1,
    epochs=2,
    quick_epochs=2,
)


def _each(job: Job[Photographs], resize: Callable[[NDArray[np.uint8]], Any]) -> Iterator[Batch]:
    """Yield every photograph resized, as a batch of one."""
    for image in job.inputs.images:
        yield resize(image)[None]


@variant(baseline=True, tier="as typed", quick=True)
def skimage_resize_astype(job: Job[Photographs]) -> Iterable[Batch]:
    """scikit-image ``resize(..., preserve_range=True).astype(uint8)``."""
    import numpy as np
    from skimage.transform import resize

    shape = (job.inputs.height, job.inputs.width)
    return _each(job, lambda image: resize(image, shape, preserve_range=True).astype(np.uint8))


@variant(tier="as typed")
def skimage_resize_ubyte(job: Job[Photographs]) -> Iterable[Batch]:
    """scikit-image ``img_as_ubyte(resize(...))``."""
    from skimage.transform import resize
    from skimage.util import img_as_ubyte

    shape = (job.inputs.height, job.inputs.width)
    return _each(job, lambda image: img_as_ubyte(resize(image, shape)))


@variant(tier="as typed")
def skimage_rescale_ubyte(job: Job[Photographs]) -> Iterable[Batch]:
    """scikit-image ``img_as_ubyte(rescale(...))``."""
    from skimage.transform import rescale
    from skimage.util import img_as_ubyte

    scale = (job.inputs.fy, job.inputs.fx)
    return _each(job, lambda image: img_as_ubyte(rescale(image, scale, channel_axis=-1)))


@variant(tier="as typed", quick=True)
def opencv_linear(job: Job[Photographs]) -> Iterable[Batch]:
    """OpenCV ``resize(image, None, fx=f, fy=f)``: linear, not anti-aliased."""
    import cv2

    return _each(job, lambda image: cv2.resize(image, None, fx=job.inputs.fx, fy=job.inputs.fy))


@variant(tier="same purpose")
def opencv_area(job: Job[Photographs]) -> Iterable[Batch]:
    """OpenCV ``INTER_AREA``: the mean of the covered pixels when shrinking."""
    import cv2

    size = (job.inputs.width, job.inputs.height)
    return _each(job, lambda image: cv2.resize(image, size, interpolation=cv2.INTER_AREA))


@variant(tier="same purpose")
def skimage_local_mean(job: Job[Photographs]) -> Iterable[Batch]:
    """scikit-image ``resize_local_mean``: what ``INTER_AREA`` computes."""
    import numpy as np
    from skimage.transform import resize_local_mean

    shape = (job.inputs.height, job.inputs.width)
    return _each(
        job,
        lambda image: resize_local_mean(image, shape, preserve_range=True, channel_axis=-1).round().astype(np.uint8),
    )


@variant(tier="same purpose")
def pillow_bilinear(job: Job[Photographs]) -> Iterable[Batch]:
    """Pillow ``BILINEAR`` with ``reducing_gap=2``, for which no scale here is small enough: anti-aliased integers."""
    import numpy as np
    from PIL import Image

    size = (job.inputs.width, job.inputs.height)
    return _each(
        job,
        lambda image: np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0)),
    )


@variant(tier="same purpose")
def tf_image(job: Job[Photographs]) -> Iterable[Batch]:
    """``tf.image.resize``: linear, not anti-aliased."""
    import tensorflow as tf

    shape = (job.inputs.height, job.inputs.width)
    return _each(job, lambda image: tf.cast(tf.round(tf.image.resize(image, shape)), tf.uint8))


@variant(tier="same purpose")
def tf_image_antialias(job: Job[Photographs]) -> Iterable[Batch]:
    """``tf.image.resize(antialias=True)``."""
    import tensorflow as tf

    shape = (job.inputs.height, job.inputs.width)
    return _each(job, lambda image: tf.cast(tf.round(tf.image.resize(image, shape, antialias=True)), tf.uint8))


@variant
def skimage_linear_float(job: Job[Photographs]) -> Iterable[Batch]:
    """scikit-image ``resize(anti_aliasing=False)`` in float32."""
    import numpy as np
    from skimage.transform import resize

    shape = (job.inputs.height, job.inputs.width)
    return _each(
        job,
        lambda image: resize(image.astype(np.float32), shape, mode="edge", preserve_range=True, anti_aliasing=False),
    )


@variant(matches="skimage_linear_float")
def opencv_linear_float(job: Job[Photographs]) -> Iterable[Batch]:
    """OpenCV ``INTER_LINEAR`` in float32, with the output of ``skimage_linear_float``."""
    import numpy as np

    width, height = job.inputs.width, job.inputs.height
    return _each(job, lambda image: _linear(image.astype(np.float32), width, height))


@variant(quick=True)
def skimage_antialiased_float(job: Job[Photographs]) -> Iterable[Batch]:
    """scikit-image ``resize(anti_aliasing=True)`` in float32."""
    import numpy as np
    from skimage.transform import resize

    shape = (job.inputs.height, job.inputs.width)
    return _each(
        job,
        lambda image: resize(image.astype(np.float32), shape, mode="edge", preserve_range=True, anti_aliasing=True),
    )


@variant(matches="skimage_antialiased_float", quick=True)
def opencv_antialiased_float(job: Job[Photographs]) -> Iterable[Batch]:
    """OpenCV ``GaussianBlur`` and ``INTER_LINEAR`` in float32, with the output of ``skimage_antialiased_float``."""
    import numpy as np

    width, height = job.inputs.width, job.inputs.height
    return _each(job, lambda image: _antialiased(image.astype(np.float32), width, height))


@variant
def skimage_local_mean_float(job: Job[Photographs]) -> Iterable[Batch]:
    """scikit-image ``resize_local_mean`` in float32."""
    import numpy as np
    from skimage.transform import resize_local_mean

    shape = (job.inputs.height, job.inputs.width)
    return _each(
        job,
        lambda image: resize_local_mean(image.astype(np.float32), shape, preserve_range=True, channel_axis=-1),
    )


@variant(matches="skimage_local_mean_float")
def opencv_area_float(job: Job[Photographs]) -> Iterable[Batch]:
    """OpenCV ``INTER_AREA`` in float32, with the output of ``skimage_local_mean_float``."""
    import numpy as np

    width, height = job.inputs.width, job.inputs.height
    return _each(job, lambda image: _area(image.astype(np.float32), width, height))


def _linear(image: NDArray[np.float32], width: int, height: int) -> NDArray[np.float32]:
    import cv2
    import numpy as np

    return np.asarray(cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)


def _area(image: NDArray[np.float32], width: int, height: int) -> NDArray[np.float32]:
    import cv2
    import numpy as np

    return np.asarray(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), np.float32)


def _antialiased(image: NDArray[np.float32], width: int, height: int) -> NDArray[np.float32]:
    """Blur as scikit-image does before it shrinks, then resize linearly.

    scikit-image takes sigma = (factor - 1) / 2 along each axis that shrinks, and cuts the kernel at 4 sigma
    (https://scikit-image.org/docs/stable/api/skimage.transform.html#skimage.transform.resize).
    """
    import cv2

    sigma_y = max(0.0, (image.shape[0] / height - 1) / 2)
    sigma_x = max(0.0, (image.shape[1] / width - 1) / 2)
    if sigma_x or sigma_y:
        kernel = (2 * int(4 * sigma_x + 0.5) + 1, 2 * int(4 * sigma_y + 0.5) + 1)
        image = cv2.GaussianBlur(  # type: ignore[assignment] # OpenCV's stubs widen the dtype
            image, kernel, sigmaX=sigma_x, sigmaY=sigma_y, borderType=cv2.BORDER_REPLICATE
        )
    return _linear(image, width, height)
