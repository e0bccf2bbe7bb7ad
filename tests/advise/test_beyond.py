"""Workers are proposed only where one machine cannot feed the step, and as many as their costs say."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from loaders._advise import candidates
from loaders._advise.beyond import _falls_behind, beyond
from loaders._advise.choose import Settings
from loaders._advise.command import advise
from loaders._stats import Estimate
from loaders._trial.metrics import Metrics
from loaders._trial.record import Environment, Record
from tests.advise import made
from tests.trial.test_log import RECORD

IMAGES = 640


def _service(client: float, workers: float, where: Environment, storage: str = "local") -> list[Record]:
    """Return a run of one and two workers, whose images cost so many seconds of processor time each."""
    roles = {"client": client * IMAGES, "dispatcher": 0.00001 * IMAGES, "workers": workers * IMAGES}
    return [
        msgspec.structs.replace(
            RECORD,
            question="service",
            strategy=f"service_{count}_refreshed",
            case={"storage": storage},
            status="ok",
            message="",
            run="s",
            round=index,
            planned=2,
            environment=where,
            metrics=Metrics(
                epoch_time=1.0, steady_time=1.0, samples=IMAGES, batches=20, wire_bytes=100_000, cpu_by_role=roles
            ),
        )
        for index in range(3)
        for count in (1, 2)
    ]


BOX = made.environment("box")


@pytest.mark.parametrize(
    ("step", "service", "said"),
    [
        # 3200 images a second are asked for, and two cores of a worker do 1600.
        (0.01, _service(0.0001, 0.00125, BOX), "2 workers of tf.data service on machines like this one would feed it"),
        (0.01, _service(0.0001, 0.0005, BOX), "1 worker of tf.data service on a machine like this one would feed it"),
        (0.01, _service(0.001, 0.00125, BOX), "takes 3200 samples/s, and the client's processors would end at 2000."),
        (0.01, _service(0.0001, 0.00125, made.environment("other")), ""),
        (0.01, _service(0.0001, 0.00125, BOX, storage="slow"), ""),
        (0.01, [], ""),
        (0.5, _service(0.0001, 0.00125, BOX), ""),
        (0.0, _service(0.0001, 0.00125, BOX), ""),
    ],
)
def test_workers_are_proposed_only_beyond_one_machine(step: float, service: list[Record], said: str) -> None:
    settings = Settings(memory=200 * 2**20, step=step)
    found = advise([*made.run(where=BOX), *service], "batching", {}, settings, "box")
    assert bool(found.bottleneck) == (step == 0.01)
    assert bool(found.beyond) == bool(said)
    assert said in found.beyond


def test_workers_are_those_of_the_machine_that_the_answer_rests_on() -> None:
    settings = Settings(memory=200 * 2**20, step=0.01)
    run = [*made.run(where=BOX), *_service(0.0001, 0.00125, BOX)]
    assert "on machines like box would feed it" in advise(run, "batching", {}, settings, "mine").beyond


def test_nothing_is_said_of_workers_where_the_work_is_another() -> None:
    settings = Settings(memory=200 * 2**20, step=0.01)
    service = _service(0.0001, 0.00125, BOX)
    found = advise([*made.run(where=BOX), *service], "batching", {}, settings, "box")
    assert found.beyond
    another = msgspec.structs.replace(found, question="caching")
    assert beyond(service, another, another, another) == ""


def test_workers_are_not_proposed_where_more_memory_would_do() -> None:
    """``path_generator_pool`` feeds it in 58 MiB, and what fits into 25 MiB does not."""
    service = _service(0.0001, 0.00125, BOX)
    found = advise([*made.run(where=BOX), *service], "batching", {}, Settings(memory=25 * 2**20, step=0.05), "box")
    assert found.bottleneck
    assert found.beyond.startswith("With ")
    assert found.beyond.endswith(" MiB of memory, tfdata_numpy_function would feed it.")
    assert advise(made.run(where=BOX), "batching", {}, Settings(memory=2**30, step=0.05), "box").beyond == ""


def test_workers_are_not_proposed_for_what_is_done_once() -> None:
    """A start of a minute holds up the only epoch; workers would start no sooner."""
    service, memory = _service(0.0001, 0.00125, BOX), 200 * 2**20
    late = {name: replace(each, start=60.0) for name, each in made.BATCHING.items()}
    settings = Settings(memory, step=0.05, samples=1000, epochs=1)
    found = advise([*made.run(late, where=BOX), *service], "batching", {}, settings, "box")
    assert found.bottleneck
    assert found.beyond == ""
    # One epoch does not pay for a conversion, and what is advised instead falls behind for good.
    converted = {**made.BATCHING, "memory_map": replace(made.BATCHING["memory_map"], convert=0.02, wait=0.01)}
    one = Settings(100 * 2**20, step=0.02, samples=10_000, epochs=1)
    advised = advise([*made.run(converted, where=BOX), *service], "batching", {}, one, "box")
    assert advised.recommended != "memory_map"
    assert "would feed it" in advised.beyond
    slow = {name: replace(each, load=20 * each.load, wait=1.0) for name, each in late.items()}
    assert advise([*made.run(slow, where=BOX), *service], "batching", {}, settings, "box").beyond


def test_an_installation_that_would_feed_the_step_comes_before_more_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gains too little over the fastest that needs none to be advised for that alone."""
    planted = {"tfdata_numpy_function": made.Planted(0.0019, 0.12), "grain_threads": made.Planted(0.0016, 0.05)}
    monkeypatch.setattr(candidates.candidates, "__defaults__", (lambda _: False,))
    run = [*made.run(planted, where=BOX), *_service(0.0001, 0.00125, BOX)]
    found = advise(run, "batching", {}, Settings(memory=2**30, step=0.05, epochs=10**4), "box")
    assert found.recommended == "tfdata_numpy_function"
    assert found.bottleneck
    assert found.beyond == "With an installation (pip install grain), grain_threads would feed it."


def test_costs_of_another_processor_of_the_same_name_say_nothing() -> None:
    settings = Settings(memory=200 * 2**20, step=0.01)
    service = _service(0.0001, 0.00125, made.environment("box", cpu="Another CPU"))
    assert advise([*made.run(where=BOX), *service], "batching", {}, settings, "box").beyond == ""


@pytest.mark.parametrize(("low", "high", "falls"), [(0.001, 0.004, False), (0.004, 0.006, False), (0.006, 0.01, True)])
def test_workers_are_proposed_only_where_one_machine_is_shown_to_fall_behind(
    low: float, high: float, *, falls: bool
) -> None:
    """A tenth of a step of 50 ms is what may be waited."""
    found = advise(made.run(where=BOX), "batching", {}, Settings(2**30, step=0.05), "box")
    own = next(each for each in found.strategies if each.name == found.recommended)
    waits = msgspec.structs.replace(own, wait=Estimate((low + high) / 2, low, high, 4))
    assert _falls_behind(msgspec.structs.replace(found, strategies=[waits]), own.name) == falls
