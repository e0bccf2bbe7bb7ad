"""Everything is decoded once, into a file that is mapped into memory; every epoch is read from there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from loaders._folder.written.dataset import dataset
from loaders._folder.written.decoded import epoch_of, fill
from loaders._folder.written.files import File
from loaders._folder.written.image import HEIGHT, WIDTH

CACHE = Path("decoded-images")
"""A folder for the decoded images. It is made, and filled when they are first asked for."""


def pipeline(files: Sequence[File], random: np.random.Generator) -> Any:
    """Decode the images if that has not been done, then return the batches."""
    file = convert(files)
    images, there = np.load(file, mmap_mode="r"), np.load(file.with_suffix(".places.npy"))
    return dataset(lambda: epoch_of(images, there, files, random))


def convert(files: Sequence[File]) -> Path:
    """Decode the images into a file, unless that has been done; return it. What has changed is decoded anew."""
    known = hashlib.sha256(f"{HEIGHT} {WIDTH}".encode())
    for path, _ in files:
        stat = Path(path).stat() if Path(path).exists() else None
        known.update(f"{path} {stat and (stat.st_size, stat.st_mtime_ns)}\n".encode())
    file = CACHE / f"{known.hexdigest()[:16]}.npy"
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        begun = file.with_suffix(f".{os.getpid()}")
        try:
            images = np.lib.format.open_memmap(str(begun), "w+", np.uint8, (len(files), HEIGHT, WIDTH, 3))
            _reserve(begun)
            np.save(file.with_suffix(".places.npy"), fill(images, files))
            images.flush()
            begun.replace(file)
        finally:
            begun.unlink(missing_ok=True)
    return file


def _reserve(file: Path) -> None:
    """Take the room on the disk now, where the system can: a page without room ends the process, without a word."""
    if hasattr(os, "posix_fallocate"):
        with file.open("r+b") as opened:
            os.posix_fallocate(opened.fileno(), 0, file.stat().st_size)
