"""Fresh and forked trials with planted differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from loaders._trial.metrics import Metrics
from loaders._trial.record import Environment, Record
from tests.trial.test_log import RECORD

MIB = 2**20


def planted(
    factors: Mapping[str, float],
    rounds: int = 8,
    spread: float = 0.01,
    *,
    server: float = 0.0,
    memory: Mapping[str, tuple[float, float]] | None = None,
    memory_spread: float = 0.05,
    start: float = 1.0,
    closing: Mapping[str, tuple[float, float]] | None = None,
    seed: int = 1,
    **changes: Any,
) -> list[Record]:
    """Return pairs of trials whose forked times are ``factors`` times the fresh ones.

    ``spread`` is that of a trial's logarithm, ``server`` that of what a round's server adds to all its trials;
    ``memory`` holds fresh and forked MiB by strategy, which spread by ``memory_spread``, ``closing`` the shares of a
    steady epoch.
    """
    random = np.random.default_rng(seed)
    found = []
    for index in range(rounds):
        drift, common = random.normal(0, 0.5), random.normal(0, server)
        for name, factor in factors.items():
            for way, times, place in (("fresh", 1.0, 0), ("forked", factor * np.exp(common), 1)):
                time = float(times * np.exp(drift + random.normal(0, spread)))
                held = memory and int((memory[name][place] + random.normal(0, memory_spread)) * MIB)
                metrics = Metrics(
                    steady_time=time,
                    closing_time=time * closing[name][place] if closing else None,
                    epoch_time=time * (start if place else 1),
                    peak_memory=held or None,
                    retained_memory=held or None,
                )
                found.append(_record(name, index, way, metrics, **changes))
    return found


def _record(name: str, index: int, way: str, metrics: Metrics, **changes: Any) -> Record:
    environment = Environment(machine="box", cpu="A CPU", python="3.11.7", packages={"numpy": "9.9"})
    given = {"status": "ok", "message": "", "question": "batching", "run": "r", "environment": environment, **changes}
    return msgspec.structs.replace(RECORD, strategy=name, round=index, process=way, metrics=metrics, **given)
