"""asv's view of the question ``loaders.questions.service``."""

from __future__ import annotations

from benchmarks import _base

Comparison, Drain = _base.of("service", version="4", drain_version="3")
