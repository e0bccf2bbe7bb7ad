"""asv's view of the question ``loaders.selection``."""

from __future__ import annotations

from benchmarks import _base
from loaders._trial import Record

QUESTION = "selection"


class Comparison(_base.Comparison):
    """Samples of the comparison run: independent processes, rounds in shuffled order."""

    params, param_names = _base.parameters(QUESTION)

    def setup_cache(self) -> list[Record]:
        return _base.compare(QUESTION)


class Drain(_base.Drain):
    """One epoch in asv's own process."""

    question = QUESTION
    params = _base.parameters(QUESTION)[0][:1]
