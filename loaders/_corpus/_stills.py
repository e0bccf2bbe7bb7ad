"""JPEG files of sizes and qualities that a corpus's own do not have, and odd ones."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIZES = {"640x480": (640, 480), "2mp": (1600, 1200), "12mp": (4000, 3000)}
"""Width and height of stills, in pixels."""

QUALITY = 90
"""Of JPEG, where a name does not say another: about what cameras and web sites use."""

STEP = 48
"""In pixels, three blocks of 16: how far a part of a photograph begins from where the one before did."""

ODD = "odd"


def parse(name: str) -> tuple[int, int, int]:
    """Return the width, height and JPEG quality of stills such as ``640x480_q75``."""
    size, _, quality = name.partition("_q")
    return *SIZES[size], int(quality or QUALITY)


def stills(photographs: NDArray[np.uint8], name: str, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield the names and bytes of so many JPEG files: mosaics of these photographs, as sharp as each is."""
    width, height, quality = parse(name)
    for number in range(count):
        yield f"{number:03}.jpg", _encoded(mosaic(photographs, width, height, number), quality)


def mosaic(photographs: NDArray[np.uint8], width: int, height: int, number: int) -> NDArray[np.uint8]:
    """Return an image of this size, put together from photographs; every number gives another.

    The first ones begin with a whole photograph each, the others with a part of one, in steps of a JPEG block.
    """
    import numpy as np

    count, high, wide, _ = photographs.shape
    turn, first = divmod(number, count)
    top, left = turn * STEP % high, 2 * turn * STEP % wide
    down, across = -(-(top + height) // high), -(-(left + width) // wide)
    rows = [
        np.concatenate([photographs[(first + row * across + column) % count] for column in range(across)], 1)
        for row in range(down)
    ]
    return np.concatenate(rows)[top : top + height, left : left + width]


def odd(photograph: NDArray[np.uint8]) -> Iterator[tuple[str, bytes]]:
    """Yield files that decoders differ about, made from one photograph; the name says what is odd."""
    from PIL import Image

    image, good = Image.fromarray(photograph), _encoded(photograph, QUALITY)

    def saved(changed: Image.Image, **how: object) -> bytes:
        into = io.BytesIO()
        changed.save(into, "JPEG", quality=QUALITY, **how)
        return into.getvalue()

    turned = Image.Exif()
    turned[0x0112] = 6  # a quarter turn, as a phone held upright writes it
    yield "turned.jpg", saved(image, exif=turned)
    yield "grey.jpg", saved(image.convert("L"))
    yield "CMYK.jpg", saved(image.convert("CMYK"))
    yield "progressive.jpg", saved(image, progressive=True)
    yield "bytes after its end.jpg", good + bytes(1000)
    yield "no end marker.jpg", good[:-2]
    yield "cut off.jpg", good[: len(good) * 6 // 10]
    middle = len(good) // 2
    yield "damaged.jpg", good[:middle] + bytes(each ^ 0x55 for each in good[middle : middle + 64]) + good[middle + 64 :]


def _encoded(rgb: NDArray[np.uint8], quality: int) -> bytes:
    import cv2

    _, data = cv2.imencode(".jpg", cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])
    return data.tobytes()
