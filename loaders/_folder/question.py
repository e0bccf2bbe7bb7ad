"""The question that a folder's loaders answer; loaded in a trial's process, as a strategy's file is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from loaders._contract import Quality, check_drawn_from, digest, samples
from loaders._corpus import Corpus
from loaders._errors import WrongOutputError
from loaders._folder import written
from loaders._folder.look import picture_of
from loaders._probe import adapt
from loaders._probe.target import from_file
from loaders._registry import Batch, Job, Question, Variant, declare_question, variant

NAME, DECODING = "folder", "decoding"
FILE = str(Path(__file__))

FEW = 8
"""With fewer images that differ, two orders may be the same by chance."""


class Call(msgspec.Struct, frozen=True):
    """What a trial is given.

    Attributes
    ----------
    loaders
        The directory of the written loaders, each a file by its name.
    images
        A file with the images and their labels, as JSON.
    step
        Seconds of a training step; 0 for none.
    """

    loaders: str
    images: str
    step: float


@dataclass(frozen=True)
class Inputs:
    """Some images of a folder, and the loaders as modules, which are imported before anything is measured."""

    modules: Mapping[str, Any]
    files: list[tuple[str, int]]


def case_of(call: Call, images: int) -> dict[str, str]:
    """Return how a trial's case says what it is given, and how many of the images it reads."""
    return {"call": msgspec.json.encode(call).decode(), "images": str(images)}


def _call(case: Mapping[str, str]) -> Call:
    return msgspec.json.decode(case["call"], type=Call)


def _prepare(_: Corpus, case: Mapping[str, str], __: int) -> Inputs:
    call = _call(case)
    listed = msgspec.json.decode(Path(call.images).read_bytes(), type=list[tuple[str, int]])
    modules = {each: from_file(Path(call.loaders, f"{each}.py")) for each in written.names()}
    return Inputs(modules, listed[: int(case["images"])])


def _check(job: Job[Inputs], variant: Variant, batches: Iterable[Batch]) -> Quality:
    """Hold what is delivered against each file, decoded here; a second epoch must have another order."""
    if variant.name == DECODING:
        for _ in batches:
            pass
        return Quality()
    module = job.inputs.modules[variant.name]

    def universe() -> Iterator[tuple[Any, Any]]:
        for path, label in job.inputs.files:
            if (image := _decoded(path, module.HEIGHT, module.WIDTH)) is not None:
                yield image, label

    check_drawn_from(universe(), None, batches)
    again = variant.build(job)
    one, other = ([digest(sample) for batch in again for sample in samples(batch)] for _ in range(2))
    if sorted(one) != sorted(other):
        raise WrongOutputError("a second epoch has other images than the first")
    if len(set(one)) >= FEW and one == other:
        raise WrongOutputError("a second epoch has the same order as the first")
    return Quality()


def _decoded(path: str, height: int, width: int) -> Any:
    """Return an image as a loader must deliver it; ``None`` if it cannot be read."""
    import cv2
    import numpy as np

    picture = picture_of(path)
    if picture is None:
        return None
    shrinks = picture.shape[0] >= height and picture.shape[1] >= width
    resized = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    return cv2.cvtColor(resized, cv2.COLOR_BGR2RGB).astype(np.float32) / np.float32(127.5) - np.float32(1)


declare_question(
    NAME,
    Question(
        prepare=_prepare,
        check=_check,
        consumer_step=lambda case: _call(case).step or None,
        size_axis="images",
        least_batches=1,
    ),
)


@variant(question=NAME, ceiling=True)
def decoding(job: Job[Inputs]) -> Iterable[Batch]:
    """The ceiling: a bare pool, one thread per core, that decodes the images and throws them away."""
    import cv2  # noqa: F401 - imported before anything is measured
    import numpy as np  # noqa: F401

    module = next(iter(job.inputs.modules.values()))
    files = job.inputs.files
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # All are asked for at once: a small batch would not keep many cores busy.
        asked = [pool.submit(lambda path: module.pixels_of(path) is not None, path) for path, _ in files]
        try:
            for start in range(0, len(files), module.BATCH):
                yield [each.result() for each in asked[start : start + module.BATCH]]
        finally:
            pool.shutdown(cancel_futures=True)  # whoever takes the last batch may not ask for another


def _declare(name: str) -> None:
    def build(job: Job[Inputs]) -> Iterable[Batch]:
        import cv2  # noqa: F401 - these are imported before anything is measured
        import keras  # noqa: F401
        import tensorflow  # noqa: F401
        from keras.src.trainers.data_adapters import py_dataset_adapter  # noqa: F401

        module = job.inputs.modules[name]
        if hasattr(module, "CACHE"):
            module.CACHE = job.directory
        return adapt.source(module.batches("", job.inputs.files, job.seed), name, bounded=False)

    # What is handed out converts in the user's process, so here it does in that of the trial, and its memory counts.
    build.__name__, build.__doc__ = name, written.label(name)
    variant(question=NAME)(build)


for _name in written.names():
    _declare(_name)
