"""Decode: from a JPEG file to pixels.

*Asked.* OpenCV, TensorFlow, Pillow, scikit-image and several libraries made for speed all decode JPEG files. How much
does the choice cost, one image after another and on all cores, and what do decoders gain that leave out detail which a
smaller image would lose anyway?

*Held fixed.* Each file is read from the page cache, decoded to 8-bit RGB, and where ``to`` is 224x224 reduced to it
with OpenCV's ``INTER_AREA``; a ``crop`` is of that size too. With ``threads`` all, a pool with one thread per core
decodes; each call uses one thread. ``photographs`` are the corpus's own files (500x375 at JPEG quality 92), sharp crops
of 640x480, or mosaics of such crops, 1600x1200 (2mp) and 4000x3000 (12mp); their quality is 90, or what ``_q75`` or
``_q98`` says. A half or a quarter of the corpus's own files is smaller than 224x224, and is enlarged to it: what
decoding reduced gains, and costs in quality, larger files show.

Each library is called as its users write it: TensorFlow's ``.numpy()`` and Pillow's ``convert("RGB")`` copy the picture
once more.

*Not measured.* Colour spaces other than RGB, and decoding on accelerators.

*Invisible when* a training step takes longer than decoding its batch, or pixels are kept decoded.

*Quality* is the PSNR against OpenCV's decoding at the size that is asked for. *Identical* decoders differ from it by a
grey level at most in every pixel; *same purpose* decoders leave out detail, or round differently. Every decoder is also
given files that are turned by EXIF or damaged: whether it turns the picture, and how many it rejects, is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loaders._contract import OddFiles, Quality, psnr, samples
from loaders._errors import WrongOutputError
from loaders._registry import Batch, Case, Job, Question, Skip, Variant, variant

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from loaders._corpus import Corpus

    Picture = NDArray[np.uint8]
    Decode = Callable[[str], Picture]

SIDE = 224
"""Rows and columns of the reduced image."""

OWN = "own"

COUNTS = {OWN: 64, "640x480": 32, "2mp": 8, "12mp": 3}
"""Photographs in an epoch, so that decoding them takes a third of a second or less."""

WORST_PSNR = 20.0
"""In dB. Decoding at an eighth of the size reaches at least 23; swapped channels stay below this."""

SAME_PIXEL = 1.0
"""In grey levels: by how much the inverse transforms that libraries use may differ, each rounded to 8 bits."""


@dataclass(frozen=True)
class Files:
    """JPEG files, and what becomes of each.

    Attributes
    ----------
    paths
        Of the files.
    odd
        The paths of files that are turned or damaged, by what is odd about them.
    to
        What becomes of each: ``full``, reduced to ``224x224``, or a ``crop`` of that size from its middle.
    threads
        How many decode at a time.
    """

    paths: list[str]
    odd: dict[str, str]
    to: str
    threads: int


def _prepare(corpus: Corpus, case: Case, seed: int) -> Files:  # noqa: ARG001 - nothing is drawn
    import os

    which = case["photographs"]
    count = COUNTS[which.partition("_")[0]]
    own = [corpus.image_paths[place] for place in corpus.evenly(count)]
    paths = own if which == OWN else corpus.stills(which, count)
    if case["to"] == "crop" and (small := next((path for path in paths if min(_size(path)) < SIDE), None)):
        raise Skip(f"{Path(small).name} is smaller than {SIDE}x{SIDE}: nothing of that size can be cut out")
    threads = 1 if case["threads"] == "1" else os.cpu_count() or 1
    return Files(paths, corpus.odd_files(), case["to"], threads)


def _size(path: str) -> tuple[int, int]:
    """Return the width and height that a file tells, which is not decoded."""
    from PIL import Image

    with Image.open(path) as image:
        return image.size


def _check(job: Job[Files], variant: Variant, batches: Iterable[Batch]) -> Quality:
    import numpy as np

    files = job.inputs
    worst_psnr, worst_difference, count = 99.0, 0.0, 0
    for batch in batches:
        for (image,) in samples(batch):
            if count == len(files.paths):
                raise WrongOutputError(f"delivered more than {count} images")
            expected = _as_asked(files, _opencv(files.paths[count]))
            if np.shape(image) != expected.shape or image.dtype != np.uint8:
                raise WrongOutputError(
                    f"image {count} is {image.dtype}{list(np.shape(image))}, expected uint8{list(expected.shape)}"
                )
            quality = psnr(image, expected)
            if quality < WORST_PSNR:
                raise WrongOutputError(
                    f"image {count} has {quality:.1f} dB against OpenCV's, at least {WORST_PSNR} expected "
                    f"(channels in RGB order? rows before columns?)"
                )
            difference = float(np.abs(image.astype(np.int16) - expected).max())
            if variant.tier == "identical" and difference > SAME_PIXEL:
                raise WrongOutputError(
                    f"image {count} differs by up to {difference:.0f} grey levels, at most {SAME_PIXEL:.0f} expected"
                )
            worst_psnr, worst_difference = min(worst_psnr, quality), max(worst_difference, difference)
            count += 1
    if count != len(files.paths):
        raise WrongOutputError(f"delivered {count} images instead of {len(files.paths)}")
    return Quality(psnr=worst_psnr, max_difference=worst_difference, odd_files=_of_odd_files(job, variant))


def _of_odd_files(job: Job[Files], variant: Variant) -> OddFiles:
    """Say whether a decoder turns a picture as EXIF says, and which odd files it rejects."""
    import numpy as np

    turned, rejected = False, []
    for kind, path in job.inputs.odd.items():
        alone = replace(job, inputs=replace(job.inputs, paths=[path], to="full", threads=1))
        try:
            (batch,) = variant.build(alone)
            image = np.asarray(batch)[0]
        except Exception:  # noqa: BLE001 - each library has its own errors
            rejected.append(kind)
            continue
        turned = turned or image.shape[0] > image.shape[1]  # none of them is upright without
    return OddFiles(turned, rejected)


QUESTION = Question(
    prepare=_prepare,
    check=_check,
    when="decode JPEG files",
    axes={
        "photographs": ("own", "640x480", "640x480_q75", "640x480_q98", "2mp", "12mp"),
        "to": ("full", "224x224", "crop"),
        "threads": ("1", "all"),
    },
    slices=(
        {"photographs": "own", "to": "full", "threads": "1"},
        {"photographs": "own", "to": "full", "threads": "all"},
        {"photographs": "own", "to": "224x224", "threads": "1"},
        {"photographs": "own", "to": "224x224", "threads": "all"},
        {"photographs": "own", "to": "crop", "threads": "1"},
        {"photographs": "640x480_q75", "to": "full", "threads": "1"},
        {"photographs": "640x480_q98", "to": "full", "threads": "1"},
        {"photographs": "2mp", "to": "224x224", "threads": "1"},
        {"photographs": "12mp", "to": "full", "threads": "1"},
        {"photographs": "12mp", "to": "224x224", "threads": "1"},
    ),
    ranked_by="steady_time",
    least_batches=1,
    epochs=2,
    quick_epochs=2,
)

REDUCED = {"to": ("224x224",)}
"""Where a decoder that leaves out detail answers something."""


def _each(job: Job[Files], decode: Decode) -> Iterator[Batch]:
    """Yield every photograph as it is asked for, as a batch of one."""
    from concurrent.futures import ThreadPoolExecutor

    files = job.inputs

    def whole(path: str) -> Picture:
        return _as_asked(files, decode(path))[None]

    if files.threads == 1:
        yield from map(whole, files.paths)
        return
    with ThreadPoolExecutor(files.threads) as pool:
        yield from pool.map(whole, files.paths)


def _as_asked(files: Files, picture: Picture) -> Picture:
    """Reduce a picture to what is asked for, or cut its middle out."""
    import cv2
    import numpy as np

    height, width = picture.shape[:2]
    if files.to == "full" or (height, width) == (SIDE, SIDE):
        return picture
    if files.to == "crop":
        top, left = (height - SIDE) // 2, (width - SIDE) // 2
        return picture[top : top + SIDE, left : left + SIDE]
    return np.asarray(cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA), np.uint8)


def _opencv(path: str) -> Picture:
    import cv2
    import numpy as np

    picture = cv2.imread(path)
    if picture is None:
        raise ValueError(f"OpenCV cannot read {path}")
    return np.asarray(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB), np.uint8)


@variant(baseline=True, quick=True)
def opencv_imread(job: Job[Files]) -> Iterable[Batch]:
    """OpenCV ``cvtColor(imread(path), COLOR_BGR2RGB)``."""
    return _each(job, _opencv)


@variant
def opencv_imread_rgb(job: Job[Files]) -> Iterable[Batch]:
    """OpenCV ``imread(path, IMREAD_COLOR_RGB)``: no second pass to swap the channels."""
    return _each(job, _opencv_as("IMREAD_COLOR_RGB", swapped=False))


@variant
def opencv_imdecode(job: Job[Files]) -> Iterable[Batch]:
    """OpenCV ``imdecode`` of the file's bytes."""
    import cv2
    import numpy as np

    def decode(path: str) -> Picture:
        picture = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
        if picture is None:
            raise ValueError(f"OpenCV cannot decode {path}")
        return np.asarray(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB), np.uint8)

    return _each(job, decode)


