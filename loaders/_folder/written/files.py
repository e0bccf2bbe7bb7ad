"""The images of a folder, and their labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png")

File = tuple[str, int]
"""The path of an image, and its label."""


def files_of(folder: str | Path, labels: Sequence[str] | None = None) -> list[File]:
    """Return the images below a folder, each with its label: the first subfolder in its path, numbered by name.

    They are sorted by label: shuffle them, always alike, before some are held out. Images that lie in the folder itself
    come first, if there are any. Links are followed; a folder that cannot be read raises, as its label would be
    missing.

    ``labels`` are the names, in order, of another folder, such as ``labels_of("train")`` for those to validate with: if
    this one lacks images of one label, the others would have other numbers. A label that is not among them raises.
    """
    found = _by_label(folder)
    names = sorted(found) if labels is None else list(labels)
    if unknown := [name for name in found if name not in names]:
        raise ValueError(f"{folder} holds labels that are not among those given: {', '.join(sorted(unknown))}")
    return [(path, label) for label, name in enumerate(names) for path in found.get(name, [])]


def labels_of(folder: str | Path) -> list[str]:
    """Return the names of a folder's labels, in the order of their numbers; empty for images in the folder itself."""
    return sorted(_by_label(folder))


def _by_label(folder: str | Path) -> dict[str, list[str]]:
    """Return the paths of the images of each label."""
    found: dict[str, list[str]] = {}
    for directory, below, names in os.walk(folder, onerror=_refuse, followlinks=True):
        below[:] = sorted(followed(directory, below))
        first = Path(directory).relative_to(folder).parts[:1]
        images = [name for name in sorted(names) if name.lower().endswith(SUFFIXES) and not name.startswith(".")]
        found.setdefault("".join(first), []).extend(str(Path(directory, name)) for name in images)
    return {name: paths for name, paths in found.items() if paths}


def _refuse(error: OSError) -> None:
    raise error


def followed(directory: str, below: list[str]) -> list[str]:
    """Return the subfolders without those that are hidden, or links to one on the way to them, which would not end."""
    way = [Path(directory), *Path(directory).parents]

    def leads_back(name: str) -> bool:
        link = Path(directory, name)
        return link.is_symlink() and any(each.resolve().is_relative_to(link.resolve()) for each in way)

    return [name for name in below if not (name.startswith(".") or leads_back(name))]
