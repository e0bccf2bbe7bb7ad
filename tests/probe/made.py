"""Made records of a user's pipeline."""

from __future__ import annotations

from typing import Any

import msgspec

from loaders._probe.asked import Asked
from loaders._probe.delivered import Delivered, Epoch
from loaders._probe.found import Found, found
from loaders._probe.target import Target
from loaders._trial import Metrics, Record
from loaders._trial.growth import Growth
from loaders._trial.metrics import BatchTime
from tests.trial.test_log import RECORD

MIB = 2**20
PLAN = Asked(Target("train.py", "make"), step=0.05)
SAME = Delivered([Epoch(19, 600, "ab")] * 2, ["float32[n, 224, 224, 3]"])


def grown(verdict: str = "flat", slope: float = 0.0) -> Growth:
    """Return a verdict on memory."""
    return Growth(verdict, slope, slope, slope, slope, 20 * MIB, 400, "why", bound=100.0, over=200)  # type: ignore[arg-type]


def record(status: str = "ok", message: str = "", delivered: Delivered | None = SAME, **metrics: Any) -> Record:
    """Return a trial's record."""
    usual: dict[str, Any] = {
        "steady_time": 0.5,
        "epoch_time": 0.6,
        "throughput": 1200.0,
        "cpu_time": 0.8,
        "wait_time": 0.001,
        "slow_batch_time": BatchTime(0.001, 0.002, 0.003, 0.004),
        "peak_memory": 100 * MIB,
        "memory_growth": grown(),
        "samples": 600,
        "batches": 19,
    }
    return msgspec.structs.replace(
        RECORD,
        question="probe",
        strategy="pipeline",
        status=status,
        message=message,
        metrics=Metrics(**{**usual, **metrics}),
        found={"delivered": msgspec.to_builtins(delivered), "stages": None} if delivered else {},
    )


def judged(*records: Record, plan: Asked = PLAN) -> Found:
    """Return what was found in these trials, or in three usual ones."""
    return found(plan, records or [record()] * 3)