@variant(tier="same purpose", only=REDUCED, quick=True)
def opencv_reduced_2(job: Job[Files]) -> Iterable[Batch]:
    """OpenCV ``imread(path, IMREAD_REDUCED_COLOR_2)``: decoded at half the size."""
    return _each(job, _opencv_as("IMREAD_REDUCED_COLOR_2"))


@variant(tier="same purpose", only=REDUCED)
def opencv_reduced_4(job: Job[Files]) -> Iterable[Batch]:
    """OpenCV ``imread(path, IMREAD_REDUCED_COLOR_4)``: decoded at a quarter of the size."""
    return _each(job, _opencv_as("IMREAD_REDUCED_COLOR_4"))


def _opencv_as(flag: str, *, swapped: bool = True) -> Decode:
    """Return OpenCV's decoder with one of its flags."""
    import cv2
    import numpy as np

    how = getattr(cv2, flag)

    def decode(path: str) -> Picture:
        picture = cv2.imread(path, how)
        if picture is None:
            raise ValueError(f"OpenCV cannot read {path}")
        return np.asarray(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB) if swapped else picture, np.uint8)

    return decode


@variant(tier="same purpose", quick=True)
def tf_decode_jpeg(job: Job[Files]) -> Iterable[Batch]:
    """TensorFlow ``tf.io.decode_jpeg(tf.io.read_file(path), channels=3)``, with its fast inverse transform."""
    return _each(job, _tensorflow())


