"""asv's view of the question ``loaders.questions.resize``."""

from __future__ import annotations

from benchmarks import _base

Comparison, Drain = _base.of("resize", version="3", drain_version="2")
