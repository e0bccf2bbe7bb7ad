"""Folders of images, and trials of their loaders, as tests plan them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np

from loaders._folder import question, race, written
from loaders._folder.race import Race, Wanted
from loaders._trial import Record
from loaders._trial.metrics import Metrics
from loaders._trial.record import Environment

BATCH = 4


def image(path: Path, number: int, height: int = 24, width: int = 32) -> Path:
    """Write an image that no other number has: a slope, with a corner of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((height, width, 3), 20 + number % 200, np.uint8)
    pixels[: height // 2, : width // 2] = (number * 37 % 256, number * 91 % 256, number % 256)
    assert cv2.imwrite(str(path), pixels)
    return path


def folder(root: Path, count: int, labels: int = 2) -> Path:
    """Write so many images, in one subfolder for each label."""
    for number in range(count):
        image(root / f"label{number % labels}" / f"{number:04}.png", number)
    return root


def wanted(root: Path | str = "photos", memory: int = 2**30, step: float = 0.05, epochs: int = 20) -> Wanted:
    return Wanted(str(root), memory, step, BATCH, 16, 16, epochs)


MIB = 2**20

QUIET = {
    "path_generator": (2.0, 0.0, 40.0, 0.0),
    "path_generator_pool": (1.0, 0.0, 60.0, 0.0),
    "tfdata_numpy_function": (1.1, 0.0, 90.0, 0.0),
    "keras_pydataset": (1.2, 0.0, 80.0, 0.0),
    "load_all": (0.1, 1.0, 20.0, 0.5),
    "memory_map": (0.12, 1.2, 25.0, 0.0),
}
"""Of each loader: milliseconds an image, and once; MiB, and MiB an image."""


def records(
    amounts: list[int], rounds: int, truth: dict[str, tuple[float, float, float, float]] = QUIET
) -> list[Record]:
    """Return trials of these loaders, whose times and memory vary by half a per cent."""
    found = []
    random = np.random.default_rng(1)
    for index in range(rounds):
        for name, (each, once, fixed, more) in truth.items():
            for amount in amounts:
                vary, again = 1 + 0.005 * random.standard_normal(2)
                steady = amount * each / 1000 * vary
                needed = round((fixed + more * amount) * MIB * again)
                metrics = Metrics(
                    epoch_time=steady + once * amount / 1000,
                    steady_time=steady,
                    wait_time=max(0.0, steady / (amount / BATCH) - 0.05) + 1e-4,
                    needed_memory=needed,
                    samples=amount,
                    batches=amount // BATCH,
                )
                call = question.Call("loaders", "images.json", 0.05)
                found.append(
                    Record(
                        question=question.NAME,
                        strategy=name,
                        status="ok",
                        message="",
                        size="own",
                        data="photos",
                        seed=1,
                        metrics=metrics,
                        environment=Environment(machine="box", cpu="one", cores=2, commit="a" * 40),
                        case=question.case_of(call, amount),
                        started="2026-11-20T10:00:00+00:00",
                        round=index,
                        seconds=1.0,
                    )
                )
    return found


def raced(
    asked: Wanted, amounts: list[int], trials: list[Record], images: int = 1000, rate: float = 1000, **more: Any
) -> Race:
    """Return a race with these trials behind it."""
    files = [(f"{place}.png", 0) for place in range(images)]
    return Race(
        asked,
        images,
        files[: amounts[-1]],
        files[amounts[-1] :],
        amounts,
        Path("nowhere"),
        rate,
        records=trials,
        **more,
    )


__all__ = ["folder", "image", "race", "raced", "records", "wanted", "written"]
