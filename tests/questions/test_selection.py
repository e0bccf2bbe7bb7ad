from __future__ import annotations

import gc

import numpy as np
import pytest

from loaders import _registry
from loaders._corpus import Corpus
from loaders._registry import Job
from loaders._trial import Trial, run_trial


def _select(corpus: Corpus, strategy: str) -> tuple[Job, list]:  # type: ignore[type-arg]
    asked = _registry.find_question("selection")
    job = Job(corpus, asked.prepare(corpus, asked.default_case, 1), asked.default_case, 1)
    (selected,) = _registry.find_variant("selection", strategy).build(job)
    return job, selected


def test_the_source_is_11_7_mebibytes_of_distinct_images(corpus: Corpus) -> None:
    asked = _registry.find_question("selection")
    images = asked.prepare(corpus, asked.default_case, 1).images
    assert images.shape == (500, 32, 32, 3)
    assert images.dtype == np.float64
    assert images.nbytes / 2**20 == pytest.approx(11.7, abs=0.05)
    assert len(np.unique(images.reshape(500, -1), axis=0)) == 500


def test_only_the_mixed_form_keeps_old_arrays_alive(corpus: Corpus) -> None:
    """The mechanism behind the memory figure: what each chosen image is a view of."""
    _, views = _select(corpus, "numpy_to_list")
    kept_alive = {id(each.base): each.base.nbytes for each in views}
    gc.collect()
    assert len(kept_alive) == 100
    assert sum(kept_alive.values()) / 2**20 == pytest.approx(1054, rel=0.02)
    _, copies = _select(corpus, "mixed_copy")
    assert all(each.base is None for each in copies)


@pytest.mark.slow
def test_memory_tells_the_mixed_form_from_its_cures(corpus: Corpus) -> None:
    """The mixed form keeps every array that it chose from; its cures two at a time, or three if malloc reuses no hole.

    Python 3.12 starts with another layout of the heap than 3.11 and 3.13, and there ``numpy_to_numpy`` takes a third.
    """
    source = 500 * 32 * 32 * 3 * 8 / 2**20
    peaks = {}
    for strategy in ("numpy_to_numpy", "numpy_to_list", "mixed_copy", "permutation_index"):
        record = run_trial(Trial("selection", strategy, {"images": "500"}, str(corpus.root), 1), corpus)
        assert record.metrics.peak_memory is not None
        peaks[strategy] = record.metrics.peak_memory / 2**20
    assert peaks["numpy_to_list"] == pytest.approx(1054, rel=0.02)
    for cure in ("numpy_to_numpy", "mixed_copy"):
        assert 1.9 * source < peaks[cure] < 3.3 * source
    assert peaks["permutation_index"] < 5
