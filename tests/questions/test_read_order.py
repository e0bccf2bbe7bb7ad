from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaders import _compare, _registry
from loaders._contract import Quality
from loaders._corpus import Corpus, load_corpus
from loaders._errors import WrongOutputError
from loaders._registry import Job
from loaders._trial import Record
from tests.conftest import Measure

JPEG, TENSOR, INT64 = ({"record": record, "data": "x16"} for record in ("jpeg", "tensor", "int64"))
QUESTION = _registry.find_question("read_order")


def _job(corpus: Corpus, case: dict[str, str], seed: int = 1, epochs: int = 1) -> Job[Any]:
    return Job(corpus, QUESTION.prepare(corpus, case, seed), case, seed, epochs=epochs)


def _quality(corpus: Corpus, strategy: str, case: dict[str, str] = JPEG, seed: int = 1) -> Quality:
    variant = _registry.find_variant("read_order", strategy)
    job = _job(corpus, case, seed)
    return QUESTION.check(job, variant, variant.build(job))


def _trial(measure: Measure, corpus: Corpus, strategy: str, case: dict[str, str] = JPEG, epochs: int = 1) -> Record:
    return measure(_compare.plan("read_order", corpus, epochs=epochs), strategy, case)


@pytest.mark.parametrize("strategy", ["range_indexed", "interleave", "mixed_parallel_reads", "interleave_trim"])
def test_epochs_are_delivered_in_one_pass(corpus: Corpus, strategy: str) -> None:
    job = _job(corpus, JPEG, epochs=3)
    batches = _registry.find_variant("read_order", strategy).build(job)
    labels = np.concatenate([label.numpy() for _, label in batches])
    assert sorted(labels) == sorted(corpus.image_labels * 3)


def test_a_whole_shuffle_mixes_and_reading_in_order_does_not(corpus: Corpus) -> None:
    ranged, sequential = _quality(corpus, "range_indexed").order, _quality(corpus, "sequential").order
    interleaved = _quality(corpus, "interleave").order
    assert ranged
    assert sequential
    assert interleaved
    assert ranged.displacement == pytest.approx(1 / 3, abs=0.12)
    assert sequential.displacement < 0.25
    assert sequential.same_shard_neighbours > interleaved.same_shard_neighbours


def test_the_seed_decides_the_order(corpus: Corpus) -> None:
    assert _quality(corpus, "sequential", seed=1) == _quality(corpus, "sequential", seed=1)
    assert _quality(corpus, "sequential", seed=1) != _quality(corpus, "sequential", seed=2)


@pytest.mark.slow
def test_the_orders_of_the_range_file_are_as_the_write_up_drew_them(corpus: Corpus) -> None:
    """Four readers cycle through the first four files and then read the fifth alone; interleave mixes to the end."""
    sequential = _quality(corpus, "sequential", INT64)
    assert sequential.walk == list(range(10_000))
    parallel = _quality(corpus, "parallel_reads", INT64)
    assert parallel.walk
    assert parallel.order
    assert parallel.walk[:6] == [0, 2000, 4000, 6000, 1, 2001]
    assert parallel.walk[-2000:] == list(range(8000, 10_000))
    assert parallel.order.tail_monotony == 1.0
    interleaved = _quality(corpus, "interleave", INT64)
    assert interleaved.walk
    assert interleaved.order
    assert {place // 2000 for place in interleaved.walk[-5:]} == set(range(5))
    assert interleaved.order.tail_monotony == 0.0


@pytest.mark.parametrize("fault", ["skips a record", "repeats a shard", "wrong label"])
def test_a_wrong_reader_is_caught(corpus: Corpus, fault: str) -> None:
    variant = _registry.find_variant("read_order", "sequential")
    job = _job(corpus, JPEG)
    batches: list[Any] = [(images.numpy(), labels.numpy()) for images, labels in variant.build(job)]
    QUESTION.check(job, variant, batches)
    first = batches[0]
    faulty = {
        "skips a record": [(first[0][1:], first[1][1:]), *batches[1:]],
        "repeats a shard": [*batches, first],
        "wrong label": [(first[0], first[1] + 1), *batches[1:]],
    }[fault]
    with pytest.raises(WrongOutputError):
        QUESTION.check(job, variant, faulty)


def test_the_floor_is_the_shuffle_buffer_and_a_batch(corpus: Corpus) -> None:
    assert QUESTION.floor
    job = _job(corpus, TENSOR)
    mean = np.mean([length for _, _, length in job.inputs.places])
    assert QUESTION.floor(job, _registry.find_variant("read_order", "interleave")) == pytest.approx(mean * (12 + 32), 1)
    assert QUESTION.floor(job, _registry.find_variant("read_order", "range_indexed")) == pytest.approx(mean * 32, 1)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="glibc's settings")
