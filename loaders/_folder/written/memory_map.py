"""Everything is decoded once, into a file that is mapped into memory; every epoch is read from there."""

from __future__ import annotations

import hashlib
import inspect
import os
import secrets
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from loaders._folder.written.dataset import dataset
from loaders._folder.written.decoded import epoch_of, fill
from loaders._folder.written.files import File
from loaders._folder.written.image import HEIGHT, WIDTH, pixels_of

CACHE = Path("decoded-images")
"""A folder for the decoded images. It is made, and filled when they are first asked for.

Each set of images has a file there, which is never removed: what your images have been before, you may delete. So you
may a file whose name has a part more than these have, while nothing decodes: a process that was killed has left it.
"""


def pipeline(files: Sequence[File], random: np.random.Generator) -> Any:
    """Decode the images if that has not been done, then return the batches."""
    file = convert(files)
    images, there = np.load(file, mmap_mode="r"), np.load(file.with_suffix(".places.npy"))
    if len(there) < len(files):
        missing = len(files) - len(there)
        warnings.warn(f"{missing} images could not be read for {file}; to try again, delete it", stacklevel=2)
    return dataset(lambda: epoch_of(images, there, files, random))


def convert(files: Sequence[File]) -> Path:
    """Decode the images into a file, unless that has been done; return it. What has changed is decoded anew."""
    known = hashlib.sha256(f"{HEIGHT} {WIDTH} {cv2.__version__} {inspect.getsource(pixels_of)}".encode())
    for path, _ in files:
        stat = Path(path).stat() if Path(path).exists() else None
        state = stat and (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        known.update(os.fsencode(path) + f" {state}\n".encode())
    file = CACHE / f"{known.hexdigest()[:16]}.npy"
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        begun = file.with_suffix(f".{secrets.token_hex(8)}")  # another process may be at the same
        places = begun.with_suffix(f"{begun.suffix}.npy")
        try:
            images = np.lib.format.open_memmap(str(begun), "w+", np.uint8, (len(files), HEIGHT, WIDTH, 3))
            _reserve(begun)
            np.save(places, fill(images, files))
            images.flush()
            del images  # Windows renames no file that is mapped
            places.replace(file.with_suffix(".places.npy"))
            begun.replace(file)
        finally:
            begun.unlink(missing_ok=True)
            places.unlink(missing_ok=True)
    return file


def _reserve(file: Path) -> None:
    """Take the room on the disk now, where the system can: a page without room ends the process, without a word."""
    if hasattr(os, "posix_fallocate"):
        with file.open("r+b") as opened:
            os.posix_fallocate(opened.fileno(), 0, file.stat().st_size)
