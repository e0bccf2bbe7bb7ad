"""asv's view of the question ``loaders.questions.decode``."""

from __future__ import annotations

from benchmarks import _base

Comparison, Drain = _base.of("decode", version="3")
