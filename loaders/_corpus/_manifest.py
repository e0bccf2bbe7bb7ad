"""The values that describe a corpus: they name the files and say what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec


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
        Rounds of a comparison, unless another number is given; ``None`` where a precision ends it.
    all_cases
        Whether a comparison covers every value of a question's axes or only the default.
    """

    images: int
    photographs: int
    rounds: int | None
    all_cases: bool


SIZES = {
    "tiny": Size(images=48, photographs=2, rounds=2, all_cases=False),
    "small": Size(images=600, photographs=4, rounds=3, all_cases=False),
    "full": Size(images=1500, photographs=4, rounds=None, all_cases=True),
    "large": Size(images=2560, photographs=4, rounds=3, all_cases=False),
}
"""``tiny`` is for tests, ``small`` for a quick look, ``full`` for published numbers, ``large`` to see whether
conclusions from smaller amounts hold for more."""


OWN = "own folder"
"""How the ``origin`` of images begins that are not those which all have."""


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

    ``origin`` is ``photographs of scikit-image`` or ``OWN``: the folder itself is not named, so
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


def read_manifest(root: Path) -> Manifest:
    """Return the manifest of the corpus at a place."""
    return msgspec.json.decode((root / "manifest.json").read_bytes(), type=Manifest)


def spread(count: int, most: int) -> list[int]:
    """Return at most ``most`` of ``count`` indices, evenly spread: in a list sorted by label, each keeps its share."""
    few = min(count, most)
    return [index * count // few for index in range(few)]
