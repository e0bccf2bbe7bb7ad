from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import cv2
import numpy as np
import pytest

from loaders import _registry
from loaders._contract import psnr
from loaders._corpus import Corpus
from loaders._errors import WrongOutputError
from loaders._registry import Job, Skip
from loaders.questions import decode

CASE = {"photographs": "own", "to": "full", "threads": "1"}


def _job(corpus: Corpus, **case: str) -> Job[Any]:
    whole = CASE | case
    return Job(corpus, _registry.find_question("decode").prepare(corpus, whole, 1), whole, 1)


def _images(corpus: Corpus, strategy: str, **case: str) -> list[Any]:
    job = _job(corpus, **case)
    return [np.asarray(batch)[0] for batch in _registry.find_variant("decode", strategy).build(job)]


@pytest.mark.parametrize(
    ("photographs", "size"),
    [("640x480", (480, 640)), ("640x480_q75", (480, 640)), ("2mp", (1200, 1600)), ("12mp", (3000, 4000))],
)
def test_photographs_are_of_the_size_that_they_are_named_for(
    corpus: Corpus, photographs: str, size: tuple[int, int]
) -> None:
    found = _images(corpus, "opencv_imread", photographs=photographs)
    assert {each.shape for each in found} == {(*size, 3)}
    assert len({each.tobytes() for each in found}) == len(found) == decode.COUNTS[photographs.partition("_")[0]]


def test_another_quality_takes_other_bytes(corpus: Corpus) -> None:
    from pathlib import Path

    sizes = [Path(corpus.stills(f"640x480{each}", 2)[0]).stat().st_size for each in ("_q75", "", "_q98")]
    assert sizes == sorted(sizes)
    assert sizes[2] > 2 * sizes[0]


def test_a_mosaic_is_of_the_photographs_as_they_are(corpus: Corpus) -> None:
    (first, *_) = _images(corpus, "opencv_imread", photographs="2mp")
    likeness = psnr(first[:480, :640], corpus.photographs()[0])
    assert likeness > 30


@pytest.mark.parametrize("case", [{}, {"threads": "all"}, {"to": "224x224"}, {"to": "crop"}], ids=str)
def test_the_order_and_form_are_the_same_whoever_decodes(corpus: Corpus, case: dict[str, str]) -> None:
    one, other = (_images(corpus, each, **case) for each in ("opencv_imread", "tf_integer_accurate"))
    assert len(one) == len(other)
    for ours, theirs in zip(one, other, strict=True):
        assert np.abs(ours.astype(int) - theirs).max() <= decode.SAME_PIXEL


def test_from_photographs_that_are_too_small_nothing_is_cut_out(corpus: Corpus, tmp_path: Path) -> None:
    """A negative beginning would be a strip of the picture, and every decoder's the same."""
    small = tmp_path / "small.jpg"
    cv2.imwrite(str(small), np.zeros((200, 300, 3), np.uint8))
    few = SimpleNamespace(image_paths=[*corpus.image_paths[:5], str(small)], evenly=lambda _: range(6))
    asked = _registry.find_question("decode")
    with pytest.raises(Skip, match=r"small\.jpg is smaller than 224x224"):
        asked.prepare(cast("Corpus", few), {**asked.default_case, "to": "crop"}, 1)


def _wrong(kind: str, images: list[Any]) -> list[Any]:
    return {
        "channels": [each[..., ::-1] for each in images],
        "upside down": [each[:, ::-1] for each in images],
        "few": images[:-1],
        "many": [*images, images[0]],
        "float": [each.astype(np.float32) for each in images],
        "order": images[::-1],
        "two levels": [each + np.uint8(2) for each in images],
    }[kind]


@pytest.mark.parametrize("kind", ["channels", "upside down", "few", "many", "float", "order", "two levels"])
def test_a_wrong_decoding_is_caught(corpus: Corpus, kind: str) -> None:
    asked, variant = _registry.find_question("decode"), _registry.find_variant("decode", "opencv_imread_rgb")
    job = _job(corpus)
    right = [np.asarray(batch) for batch in variant.build(job)]
    assert asked.check(job, variant, right).max_difference == 0.0
    with pytest.raises(WrongOutputError):
        asked.check(job, variant, _wrong(kind, right))


def test_who_turns_pictures_and_who_rejects_files_is_found_out(corpus: Corpus) -> None:
    asked, job = _registry.find_question("decode"), _job(corpus)

    def odd(name: str) -> Any:
        variant = _registry.find_variant("decode", name)
        return asked.check(job, variant, variant.build(job)).odd_files

    assert odd("opencv_imread").turned
    assert not odd("pillow").turned
    assert not odd("tf_decode_jpeg").turned
    assert "cut off" in odd("pillow").rejected
    assert "cut off" not in odd("opencv_imread").rejected
    assert "progressive" not in [*odd("pillow").rejected, *odd("opencv_imread").rejected]


def test_a_quarter_is_worse_than_half_and_what_covers_is_better(corpus: Corpus) -> None:
    asked, job = _registry.find_question("decode"), _job(corpus, to="224x224", photographs="2mp")

    def quality(name: str) -> float:
        variant = _registry.find_variant("decode", name)
        return asked.check(job, variant, variant.build(job)).psnr or 0.0

    assert quality("opencv_imdecode") == 99
    assert quality("opencv_reduced_2") > quality("opencv_reduced_4") > decode.WORST_PSNR