@variant
def tf_integer_accurate(job: Job[Files]) -> Iterable[Batch]:
    """TensorFlow ``decode_jpeg(dct_method="INTEGER_ACCURATE")``: the inverse transform that the others use."""
    return _each(job, _tensorflow(dct_method="INTEGER_ACCURATE"))


@variant(tier="same purpose")
def tf_no_fancy_upscaling(job: Job[Files]) -> Iterable[Batch]:
    """TensorFlow ``decode_jpeg(fancy_upscaling=False)``: colours are repeated, not interpolated."""
    return _each(job, _tensorflow(fancy_upscaling=False))


@variant(tier="same purpose", only=REDUCED)
def tf_ratio_2(job: Job[Files]) -> Iterable[Batch]:
    """TensorFlow ``decode_jpeg(ratio=2)``: decoded at half the size."""
    return _each(job, _tensorflow(ratio=2))


@variant(tier="same purpose", only=REDUCED)
def tf_ratio_4(job: Job[Files]) -> Iterable[Batch]:
    """TensorFlow ``decode_jpeg(ratio=4)``: decoded at a quarter of the size."""
    return _each(job, _tensorflow(ratio=4))


def _tensorflow(**how: Any) -> Decode:
    """Return TensorFlow's decoder with these arguments."""
    import tensorflow as tf

    def decode(path: str) -> Picture:
        picture: Picture = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, **how).numpy()
        return picture

    return decode


