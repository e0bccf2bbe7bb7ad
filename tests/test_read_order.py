from __future__ import annotations

from typing import Any

import pytest

from loaders import _registry
from loaders._contract import OrderQuality
from loaders._corpus import Corpus
from loaders._errors import WrongOutputError
from loaders._registry import Job


def _order(corpus: Corpus, strategy: str, seed: int = 1) -> OrderQuality:
    asked, variant = _registry.find_question("read_order"), _registry.find_variant("read_order", strategy)
    job = Job(corpus, asked.prepare(corpus, {}, seed), {}, seed)
    found = asked.check(job, variant, variant.build(job)).order
    assert found is not None
    return found


def test_a_whole_shuffle_mixes_and_reading_in_order_does_not(corpus: Corpus) -> None:
    ranged, sequential = _order(corpus, "range_indexed"), _order(corpus, "sequential")
    assert ranged.displacement == pytest.approx(1 / 3, abs=0.12)
    assert sequential.displacement < 0.25
    assert sequential.same_shard_neighbours > _order(corpus, "interleave").same_shard_neighbours


def test_the_seed_decides_the_order(corpus: Corpus) -> None:
    assert _order(corpus, "sequential", 1) == _order(corpus, "sequential", 1)
    assert _order(corpus, "sequential", 1) != _order(corpus, "sequential", 2)


@pytest.mark.parametrize("fault", ["skips a record", "repeats a shard", "wrong label"])
def test_a_wrong_reader_is_caught(corpus: Corpus, fault: str) -> None:
    asked, variant = _registry.find_question("read_order"), _registry.find_variant("read_order", "sequential")
    job = Job(corpus, asked.prepare(corpus, {}, 1), {}, 1)
    batches: list[Any] = [(images.numpy(), labels.numpy()) for images, labels in variant.build(job)]
    asked.check(job, variant, batches)
    first = batches[0]
    faulty = {
        "skips a record": [(first[0][1:], first[1][1:]), *batches[1:]],
        "repeats a shard": [*batches, first],
        "wrong label": [(first[0], first[1] + 1), *batches[1:]],
    }[fault]
    with pytest.raises(WrongOutputError):
        asked.check(job, variant, faulty)
