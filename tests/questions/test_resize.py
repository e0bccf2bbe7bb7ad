from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loaders import _registry
from loaders._corpus import Corpus
from loaders._errors import WrongOutputError
from loaders._registry import Job
from loaders.questions import resize


def _job(corpus: Corpus, scale: str) -> Job[Any]:
    asked = _registry.find_question("resize")
    return Job(corpus, asked.prepare(corpus, {"scale": scale}, 1), {"scale": scale}, 1)


@pytest.mark.parametrize(("scale", "size"), [("0.5", (320, 240)), ("3.5", (2240, 1680)), ("224x224", (224, 224))])
def test_scales_mean_what_they_say(corpus: Corpus, scale: str, size: tuple[int, int]) -> None:
    inputs = _job(corpus, scale).inputs
    assert (inputs.width, inputs.height) == size


@pytest.mark.parametrize("scale", resize.SCALES)
def test_pairs_agree_by_different_code(corpus: Corpus, scale: str) -> None:
    """scikit-image against OpenCV, directly: the claim behind the tier *identical output*."""
    job = _job(corpus, scale)
    pairs = [each for each in _registry.variants("resize").values() if each.matches]
    assert len(pairs) == 3
    for each in pairs:
        other = _registry.find_variant("resize", each.matches or "")
        for ours, theirs in zip(each.build(job), other.build(job), strict=True):
            assert np.abs(np.asarray(ours) - np.asarray(theirs)).max() <= resize.SAME_PIXEL


def _wrong(kind: str, images: list[Any]) -> list[Any]:
    return {
        "channels": [each[..., ::-1] for each in images],
        "upside down": [each[:, ::-1] for each in images],
        "few": images[:1],
        "many": [*images, images[0]],
        "float": [each.astype(np.float64) for each in images],
        "0 to 1": [(each > 127).astype(np.uint8) for each in images],
        "swapped sides": [each.transpose(0, 2, 1, 3) for each in images],
        "order": images[::-1],
    }[kind]


@pytest.mark.parametrize(
    "kind", ["channels", "upside down", "few", "many", "float", "0 to 1", "swapped sides", "order"]
)
def test_a_wrong_resize_is_caught(corpus: Corpus, kind: str) -> None:
    asked, variant = _registry.find_question("resize"), _registry.find_variant("resize", "opencv_linear")
    job = _job(corpus, "0.5")
    right = [np.asarray(batch) for batch in variant.build(job)]
    assert asked.check(job, variant, right).psnr is not None
    with pytest.raises(WrongOutputError):
        asked.check(job, variant, _wrong(kind, right))


def test_an_identical_strategy_may_not_be_half_a_grey_level_off(corpus: Corpus) -> None:
    asked, variant = _registry.find_question("resize"), _registry.find_variant("resize", "opencv_linear_float")
    job = _job(corpus, "0.5")
    right = [np.asarray(batch) for batch in variant.build(job)]
    assert asked.check(job, variant, right).max_difference == 0.0
    with pytest.raises(WrongOutputError, match=r"differs by up to 0\.6"):
        asked.check(job, variant, [each + np.float32(0.6) for each in right])


def test_quality_is_stated_and_antialiasing_shows(corpus: Corpus) -> None:
    asked, job = _registry.find_question("resize"), _job(corpus, "224x224")

    def quality(name: str) -> float:
        variant = _registry.find_variant("resize", name)
        return asked.check(job, variant, variant.build(job)).psnr or 0.0

    assert quality("skimage_resize_ubyte") > 50 > quality("pillow_bilinear") > quality("opencv_linear") > 25
    assert quality("tf_image_antialias") > quality("tf_image")
