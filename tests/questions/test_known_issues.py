from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaders import _compare, _registry
from loaders._corpus import Corpus
from loaders._registry import Batch, Job
from loaders._trial import Record
from loaders.questions import known_issues
from tests.conftest import Measure

QUESTION = _registry.find_question("known_issues")
STEPS, PICTURES, PATHS = ({"data": name} for name in ("steps", "pictures", "paths"))

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="run make engines")


def _job(corpus: Corpus, case: dict[str, str], epochs: int = 1) -> Job[Any]:
    return Job(corpus, QUESTION.prepare(corpus, case, 1), case, 1, epochs=epochs)


def _trial(measure: Measure, corpus: Corpus, strategy: str, case: dict[str, str], **more: Any) -> Record:
    return measure(_compare.plan("known_issues", corpus, **more), strategy, case)


def test_no_loader_is_chosen_from_it() -> None:
    assert not QUESTION.chooses
    assert not QUESTION.when
    assert not QUESTION.size_axis


def test_every_strategy_but_the_control_and_the_cures_names_its_report() -> None:
    plain = {"python_loop", "tfdata_plain", "keras_image_dataset", "torch_dataloader_array", "service_off"}
    cures = {"shuffle_buffer_one_arena", "shuffle_buffer_tcmalloc"}
    for name, each in _registry.variants("known_issues").items():
        assert ("#" in each.doc) == (name not in plain | cures), name


def test_all_rounds_that_are_asked_for_are_run(corpus: Corpus) -> None:
    """Where no loader is chosen, nothing is ever open that a later round would go on for."""
    planned = _compare.plan("known_issues", corpus, rounds=20)
    assert planned.whole_rounds == 20
    assert _compare.plan("batching", corpus, rounds=20).whole_rounds == 8


def test_paths_are_strings_of_their_own_and_come_in_order(corpus: Corpus) -> None:
    work = _job(corpus, PATHS).inputs
    sizes = known_issues._Checksums(work, 3, as_array=False)
    assert len(sizes) == 3 * work.count == len({id(path) for path in sizes.paths})
    array = known_issues._Checksums(work, 3, as_array=True)
    assert [sizes[index] for index in range(len(sizes))] == [array[index] for index in range(len(array))]
    assert [index for batch in known_issues._Batches(work, 3) for index in batch] == list(range(3 * work.count))


def test_a_picture_tells_its_number(corpus: Corpus) -> None:
    work = _job(corpus, PICTURES).inputs
    for index in (0, 255, 256, 5999, 70_000):
        red, green, blue = (int(each) for each in work.sample(index)[:3])
        assert red + 256 * green + 65536 * blue == index


@pytest.mark.skipif(not known_issues.SHARED_MEMORY.is_dir(), reason="no /dev/shm to look into")
@pytest.mark.parametrize("stays", [True, False])
def test_shared_memory_that_stays_is_counted(corpus: Corpus, monkeypatch: pytest.MonkeyPatch, *, stays: bool) -> None:
    # A size that no other test's strategies have, as what they leave meanwhile would be counted.
    monkeypatch.setattr(known_issues.Work, "batch_size", 37)
    job = _job(corpus, STEPS)
    work = job.inputs
    made: list[shared_memory.SharedMemory] = []

    def batches() -> Iterator[Batch]:
        made.append(shared_memory.SharedMemory(create=True, size=known_issues.BYTES * work.batch_size))
        yield from (work.batch(part) for part in work.parts)
        if not stays:
            made[0].unlink()

    quality = QUESTION.check(job, _registry.find_variant("known_issues", "python_loop"), batches())
    made[0].close()
    if stays:
        made[0].unlink()
    assert quality.left_behind == (known_issues.BYTES * work.batch_size if stays else 0)


def test_where_nobody_can_look_nothing_is_said_to_be_left_behind(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_issues, "SHARED_MEMORY", tmp_path / "none")
    job = Job(corpus, QUESTION.prepare(corpus, STEPS, 1), STEPS, 1, directory=tmp_path)
    variant = _registry.find_variant("known_issues", "python_loop")
    assert QUESTION.check(job, variant, variant.build(job)).left_behind is None


def test_what_k5_compares_with_is_what_1024_images_take() -> None:
    from loaders._claims.known_issues import HELD

    assert 1024 * np.zeros((known_issues.SIDE, known_issues.SIDE, 3), np.float32).nbytes == HELD


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["from_generator", "py_function", "keras_pydataset_workers"])
def test_a_report_is_run_over_four_epochs_in_one_pass(corpus: Corpus, measure: Measure, strategy: str) -> None:
    record = _trial(measure, corpus, strategy, STEPS, epochs=4)
    assert record.status == "ok", record.message
    assert record.metrics.memory_trace is not None
    assert record.metrics.batches
    assert 3 * record.metrics.batches < record.metrics.memory_trace.step[-1] <= 4 * record.metrics.batches
    assert record.metrics.left_behind == 0


@pytest.mark.slow
def test_the_page_shows_what_is_reported_where_and_whether_it_is_so(
    corpus: Corpus, measure: Measure, tmp_path: Path
) -> None:
    from loaders._report import page, sets
    from loaders._trial import log

    for strategy in ("python_loop", "from_generator"):
        record = _trial(measure, corpus, strategy, STEPS)
        for index in range(3):
            log.append(tmp_path / "m" / log.NAME, _of_round(record, index))
    html = page.render(sets.collect(tmp_path))
    assert '<a href="https://github.com/tensorflow/tensorflow/issues/65675">tensorflow/tensorflow#65675</a>' in html
    assert "2.16.1 with Python 3.11; open" in html
    view = html.partition('data-view="known_issues"')[2].partition("</section>")[0]
    assert "All findings" not in view, "no loader is chosen there"
    assert "What write-ups claim about it" not in view, "they are in the table"


def _of_round(record: Record, index: int) -> Record:
    import msgspec

    return msgspec.structs.replace(record, run="r", round=index)
