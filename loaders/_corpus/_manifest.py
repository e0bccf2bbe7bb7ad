"""The values that describe a corpus: they name the files and say what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from loaders._errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Attributes
    ----------
    images
        JPEG files in the corpus; at most this many of the user's own folder are used.
    photographs
        640x480 photographs, the work of ``resize``.
    rounds
        Rounds of a comparison, unless another number is given.
    all_cases
        Whether a comparison covers every value of a question's axes or only the default.
    """

    images: int
    photographs: int
    rounds: int
    all_cases: bool


SIZES = {
    "tiny": Size(images=48, photographs=2, rounds=2, all_cases=False),
    "small": Size(images=600, photographs=4, rounds=3, all_cases=False),
    "full": Size(images=1500, photographs=4, rounds=6, all_cases=True),
    "large": Size(images=2560, photographs=4, rounds=3, all_cases=False),
}
"""``tiny`` is for tests, ``small`` for a quick look, ``full`` for published numbers, ``large`` to see whether
conclusions from smaller amounts hold for more."""


class Image(msgspec.Struct, frozen=True):
    """One JPEG file, RGB or greyscale, 8 bits a channel; ``label`` indexes ``Corpus.labels``."""

    path: str
    label: int
    width: int
    height: int


class Shard(msgspec.Struct, frozen=True):
    """One TFRecord file; ``offsets`` and ``lengths`` locate each record's payload in bytes."""

    path: str
    offsets: list[int]
    lengths: list[int]

    @property
    def size(self) -> int:
        """The size of the file in bytes: a record ends with a checksum of 4 bytes."""
        return self.offsets[-1] + self.lengths[-1] + 4 if self.offsets else 0


class LeftOut(msgspec.Struct, frozen=True):
    """A file of the user's folder that could not be read, and why."""

    path: str
    reason: str


class Manifest(msgspec.Struct, frozen=True):
    """The contents of ``manifest.json``; every path is relative to the corpus.

    ``origin`` is ``photographs of scikit-image`` or ``own folder``: the folder itself is not named, so
    that a result can be published. ``digests`` maps every other file to its BLAKE2b digest.
    """

    key: str
    origin: str
    size: str
    labels: list[str]
    images: list[Image]
    shards: list[Shard]
    converted: dict[str, int]
    left_out: list[LeftOut]
    digests: dict[str, str]


def spread(count: int, most: int) -> list[int]:
    """Return at most ``most`` of ``count`` indices, evenly spread: in a list sorted by label, each keeps its share."""
    few = min(count, most)
    return [index * count // few for index in range(few)]


@dataclass(frozen=True)
class Corpus:
    """The data that every strategy works on. All arrays are RGB."""

    root: Path
    manifest: Manifest

    @property
    def labels(self) -> list[str]:
        """Class names; a label is an index into them."""
        return self.manifest.labels

    @property
    def image_paths(self) -> list[str]:
        """Absolute paths of the JPEG files, sorted by label."""
        return [str(self.root / image.path) for image in self.manifest.images]

    @property
    def image_labels(self) -> list[int]:
        """The label of each of ``image_paths``."""
        return [image.label for image in self.manifest.images]

    def evenly(self, most: int) -> list[int]:
        """Return the indices of at most ``most`` images, evenly spread so that every label keeps its share."""
        return spread(len(self.manifest.images), most)

    def amount(self, data: str, most: int) -> int:
        """Return how many images ``x1``, ``x4`` or ``x16`` means, in sixteenths of ``most`` (of all, if fewer).

        Raises
        ------
        InputError
            If there are not that many.
        """
        count = max(1, min(most, len(self.manifest.images)) * int(data.removeprefix("x")) // 16)
        if count > len(self.manifest.images):
            raise InputError(
                f"data {data} is {count} images, and there are {len(self.manifest.images)}; --size large has more"
            )
        return count

    @property
    def shard_paths(self) -> list[str]:
        """Absolute paths of the TFRecord files, in order; a record holds ``image`` (JPEG bytes) and ``label``."""
        return [str(self.root / shard.path) for shard in self.manifest.shards]

    @property
    def shards(self) -> list[Shard]:
        """The TFRecord files with the position of each record."""
        return self.manifest.shards

    def encoded(self, encoding: str, count: int | None = None) -> list[Shard]:
        """Return the shards of an encoding, with absolute paths; it is made when first requested.

        With ``count``, it holds only that many of the images, evenly spread (see ``evenly``).

        ``jpeg``: as ``shards``. ``tensor``: the decoded pixels (uint8, at most 500x375, about 0.5 MB) as
        ``tf.io.serialize_tensor`` writes them, and the label. ``int64``: the numbers from 0 to 9999 and no picture.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        from loaders._corpus import _encodings

        return _encodings.encoded(self, encoding, count)

    def patches(self) -> NDArray[np.uint8]:
        """Return 2000 patches cut from the images, shape (2000, 32, 32, 3), uint8."""
        import numpy as np

        return np.asarray(np.load(self.root / "patches.npy", allow_pickle=False), np.uint8)

    def photographs(self) -> NDArray[np.uint8]:
        """Return photographs of 640x480, shape (n, 480, 640, 3), uint8."""
        import numpy as np

        return np.asarray(np.load(self.root / "photographs.npy", allow_pickle=False), np.uint8)
