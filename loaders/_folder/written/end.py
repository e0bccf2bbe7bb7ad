"""The end of every loader: what is called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from loaders._folder.written.files import SUFFIXES, File, files_of
from loaders._folder.written.path_generator import pipeline  # stands for that of any loader


def batches(folder: str | Path, files: Sequence[File] | None = None, seed: int = 0) -> Any:
    """Return the batches of a folder for ``model.fit``; every epoch has each image once, in a new order.

    Parameters
    ----------
    folder
        The names of its subfolders are the labels, numbered from 0; ``labels_of(folder)`` has them in order.
    files
        Some of ``files_of(folder)``, such as those to train on; by default all. To validate with another folder:
        ``files_of("val", labels_of("train"))``.
    seed
        Of the order.
    """
    chosen = files_of(folder) if files is None else list(files)
    if not chosen:
        raise ValueError(f"{folder}: no images, whose names end in {', '.join(SUFFIXES)}")
    return pipeline(chosen, np.random.default_rng(seed))
