"""The cache of corpora: each is built once, put in place in one rename, verified, and rebuilt when damaged."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import platformdirs

from loaders._corpus import _sources
from loaders._corpus._corpus import Corpus
from loaders._corpus._manifest import OWN, SIZES, Image, LeftOut, Manifest, read_manifest, spread
from loaders._corpus._records import labelled_record, silent_stderr, write_shards
from loaders._durable import temporary_beside
from loaders._errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORMAT = 1
"""Increased by hand when the layout or the content of a corpus changes."""

OWN_FORMAT = 2
"""The same for what is made of the user's own files."""

SEED = 20240229
PATCHES = 2000
PATCH_SIDE = 32
PHOTOGRAPH = (640, 480)

Say = Callable[[str], None]
Progress = Callable[[Iterable[_sources.Picture | LeftOut], int], Iterable[_sources.Picture | LeftOut]]


def cache_root() -> Path:
    """Return the directory that holds all corpora: ``LOADERS_CACHE``, else the user's cache directory."""
    return Path(os.environ.get("LOADERS_CACHE") or platformdirs.user_cache_path("loaders"))


def load_corpus(root: Path) -> Corpus:
    """Return the corpus that ``open_corpus`` has put at a place; nothing is verified."""
    return Corpus(root, read_manifest(root))


def open_corpus(
    size: str = "small",
    data: str | Path | None = None,
    *,
    strict: bool = False,
    say: Say = lambda _: None,
    progress: Progress = lambda pictures, _: pictures,
) -> Corpus:
    """Return the corpus of a size, building it if it is missing or damaged.

    Parameters
    ----------
    size
        A key of ``SIZES``.
    data
        The user's own folder; by default the photographs that come with scikit-image.
    strict
        Treat an unreadable file of the user's folder as an error instead of leaving it out.
    say
        Called with what is unusual, in words: files left out, a damaged corpus.
    progress
        Wraps the pictures while they are read, to show a progress bar; it is also given their number.

    Raises
    ------
    InputError
        For a folder without readable images, or a cache directory that cannot be written.
    """
    found: list[_sources.Found] = []
    if data:
        every = _sources.find(Path(data), say)
        found = [every[index] for index in spread(len(every), SIZES[size].images)]
    key = _key(size, found)
    root = cache_root() / f"{'own' if data else 'photographs'}-{size}-{key}"
    corpus = _verified(root, say)
    if corpus is None:
        corpus = _build(root, key, size, found, progress)
        for kind, count in sorted(corpus.manifest.converted.items()):
            say(f"{count} x {kind} converted to RGB JPEG")
    for left_out in corpus.manifest.left_out:
        say(f"left out {left_out.path}: {left_out.reason}")
    if corpus.manifest.left_out:
        count = len(corpus.manifest.left_out)
        files = f"{count} of {len(found)} files could not be read"
        if strict:
            first = corpus.manifest.left_out[0]
            raise InputError(f"{files} (--strict), the first: {first.path}: {first.reason}")
        say(f"{files} and were left out (--strict makes this an error)")
    return corpus


def _key(size: str, found: list[_sources.Found]) -> str:
    """Digest everything that decides a corpus's bytes: the choice, the files, the encoders' versions."""
    versions = [_version_of(package) for package in ("numpy", "opencv-python", "pillow", "scikit-image")]
    decides = [str(FORMAT), str(SEED), repr(SIZES[size].images), repr(SIZES[size].photographs)]
    decides += versions + ([str(OWN_FORMAT)] if found else []) + [file.identity for file in found]
    return hashlib.blake2b("\n".join(decides).encode(errors="surrogateescape"), digest_size=8).hexdigest()


def _version_of(package: str) -> str:
    """Return the version of a package; OpenCV's, which has four names, by whichever it is installed."""
    from importlib.metadata import PackageNotFoundError, version

    for ending in ("", "-headless"):
        for name in (package, package.replace("opencv-python", "opencv-contrib-python")):
            with contextlib.suppress(PackageNotFoundError):
                return version(f"{name}{ending}")
    raise InputError(f"{package} is not installed: run `make setup`")


def _verified(root: Path, say: Say) -> Corpus | None:
    """Return the corpus at ``root`` if it is whole; remove it and say so if it is damaged."""
    if not root.exists():
        return None
    damage = ""
    try:
        corpus = load_corpus(root)
        damaged = [name for name, digest in corpus.manifest.digests.items() if _digest(root / name) != digest]
        damage = f"{damaged[0]} has changed" if damaged else ""
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        damage = str(error)
    if not damage:
        return corpus
    say(f"the cached corpus {root.name} is damaged ({damage}); building it again")
    with _writing(root):
        shutil.rmtree(root)
    return None


def _build(root: Path, key: str, size: str, found: list[_sources.Found], progress: Progress) -> Corpus:
    """Write a corpus beside its final place, then move it there in one rename."""
    with _writing(root), temporary_beside(root) as temporary:
        pictures: Iterable[_sources.Picture | LeftOut]
        if found:
            count, pictures = len(found), map(_sources.read, found)
        else:
            count, pictures = SIZES[size].images, _sources.photographs(SIZES[size].images, SEED)
        manifest = _write(temporary, key, size, progress(pictures, count), own=bool(found))
        (temporary / "manifest.json").write_bytes(msgspec.json.encode(manifest))
        try:
            temporary.rename(root)
        except OSError:
            if not root.exists():  # otherwise another process built the same corpus meanwhile
                raise
    return load_corpus(root)


