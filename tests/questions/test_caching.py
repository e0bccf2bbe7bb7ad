from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from loaders import _compare, _registry
from loaders._corpus import Corpus
from loaders._trial import Metrics, memory, prepare, timing
from loaders._trial.drain import drain
from tests.conftest import Measure

DECODED = 48 * 224 * 224 * 3 * 4
ROOT = Path(__file__).parents[2]


def _metrics(measure: Measure, corpus: Corpus, strategy: str) -> Metrics:
    planned = _compare.plan("caching", corpus)
    assert planned.epochs == 3  # without later epochs there is nothing to compare
    record = measure(planned, strategy, {"data": "x16", "onednn": "default"})
    assert record.status == "ok", record.message
    return record.metrics


# What malloc has handed out for a data set whose epochs are over: no batch is under way, so only a cache is left.
HELD = """
import gc, json, sys
from loaders import _compare, _corpus, _registry
from loaders._trial import memory, prepare

corpus, question, malloc, held = _corpus.open_corpus("tiny"), _registry.questions()["caching"], memory.Malloc(), {}
for strategy in ["no_cache", *sys.argv[1:]]:  # the first one loads what TensorFlow loads late
    trial = _compare.plan("caching", corpus).trial(strategy, {"data": "x16", "onednn": "default"}, 1)
    job = prepare.job_of(trial, question, corpus)
    before, _ = malloc.in_use_and_held()
    dataset = _registry.variants("caching")[strategy].build(job)
    for _ in range(2):
        for batch in dataset:
            del batch
    gc.collect()
    held[strategy] = malloc.in_use_and_held()[0] - before
    del dataset
print(json.dumps(held))
"""


@pytest.mark.slow
@pytest.mark.skipif(not memory.Malloc().available, reason="mallinfo2 is glibc's (2.33 and later)")
def test_a_cache_in_memory_holds_what_was_decoded(corpus: Corpus) -> None:
    strategies = ["no_cache", "cache_paths", "cache_encoded", "cache_after_decode"]
    environment = os.environ | {"TF_ENABLE_ONEDNN_OPTS": "0"}  # with oneDNN, tensors come from TensorFlow's own pool
    done = subprocess.run(
        [sys.executable, "-c", HELD, *strategies], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    held = json.loads(done.stdout.splitlines()[-1])
    encoded = sum(Path(path).stat().st_size for path in corpus.image_paths)
    assert held["no_cache"] < 0.1 * DECODED
    assert held["cache_paths"] < 0.1 * DECODED
    assert 0.9 * encoded < held["cache_encoded"] < 0.3 * DECODED
    assert 0.9 * DECODED < held["cache_after_decode"] < 1.2 * DECODED


@pytest.mark.slow
def test_a_cache_spares_the_work_of_later_epochs(corpus: Corpus, measure: Measure) -> None:
    trial = _compare.plan("caching", corpus).trial("cache_after_decode", {"data": "x16", "onednn": "default"}, 1)
    # Smaller batches than a trial's, of which these few pictures make two: too few to tell what is steady.
    job = prepare.job_of(trial, _registry.find_question("caching"), corpus, batch_size=8)
    timelines, _ = drain(lambda: _registry.find_variant("caching", "cache_after_decode").build(job), epochs=3)
    steady = timing.steady_time(timelines)
    assert steady is not None
    assert steady < timing.epoch_time(timelines[0])
    assert _metrics(measure, corpus, "cache_after_decode").disk_bytes is None


@pytest.mark.slow
def test_a_cache_on_disk_writes_what_was_decoded_and_reads_it_again(corpus: Corpus, measure: Measure) -> None:
    for strategy in ("cache_to_file", "snapshot_to_disk"):
        metrics = _metrics(measure, corpus, strategy)
        assert metrics.disk_bytes
        assert DECODED <= metrics.disk_bytes < 1.1 * DECODED


def test_every_published_place_is_there() -> None:
    expected = {"no_cache", "cache_after_decode", "cache_paths", "cache_encoded", "cache_to_file", "snapshot_to_disk"}
    assert expected | {"no_cache_onednn", "no_cache_without_onednn"} == set(_registry.variants("caching"))
    assert _registry.baseline("caching").name == "no_cache"


@pytest.mark.slow
def test_the_setting_of_onednn_reaches_tensorflow_and_stands_in_the_record(corpus: Corpus, measure: Measure) -> None:
    planned = _compare.plan("caching", corpus)
    for strategy, state in (("no_cache_onednn", "on"), ("no_cache_without_onednn", "off")):
        record = measure(planned, strategy, {"data": "x4", "onednn": "set"})
        assert (record.status, record.environment.onednn) == ("ok", state), record.message
