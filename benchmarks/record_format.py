"""asv's view of the question ``loaders.questions.record_format``."""

from __future__ import annotations

from benchmarks import _base

Comparison, Drain = _base.of("record_format", version="5")
