"""asv's view of the question ``loaders.questions.batching``."""

from __future__ import annotations

from benchmarks import _base

Comparison, Drain = _base.of("batching", version="8", drain_version="3")
