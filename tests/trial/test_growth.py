"""The verdict on synthetic traces whose truth is known by construction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from loaders._trial.growth import MIN_POINTS, Growth, growth
from loaders._trial.record import MemoryTrace, Record
from tests.conftest import Strategy

KIB, MIB = 2**10, 2**20

lengths = st.integers(400, 20_000)
seeds = st.integers(0, 2**32 - 1)
levels = st.floats(0, 2000)  # MiB


def _judge(
    steps: NDArray[Any],
    resident: NDArray[Any],
    in_use: NDArray[Any] | None = None,
    held: NDArray[Any] | None = None,
) -> Growth:
    def listed(values: NDArray[Any] | None) -> list[int] | None:
        return None if values is None else [int(value) for value in values]

    trace = MemoryTrace(
        step=[int(step) for step in steps],
        seconds=[0.0] * len(steps),
        resident=listed(resident) or [],
        in_use=listed(in_use),
        held=listed(held),
    )
    return growth(trace, steps_per_epoch=100, memory=24 * 2**30)


def _steps(length: int) -> NDArray[Any]:
    return np.linspace(1, length, 320).astype(np.int64)


@given(lengths, levels, st.floats(0, 20), seeds)
def test_flat_with_noise_is_flat(length: int, level: float, noise: float, seed: int) -> None:
    steps = _steps(length)
    random = np.random.default_rng(seed)
    resident = (level + random.uniform(0, noise, len(steps))) * MIB
    assert _judge(steps, resident).verdict == "flat"


@given(lengths, st.floats(0, 500), st.floats(20, 1500), st.floats(30, 200), st.floats(0, 4), seeds)
def test_an_exponential_approach_is_a_plateau(
    length: int, start: float, rise: float, times: float, noise: float, seed: int
) -> None:
    """The time constant is a 30th of the length or less: the pipeline has long filled its buffers."""
    steps = _steps(length)
    random = np.random.default_rng(seed)
    approach = 1 - np.exp(-steps * times / length)
    approach[0] = 0
    resident = (start + rise * approach + random.uniform(0, noise, len(steps))) * MIB
    found = _judge(steps, resident)
    assert found.verdict == "plateau"
    assert found.level == pytest.approx((start + rise) * MIB, abs=(noise + 0.1) * MIB)


@given(lengths, st.floats(0.05, 0.7), st.floats(0, 500), st.floats(25, 1500))
def test_a_step_is_a_plateau_wherever_it_is(length: int, where: float, start: float, rise: float) -> None:
    steps = _steps(length)
    resident = (start + rise * (steps > where * length)) * MIB
    assert _judge(steps, resident).verdict == "plateau"


@given(lengths, levels, st.floats(1, 300), st.floats(20, 32))
def test_a_sawtooth_is_flat(length: int, level: float, height: float, teeth: float) -> None:
    steps = _steps(length)
    resident = (level + height * ((steps * teeth / length) % 1)) * MIB
    assert _judge(steps, resident).verdict == "flat"


@given(lengths, levels, st.floats(16, 4096), seeds)
def test_linear_growth_of_16_kib_a_step_and_more_is_growing(length: int, level: float, leak: float, seed: int) -> None:
    steps = _steps(length)
    leaked = leak * KIB * steps
    # Visible is what exceeds, over the second half, the tolerance of 2 MiB and 2 % of the level.
    if leak * KIB * length / 2 < 3 * max(2 * MIB, 0.03 * level * MIB):
        return
    noise = np.random.default_rng(seed).uniform(0, 0.5, len(steps)) * MIB
    found = _judge(steps, level * MIB + leaked + noise, leaked, np.zeros(len(steps)))
    assert found.verdict == "growing, in use"
    assert found.slope == pytest.approx(leak * KIB, rel=0.15)
    assert found.low <= found.slope <= found.high
    assert found.per_epoch == pytest.approx(100 * found.slope)
    assert ("this machine's memory is gone after" in found.message) == (found.level < 24 * 2**30)
    assert ("16 GB is gone after" in found.message) == (found.level < 16e9)


@given(st.integers(2000, 20_000), st.floats(32, 1024), st.floats(0.1, 0.5), st.floats(20, 32))
def test_linear_growth_under_a_large_sawtooth_is_growing(length: int, leak: float, height: float, teeth: float) -> None:
    """The teeth are up to half as high as all that leaks."""
    steps = _steps(length)
    leaked = leak * KIB * steps
    saw = height * leaked[-1] * ((steps * teeth / length) % 1)
    assert _judge(steps, leaked + saw, leaked, np.zeros(len(steps))).verdict == "growing, in use"


@given(st.integers(1000, 20_000), st.floats(32, 1024), st.floats(0, 0.3))
def test_growth_that_malloc_has_freed_and_kept_is_the_allocators(length: int, rate: float, in_use: float) -> None:
    steps = _steps(length)
    grown = rate * KIB * steps
    found = _judge(steps, grown, in_use * grown, (1 - in_use) * grown)
    assert found.verdict == "growing, held by the allocator"


def test_growth_outside_of_malloc_is_in_use() -> None:
    """Python's small objects live in arenas of their own."""
    steps = _steps(2000)
    grown = 64.0 * KIB * steps
    assert _judge(steps, grown, np.zeros(len(steps)), np.zeros(len(steps))).verdict == "growing, in use"


