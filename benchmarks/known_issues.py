"""asv's view of the question ``loaders.questions.known_issues``."""

from __future__ import annotations

from benchmarks import _base

Comparison, Drain = _base.of("known_issues", version="3")