@pytest.mark.parametrize(
    ("strategy", "setting"),
    [
        ("interleave_arena_1", {"MALLOC_ARENA_MAX": "1"}),
        ("interleave_arena_2", {"MALLOC_ARENA_MAX": "2"}),
        ("interleave_mmap_threshold", {"MALLOC_MMAP_THRESHOLD_": "131072"}),
        ("interleave", {}),
    ],
)
def test_an_allocators_setting_is_part_of_the_trial_and_of_no_other(
    corpus: Corpus, measure: Measure, strategy: str, setting: dict[str, str]
) -> None:
    record = _trial(measure, corpus, strategy, TENSOR)
    assert record.status == "ok", record.message
    found = {name: value for name, value in record.environment.variables.items() if name.startswith("MALLOC")}
    assert found == setting


def test_an_allocator_that_is_not_installed_is_skipped_in_words(
    corpus: Corpus, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)
    record = _trial(measure, corpus, "interleave_jemalloc", TENSOR)
    assert (record.status, record.message) == ("skipped", "the library jemalloc is not installed")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _rename_a_feature(path: Path) -> None:
    import tensorflow as tf

    records = [record.numpy() for record in tf.data.TFRecordDataset(str(path))]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number, record in enumerate(records):
            writer.write(record.replace(b"label", b"lapel") if number == 3 else record)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (_cut, "record 8 of 9 is cut off"),
        (_flip, "does not fit its checksum"),
        (Path.unlink, "is missing; it should hold 9 records"),
        (lambda path: path.write_bytes(b""), "is empty; it should hold 9 records"),
        (_rename_a_feature, "record 3 of 9 has the features image (bytes), lapel (int64) instead of"),
    ],
    ids=["cut off", "flipped bit", "missing", "empty", "wrong feature"],
)
def test_damage_names_the_file_and_the_record(
    corpus: Corpus, measure: Measure, tmp_path: Path, harm: Callable[[Path], object], said: str
) -> None:
    root = tmp_path / "damaged"
    shutil.copytree(corpus.root, root)
    damaged = load_corpus(root)
    path = Path(damaged.encoded("jpeg")[2].path)
    harm(path)
    record = _trial(measure, damaged, "interleave")
    assert record.status in ("failed", "wrong_output")
    assert path.name in record.message
    assert said in record.message


@pytest.mark.slow
def test_what_ignoring_errors_loses_stands_in_the_record(corpus: Corpus, measure: Measure, tmp_path: Path) -> None:
    root = tmp_path / "damaged"
    shutil.copytree(corpus.root, root)
    damaged = load_corpus(root)
    _cut(Path(damaged.encoded("jpeg")[2].path))
    record = _trial(measure, damaged, "parallel_reads_ignore_errors", epochs=2)
    assert record.status == "ok", record.message
    assert record.metrics.lost == 1
    assert record.message == "lost 1 of 48 samples"
    assert _trial(measure, corpus, "parallel_reads_ignore_errors").metrics.lost is None


@pytest.mark.slow
def test_an_encoding_that_was_left_incomplete_is_made_again(corpus: Corpus) -> None:
    shards = corpus.encoded("tensor")
    Path(shards[1].path).write_bytes(b"")
    again = corpus.encoded("tensor")
    assert again == shards
    assert all(Path(shard.path).stat().st_size == shard.size for shard in again)
