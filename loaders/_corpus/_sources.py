"""Where pictures come from: scikit-image's own package files, or the user's folder."""

from __future__ import annotations

import errno
import io
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING

import msgspec

from loaders._corpus._manifest import LeftOut
from loaders._errors import InputError, printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

PHOTOGRAPHS = (
    "astronaut.png",
    "chelsea.png",
    "coffee.png",
    "hubble_deep_field.jpg",
    "ihc.png",
    "motorcycle_left.png",
    "motorcycle_right.png",
    "retina.jpg",
    "rocket.jpg",
)
"""The colour photographs inside scikit-image's wheel (0.25 and later), so nothing is downloaded."""

SUFFIXES = (".jpg", ".jpeg", ".png")
JPEG_QUALITY = 92
"""Gives about 50 KB for 500x375 pixels of these photographs."""

IMAGE_WIDTH, IMAGE_HEIGHT = 500, 375


class Picture(msgspec.Struct, frozen=True):
    """One picture on its way into a corpus: the bytes of a JPEG file, and how it was converted."""

    label: str
    jpeg: bytes
    width: int
    height: int
    converted: str = ""


PASSING = ("EAGAIN", "EIO", "EMFILE", "ENFILE", "ENOMEM", "ESTALE", "ETIMEDOUT")
"""Errors of the system that say nothing of a file: what they left out would be left out of the corpus for good."""


@dataclass(frozen=True)
class Found:
    """A file of the user's folder; ``name`` is its path inside the folder, ``identity`` changes when the file does."""

    path: Path
    name: str
    label: str
    identity: str


def encode(rgb: NDArray[np.uint8]) -> bytes:
    """Return the JPEG bytes of an RGB array (height, width, 3)."""
    import cv2

    ok, data = cv2.imencode(".jpg", cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    if not ok:
        raise ValueError(f"{rgb.shape[1]}x{rgb.shape[0]} pixels do not fit into a JPEG, which ends at 65500 a side")
    return data.tobytes()


def _originals() -> dict[str, NDArray[np.uint8]]:
    """Read the package's photographs, RGB, by their names without suffix."""
    import skimage

    folder = Path(skimage.__file__).parent / "data"
    originals = {}
    for name in PHOTOGRAPHS:
        rgb = decoded(folder / name)
        if rgb is None:
            raise InputError(
                f"scikit-image's photograph {name} is missing or damaged; "
                f"reinstall it: pip install --force-reinstall scikit-image"
            )
        originals[Path(name).stem] = rgb
    return originals


def decoded(path: Path) -> NDArray[np.uint8] | None:
    """Return a picture, RGB; ``None`` if it cannot be read. On Windows, ``imread`` opens ASCII names alone."""
    import cv2
    import numpy as np

    try:
        encoded = np.fromfile(path, np.uint8)
    except OSError:
        return None
    bgr = cv2.imdecode(encoded, cv2.IMREAD_COLOR) if encoded.size else None
    return None if bgr is None else np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), np.uint8)