@variant(tier="same purpose", only={"to": ("crop",)})
def tf_decode_and_crop(job: Job[Files]) -> Iterable[Batch]:
    """TensorFlow ``tf.image.decode_and_crop_jpeg``: only the rows and columns of the crop are decoded."""
    import tensorflow as tf

    def decode(path: str) -> Picture:
        encoded = tf.io.read_file(path)
        height, width, _ = tf.io.extract_jpeg_shape(encoded)
        window = [(height - SIDE) // 2, (width - SIDE) // 2, SIDE, SIDE]
        picture: Picture = tf.image.decode_and_crop_jpeg(encoded, window, channels=3).numpy()
        return picture

    return _each(job, decode)


@variant
def pillow(job: Job[Files]) -> Iterable[Batch]:
    """Pillow ``Image.open(path).convert("RGB")``."""
    import numpy as np
    from PIL import Image

    def decode(path: str) -> Picture:
        with Image.open(path) as image:
            return np.asarray(image.convert("RGB"))

    return _each(job, decode)


@variant(tier="same purpose", only=REDUCED)
def pillow_draft(job: Job[Files]) -> Iterable[Batch]:
    """Pillow ``Image.draft``: at the smallest of four sizes that covers 224x224, whole below 448 pixels a side."""
    import numpy as np
    from PIL import Image

    def decode(path: str) -> Picture:
        with Image.open(path) as image:
            image.draft("RGB", (SIDE, SIDE))
            return np.asarray(image.convert("RGB"))

    return _each(job, decode)


@variant
def skimage_imread(job: Job[Files]) -> Iterable[Batch]:
    """scikit-image ``io.imread(path)``, which calls imageio, which calls Pillow."""
    from skimage.io import imread

    return _each(job, imread)


@variant(optional=("simplejpeg",), quick=True)
def simplejpeg(job: Job[Files]) -> Iterable[Batch]:
    """simplejpeg ``decode_jpeg(bytes)``: libjpeg-turbo with nothing around it."""
    return _each(job, _simplejpeg())


@variant(optional=("simplejpeg",), tier="same purpose")
def simplejpeg_fast(job: Job[Files]) -> Iterable[Batch]:
    """simplejpeg ``decode_jpeg(bytes, fastdct=True, fastupsample=True)``: both of libjpeg-turbo's short cuts."""
    return _each(job, _simplejpeg(fastdct=True, fastupsample=True))


@variant(optional=("simplejpeg",), tier="same purpose", only=REDUCED)
def simplejpeg_reduced(job: Job[Files]) -> Iterable[Batch]:
    """simplejpeg with ``min_height`` and ``min_width``: the smallest of sixteen sizes that covers 224x224."""
    return _each(job, _simplejpeg(min_height=SIDE, min_width=SIDE, min_factor=1))


def _simplejpeg(**how: Any) -> Decode:
    """Return simplejpeg's decoder with these arguments."""
    from pathlib import Path

    from simplejpeg import decode_jpeg

    def decode(path: str) -> Picture:
        picture: Picture = decode_jpeg(Path(path).read_bytes(), **how)
        return picture

    return decode


@variant(optional=("imagecodecs",))
def imagecodecs(job: Job[Files]) -> Iterable[Batch]:
    """imagecodecs ``jpeg8_decode(bytes)``: libjpeg-turbo as scientists' file formats use it."""
    from pathlib import Path

    from imagecodecs import jpeg8_decode

    return _each(job, lambda path: jpeg8_decode(Path(path).read_bytes(), outcolorspace="RGB"))


@variant(optional=("kornia_rs",))
def kornia_rs(job: Job[Files]) -> Iterable[Batch]:
    """kornia-rs ``read_image_jpegturbo(path)``: libjpeg-turbo called from Rust."""
    from kornia_rs.io import read_image_jpegturbo

    return _each(job, read_image_jpegturbo)


@variant(optional=("torchvision",))
def torchvision(job: Job[Files]) -> Iterable[Batch]:
    """torchvision ``decode_jpeg(read_file(path), mode=RGB)``, its channels moved to the end."""
    from torchvision.io import ImageReadMode, decode_jpeg, read_file

    def decode(path: str) -> Picture:
        picture: Picture = decode_jpeg(read_file(path), mode=ImageReadMode.RGB).permute(1, 2, 0).numpy()
        return picture

    return _each(job, decode)
