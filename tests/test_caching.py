from __future__ import annotations

from loaders import _compare, _registry
from loaders._corpus import Corpus
from loaders._trial import Metrics, run_trial

DECODED = 48 * 224 * 224 * 3 * 4
MIB = 2**20


def _metrics(corpus: Corpus, strategy: str) -> Metrics:
    planned = _compare.plan("caching", corpus)
    assert planned.epochs == 3  # without later epochs there is nothing to compare
    record = run_trial(planned.trial(strategy, {}, 1), corpus)
    assert record.status == "ok", record.message
    return record.metrics


def test_a_cache_in_memory_holds_what_was_decoded(corpus: Corpus) -> None:
    plain, cached = _metrics(corpus, "no_cache"), _metrics(corpus, "cache_after_decode")
    assert plain.memory_trace
    assert cached.memory_trace
    if plain.memory_trace.in_use and cached.memory_trace.in_use:  # at the end, when no batch is under way
        assert cached.memory_trace.in_use[-1] - plain.memory_trace.in_use[-1] > 0.7 * DECODED
    assert cached.later_epoch_time
    assert cached.epoch_time
    assert cached.later_epoch_time < cached.epoch_time
    assert cached.disk_bytes is None


def test_a_cache_on_disk_writes_what_was_decoded_and_reads_it_again(corpus: Corpus) -> None:
    for strategy in ("cache_to_file", "snapshot_to_disk"):
        metrics = _metrics(corpus, strategy)
        assert metrics.disk_bytes
        assert DECODED <= metrics.disk_bytes < 1.1 * DECODED
        assert metrics.later_epoch_time


def test_every_published_place_is_there() -> None:
    expected = {"no_cache", "cache_after_decode", "cache_paths", "cache_encoded", "cache_to_file", "snapshot_to_disk"}
    assert expected == set(_registry.variants("caching"))
    assert _registry.baseline("caching").name == "no_cache"
