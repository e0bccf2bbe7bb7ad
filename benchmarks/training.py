"""asv's view of the question ``loaders.questions.training``."""

from __future__ import annotations

from benchmarks import _base

Comparison, Drain = _base.of("training", version="7", drain_version="3")