def test_without_malloc_to_ask_growing_is_just_growing() -> None:
    steps = _steps(2000)
    assert _judge(steps, 64.0 * KIB * steps).verdict == "growing"


@pytest.mark.parametrize("points", [0, 1, MIN_POINTS - 1])
def test_a_short_trace_is_undecided_and_says_how_long_would_do(points: int) -> None:
    steps = np.arange(1, points + 1)
    found = _judge(steps, 64.0 * MIB * steps)
    assert found.verdict == "undecided"
    assert "times as many epochs would do" in found.message


def test_growth_that_slows_down_is_undecided() -> None:
    steps = _steps(1000)
    resident = 2000.0 * MIB * (1 - np.exp(-steps * 3 / 1000))
    found = _judge(steps, resident)
    assert found.verdict == "undecided"
    assert "slows down" in found.message


LOOP = """
for index in range(1500):
    {body}
    time.sleep(0.003)
    yield job.inputs.images[index:index + 1] if index < 100 else job.inputs.images[:0]
"""


def decided(trial: Callable[[], Record]) -> Growth:
    """Return the verdict of the first of three trials that has one: on a busy machine one may decide nothing."""
    undecided = []
    for _ in range(3):
        found = trial().metrics.memory_growth
        assert found is not None
        if found.verdict != "undecided":
            return found
        undecided.append(found)
    raise AssertionError(undecided)


@pytest.mark.parametrize(
    ("setup", "body", "verdict"),
    [
        ("", "sys.path.append(np.ones(8192))", "growing, in use"),
        (
            # Touched, then freed, below pieces that are kept, so that malloc can give none of it back.
            "libc = ctypes.CDLL(None)\nlibc.malloc.restype = ctypes.c_void_p\n"
            "pieces = [libc.malloc(65536) for _ in range(1600)]",
            "ctypes.memset(pieces[index], 1, 65536); libc.free(ctypes.c_void_p(pieces[index]))",
            "growing, held by the allocator",
        ),
    ],
    ids=["arrays kept", "fragmentation"],
)
def test_planted_growth_is_found_end_to_end(strategy: Strategy, setup: str, body: str, verdict: str) -> None:
    """Objects and native memory that leak, a buffer that fills, and steady memory are strategies of ``calibration``."""
    found = decided(lambda: strategy(f"{setup}\n{LOOP.format(body=body)}"))
    assert found.verdict == verdict, found
