"""The data that every strategy works on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loaders._corpus import _encodings, _stills
from loaders._corpus._manifest import Manifest, Shard, spread
from loaders._errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
                f"data {data} is {count} images, and there are {len(self.manifest.images)}; --size large has as many, "
                f"unless a folder of images is named that has fewer"
            )
        return count

    def encoded(self, encoding: str, count: int | None = None) -> list[Shard]:
        """Return the shards of an encoding, with absolute paths; it is made when first requested.

        With ``count``, it holds only that many of the images, evenly spread (see ``evenly``).

        ``jpeg``: the JPEG bytes as ``image``, and the ``label``. ``tensor``: as ``image`` the decoded pixels (uint8, at
        most 500x375, about 0.5 MB), as ``tf.io.serialize_tensor`` writes them, and the ``label``. ``int64``: the
        numbers from 0 to 9999 and no picture.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        return _encodings.encoded(self.root, self.manifest, encoding, count)

    def stills(self, name: str, count: int) -> list[str]:
        """Return the paths of so many JPEG files of a size and quality, made when first requested.

        ``640x480``, ``2mp`` and ``12mp`` are put together from ``photographs``, at JPEG quality 90; ``640x480_q75`` is
        of another.

        Raises
        ------
        InputError
            If they cannot be written.
        """
        return [str(path) for path in _encodings.pictures(self.root, name, count)]

    def odd_files(self) -> dict[str, str]:
        """Return the paths of JPEG files that decoders differ about, by what is odd about each.

        Raises
        ------
        InputError
            If they cannot be written.
        """
        return {path.stem: str(path) for path in _encodings.pictures(self.root, _stills.ODD)}

    def patches(self) -> NDArray[np.uint8]:
        """Return 2000 patches cut from the images, shape (2000, 32, 32, 3), uint8."""
        import numpy as np

        return np.asarray(np.load(self.root / "patches.npy", allow_pickle=False), np.uint8)

    def photographs(self) -> NDArray[np.uint8]:
        """Return photographs of 640x480, shape (n, 480, 640, 3), uint8."""
        import numpy as np

        return np.asarray(np.load(self.root / "photographs.npy", allow_pickle=False), np.uint8)


NO_CORPUS = Corpus(Path(), Manifest("", "own pipeline", "", [], [], [], {}, [], {}))
"""What a pipeline of somebody's own is given: it brings its data."""
