"""asv's view of the question ``loaders.questions.python_map``."""

from __future__ import annotations

from benchmarks import _base

Comparison, Drain = _base.of("python_map", version="5", drain_version="2")