def _write(root: Path, key: str, size: str, pictures: Iterable[_sources.Picture | LeftOut], *, own: bool) -> Manifest:
    import numpy as np

    kept: list[tuple[str, str, int, int]] = []
    left_out: list[LeftOut] = []
    labels: set[str] = set()
    converted: Counter[str] = Counter()
    (root / "images").mkdir()
    for picture in pictures:
        if isinstance(picture, LeftOut):
            left_out.append(picture)
            continue
        path = f"images/{len(kept):05}.jpg"
        (root / path).write_bytes(picture.jpeg)
        kept.append((picture.label, path, picture.width, picture.height))
        labels.add(picture.label)
        converted.update([picture.converted] if picture.converted else [])
    if not kept:
        first = left_out[0]
        raise InputError(
            f"none of the {len(left_out)} JPEG and PNG files can be read; the first: {first.path}: {first.reason}"
        )
    # Sorted by label, like a folder of labelled images; this is what makes reading in order a bad shuffle.
    kept.sort(key=lambda each: each[0])
    names = sorted(labels)
    images = [Image(path, names.index(label), width, height) for label, path, width, height in kept]
    with silent_stderr():  # TensorFlow reports its build there at import, whatever its log level says
        shards = write_shards(root, "encoded", _jpeg_records(root, images), len(images))
    random = np.random.default_rng(SEED)
    with silent_stderr():  # libjpeg warns there of repaired damage without naming the file
        np.save(root / "patches.npy", _cut_patches(root, images, random))
    count = SIZES[size].photographs
    if own:
        chosen = [_decode(root / images[index * len(images) // count].path) for index in range(count)]
        stills = [_cover(picture, *PHOTOGRAPH) for picture in chosen]
    else:
        stills = _sources.sharp_crops(count, *PHOTOGRAPH, SEED)
    np.save(root / "photographs.npy", np.stack(stills))
    files = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return Manifest(
        key=key,
        origin=OWN if own else "photographs of scikit-image",
        size=size,
        labels=names,
        images=images,
        shards=shards,
        converted=dict(converted),
        left_out=left_out,
        digests={file: _digest(root / file) for file in files},
    )


def _jpeg_records(root: Path, images: list[Image]) -> Iterator[bytes]:
    """Yield a record for each image: its JPEG bytes and its label."""
    for image in images:
        yield labelled_record((root / image.path).read_bytes(), image.label)


def _cut_patches(root: Path, images: list[Image], random: np.random.Generator) -> NDArray[np.uint8]:
    """Cut PATCHES squares of PATCH_SIDE, about the same number from each image."""
    import numpy as np

    patches = np.empty((PATCHES, PATCH_SIDE, PATCH_SIDE, 3), np.uint8)
    chosen = np.arange(PATCHES) * len(images) // PATCHES
    for index in np.unique(chosen):
        picture = _decode(root / images[index].path)
        if min(picture.shape[:2]) < PATCH_SIDE:
            picture = _cover(picture, PATCH_SIDE, PATCH_SIDE)
        for slot in np.flatnonzero(chosen == index):
            top = random.integers(0, picture.shape[0] - PATCH_SIDE + 1)
            left = random.integers(0, picture.shape[1] - PATCH_SIDE + 1)
            patches[slot] = picture[top : top + PATCH_SIDE, left : left + PATCH_SIDE]
    return patches


def _decode(path: Path) -> NDArray[np.uint8]:
    rgb = _sources.decoded(path)
    if rgb is None:
        raise InputError(f"{path.name}: OpenCV cannot decode what Pillow could; please report this image")
    return rgb


def _cover(picture: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
    """Scale a picture of any size so that it covers (height, width), and cut out its middle."""
    import cv2
    import numpy as np

    scale = max(width / picture.shape[1], height / picture.shape[0])
    # Keep only the useful part of a strip: all of it, enlarged, may be thousands of times what is cut from it.
    picture = _middle(picture, 4 * math.ceil(width / scale), 4 * math.ceil(height / scale))
    size = (max(width, round(picture.shape[1] * scale)), max(height, round(picture.shape[0] * scale)))
    scaled = cv2.resize(picture, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)
    return _middle(np.asarray(scaled, np.uint8), width, height)


def _middle(picture: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
    """Cut out the middle of a picture, at most (height, width)."""
    left, top = max(0, picture.shape[1] - width) // 2, max(0, picture.shape[0] - height) // 2
    return picture[top : top + height, left : left + width]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


class _writing:  # noqa: N801 - used as `with _writing(root):`
    """Turn a refused write (read-only, full disk) into one clear message."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OSError):
            raise InputError(
                f"cannot write the corpus into {self.root.parent}: {error.strerror or error}; "
                f"free space there, or name another directory in LOADERS_CACHE"
            ) from error
        # TensorFlow reports a full disk while it writes records as an error of its own.
        if type(error).__module__.startswith("tensorflow"):
            raise InputError(
                f"cannot write records into {self.root.parent}: {error}; "
                f"free space there, or name another directory in LOADERS_CACHE"
            ) from error
