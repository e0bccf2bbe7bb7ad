"""asv's view of the question ``loaders.questions.read_order``."""

from __future__ import annotations

from benchmarks import _base

Comparison, Drain = _base.of("read_order", version="5", drain_version="3")
