from __future__ import annotations

import dataclasses
import gc
import os
import random
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders import _contract, _registry
from loaders._contract import check_alike, check_drawn_from, digest, order_quality, psnr, samples
from loaders._corpus import Corpus
from loaders._errors import WrongOutputError
from loaders._registry import Job, Skip
from loaders._trial.prepare import require
from loaders.questions.service import nodes
from tests.clusters import Start

ALL = os.environ.get("LOADERS_CASES") == "all"
"""Whether to run every strategy in every case: ``make evidence``."""

EVERY = [
    (name, strategy, case)
    for name, question in _registry.questions().items()
    for strategy, each in _registry.variants(name).items()
    for case in ([case for case in question.cases if each.runs_in(case)][: None if ALL or name == "resize" else 1])
]


@pytest.fixture
def young() -> Iterator[None]:
    """Spare a strategy that collects garbage what the tests before it have left: that takes half a second each time."""
    gc.freeze()
    yield
    gc.unfreeze()


def _marked(question: str, strategy: str, case: dict[str, str]) -> Any:
    """Mark a strategy slow that needs an optional package: most take as long to import as TensorFlow."""
    needs = _registry.find_variant(question, strategy).optional
    return pytest.param(question, strategy, case, marks=[pytest.mark.slow] if needs else [])


@pytest.mark.usefixtures("young")
@pytest.mark.parametrize(("question", "strategy", "case"), [_marked(*each) for each in EVERY], ids=str)
def test_every_strategy_delivers_what_its_question_asks_for(
    corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clusters: Start,
    question: str,
    strategy: str,
    case: dict[str, str],
) -> None:
    monkeypatch.setattr(nodes, "cluster", clusters)
    asked, variant = _registry.find_question(question), _registry.find_variant(question, strategy)
    job = Job(corpus, asked.prepare(corpus, case, 7), case, 7, directory=tmp_path)
    try:
        require(variant)
        if variant.convert:
            variant.convert(job)
        with variant.serve(job) if variant.serve else nullcontext() as served:
            job = dataclasses.replace(job, served=served)
            quality = asked.check(job, variant, variant.build(job))
    except Skip as skip:
        if os.environ.get("LOADERS_ENGINES") and "make engines" in str(skip):
            pytest.fail(f"LOADERS_ENGINES is set, and {skip}")
        pytest.skip(str(skip))
    assert not quality.lost


@pytest.mark.parametrize("strategy", _registry.variants("selection"))
def test_every_selection_draws_anew_for_another_seed_and_alike_for_the_same(corpus: Corpus, strategy: str) -> None:
    asked, variant = _registry.find_question("selection"), _registry.find_variant("selection", strategy)
    case = asked.default_case
    inputs = asked.prepare(corpus, case, 0)

    def draw(seed: int) -> list[int]:
        batches = variant.build(Job(corpus, inputs, case, seed))
        return check_drawn_from([(image,) for image in inputs.images], inputs.draws, batches)

    first, other = draw(1), draw(2)
    assert draw(1) == first
    assert set(first) != set(other)
    # Not the first hundred, nor any other corner: the mean place of 100 out of 500 has a deviation of 13.
    assert all(180 < np.mean(each) < 320 for each in (first, other))


UNIVERSE = [(np.full((2, 2), value, np.uint8), value) for value in range(6)]


def _pictures(count: int) -> list[Any]:
    random = np.random.default_rng(1)
    coarse = random.integers(30, 226, (count, 7, 7, 3), np.uint8)
    return [each.repeat(4, axis=0).repeat(4, axis=1) for each in coarse]


def _delivered(pictures: list[Any], labels: list[int]) -> list[Any]:
    return [(np.stack(pictures), np.array(labels))]


def _alike(batches: list[Any]) -> float:
    pictures = _pictures(6)
    return check_alike([(place, place % 3) for place in range(6)], lambda place: pictures[place], batches, 20.0)


