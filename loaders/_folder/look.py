"""What is in a folder: how many images, of what size, with which labels. Nothing is written into it."""

from __future__ import annotations

import math
import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from loaders._corpus import is_turned
from loaders._errors import InputError, printable
from loaders._folder.written import files

MOST_OPENED = 2000
"""Images whose size and EXIF data are read; of more, these are drawn at random."""

MOST_PIXELS = 2**30
"""OpenCV decodes no larger image, and takes no memory for it (``OPENCV_IO_MAX_IMAGE_PIXELS``)."""

HELD = 6
"""Bytes of each pixel while OpenCV decodes an image: it holds two of them, whether or not EXIF data turn it. Measured
with JPEG and PNG files of 3 to 48 megapixels and OpenCV 4.10, 4.13 and 5.0: 2.00 to 2.07 times its bytes."""

DECODING = 4.0
"""Seconds that decoding may take here."""


class Look(msgspec.Struct, frozen=True):
    """What was seen.

    Attributes
    ----------
    name
        Of the folder, without its path.
    images
        How many there are.
    labels
        The number of images by the name of the first subfolder; empty for those at the top.
    formats, others
        The number of files by suffix: of images, and of other files.
    size
        In bytes, of all images; reckoned from those that were opened if these are not all.
    opened, decoded
        How many images were opened for their size, and how many decoded; if not all, drawn at random.
    broken
        The images that cannot be read, of those that were decoded.
    odd_names
        How many images are not counted, because their names are not UTF-8: no trial can be told of them.
    turned
        The number of opened images that EXIF turns or mirrors.
    median, largest
        Width and height in pixels: the median of each, and the image with the most pixels.
    rate
        Images a second that all cores decode. Only for the plan of the trials; what is reported is measured.
    heaviest
        The bytes that the largest opened images take while they are decoded, the largest first: one for each core.
    """

    name: str
    images: int
    labels: dict[str, int]
    formats: dict[str, int]
    others: dict[str, int]
    size: int
    opened: int
    decoded: int
    broken: list[str]
    turned: int
    median: tuple[int, int]
    largest: tuple[int, int]
    rate: float
    odd_names: int = 0
    heaviest: list[int] = []


def look(folder: Path, height: int, width: int) -> tuple[Look, list[files.File]]:
    """Look at a folder, and return what was seen with the images that can be read and their labels.

    Raises
    ------
    InputError
        If there is no such folder, or no image in it that can be read.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: {'not a folder' if folder.exists() else 'no such folder'}")
    try:
        every = files.files_of(folder)
    except OSError as error:
        raise InputError(f"{printable(str(error.filename))}: {error.strerror}") from error
    others, found = _others(folder), [each for each in every if _is_text(each[0])]
    if not found:
        odd = f"; {len(every)} have names that are not UTF-8" if every else ""
        there = f"; there are {_counted(others)}" if others else ""
        raise InputError(
            f"{printable(str(folder))} holds no images that end in {', '.join(files.SUFFIXES)}{odd}{there}"
        )
    drawn = random.Random(1).sample(found, min(len(found), MOST_OPENED))  # noqa: S311
    sizes, turned = _opened([path for path, _ in drawn])
    broken, decoded, rate = _decoded([path for path, _ in drawn], height, width)
    readable = [each for each in found if each[0] not in broken]
    if not readable or not sizes:
        raise InputError(f"{folder}: none of its {len(found)} images can be read, such as {found[0][0]}")
    below = [path.removeprefix(str(folder)).lstrip(os.sep).split(os.sep) for path, _ in found]  # noqa: PTH206 - fast
    return Look(
        name=folder.resolve().name,
        images=len(found),
        labels=dict(Counter(parts[0] if len(parts) > 1 else "" for parts in below)),
        formats=dict(Counter(path.lower().rpartition(".")[2] for path, _ in found).most_common()),
        others=others,
        size=round(sum(_size(path) for path, _ in drawn) / len(drawn) * len(found)),
        opened=len(sizes),
        decoded=decoded,
        broken=[str(Path(each).relative_to(folder)) for each in broken],
        turned=turned,
        median=(round(statistics.median(w for w, _ in sizes)), round(statistics.median(h for _, h in sizes))),
        largest=max(sizes, key=lambda size: size[0] * size[1]),
        rate=rate,
        odd_names=len(every) - len(found),
        heaviest=_heaviest(sizes),
    ), readable


def heaviest(paths: Sequence[str]) -> list[int]:
    """Return the bytes that the largest of these images take while they are decoded: one for each core."""
    return _heaviest(_opened(paths)[0])


def _heaviest(sizes: Sequence[tuple[int, int]]) -> list[int]:
    return sorted((HELD * width * height for width, height in sizes), reverse=True)[: os.cpu_count() or 1]


def _is_text(path: str) -> bool:
    """Whether a path can be written into a file of text; of a name that is not UTF-8, Python keeps the bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _others(folder: Path) -> dict[str, int]:
    """Count the files that are no images, by suffix."""
    found: Counter[str] = Counter()
    for directory, below, names in os.walk(folder, followlinks=True):
        below[:] = files.followed(directory, below)
        found.update(
            printable(Path(name).suffix.lower()) or "no suffix"
            for name in names
            if not name.startswith(".") and not name.lower().endswith(files.SUFFIXES)
        )
    return dict(found.most_common())


def _opened(paths: Sequence[str]) -> tuple[list[tuple[int, int]], int]:
    """Return the width and height of each image that can be opened, and how many EXIF turns."""
    from PIL import Image

    sizes, turned = [], 0
    Image.MAX_IMAGE_PIXELS = None  # nothing is decoded
    for path in paths:
        try:
            with Image.open(path) as image:
                if math.prod(image.size) <= MOST_PIXELS:
                    sizes.append(image.size)
                    turned += is_turned(image)
        except Exception:  # noqa: BLE001, S112 - a broken image may raise anything; decoding says what cannot be read
            continue
    return sizes, turned


def _decoded(paths: Sequence[str], height: int, width: int) -> tuple[set[str], int, float]:
    """Decode on all cores, for as long as it may take; return what cannot be, how many were, and how many a second."""
    import cv2

    cv2.setNumThreads(1)

    def is_read(path: str) -> bool:
        picture = picture_of(path)
        if picture is not None:
            cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)
        return picture is not None

    broken: set[str] = set()
    count, begun, cores = 0, time.monotonic(), os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        for start in range(0, len(paths), 8 * cores):
            if time.monotonic() - begun > DECODING:
                break
            part = paths[start : start + 8 * cores]
            broken.update(path for path, read in zip(part, pool.map(is_read, part), strict=True) if not read)
            count += len(part)
    return broken, count, count / (time.monotonic() - begun)


def picture_of(path: str) -> Any:
    """Return an image as OpenCV decodes it from memory; ``None`` if it cannot be read.

    Of a JPEG file that is cut off, ``cv2.imread`` returns a picture and ``cv2.imdecode`` none; and on Windows, it opens
    no path with letters beyond ASCII.
    """
    import cv2
    import numpy as np

    try:
        encoded = np.fromfile(path, np.uint8)
        return cv2.imdecode(encoded, cv2.IMREAD_COLOR) if encoded.size else None
    except (OSError, cv2.error):
        return None


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:  # it has vanished
        return 0


def _counted(found: dict[str, int]) -> str:
    return ", ".join(f"{count} {suffix}" for suffix, count in found.items())