def photographs(count: int, seed: int) -> Iterator[Picture]:
    """Yield ``count`` pictures of 500x375: seeded crops of the package's photographs, half of them flipped."""
    import cv2
    import numpy as np

    originals = _originals()
    random = np.random.default_rng(seed)
    names = sorted(originals)
    for index in range(count):
        label = names[index % len(names)]
        original = originals[label]
        height, width = original.shape[:2]
        # The largest 4:3 crop that fits, shrunk by up to 40 %, anywhere in the picture.
        crop_width = int(min(width, height * 4 / 3) * random.uniform(0.6, 1.0))
        crop = _crop(original, crop_width, crop_width * 3 // 4, random)
        if random.random() < 0.5:
            crop = crop[:, ::-1]
        resized = cv2.resize(np.ascontiguousarray(crop), (IMAGE_WIDTH, IMAGE_HEIGHT), interpolation=cv2.INTER_AREA)
        yield Picture(label, encode(np.asarray(resized, np.uint8)), IMAGE_WIDTH, IMAGE_HEIGHT)


def sharp_crops(count: int, width: int, height: int, seed: int) -> list[NDArray[np.uint8]]:
    """Return ``count`` unscaled crops of the photographs that are large enough."""
    import numpy as np

    large = [each for each in _originals().values() if each.shape[0] >= height and each.shape[1] >= width]
    random = np.random.default_rng(seed)
    return [_crop(large[index % len(large)], width, height, random) for index in range(count)]


def _crop(picture: NDArray[np.uint8], width: int, height: int, random: np.random.Generator) -> NDArray[np.uint8]:
    left = int(random.integers(0, picture.shape[1] - width + 1))
    top = int(random.integers(0, picture.shape[0] - height + 1))
    return picture[top : top + height, left : left + width]


def find(folder: Path, say: Callable[[str], None]) -> list[Found]:
    """List the JPEG and PNG files of a folder; a subfolder is a label. Links are followed, each folder only once.

    What a link to a folder inside would lead to has its label there. ``say`` is told of files of other formats.

    Raises
    ------
    InputError
        For a folder that is missing, is not a folder, or holds no such file.
    """
    shown = printable(str(folder))
    try:
        is_folder = S_ISDIR(folder.stat().st_mode)
    except FileNotFoundError:
        raise InputError(f"--data {shown}: no such folder") from None
    except (OSError, ValueError) as error:  # a name that is too long, a link to itself, a name with a null byte
        raise InputError(f"--data {shown}: {getattr(error, 'strerror', None) or error}") from error
    if not is_folder:
        raise InputError(f"--data {shown}: not a folder")
    found: list[Found] = []
    others: list[Path] = []
    visited: set[Path] = set()

    def unreadable(error: OSError) -> None:
        if Path(error.filename) == folder:
            raise InputError(f"--data {shown}: {error.strerror}") from error
        found.append(_found(Path(error.filename), folder, error))

    for parent, folders, files in os.walk(folder, followlinks=True, onerror=unreadable):
        here = Path(parent).resolve()
        walked = [
            name for name in folders if not name.startswith(".") and not _leads_inside(Path(parent, name), folder)
        ]
        folders[:] = sorted(walked) if here not in visited else []
        if here in visited:
            continue
        visited.add(here)
        for path in (Path(parent, name) for name in sorted(files) if not name.startswith(".")):
            if path.suffix.lower() in SUFFIXES:
                found.append(_found(path, folder))
            else:
                others.append(path)
    if not found:
        instead = (
            f"; it holds {len(others)} other files, such as {printable(others[0].name)}" if others else "; it is empty"
        )
        raise InputError(
            f"--data {shown}: no JPEG or PNG file{instead}. Expected folder/LABEL/picture.jpg, or folder/picture.jpg"
        )
    if others:
        say(f"{len(others)} other files are not used, such as {printable(others[0].name)}: only JPEG and PNG are")
    return found


def _leads_inside(path: Path, folder: Path) -> bool:
    """Whether a path is a link to a folder within this one that is walked anyway."""
    if not path.is_symlink():
        return False
    root, target = folder.resolve(), path.resolve()
    return target.is_relative_to(root) and not any(each.startswith(".") for each in target.relative_to(root).parts)


def _found(path: Path, folder: Path, error: OSError | None = None) -> Found:
    inside = path.relative_to(folder)
    label = inside.parts[0] if len(inside.parts) > 1 else "unlabelled"
    try:
        status = path.stat()
        state = f"{status.st_size}\0{status.st_mtime_ns}\0{status.st_ctime_ns}"
    except OSError as reason:
        error = reason
    return Found(path, printable(inside.as_posix()), printable(label), f"{inside}\0{error.errno if error else state}")


def read(file: Found) -> Picture | LeftOut:
    """Read one of the user's files: RGB and greyscale JPEG stay as they are, the rest becomes RGB JPEG.

    What EXIF turns is turned, because some decoders do that themselves and others do not. A JPEG of several pictures,
    as cameras write them, is known to Pillow as MPO; all decoders read its first.

    Raises
    ------
    InputError
        If the system could not read the file just now. A corpus stays, and so would the gap.
    """
    import numpy as np
    from PIL import Image as Pillow
    from PIL import ImageOps, UnidentifiedImageError

    name = file.name
    try:
        if not file.path.exists() and file.path.is_symlink():
            return LeftOut(name, "it links to a file that does not exist")
        if file.path.is_dir():
            next(file.path.iterdir(), None)  # where it could not be listed, this says why
        if not file.path.is_file():
            return LeftOut(name, "not a regular file")
        data = file.path.read_bytes()
        if not data:
            return LeftOut(name, "the file is empty (0 bytes)")
        with warnings.catch_warnings(), _any_size():
            warnings.simplefilter("ignore")
            with Pillow.open(io.BytesIO(data), formats=("JPEG", "PNG")) as image:
                image.load()
                width, height = image.size
                turned = is_turned(image)
                if image.format != "PNG" and image.mode in ("RGB", "L") and not turned:
                    return Picture(file.label, data, width, height)
                converted = "PNG" if image.format == "PNG" else f"{'turned ' * turned}{image.mode} JPEG"
                if turned:
                    for written in ("exif", "Raw profile type exif"):  # a tag that is damaged could not be written back
                        image.info.pop(written, None)
                    ImageOps.exif_transpose(image, in_place=True)
                    width, height = image.size
                if image.mode.startswith("I"):  # 16-bit greyscale; Pillow reduces other 16-bit kinds itself
                    converted = "16-bit PNG"
                    wide = np.asarray(image).astype(np.uint32)
                    rgb = np.repeat((wide >> 8).astype(np.uint8)[..., None], 3, axis=2)
                else:
                    if "A" in image.mode or "transparency" in image.info:
                        converted += " with alpha"
                    rgb = np.asarray(image.convert("RGB"))
                return Picture(file.label, encode(np.ascontiguousarray(rgb)), width, height, converted)
    except UnidentifiedImageError:
        return LeftOut(name, "not a JPEG or PNG image, whatever its name says")
    except MemoryError:
        return LeftOut(name, "cannot be decoded: there is not enough memory for it")
    except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises for damaged files
        if refused := getattr(error, "strerror", None):  # an error of the system, whose full text names the folder
            if errno.errorcode.get(getattr(error, "errno", None) or 0) in PASSING:
                raise InputError(f"{name} could not be read just now: {refused}; run it again") from error
            return LeftOut(name, f"cannot be read: {refused}")
        return LeftOut(name, printable(f"cannot be decoded: {error}"))


def is_turned(image: Image) -> bool:
    """Whether EXIF or XMP data have an open picture turned or mirrored; a decoder takes damaged EXIF data for none.

    Nothing is decoded for it. Of a PNG, only what is before its pixels counts until it is loaded.
    """
    from PIL import Image as Pillow
    from PIL.ExifTags import Base

    try:
        return Pillow.Image.getexif(image).get(Base.Orientation) in range(2, 9)  # PNG's own loads the picture
    except Exception:  # noqa: BLE001 - of damaged EXIF data Pillow raises this and that
        return False


@contextmanager
def _any_size() -> Iterator[None]:
    """Lift Pillow's pixel limit, which guards against strangers' uploads; this is the user's own folder."""
    from PIL import Image as Pillow

    limit, Pillow.MAX_IMAGE_PIXELS = Pillow.MAX_IMAGE_PIXELS, None
    try:
        yield
    finally:
        Pillow.MAX_IMAGE_PIXELS = limit
