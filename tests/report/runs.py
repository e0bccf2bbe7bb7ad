"""Runs of ``selection`` with figures that every test of the report knows."""

from __future__ import annotations

from pathlib import Path

import msgspec

from loaders._trial import log
from loaders._trial.record import Environment, Record
from tests.test_rows import record


def write_log(
    root: Path,
    records: list[Record],
    machine: str = "box",
    *,
    tensorflow: str = "2.21",
    numpy: str = "9.9",
    commit: str = "",
    cpu: str = "A CPU",
    variables: dict[str, str] | None = None,
    cores: int = 2,
) -> None:
    environment = Environment(
        machine=machine,
        cpu=cpu,
        cores=cores,
        memory=2**34,
        python="3.11.7",
        packages={"numpy": numpy, "tensorflow": tensorflow},
        commit=commit,
        variables=variables or {},
    )
    for each in records:
        log.append(root / "box" / "trials.jsonl", msgspec.structs.replace(each, environment=environment))


def run_of(name: str, started: str = "2026-01-01T00:00:00+00:00", rounds: int = 2) -> list[Record]:
    return [
        record(strategy, index, time=factor, peak=mebibytes, run=name, started=started)
        for index in range(rounds)
        for strategy, factor, mebibytes in [("numpy_to_numpy", 0.3, 24), ("numpy_to_list", 1.2, 1054)]
    ]