def test_what_is_much_like_it_passes_in_any_order() -> None:
    pictures, order = _pictures(6), [3, 1, 5, 0, 2, 4]
    blurred = [np.asarray(np.clip(pictures[each].astype(int) + 3, 0, 255), np.uint8) for each in order]
    assert 35 < _alike(_delivered(blurred, [each % 3 for each in order])) < 50


def test_of_two_that_have_nearly_the_same_blocks_it_is_the_one_that_is_more_alike() -> None:
    checks = np.indices((28, 28)).sum(axis=0)[..., None] % 2 * np.ones(3)
    pictures = [np.asarray(100 + 20 * checks, np.uint8), np.asarray(121 - 20 * checks, np.uint8)]
    one, other = (each + np.uint8(1) * (np.arange(28) % 7 < 4)[:, None, None] for each in pictures)
    universe = [(0, 0), (1, 1)]
    delivered = _delivered([one, other], [0, 1])
    assert check_alike(universe, lambda place: pictures[place], delivered, 20.0) > 40
    with pytest.raises(WrongOutputError, match=r"more often than it exists \(place 0\)"):
        check_alike(universe, lambda place: pictures[place], _delivered([one, one], [0, 0]), 20.0)


def test_a_picture_that_is_there_twice_is_delivered_twice_with_both_labels() -> None:
    pictures = [*_pictures(2), _pictures(1)[0]]  # the third one is the first again
    universe = [(0, 0), (1, 1), (2, 2)]
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        delivered = _delivered([pictures[each] for each in order], order)
        assert check_alike(universe, lambda place: pictures[place], delivered, 20.0) == 99.0
    for labels, said in (([0, 1, 0], "the label 0 instead of 2"), ([0, 1, 1], "the label 1 instead of 2")):
        with pytest.raises(WrongOutputError, match=said):
            check_alike(universe, lambda place: pictures[place], _delivered(pictures, labels), 20.0)
    many = _delivered([*pictures, pictures[0]], [0, 1, 2, 0])
    with pytest.raises(WrongOutputError, match="more often than it exists"):
        check_alike(universe, lambda place: pictures[place], many, 20.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda pictures, labels: (pictures[:5], labels[:5]), "delivered 5 samples instead of 6"),
        (lambda pictures, labels: (pictures[:5] + pictures[:1], labels[:5] + labels[:1]), "more often than it exists"),
        (lambda pictures, labels: (pictures, [*labels[:5], 0]), "has the label 0 instead of 2"),
        (lambda pictures, labels: ([255 - each for each in pictures], labels), "is like none of the 6"),
        (lambda pictures, labels: ([each[:14] for each in pictures], labels), r"got uint8\[14, 28, 3\]"),
        (lambda pictures, labels: ([each / 255 for each in pictures], labels), r"got float64"),
    ],
)
def test_what_is_missing_doubled_mislabelled_or_unlike_is_caught(change: Any, said: str) -> None:
    pictures, labels = change(_pictures(6), [place % 3 for place in range(6)])
    with pytest.raises(WrongOutputError, match=said):
        _alike(_delivered(pictures, labels))


def _batches(order: list[int], size: int = 4) -> list[Any]:
    chosen = [UNIVERSE[place] for place in order]
    return [
        (np.stack([image for image, _ in part]), np.array([label for _, label in part]))
        for part in (chosen[start : start + size] for start in range(0, len(chosen), size))
    ]


@given(st.permutations(range(6)), st.integers(1, 6))
def test_any_order_and_batch_size_passes_and_is_reported(order: list[int], size: int) -> None:
    assert check_drawn_from(UNIVERSE, 6, _batches(order, size)) == order


@given(st.lists(st.integers(0, 5), max_size=9))
def test_only_a_permutation_passes(order: list[int]) -> None:
    if sorted(order) == list(range(6)):
        return
    with pytest.raises(WrongOutputError):
        check_drawn_from(UNIVERSE, 6, _batches(order))


