"""Further encodings of a corpus as TFRecord shards, made in their own process when first requested.

A trial's ``prepare`` requests them. If they were made in the trial's own process, its allocator would have been used
before the baseline is read.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from loaders._corpus import _stills
from loaders._corpus._manifest import Manifest, Shard, read_manifest, spread
from loaders._corpus._records import labelled_record, silent_stderr, write_shards
from loaders._corpus._sources import IMAGE_HEIGHT, IMAGE_WIDTH
from loaders._durable import sync_tree, temporary_beside
from loaders._errors import InputError

if TYPE_CHECKING:
    import tensorflow as tf

INTEGERS = 10_000
"""Number of ``int64`` records: a write-up drew the read orders with this many."""

INDEX = "index.json"

STILLS = "stills-"
"""What the kinds of pictures begin with, to tell them from encodings."""

Made = TypeVar("Made")


def encoded(corpus: Path, manifest: Manifest, encoding: str, count: int | None = None) -> list[Shard]:
    """Return the shards of an encoding of the corpus at a place; see ``Corpus.encoded``."""
    every = len(manifest.images)
    count = min(count or every, every)
    if encoding == "jpeg" and count == every:
        return [msgspec.structs.replace(each, path=str(corpus / each.path)) for each in manifest.shards]
    part = "" if count == every or encoding == "int64" else f"-{count}"
    root = corpus.with_name(f"{corpus.name}-{encoding}{part}")
    shards = _made(root, _whole, f"the records as {encoding}", corpus, encoding, count)
    return [msgspec.structs.replace(each, path=str(root / each.path)) for each in shards]


def pictures(corpus: Path, name: str, count: int = 0) -> list[Path]:
    """Return so many JPEG files of a kind; see ``Corpus.stills`` and ``Corpus.odd_files``."""
    root = corpus.with_name(f"{corpus.name}-stills-{name}" + (f"-{count}" if count else ""))
    files = _made(root, _all_pictures, f"pictures of {name}", corpus, STILLS + name, count)
    return [root / each for each in files]


def _made(root: Path, whole: Callable[[Path], Made | None], what: str, corpus: Path, kind: str, count: int) -> Made:
    """Return what is at a place, made in a process of its own if it is not there."""
    found = whole(root)
    if found is None:
        code = "from loaders._corpus._encodings import main; main()"
        command = [sys.executable, "-c", code, str(corpus), kind, str(count), str(root)]
        made = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        found = whole(root)
        if found is None:
            said = [line for line in made.stderr.splitlines() if line.strip()] or [f"exit code {made.returncode}"]
            raise InputError(
                f"cannot write {what} into {root.parent}: {said[-1]}; "
                f"free space there, or name another directory in LOADERS_CACHE"
            )
    return found


def _whole(root: Path) -> list[Shard] | None:
    """Return the shards at a place, if each is there in full length."""
    try:
        shards = msgspec.json.decode((root / INDEX).read_bytes(), type=list[Shard])
        whole = all((root / each.path).stat().st_size == each.size for each in shards)
    except (OSError, msgspec.MsgspecError):
        return None
    return shards if whole else None


def _all_pictures(root: Path) -> dict[str, int] | None:
    """Return the names and sizes of the files at a place, if each is there in full length."""
    try:
        files = msgspec.json.decode((root / INDEX).read_bytes(), type=dict[str, int])
        whole = all((root / name).stat().st_size == size for name, size in files.items())
    except (OSError, msgspec.MsgspecError):
        return None
    return files if whole else None


def _records(corpus: Path, manifest: Manifest, encoding: str, count: int) -> Iterator[bytes]:
    import tensorflow as tf

    if encoding == "int64":
        for number in range(INTEGERS):
            index = tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))
            yield tf.train.Example(features=tf.train.Features(feature={"index": index})).SerializeToString()
        return
    for place in spread(len(manifest.images), count):
        image = manifest.images[place]
        path = corpus / image.path
        data = path.read_bytes() if encoding == "jpeg" else tf.io.serialize_tensor(_decoded(str(path))).numpy()
        yield labelled_record(data, image.label)


def _decoded(path: str) -> tf.Tensor:
    """Return a picture as a uint8 tensor of at most 500x375, which keeps a record at about 0.5 MB."""
    import tensorflow as tf

    picture = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    scale = max(picture.shape[0] / IMAGE_HEIGHT, picture.shape[1] / IMAGE_WIDTH)
    if scale > 1:
        size = (max(1, round(picture.shape[0] / scale)), max(1, round(picture.shape[1] / scale)))
        picture = tf.cast(tf.round(tf.image.resize(picture, size, antialias=True)), tf.uint8)
    return picture


def _shards(corpus: Path, encoding: str, images: int, into: Path) -> list[Shard]:
    manifest = read_manifest(corpus)
    count = INTEGERS if encoding == "int64" else images
    with silent_stderr():
        return write_shards(into, encoding, _records(corpus, manifest, encoding, images), count)


def _pictures(corpus: Path, name: str, count: int, into: Path) -> dict[str, int]:
    """Write JPEG files, and return the size of each."""
    import numpy as np

    photographs = np.load(corpus / "photographs.npy", allow_pickle=False)
    made = _stills.odd(photographs[0]) if name == _stills.ODD else _stills.stills(photographs, name, count)
    return {file: (into / file).write_bytes(encoded) for file, encoded in made}


def main() -> None:
    """Write an encoding beside its final place, then move it there in one rename."""
    corpus, kind, count, root = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    with temporary_beside(root) as temporary:
        index: object
        if kind.startswith(STILLS):
            index = _pictures(corpus, kind.removeprefix(STILLS), count, temporary)
        else:
            index = _shards(corpus, kind, count, temporary)
        (temporary / INDEX).write_bytes(msgspec.json.encode(index))
        sync_tree(temporary)  # an existing file is later checked by its length only
        whole: Callable[[Path], object] = _all_pictures if kind.startswith(STILLS) else _whole
        if whole(root) is not None:
            return  # made by another process meanwhile, which may read it
        shutil.rmtree(root, ignore_errors=True)
        try:
            temporary.rename(root)
        except OSError:
            if whole(root) is None:
                raise
