"""The strategies of ``python -m loaders selftest``: the same work, and with so much more time or memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from loaders import Batch, Job, variant

WORK = 300
"""Digests of ``BLOCK`` bytes: about a tenth of a second on one core."""

BLOCK, HELD = 2**18, 16
"""Bytes of one digest; MiB that are held while the work is done."""


def _planted(name: str, more_time: int = 0, more_memory: int = 0) -> None:
    def strategy(job: Job[Any]) -> Iterable[Batch]:
        import numpy as np

        held = np.ones((HELD + more_memory) * 2**17)
        block = bytes(BLOCK)
        for _ in range(WORK * (100 + more_time) // 100):
            hashlib.sha256(block).digest()
        del held
        return [job.inputs.images[: job.inputs.draws]]

    strategy.__name__ = strategy.__qualname__ = name
    strategy.__doc__ = f"Planted: {more_time} % more work, {more_memory} MiB more memory."
    register: Callable[..., Any] = variant(question="selection")
    register(strategy)


_planted("same")
for _percent in (5, 10, 20):
    _planted(f"time_{_percent}", more_time=_percent)
for _mebibytes in (1, 8, 64):
    _planted(f"memory_{_mebibytes}", more_memory=_mebibytes)