def test_a_sample_that_exists_twice_may_be_delivered_twice() -> None:
    twice = [UNIVERSE[0], UNIVERSE[1], UNIVERSE[0]]
    assert check_drawn_from(twice, 3, _batches([1, 0, 0])) == [1, 0, 2]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ((np.full((1, 2, 2), 9, np.uint8), np.array([0])), "with other values"),
        ((np.zeros((1, 2, 2), np.float32), np.array([0])), r"got float32\[2, 2\].* expected uint8\[2, 2\]"),
        ((np.zeros((1, 3, 2), np.uint8), np.array([0])), r"got uint8\[3, 2\]"),
        ((np.zeros((1, 2, 2), np.uint8), np.array([1])), "not one of"),
        ((np.zeros((2, 2, 2), np.uint8), np.array([0])), "different lengths"),
        ((np.zeros((2, 2, 2), np.uint8), np.array([0, 0])), "more often than it exists"),
    ],
)
def test_a_wrong_sample_is_named(batch: Any, message: str) -> None:
    with pytest.raises(WrongOutputError, match=message):
        check_drawn_from(UNIVERSE, 6, [batch])


def test_missing_samples_are_counted() -> None:
    with pytest.raises(WrongOutputError, match="delivered 4 samples instead of 6"):
        check_drawn_from(UNIVERSE, 6, _batches([0, 1, 2, 3]))


def test_lists_arrays_and_bytes_are_samples() -> None:
    assert [each[0] for each in samples([b"a", b"b"])] == [b"a", b"b"]
    nested = list(samples([[[1.0, 2.0]], [[3.0, 4.0]]]))
    assert digest(nested[1]) == digest((np.array([[3.0, 4.0]]),))


def test_an_integer_label_may_be_of_any_width_but_pixels_may_not() -> None:
    assert digest((np.int64(3),)) == digest((3,)) == digest((np.int32(3),))
    assert digest((np.zeros(2, np.uint8),)) != digest((np.zeros(2, np.int16),))


def test_psnr_of_known_errors() -> None:
    black = np.zeros((4, 4), np.uint8)
    assert psnr(black, black) == 99.0
    assert psnr(black + 255, black) == pytest.approx(0.0)
    assert psnr(black + 1, black) == pytest.approx(48.13, abs=0.01)


def test_order_quality_of_known_orders() -> None:
    labels, shards = [0] * 50 + [1] * 50, [place // 25 for place in range(100)]
    in_order = order_quality(range(100), labels, shards)
    assert (in_order.displacement, in_order.label_run_length) == (0.0, 50.0)
    assert in_order.same_shard_neighbours == pytest.approx(96 / 99)
    reversed_ = order_quality(range(99, -1, -1), labels, shards)
    assert reversed_.displacement == pytest.approx(0.5)
    shuffled = list(range(100))
    random.Random(3).shuffle(shuffled)
    mixed = order_quality(shuffled, labels, shards)
    assert mixed.displacement == pytest.approx(1 / 3, abs=0.08)
    assert mixed.label_run_length < 3
    assert mixed.same_shard_neighbours == pytest.approx(0.25, abs=0.12)
    assert order_quality([], [], []) == _contract.OrderQuality(0.0, 0.0, 0.0, 0.0)
    assert (in_order.tail_monotony, reversed_.tail_monotony) == (1.0, 0.0)
    last_alone = [*range(0, 75, 3), *range(1, 75, 3), *range(2, 75, 3), *range(75, 100)]
    assert order_quality(last_alone, labels, shards).tail_monotony == 1.0


def test_fewer_samples_pass_only_where_some_may_be_lost() -> None:
    assert check_drawn_from(UNIVERSE, 6, _batches([0, 1, 2]), may_lose=True) == [0, 1, 2]
    with pytest.raises(WrongOutputError, match="delivered 0 samples"):
        check_drawn_from(UNIVERSE, 6, [], may_lose=True)
    with pytest.raises(WrongOutputError, match="more often"):
        check_drawn_from(UNIVERSE, 6, _batches([0, 0]), may_lose=True)


def test_a_universe_may_be_a_generator() -> None:
    assert check_drawn_from((each for each in UNIVERSE), 6, _batches(list(range(6)))) == list(range(6))
