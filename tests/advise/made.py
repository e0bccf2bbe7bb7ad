"""A run of ``batching`` with planted laws and speeds, which the tests of the recommendation share."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import msgspec

from loaders._trial.metrics import Metrics
from loaders._trial.record import Environment, Record
from tests.trial.test_log import RECORD

MIB = 2**20
AMOUNTS = {"x1": 40, "x4": 160, "x16": 640}


@dataclass(frozen=True)
class Planted:
    """Seconds a sample once it runs, what a slow consumer waits of them, seconds to start, and memory in MiB."""

    load: float
    wait: float = 1.0
    start: float = 0.01
    memory: Callable[[int], float] = lambda _: 40.0
    noise: float = 0.03
    convert: float | None = None


BATCHING: Mapping[str, Planted] = {
    "load_all": Planted(0.0002, start=0.4, memory=lambda samples: 0.575 * samples),
    "load_all_from_tensor_slices": Planted(0.0003, 0.05, start=0.5, memory=lambda samples: 40 + 1.8 * samples),
    "memory_map": Planted(0.0004, memory=lambda _: 30.0),
    "opencv_pool": Planted(0.0005, 0.02, memory=lambda _: 24.0),
    "path_generator": Planted(0.0016, memory=lambda _: 19.7),
    "path_generator_from_generator": Planted(0.0018, memory=lambda _: 40.5),
    "path_generator_pool": Planted(0.0009, 0.03, memory=lambda _: 57.7),
    "tf1_queue": Planted(0.0007, 0.02, memory=lambda samples: 20 + 0.5 * min(samples, 64)),
    "tfdata_numpy_function": Planted(0.00088, 0.02, memory=lambda _: 45.0),
    "tfdata_paths_2": Planted(0.0012, 0.02, memory=lambda samples: 25 + 0.8 * samples**0.5),
    "tfdata_paths_autotune": Planted(0.0011, 0.02, memory=lambda samples: 25 + 1.8 * samples**0.5),
    "keras_pydataset_1": Planted(0.0015, memory=lambda _: 41.0),
    "keras_pydataset_2": Planted(0.0011, 0.05, memory=lambda _: 110.0, noise=0.2),
    "keras_pydataset_4": Planted(0.0010, 0.05, memory=lambda samples: 8 * samples**0.5),
    "keras_pydataset_processes": Planted(0.0011, 0.05, memory=lambda _: 280.0),
}


def environment(machine: str = "box", cpu: str = "A CPU", commit: str = "a" * 40) -> Environment:
    return Environment(
        machine=machine, cpu=cpu, cores=2, python="3.11.7", packages={"tensorflow": "2.21"}, commit=commit
    )


def run(
    planted: Mapping[str, Planted] = BATCHING,
    rounds: int = 4,
    *,
    question: str = "batching",
    rest: Mapping[str, str] | None = None,
    amounts: Mapping[str, int] = AMOUNTS,
    name: str = "b",
    started: str = "2026-01-02T03:04:05+00:00",
    seed: int = 1,
    where: Environment | None = None,
) -> list[Record]:
    chance = random.Random(seed)
    found = []
    for index in range(rounds):
        drift = 1 + 0.05 * chance.gauss(0, 1)
        for size, samples in amounts.items():
            for strategy, each in planted.items():
                slow = drift * (1 + each.noise * chance.gauss(0, 1))
                batches = -(-samples // 32)
                steady = each.load * samples * slow
                noise = 1 + each.noise / 10 * chance.gauss(0, 1)
                metrics = Metrics(
                    epoch_time=steady + each.start * slow,
                    steady_time=steady,
                    start_time=each.start * slow,
                    wait_time=each.load * 32 * each.wait * slow,
                    slow_step=0.05,
                    needed_memory=int(each.memory(samples) * MIB * noise),
                    peak_memory=int(each.memory(samples) * MIB * noise),
                    convert_time=None if each.convert is None else each.convert * samples * slow,
                    samples=samples,
                    batches=batches,
                )
                found.append(
                    msgspec.structs.replace(
                        RECORD,
                        question=question,
                        strategy=strategy,
                        case={"data": size, **({"augment": "off"} if rest is None else rest)},
                        metrics=metrics,
                        environment=where or environment(),
                        message="",
                        round=index,
                        planned=len(planted) * len(amounts),
                        run=name,
                        started=started,
                    )
                )
    return found


def noisy(planted: Planted) -> Planted:
    """Return the same with trials that differ three times as much."""
    return replace(planted, noise=3 * planted.noise)


def failed(records: list[Record], strategy: str) -> list[Record]:
    """Return the records with one trial of a strategy failed."""
    place = next(index for index, each in enumerate(records) if each.strategy == strategy)
    bad = msgspec.structs.replace(records[place], status="failed", message="ValueError: planted", metrics=Metrics())
    return [*records[:place], bad, *records[place + 1 :]]
