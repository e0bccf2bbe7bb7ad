"""asv's view of the question ``loaders.caching``."""

from __future__ import annotations

from benchmarks import _base
from loaders._trial import Record

QUESTION = "caching"


class Comparison(_base.Comparison):
    """Samples of the comparison run: independent processes, rounds in shuffled order."""

    version = "2"

    params, param_names = _base.parameters(QUESTION)

    def setup_cache(self) -> list[Record]:
        return _base.compare(QUESTION)

    @_base.unit("bytes")
    def track_disk_bytes(self, _records: list[Record], *_: str) -> _base.Samples | float | None:
        return self.samples("disk_bytes")


class Drain(_base.Drain):
    """One epoch in asv's own process."""

    question = QUESTION
    params = _base.parameters(QUESTION)[0][:1]
