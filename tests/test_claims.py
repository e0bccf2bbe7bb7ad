"""Every claim, with planted figures for each way that it can come out."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders import _registry
from loaders._claims import Ruling, claims, counted, judged
from loaders._claims._evidence import (
    NOT_WHOLE,
    Figures,
    NotMeasuredError,
    Part,
    Shown,
    above,
    all_of,
    below,
    both,
    both_of,
    gain,
    less_than,
    light,
    of_trials,
    opposite,
    part_of,
    settle,
    unchanged,
    within,
)
from loaders._claims._figures import PICTURE_BYTES, at_readers_amount, leaner
from loaders._claims.resize import LEAK
from loaders._contract import OrderQuality
from loaders._judge import Difference, fitted
from loaders._law import law
from loaders._rows import FIGURES, CaseLaws, Comparison, Row, about
from loaders._stats import Estimate, estimate
from loaders._trial import machine
from loaders._trial.metrics import MemoryTrace
from loaders._trial.record import Environment

SHORT, QUEUED = (
    _registry.find_variant("batching", name).capacity for name in ("keras_pydataset_2_short_queue", "keras_pydataset_4")
)
MIB, GIB = 2**20, 2**30
ROUNDS = 6

HOLDS, FAILS, PARTLY, OPEN = "holds", "does not hold", "holds in part", "undecided here"


def _sampled(value: float, name: str = "", spread: float = 0.01, rounds: int = ROUNDS) -> dict[int, float]:
    """Return a figure by round around a value; each name has noise of its own."""
    random = np.random.default_rng(list(name.encode()))
    noise = random.normal(0, spread, 20)[:rounds]
    return {index: float(value * math.exp(each - noise.mean())) for index, each in enumerate(noise)}


def _row(
    question: str,
    strategy: str,
    case: Mapping[str, str] | None = None,
    *,
    time: float = 1.0,
    peak: float = 100 * MIB,
    needed: float | None = None,
    spread: float = 0.01,
    rounds: int = ROUNDS,
    **more: Any,
) -> Row:
    where = {**_registry.find_question(question).default_case, **(case or {})}
    name = f"{strategy} {' '.join(where.values())}"
    times, peaks = _sampled(time, name, spread, rounds), _sampled(peak, name, spread, rounds)
    needs = _sampled(peak if needed is None else needed, name, spread, rounds)
    declared = _registry.variants(question).get(strategy)
    row = Row(question, strategy, "", "identical", None, where, False, "ok", rounds, rounds)
    figures = {
        "time": estimate(list(times.values()), "ratio"),
        "peak": estimate(list(peaks.values()), "linear"),
        "needed": estimate(list(needs.values()), "linear"),
        **{name: more.pop(name) for name in list(more) if name in FIGURES and name not in Row.__struct_fields__},
    }
    capacity = declared.capacity if declared else 0
    facts = {"times": times, "peaks": peaks, "needs": needs, "capacity": capacity, "figures": figures}
    return msgspec.structs.replace(row, **{**facts, **more})


def _comparison(question: str, rows: Sequence[Row], **more: Any) -> Comparison:
    environment = Environment(memory=8 * GIB)
    found = Comparison(question, "", "r", "full", "d", "now", ROUNDS, "steady_time", 2, environment, list(rows))
    return msgspec.structs.replace(found, about=about(_registry.find_question(question)), **more)


def _ruling(claim: str, *comparisons: Comparison) -> Ruling:
    return next(each for each in judged(comparisons) if each.claim.id == claim)


def _laws(question: str, memory: Mapping[str, Callable[[int], float]], capacity: int = 0) -> list[CaseLaws]:
    """Return the laws of strategies whose memory at 40, 160 and 640 pictures is known."""
    asked = _registry.find_question(question)
    case = {axis: value for axis, value in asked.default_case.items() if axis != asked.size_axis}
    return [
        CaseLaws(
            case,
            {
                name: law(
                    {count: _sampled(needs(count), f"{name} {count}", 0.002) for count in (40, 160, 640)}, capacity
                )
                for name, needs in memory.items()
            },
        )
    ]


# One function for each claim, from a choice of figures to the comparisons that carry them.


def _a1(array: float, scalar: float) -> list[Comparison]:
    rows = [
        _row("python_map", f"py_function_{calls}", {"work": work}, peak=peak * MIB)
        for work, more in (("array", array), ("scalar", scalar))
        for calls, peak in ((1, 100), (8, 100 * more))
    ]
    return [_comparison("python_map", rows)]


def _mapped(work: str = "array", spread: float = 0.01, **peaks: float) -> list[Comparison]:
    rows = [
        _row("python_map", name, {"work": work}, peak=100 * peak * MIB, spread=spread) for name, peak in peaks.items()
    ]
    return [_comparison("python_map", rows)]


def _a2(four: float, eight: float, spread: float = 0.01) -> list[Comparison]:
    return _mapped(
        spread=spread,
        py_function_4=1,
        py_function_4_nondeterministic=four,
        py_function_8=1,
        py_function_8_nondeterministic=eight,
    )


def _a3(workers: float, prefetch: float, spread: float = 0.01) -> list[Comparison]:
    return _mapped(spread=spread, py_function_8=1, py_function_4=workers, py_function_4_prefetch_2=workers * prefetch)


def _a4(ratio: float, spread: float = 0.01) -> list[Comparison]:
    return _mapped(spread=spread, py_function_4_prefetch_autotune=1, py_function_4_prefetch_2=ratio)


def _a5(one: float, loader: float, spread: float = 0.01) -> list[Comparison]:
    case = {"work": "decode"}
    mapped = [
        _row("python_map", name, case, time=time, spread=spread)
        for name, time in (("native_4", one), ("py_function_4", 1.0))
    ]
    loaders = [
        _row("batching", name, time=time, spread=spread)
        for name, time in (("tfdata_paths_autotune", loader), ("tfdata_numpy_function", 1.0))
    ]
    return [_comparison("python_map", mapped), _comparison("batching", loaders)]


def _a6(waiting: list[float], booked: float) -> list[Comparison]:
    trace = MemoryTrace([1], [0.1], [400 * MIB], [int(booked)], [0])
    row = _row(
        "python_map",
        "py_function_8",
        {"work": "array"},
        waiting=estimate(waiting, "linear"),
        waiting_bytes=Estimate(240.0 * MIB, 240 * MIB, 240 * MIB, 6),
        trace=trace,
    )
    return [_comparison("python_map", [row])]


def _a7(share: float, memory: float = 4 * GIB, spread: float = 0.01, *, bends: bool = False) -> list[Comparison]:
    data = 640 * PICTURE_BYTES
    rows = [
        _row("caching", "no_cache", peak=50 * MIB, delivered=640),
        _row("caching", "cache_after_decode", peak=50 * MIB + share * data, spread=spread, delivered=640),
    ]
    follows = {"cache_after_decode": lambda count: 50 * MIB + count ** (2 if bends else 1) * share * PICTURE_BYTES}
    laws = _laws("caching", follows)
    return [_comparison("caching", rows, laws=laws, environment=Environment(memory=int(memory)))]


def _a8(paths: float, encoded: float, spread: float = 0.005) -> list[Comparison]:
    peaks = {"no_cache": 1.0, "cache_paths": paths, "cache_encoded": encoded}
    rows = [_row("caching", name, peak=100 * peak * MIB, spread=spread) for name, peak in peaks.items()]
    return [_comparison("caching", rows)]


def _b1(once: float, each: float, spread: float = 0.01, calls: int = 4) -> list[Comparison]:
    """Memory that the first call keeps, and what every call keeps, in units of the leak that is claimed."""
    rows = []
    for scale in ("0.5", "2.0", "3.5"):
        output = float(scale) ** 2 * 640 * 480 * 3
        held = [output + LEAK * (once + each * calls * 2 * (1 + spread * noise)) for noise in (-1, 1, 0, 2, -2, 0)]
        first = [output + LEAK * (once + each) * (1 + spread * noise) for noise in (-1, 1, 0, 2, -2, 0)]
        known = {"retained": estimate(held, "linear"), "held_first": estimate(first, "linear")}
        row = _row("resize", "skimage_resize_ubyte", {"scale": scale}, delivered=calls)
        rows.append(msgspec.structs.replace(row, figures={**row.figures, **known}))
    return [_comparison("resize", rows, epochs=2)]


def _b2(typed: float, same: float) -> list[Comparison]:
    times = {
        "opencv_linear": 1.0,
        "skimage_rescale_ubyte": typed,
        "opencv_antialiased_float": 1.0,
        "skimage_antialiased_float": same,
    }
    rows = [
        _row("resize", name, {"scale": scale}, time=time) for scale in ("0.5", "3.5") for name, time in times.items()
    ]
    return [_comparison("resize", rows)]


def _b3(small: float, large: float, spread: float = 0.01) -> list[Comparison]:
    rows = [
        _row("resize", name, {"scale": scale}, peak=100 * peak * MIB, spread=spread)
        for scale, ratio in (("0.5", small), ("3.5", large))
        for name, peak in (("skimage_resize_ubyte", 1.0), ("skimage_resize_astype", ratio))
    ]
    return [_comparison("resize", rows)]


def _b4(*ratios: float) -> list[Comparison]:
    sizes = dict(zip(("encoded_bytes", "encoded_quality_75", "encoded_quality_50"), ratios, strict=True))
    rows = [
        _row("record_format", name, disk=Estimate(800 * MIB / ratio, None, None, 1), delivered=1500)
        for name, ratio in {"serialize_tensor": 1.0, **sizes}.items()
    ]
    return [_comparison("record_format", rows)]


def _formats(one: str, other: str, warm: float, cold: float, spread: float = 0.01) -> list[Comparison]:
    rows = [
        _row("record_format", name, {"page_cache": state}, time=time, spread=spread)
        for state, ratio in (("warm", warm), ("cold", cold))
        for name, time in ((one, ratio), (other, 1.0))
    ]
    return [_comparison("record_format", rows)]


def _b5(warm: float, cold: float, spread: float = 0.01) -> list[Comparison]:
    return _formats("serialize_tensor", "encoded_bytes", warm, cold, spread)


def _b6(warm: float, cold: float, spread: float = 0.01) -> list[Comparison]:
    return _formats("encoded_bytes", "separate_files", warm, cold, spread)


def _growing(name: str, record: str, growth: str | None, *, bounded: bool, rounds: int = ROUNDS) -> Row:
    level = Estimate(64.0 * MIB, 63 * MIB, 65 * MIB, 6)
    bound = 0.1 * MIB if bounded else None
    row = _row("read_order", name, {"record": record}, growth=growth, level=level, in_use_bound=bound)
    return msgspec.structs.replace(row, samples=rounds)


def _b7(
    interleave: str | None, parallel: str | None, *, bounded: bool = False, rounds: int = ROUNDS
) -> list[Comparison]:
    rows = [
        _growing("interleave", "tensor", interleave, bounded=bounded, rounds=rounds),
        _growing("parallel_reads", "tensor", parallel, bounded=bounded, rounds=rounds),
    ]
    return [_comparison("read_order", rows)]


def _b8(ratio: float, spread: float = 0.005, others: float = 1.0) -> list[Comparison]:
    ends = ("_no_prefetch", "_map_apart")
    names = [f"mixed_{each}{end}" for each in ("interleave", "parallel_reads") for end in ("", *ends)]
    mixed = dict.fromkeys(("mixed_interleave", "mixed_parallel_reads"), 100.0)
    peaks = {**dict.fromkeys([*names, "interleave"], 100 * others), **mixed, "parallel_reads": 100 * ratio}
    rows = [
        _row("read_order", name, {"record": "tensor"}, peak=peak * MIB, spread=spread) for name, peak in peaks.items()
    ]
    return [_comparison("read_order", rows)]


def _b9(growth: str | None) -> list[Comparison]:
    return [_comparison("read_order", [_growing("range_indexed", "tensor", growth, bounded=False)])]


def _b10(*growths: str, bounded: bool = False) -> list[Comparison]:
    """Run every order; the first ones grow so, and the others stay level."""
    known = _registry.variants("read_order").values()
    case = {**_registry.find_question("read_order").default_case, "record": "int64"}
    names = [each.name for each in known if each.runs_in(case)]
    told = itertools.chain(growths, itertools.repeat("flat"))
    rows = [_growing(name, "int64", growth, bounded=bounded) for name, growth in zip(names, told, strict=False)]
    return [_comparison("read_order", rows)]


def _b11(parallel: float | None, interleave: float | None) -> list[Comparison]:
    rows = [
        _row("read_order", name, {"record": "int64"}, order=OrderQuality(0.3, 1.1, 0.2, tail))
        for name, tail in (("parallel_reads", parallel), ("interleave", interleave))
    ]
    return [_comparison("read_order", rows)]


def _drawn(spread: float = 0.01, **peaks: float) -> list[Comparison]:
    rows = [_row("selection", name, peak=peak * MIB, spread=spread) for name, peak in peaks.items()]
    return [_comparison("selection", rows)]


def _c1(ratio: float, spread: float = 0.01) -> list[Comparison]:
    return _drawn(spread, list_to_list=1000 * ratio, numpy_to_list=1000)


def _c2(ratio: float, spread: float = 0.01) -> list[Comparison]:
    return _drawn(spread, numpy_to_numpy=100 * ratio, list_to_list=100)


def _c3(ratio: float, spread: float = 0.01) -> list[Comparison]:
    expected = sum((500 - drawn) * 32 * 32 * 3 * 8 for drawn in range(100))
    return _drawn(spread, numpy_to_list=ratio * expected / MIB)


def _c4(tolist: float, copy: float, spread: float = 0.01) -> list[Comparison]:
    return _drawn(spread, mixed_tolist=1000 * tolist, mixed_copy=1000 * copy, numpy_to_list=1000)


def _c5(ratio: float, spread: float = 0.01) -> list[Comparison]:
    return _drawn(spread, list_to_list=100 * ratio, list_skipping=100)


def _loading(names: Sequence[str], needs: Callable[[int], float], capacity: int = 0, **more: Any) -> list[Comparison]:
    """Run strategies of ``batching`` whose memory follows the number of pictures, fast and slow consumers alike."""
    rows = [
        _row("batching", name, {"data": data}, peak=needs(count), delivered=count, **more)
        for name in names
        for data, count in (("x1", 40), ("x4", 160), ("x16", 640))
    ]
    if "peak_slow" not in more:
        rows = [msgspec.structs.replace(row, figures={**row.figures, "peak_slow": row.figures["peak"]}) for row in rows]
    return [_comparison("batching", rows, laws=_laws("batching", dict.fromkeys(names, needs), capacity))]


def _d1(needs: Callable[[int], float]) -> list[Comparison]:
    return _loading(["load_all", "load_all_from_tensor_slices"], needs)


def _d2(needs: Callable[[int], float]) -> list[Comparison]:
    return _loading(["path_generator", "path_generator_from_generator"], needs)


def _d3(needs: Callable[[int], float], **more: Any) -> list[Comparison]:
    return _loading(["tf1_queue"], needs, 132, **more)


def _d4(needs: Callable[[int], float], **more: Any) -> list[Comparison]:
    return _loading(["keras_pydataset_2_short_queue"], needs, SHORT, **more)


def _holding(capacity: int, comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Declare another capacity than the strategy does."""
    return [
        msgspec.structs.replace(each, rows=[msgspec.structs.replace(row, capacity=capacity) for row in each.rows])
        for each in comparisons
    ]


def _d5(closing: float, cached: float | None = None, spread: float = 0.01, untuned: int = ROUNDS) -> list[Comparison]:
    """Run tf.data's epochs of a second, which take so long to be closed; those of ``caching`` otherwise, if given."""

    def row(question: str, name: str, seconds: float) -> Row:
        closed = estimate(list(_sampled(seconds, name, spread, ROUNDS).values()), "linear")
        return _row(question, name, time=1 + seconds, closing=closed)

    aside = msgspec.structs.replace(row("batching", "tfdata_paths_2_untuned", 0.001), samples=untuned)
    return [
        _comparison("batching", [row("batching", "tfdata_paths_2", closing), aside]),
        _comparison("caching", [row("caching", "no_cache", closing if cached is None else cached)]),
    ]


def _e(spread: float = 0.01, cores: int = 2, **times: float) -> list[Comparison]:
    """Run strategies of ``batching`` that take so long; what they take on the processor is named ``cpu_…``."""
    cpus = {name.removeprefix("cpu_"): time for name, time in times.items() if name.startswith("cpu_")}
    rows = [_row("batching", name, time=time, spread=spread) for name, time in times.items() if name not in cpus]
    for name, time in cpus.items():
        used = _sampled(time, f"{name} cpu", spread, ROUNDS)
        figures = {"cpu": estimate(list(used.values()), "ratio")}
        rows.append(msgspec.structs.replace(_row("batching", name), cpus=used, figures=figures))
    return [_comparison("batching", rows, environment=Environment(cores=cores))]


def _e1(ratio: float, spread: float = 0.01) -> list[Comparison]:
    return _e(spread, tfdata_paths_autotune=ratio, turboloader=1)


def _e2(ratio: float, spread: float = 0.01) -> list[Comparison]:
    return _e(spread, torch_dataloader_2=ratio, turboloader=1)


def _e3(ratio: float, spread: float = 0.01) -> list[Comparison]:
    return _e(spread, torch_dataloader_2=ratio, spdl_threads=1)


def _e4(ratio: float, spread: float = 0.01) -> list[Comparison]:
    return _e(spread, cpu_spdl_threads=ratio, cpu_torch_dataloader_2=1)


def _e5(ratio: float, spread: float = 0.01) -> list[Comparison]:
    return _e(spread, grain_processes=ratio, grain_threads=1)


def _d6(ratio: float, spread: float = 0.01) -> list[Comparison]:
    times = {"pool_from_generator_mmap_threshold": ratio, "pool_from_generator": 1.0}
    rows = [_row("training", name, time=time, spread=spread) for name, time in times.items()]
    return [_comparison("training", rows)]


def _known(
    strategy: str,
    data: str,
    growth: str | None = "flat",
    *,
    rounds: int = ROUNDS,
    control: bool = True,
    of_control: str = "flat",
    **more: Any,
) -> list[Comparison]:
    level = Estimate(64.0 * MIB, 63 * MIB, 65 * MIB, 6)
    row = _row("known_issues", strategy, {"data": data}, growth=growth, level=level, rounds=rounds, **more)
    loop = _row("known_issues", "python_loop", {"data": data}, growth=of_control, level=level)
    return [_comparison("known_issues", [row, loop] if control else [row])]


def _k4(more: float, spread: float = 0.01) -> list[Comparison]:
    """Return what a cache in a file of 180 MiB adds, in MiB, to 20."""
    disk = estimate([180.0 * MIB] * ROUNDS, "linear")
    rows = [
        _row("known_issues", name, {"data": "sizes"}, needed=needed * MIB, spread=spread, disk=disk)
        for name, needed in (("cache_to_file", 20 + more), ("tfdata_plain", 20))
    ]
    return [_comparison("known_issues", rows)]


def _k5(more: float, spread: float = 0.01, rounds: int = ROUNDS, pictures: int = 1024) -> list[Comparison]:
    """Return what single images add, in MiB, to 20; 1024 are 48 MiB."""
    size: dict[str, Any] = {"delivered": pictures}
    rows = [
        _row("known_issues", name, {"data": "pictures"}, needed=needed * MIB, spread=spread, rounds=rounds, **size)
        for name, needed in (("keras_image_dataset_unbatched", 20 + more), ("keras_image_dataset", 20))
    ]
    return [_comparison("known_issues", rows)]


def _k6(status: str, ended: int, trials: int = ROUNDS) -> list[Comparison]:
    (found,) = _known("keras_pydataset_workers", "steps")
    ends = {} if ended == trials else {"timed_out" if status.startswith("timed out") else "failed": trials - ended}
    row = msgspec.structs.replace(found.rows[0], status=status, samples=ended, trials=trials, ends=ends, epochs=4)
    elsewhere = msgspec.structs.replace(row, case={"data": "sizes"}, epochs=20)
    return [msgspec.structs.replace(found, rows=[elsewhere, row], epochs=20)]


def _k7(of_list: str | None, of_array: str | None) -> list[Comparison]:
    rows = [
        row
        for name, growth in (("torch_dataloader_list", of_list), ("torch_dataloader_array", of_array))
        for row in _known(name, "paths", growth)[0].rows
    ]
    return [_comparison("known_issues", rows)]


def _k8(left: int | None, looks: int = 24) -> list[Comparison]:
    return _known("grain_processes", "steps", left_behind=[] if left is None else [*[0] * (looks - 1), left])


def _k9(ratio: float, spread: float = 0.01) -> list[Comparison]:
    rows = [
        _row("known_issues", name, {"data": "steps"}, time=time, spread=spread)
        for name, time in (("service_dynamic", ratio), ("service_off", 1.0))
    ]
    return [_comparison("known_issues", rows)]


LEAKS = {
    "flat": FAILS,
    "plateau": FAILS,
    "growing, in use": HOLDS,
    "growing": HOLDS,
    "growing, held by the allocator": PARTLY,
    "flat in 3; growing, in use in 3": OPEN,
    "undecided in 4; growing, in use in 2": OPEN,
    "undecided in 3; growing, in use in 3": OPEN,
    "undecided in 2; growing, in use in 4": HOLDS,
    "undecided in 1; plateau in 5": FAILS,
    "undecided": OPEN,
}

GROWS = {"flat": HOLDS, "plateau": PARTLY, "growing, in use": FAILS, "growing, held by the allocator": FAILS}

PLANTED: list[tuple[str, str, list[Comparison]]] = [
    ("A1", HOLDS, _a1(2.0, 1.5)),
    ("A1", PARTLY, _a1(2.0, 1.0)),
    ("A1", FAILS, _a1(1.0, 1.02)),
    ("A1", OPEN, _a1(2.0, 1.1)),
    ("A2", HOLDS, _a2(0.8, 0.7)),
    ("A2", PARTLY, _a2(0.8, 1.2)),
    ("A2", FAILS, _a2(1.0, 1.2)),
    ("A2", OPEN, _a2(0.9, 0.9, 0.2)),
    ("A3", HOLDS, _a3(0.7, 0.8)),
    ("A3", PARTLY, _a3(0.7, 1.3)),
    ("A3", FAILS, _a3(1.0, 1.3)),
    ("A3", OPEN, _a3(0.95, 0.95, 0.2)),
    ("A4", HOLDS, _a4(0.8)),
    ("A4", FAILS, _a4(1.0)),
    ("A4", FAILS, _a4(1.3)),
    ("A4", OPEN, _a4(0.9, 0.2)),
    ("A5", HOLDS, _a5(0.7, 0.8)),
    ("A5", PARTLY, _a5(0.7, 1.5)),
    ("A5", PARTLY, _a5(0.96, 0.96)),
    ("A5", FAILS, _a5(1.2, 1.5)),
    ("A5", OPEN, _a5(0.7, 1.5)[:1]),
    ("A5", OPEN, _a5(0.9, 0.9, 0.2)),
    ("A6", HOLDS, _a6([6, 7, 6, 6, 7, 6], MIB)),
    ("A6", PARTLY, _a6([6, 7, 6, 6, 7, 6], 240 * MIB)),
    ("A6", FAILS, _a6([0, 0, 0, 0, 0, 0], 240 * MIB)),
    ("A6", OPEN, _a6([0, 2, 0, 3, 2, 0], MIB)),
    ("A7", HOLDS, _a7(1.0)),
    ("A7", PARTLY, _a7(1.0, 16 * GIB)),
    ("A7", FAILS, _a7(0.1, 16 * GIB)),
    ("A7", OPEN, _a7(1.0, spread=0.5)),
    ("A7", OPEN, _a7(0.01, bends=True)),
    ("A8", HOLDS, _a8(1.0, 1.01)),
    ("A8", PARTLY, _a8(1.0, 1.5)),
    ("A8", PARTLY, _a8(1.0, 1.15)),
    ("A8", FAILS, _a8(1.4, 1.5)),
    ("A8", OPEN, _a8(1.05, 1.0)),
    ("B1", HOLDS, _b1(0, 2.0)),
    ("B1", PARTLY, _b1(2.0, 0)),
    ("B1", FAILS, _b1(0, 0.01)),
    ("B1", OPEN, _b1(0, 1.01, 0.2)),
    ("B1", OPEN, _b1(1.0, 0.01, 0.2)),
    ("B1", OPEN, _b1(0, 2.0, calls=1)),
    ("B2", HOLDS, _b2(170, 20)),
    ("B2", PARTLY, _b2(170, 5)),
    ("B2", FAILS, _b2(8, 5)),
    ("B2", OPEN, _b2(170, 10)),
    ("B3", HOLDS, _b3(0.8, 0.7)),
    ("B3", PARTLY, _b3(0.8, 1.0)),
    ("B3", FAILS, _b3(1.0, 1.1)),
    ("B3", OPEN, _b3(0.95, 0.95, 0.2)),
    ("B4", HOLDS, _b4(10.8, 15, 25)),
    ("B4", PARTLY, _b4(5, 11, 16)),
    ("B4", FAILS, _b4(3, 5, 8)),
    ("B4", OPEN, [_comparison("record_format", _b4(10.8, 15, 25)[0].rows[:2])]),
    ("B5", HOLDS, _b5(1.2, 1.0)),
    ("B5", PARTLY, _b5(0.96, 0.96)),
    ("B5", PARTLY, _b5(0.5, 1.5)),
    ("B5", FAILS, _b5(0.5, 0.6)),
    ("B5", OPEN, _b5(0.9, 0.9, 0.2)),
    ("B6", HOLDS, _b6(0.7, 0.5)),
    ("B6", PARTLY, _b6(1.0, 0.5)),
    ("B6", FAILS, _b6(1.0, 0.97)),
    ("B6", OPEN, _b6(0.91, 0.5)),
    ("B7", HOLDS, _b7("growing, in use", "plateau")),
    ("B7", HOLDS, _b7("growing, in use in 4; undecided in 2", "growing, held by the allocator", bounded=True)),
    ("B7", FAILS, _b7("growing, held by the allocator", "plateau", bounded=True)),
    ("B7", FAILS, _b7("plateau", "plateau")),
    ("B7", FAILS, _b7("growing, in use", "growing, in use")),
    ("B7", OPEN, _b7("growing, held by the allocator", "plateau")),
    ("B7", OPEN, _b7("growing", "plateau")),
    ("B7", OPEN, _b7("growing, in use in 3; plateau in 3", "plateau")),
    ("B7", OPEN, _b7(None, "plateau")),
    ("B8", HOLDS, _b8(1.0)),
    ("B8", HOLDS, _b8(1.02, 0.003)),
    ("B8", PARTLY, _b8(1.3)),
    ("B8", FAILS, _b8(1.3, others=0.8)),
    ("B8", OPEN, _b8(1.0, 0.2)),
    *(("B9", verdict, _b9(growth)) for growth, verdict in GROWS.items()),
    ("B9", PARTLY, _b9("flat in 3; plateau in 3")),
    ("B9", OPEN, _b9("flat in 3; growing, in use in 3")),
    ("B9", OPEN, _b9(None)),
    ("B10", HOLDS, _b10("flat", "flat", "plateau", "plateau")),
    ("B10", HOLDS, _b10("flat", "flat", "plateau", "growing, held by the allocator", bounded=True)),
    ("B10", FAILS, _b10("flat", "flat", "plateau", "growing, in use")),
    ("B10", OPEN, _b10("flat", "flat", "plateau", "growing, held by the allocator")),
    ("B11", HOLDS, _b11(0.99, 0.01)),
    ("B11", PARTLY, _b11(0.99, 0.5)),
    ("B11", FAILS, _b11(0.2, 0.5)),
    ("B11", OPEN, _b11(None, 0.5)),
    ("C1", HOLDS, _c1(0.1)),
    ("C1", FAILS, _c1(0.3)),
    ("C1", OPEN, _c1(0.2)),
    ("C2", HOLDS, _c2(0.3)),
    ("C2", FAILS, _c2(0.6)),
    ("C2", OPEN, _c2(0.5)),
    ("C3", HOLDS, _c3(1.0)),
    ("C3", FAILS, _c3(0.1)),
    ("C3", FAILS, _c3(1.5)),
    ("C3", OPEN, _c3(1.2)),
    ("C4", HOLDS, _c4(0.1, 0.02)),
    ("C4", PARTLY, _c4(0.5, 0.02)),
    ("C4", FAILS, _c4(0.5, 0.4)),
    ("C4", OPEN, _c4(0.2, 0.02)),
    ("C5", HOLDS, _c5(1.0)),
    ("C5", FAILS, _c5(2.0)),
    ("C5", OPEN, _c5(1.09, 0.05)),
    ("D1", HOLDS, _d1(lambda count: 10 * MIB + 2 * MIB * count)),
    ("D1", PARTLY, _d1(lambda count: 10 * MIB + PICTURE_BYTES * count)),
    ("D1", FAILS, _d1(lambda _: 40 * MIB)),
    ("D1", OPEN, _d1(lambda count: 10 * MIB + 2000 * count**2)),
    ("D2", HOLDS, _d2(lambda _: 40 * MIB)),
    ("D2", FAILS, _d2(lambda count: 10 * MIB + PICTURE_BYTES * count)),
    ("D2", OPEN, _d2(lambda count: 10 * MIB + 2000 * count**2)),
    ("D3", HOLDS, _d3(lambda count: 40 * MIB + min(count, 132) * PICTURE_BYTES)),
    ("D3", FAILS, _d3(lambda count: 40 * MIB + count * PICTURE_BYTES)),
    ("D3", HOLDS, _d3(lambda count: 40 * MIB + (132 + (count > 160) * 32) * PICTURE_BYTES)),
    ("D3", OPEN, _d3(lambda count: 40 * MIB + min(count, 208) * PICTURE_BYTES)),
    ("D3", OPEN, _d3(lambda _: 40 * MIB, peak_slow=None)),
    ("D4", HOLDS, _d4(lambda count: 80 * MIB + min(count, SHORT) * PICTURE_BYTES)),
    ("D4", HOLDS, _d4(lambda _: 80 * MIB)),
    ("D4", FAILS, _d4(lambda count: 80 * MIB + count * PICTURE_BYTES)),
    ("D4", OPEN, _d4(lambda count: 80 * MIB + count * PICTURE_BYTES, peak_slow=None)),
    ("D4", OPEN, _holding(QUEUED, _d4(lambda _: 80 * MIB))),  # more than wait for the consumer
    ("D5", HOLDS, _d5(0.001)),
    ("D5", HOLDS, _d5(0.08)),
    ("D5", FAILS, _d5(0.12)),
    ("D5", FAILS, _d5(0.5, spread=0.2)),
    ("D5", OPEN, _d5(0.1, spread=0.5)),
    ("D5", FAILS, _d5(0.001, 0.3)),
    ("D5", FAILS, _d5(0.3, 0.001)),
    ("D5", OPEN, _d5(0.001)[:1]),
    ("D5", OPEN, [*_d5(0.001)[1:], _comparison("batching", [_row("batching", "tfdata_paths_2")])]),
    ("D5", HOLDS, _d5(0.001, untuned=1)),
    ("D6", HOLDS, _d6(0.7)),
    ("D6", PARTLY, _d6(0.97, 0.002)),
    ("D6", FAILS, _d6(1.2)),
    ("D6", OPEN, _d6(0.95, 0.2)),
    ("E1", HOLDS, _e1(2.5)),
    ("E1", FAILS, _e1(1.5)),
    ("E1", OPEN, _e1(2.02, 0.1)),
    ("E2", HOLDS, _e2(3)),
    ("E2", FAILS, _e2(2)),
    ("E2", OPEN, _e2(2.71, 0.1)),
    ("E2", OPEN, _e(cores=8, torch_dataloader_2=3, turboloader=1)),
    ("E3", HOLDS, _e3(2)),
    ("E3", FAILS, _e3(1.2)),
    ("E3", OPEN, _e3(1.75, 0.1)),
    ("E4", HOLDS, _e4(0.5)),
    ("E4", PARTLY, _e4(0.8)),
    ("E4", FAILS, _e4(1.2)),
    ("E4", OPEN, _e4(0.63, 0.1)),
    ("E5", HOLDS, _e5(0.5)),
    ("E5", PARTLY, _e5(0.97, 0.002)),
    ("E5", FAILS, _e5(1.2)),
    ("E5", OPEN, _e5(0.95, 0.2)),
    *(("K1", verdict, _known("from_generator", "steps", growth)) for growth, verdict in LEAKS.items()),
    *(("K2", verdict, _known("py_function", "steps", growth)) for growth, verdict in LEAKS.items()),
    *(("K3", verdict, _known("shuffle_buffer", "sizes", growth)) for growth, verdict in LEAKS.items()),
    ("K1", OPEN, _known("from_generator", "steps", control=False)),
    ("K1", OPEN, _known("from_generator", "steps", "growing", of_control="growing, in use")),
    ("K4", HOLDS, _k4(180)),
    ("K4", FAILS, _k4(1)),
    ("K4", OPEN, _k4(18, 0.2)),
    ("K5", HOLDS, _k5(48)),
    ("K5", FAILS, _k5(6)),
    ("K5", OPEN, _k5(24, 0.1)),
    ("K5", OPEN, _k5(48, rounds=1)),
    ("K5", OPEN, _k5(6, pictures=192)),
    ("K6", HOLDS, _k6("timed out in 1: after 600 s", ROUNDS - 1)),
    ("K6", HOLDS, _k6("timed out: after 600 s", 0)),
    ("K6", FAILS, _k6("ok", ROUNDS)),
    ("K6", FAILS, _k6("failed in 1 of 6: TimeoutError: timed out", ROUNDS - 1)),
    ("K6", FAILS, _k6("failed in 1 of 6: RuntimeError: lost; timed out after 60 s", ROUNDS - 1)),
    ("K6", OPEN, _k6("ok", 1, 1)),
    ("K6", OPEN, _k6("failed: no keras", 0)),
    ("K7", HOLDS, _k7("growing", "flat")),
    ("K7", PARTLY, _k7("growing", "growing")),
    ("K7", FAILS, _k7("flat", "growing")),
    ("K7", OPEN, _k7("growing", "undecided")),
    ("K8", HOLDS, _k8(8192)),
    ("K8", FAILS, _k8(0)),
    ("K8", OPEN, _k8(0, looks=2)),
    ("K8", OPEN, _k8(None)),
    ("K9", HOLDS, _k9(3)),
    ("K9", FAILS, _k9(1)),
    ("K9", OPEN, _k9(1.11, 0.1)),
]


@pytest.mark.parametrize(
    ("claim", "verdict", "comparisons"), PLANTED, ids=[f"{claim} {verdict}" for claim, verdict, _ in PLANTED]
)
def test_every_rule_comes_out_each_way(claim: str, verdict: str, comparisons: list[Comparison]) -> None:
    found = _ruling(claim, *comparisons)
    assert found.verdict == verdict, found.measured


def test_every_rule_is_shown_to_come_out_either_way() -> None:
    for claim in claims():
        if claim.unasked:
            continue
        ways = {verdict for each, verdict, _ in PLANTED if each == claim.id}
        assert {HOLDS, FAILS, OPEN} <= ways, claim.id


def test_every_claim_of_the_catalogue_is_there_once() -> None:
    expected = (
        [f"A{n}" for n in range(1, 9)]
        + [f"B{n}" for n in range(1, 12)]
        + [f"C{n}" for n in range(1, 6)]
        + [f"D{n}" for n in range(1, 7)]
        + [f"E{n}" for n in range(1, 8)]
        + [f"K{n}" for n in range(1, 10)]
    )
    assert [claim.id for claim in claims()] == expected
    assert all(claim.question in _registry.questions() and claim.rule and claim.text for claim in claims())


def test_without_results_everything_is_undecided_and_says_what_is_missing() -> None:
    for each in judged([]):
        if not each.claim.unasked:
            assert each.verdict == OPEN
            assert "was not run" in each.measured
    assert counted([]) == "Of 37 claims 35 are undecided here, 2 are not asked here"


def test_what_the_setting_cannot_decide_is_not_asked_and_says_why() -> None:
    (dali, litdata) = [each for each in judged([]) if each.claim.unasked]
    assert (dali.claim.id, dali.verdict, dali.measured) == ("E6", "not asked here", "DALI comes with CUDA only")
    assert "object storage" in litdata.measured


def test_a_bug_report_says_where_it_is_and_with_which_version() -> None:
    reports = [each for each in claims() if each.question == "known_issues"]
    assert len(reports) == 9
    for each in reports:
        assert re.fullmatch(r"https://github\.com/[\w-]+/[\w-]+/issues/\d+", each.address)
        assert each.reported
        assert each.package in machine.PACKAGES
    assert not any(each.issue or each.address for each in claims() if each not in reports)


def test_epochs_that_all_end_say_how_many_may_hang() -> None:
    assert "all of 24 epochs ended, so that less than 12 % of them hang" in _ruling("K6", *_k6("ok", 6)).measured


def test_nothing_rests_on_an_older_instrument() -> None:
    older = msgspec.structs.replace(_c1(0.1)[0], schema=1)
    found = _ruling("C1", older)
    assert found.verdict == OPEN
    assert "older instrument" in found.measured


def test_a_strategy_that_failed_decides_nothing_and_is_named() -> None:
    failed = msgspec.structs.replace(_row("record_format", "serialize_tensor"), samples=0, status="over budget: 9 GiB")
    found = _ruling("B4", _comparison("record_format", [failed]))
    assert found.verdict == OPEN
    assert "serialize_tensor: over budget: 9 GiB" in found.measured


def test_a_single_round_decides_nothing_and_says_so() -> None:
    rows = [
        _row("selection", name, peak=peak * MIB, rounds=1)
        for name, peak in (("list_to_list", 9), ("numpy_to_list", 900))
    ]
    found = _ruling("C1", _comparison("selection", rows))
    assert found.verdict == OPEN
    assert found.measured.endswith("a single round decides nothing")


def test_the_undecided_say_how_many_rounds_would_decide() -> None:
    said = _ruling("C5", *_c5(1.05, 0.1)).measured
    needed = int(said.rpartition("; ")[2].removesuffix(f" rounds would decide, of which {ROUNDS} are there"))
    assert ROUNDS < needed < 1000
    assert _ruling("C5", *_c5(1.05, 0.1 * math.sqrt(ROUNDS / needed) / 2)).verdict == HOLDS


def test_of_several_parts_the_one_that_lacks_most_rounds_is_told() -> None:
    """Rounds count that have both figures: twelve of one ratio, and of another five."""

    def lacking(value: float, rounds: int) -> Part:
        return part_of(Difference(value, 0.1 / math.sqrt(rounds), 20.0, rounds), below())

    parts = [lacking(-0.055, 12), lacking(-0.07, 5)]
    totals = [part.rounds(0.05) or 0 for part in parts]
    assert totals[0] > totals[1]
    assert totals[1] - 5 > totals[0] - 12
    assert settle([parts]) == [(OPEN, f"{totals[1]} rounds would decide, of which 5 are there")]


def test_what_many_claims_show_is_corrected_for_their_number() -> None:
    """A difference that one claim alone would be decided by is undecided among many."""
    alone = [Part(Shown(holds=0.03))]
    never = [Part(Shown(holds=0.9))]
    assert settle([alone]) == [(HOLDS, "")]
    assert [verdict for verdict, _ in settle([alone, *[never] * 10])] == [OPEN] * 11
    assert next(verdict for verdict, _ in settle([[Part(Shown(fails=0.001))], *[never] * 10])) == FAILS


def test_what_holds_and_fails_elsewhere_holds_in_part_whatever_is_undecided() -> None:
    so, not_so, unknown = Part(Shown(holds=1e-6)), Part(Shown(fails=1e-6)), Part(Shown(0.5, 0.5))
    assert settle([[so, not_so, unknown]]) == [(PARTLY, "")]
    assert [verdict for verdict, _ in settle([[so, unknown], [not_so, unknown], [unknown]])] == [OPEN] * 3
    weak = Part(Shown(holds=0.03))
    assert [verdict for verdict, _ in settle([[weak, not_so, unknown]])] == [OPEN]  # picked from three


def test_a_part_that_differs_by_less_than_matters_holds_and_is_no_part_that_fails() -> None:
    slight = part_of(Difference(math.log(1.02), 0.003, 20.0, 21), unchanged(1.05))
    assert max(slight.shown.holds, slight.shown.fails) < 1e-5
    unknown = Part(Shown(0.5, 0.5))
    ((verdict, needed),) = settle([[slight, *[unknown] * 5]], among=30)
    assert (verdict, needed.startswith(NOT_WHOLE)) == (OPEN, False)
    for parts in ([slight, unknown], [slight, slight, unknown]):
        beside = settle([parts, [Part(Shown(holds=0.03))]])
        assert [verdict for verdict, _ in beside] == [OPEN, OPEN], "nor does it leave more to the other claims"
    assert settle([[slight, slight]]) == [(HOLDS, "")]
    ((verdict, _),) = settle([[slight, slight, unknown]])
    assert verdict == OPEN
    not_so = part_of(Difference(math.log(1.2), 0.003, 20.0, 21), unchanged(1.05))
    assert settle([[slight, not_so, unknown]]) == [(PARTLY, "")]
    little = part_of(Difference(math.log(0.97), 0.003, 20.0, 21), gain(1.1))
    for others in ([unknown], [not_so, unknown], [little, unknown]):
        assert settle([[little, *others]]) == [(PARTLY, "")], "a gain that is smaller than claimed holds in part"


def test_of_two_conditions_the_less_sure_one_says_how_many_rounds_a_claim_needs() -> None:
    """While both seem to hold; what one alone refutes is corrected for there being two."""

    def part(value: float, rounds: int = 8) -> Part:
        return part_of(Difference(value, 0.1 / math.sqrt(rounds), rounds - 1.0, rounds), below())

    sure, open_, wrong = part(-1.0), part(-0.03), part(0.05)
    assert sure.rounds(0.05) == 0
    found = both_of(sure, open_)
    assert found.rounds(0.05) == open_.rounds(0.05)
    assert (open_.rounds(0.05) or 0) > 8
    refuted = both_of(sure, wrong)
    assert (refuted.rounds(0.05) or 0) > (wrong.rounds(0.05) or 0)
    assert both_of(sure, part(-1.1)).rounds(0.05) == both_of(sure, part(1.0)).rounds(0.05) == 0


def test_what_fails_of_an_open_claim_is_said() -> None:
    """It cannot hold as a whole; whether it does in part is another matter."""
    not_so, weakly, unknown = Part(Shown(fails=1e-6)), Part(Shown(fails=0.03)), Part(Shown(0.5, 0.5))
    said = [needed for _, needed in settle([[not_so, unknown], [weakly, unknown], [unknown]])]
    assert [each.startswith(NOT_WHOLE) for each in said] == [True, False, False]
    assert "rounds" in said[0]
    ((verdict, needed),) = settle([[Part(light(0.62, 1.0)(Difference(0.0, 0.02, 10, 11)))]])
    assert (verdict, needed.startswith(NOT_WHOLE)) == (OPEN, True), "more than 0.62, and perhaps more than 1"
    ((verdict, needed),) = settle([[weakly, unknown]])
    assert (verdict, needed.startswith(NOT_WHOLE)) == (OPEN, False), "0.06, as it was picked from two"


def test_a_claim_on_two_questions_names_the_machine_of_the_other() -> None:
    """Machines are never joined in a ratio; a claim may rest on several ratios."""
    mapped, loaders = _a5(0.7, 0.8)
    assert "figures of" not in _ruling("A5", mapped, loaders).measured
    elsewhere = msgspec.structs.replace(loaders, environment=Environment(memory=8 * GIB, machine="elsewhere"))
    found = _ruling("A5", mapped, elsewhere)
    assert (found.verdict, found.measured.rpartition("; ")[2]) == (HOLDS, "figures of batching on elsewhere")


def test_false_verdicts_are_rare_among_all_claims_of_a_page() -> None:
    """Thirty claims at their bound, eight strategies a case, six rounds: in at most 5 % of pages any is decided."""
    random = np.random.default_rng(1)
    wrong = 0
    for _ in range(200):
        parts = []
        for _ in range(15):
            logs = random.normal(0, 0.1, (8, ROUNDS))
            fit = fitted({str(name): dict(enumerate(np.exp(values))) for name, values in enumerate(logs)})
            parts += [
                [part_of(each, below())] for one in ("0", "2") if (each := fit.difference(one, str(int(one) + 1)))
            ]
        wrong += any(verdict != OPEN for verdict, _ in settle(parts))
    assert wrong / 200 < 0.05 + 2 * math.sqrt(0.05 * 0.95 / 200)


def test_parts_make_a_whole() -> None:
    assert all_of("holds", "holds") == HOLDS
    assert all_of("holds", "does not hold") == PARTLY
    assert all_of("does not hold", "does not hold") == FAILS
    assert all_of("holds in part", "does not hold") == PARTLY
    assert all_of("holds", "undecided here") == OPEN
    assert all_of() == OPEN


ratios = st.floats(0.1, 10)
errors = st.floats(0.001, 0.5)


@given(ratios, errors, st.floats(1, 100))
def test_a_test_and_its_opposite_mirror_each_other(ratio: float, error: float, degrees: float) -> None:
    found, turned = Difference(math.log(ratio), error, degrees, 6), Difference(-math.log(ratio), error, degrees, 6)
    assert above()(found).holds == pytest.approx(below()(turned).holds)
    assert opposite(below(2))(found).fails == below(2)(found).holds
    for test in (below(), above(), gain(1.1), unchanged(1.1), light(1.05, 1.25), within(0.8, 1.2)):
        shown = test(found)
        assert all(0 <= p <= 1 for p in (shown.holds, shown.fails, shown.partly))
        assert shown.at(0.0499) != HOLDS or shown.holds < 0.05


@given(ratios, errors)
def test_a_gain_is_decided_as_the_judge_decides(ratio: float, error: float) -> None:
    found = Difference(math.log(ratio), error, 20, 6)
    low, high = found.interval()
    verdict = gain(1.1)(found).at(0.05)
    assert (verdict in (HOLDS, PARTLY)) == (high < 1)
    assert (verdict == PARTLY) == (high < 1 and found.interval(0.9)[0] > 1 / 1.1)
    assert low < high


def test_more_rounds_decide_what_is_off_the_bound_and_never_what_is_on_it() -> None:
    assert part_of(Difference(math.log(1.5), 0.3, 10, 6), above()).rounds(0.05) in range(7, 20)
    assert part_of(Difference(0.0, 0.3, 10, 6), above()).rounds(0.05) is None
    assert part_of(Difference(math.log(1.5), 0.01, 10, 6), above()).rounds(0.05) == 0
    assert Part(Shown()).rounds(0.05) is None


@given(st.floats(-100, 100), st.floats(0.01, 10), st.integers(2, 12), st.floats(-100, 100))
def test_an_estimate_is_tested_as_its_interval_says(value: float, half: float, count: int, bound: float) -> None:
    found = less_than(Estimate(value, value - half, value + half, count), bound)
    decided = above()(found).at(0.05)
    assert (decided == HOLDS) == (value - half > bound) or abs(value - half - bound) < 1e-6
    assert (decided == FAILS) == (value + half < bound) or abs(value + half - bound) < 1e-6


def test_trials_that_contradict_each_other_show_nothing() -> None:
    assert of_trials("flat", 3, ["flat"]).holds == pytest.approx(1e-6)
    assert of_trials("growing", 3, ["flat"]).fails == pytest.approx(1e-6)
    assert of_trials("flat in 2; undecided in 1", 3, ["flat"]).holds == pytest.approx(3 * 0.01**2 * 0.99 + 0.01**3)
    assert of_trials("flat in 2; undecided in 6", 8, ["flat"]).holds == pytest.approx(0.0027, rel=0.01), "of eight"
    assert of_trials("flat in 2; growing in 1", 3, ["flat"]) == Shown()
    assert of_trials("flat in 2", 8, ["flat"], most=True) == Shown(), "of the other six nothing is known"
    assert of_trials("flat in 5", 8, ["flat"], most=True).holds < 1e-6
    assert of_trials("flat in 2; plateau in 1", 3, ["flat"], ["plateau"]).partly == pytest.approx(1e-6)
    assert of_trials(None, 3, ["flat"]) == of_trials("undecided", 3, ["flat"]) == Shown()


def test_sentences_carry_the_figures() -> None:
    assert "over 10 times what takes less than 54.6 KiB a picture as JPEG" in _ruling("B4", *_b4(10.8, 15, 25)).measured
    (own,) = _b4(10.8, 15, 25)
    own = msgspec.structs.replace(own, data="own folder, 9 images, key")
    assert "10.8× what is stored (" in _ruling("B4", own).measured
    said = _ruling("D1", *_d1(lambda count: 10 * MIB + PICTURE_BYTES * count)).measured
    assert said.startswith("load_all is linear: 58")
    assert "with 10,000" in said
    assert "with a slow consumer" in _ruling("D3", *_d3(lambda _: 40 * MIB)).measured


def test_a_part_of_a_case_decides_nothing() -> None:
    rows = _c1(0.1)[0].rows
    once = [msgspec.structs.replace(rows[0], samples=1), rows[1]]
    found = _ruling("C1", _comparison("selection", once))
    assert (found.verdict, found.reached) == (OPEN, False), "one was measured once only"
    assert found.measured.endswith("a single round decides nothing")
    one_shared = [msgspec.structs.replace(rows[0], peaks={0: rows[0].peaks[0]}), rows[1]]
    assert not _ruling("C1", _comparison("selection", one_shared)).reached
    found = _ruling("C1", _comparison("selection", rows[:1]))
    assert (found.verdict, found.reached) == (OPEN, False)
    assert found.measured == "selection numpy_to_list was not run"
    assert _ruling("C1", *_c1(0.1)).reached
    assert _ruling("C1", *_c1(0.2)).reached, "undecided by its figures, not by what is missing"


def test_one_single_round_leaves_the_other_claims_alone() -> None:
    rows = {row.strategy: row for row in [*_c1(0.1)[0].rows, *_c5(1.0)[0].rows]}
    rows["numpy_to_list"] = msgspec.structs.replace(rows["numpy_to_list"], samples=1)
    measured = _comparison("selection", list(rows.values()))
    assert _ruling("C1", measured).verdict == OPEN
    assert _ruling("C5", measured).verdict == HOLDS, "it comes later, and needs other strategies"


def test_a_law_of_too_few_amounts_or_of_one_round_decides_nothing() -> None:
    measured = _d1(lambda count: 10 * MIB + 2 * MIB * count)[0]
    (laws,) = measured.laws
    names = ("load_all", "load_all_from_tensor_slices")

    def with_law(amounts: tuple[int, ...], rounds: int) -> Ruling:
        points = {count: {index: count * 2.0 * MIB + index for index in range(rounds)} for count in amounts}
        few = msgspec.structs.replace(laws, laws=dict.fromkeys(names, law(points)))
        return _ruling("D1", msgspec.structs.replace(measured, laws=[few]))

    assert with_law((40, 160, 640), 6).reached
    assert not with_law((40, 160), 6).reached
    assert "only 2 amounts" in with_law((40, 160), 6).measured
    assert not with_law((40, 160, 640), 1).reached


@pytest.mark.parametrize(("claim", "comparisons"), [(claim, made) for claim, way, made in PLANTED if way == OPEN])
def test_every_undecided_claim_says_what_it_needs(claim: str, comparisons: list[Comparison]) -> None:
    found = _ruling(claim, *comparisons)
    said = found.measured.rpartition("; ")[2]
    said = said.removeprefix(f"{NOT_WHOLE}: ")
    needs = re.fullmatch(
        r"\d+ rounds would decide, of which \d+ are there|it needs more than 24 rounds, if rounds can decide it", said
    )
    assert needs if found.reached else not needs


def test_growth_pairs_no_fresh_and_forked_trials() -> None:
    def grown(forked: list[int]) -> Difference:
        rows = _loading(["path_generator"], lambda count: count * MIB)[0].rows
        few, many = (next(row for row in rows if row.case["data"] == data) for data in ("x4", "x16"))
        measured = _comparison("batching", [few, msgspec.structs.replace(many, forked=forked)])
        return Figures([measured]).growth_with("batching", "path_generator", "needs", "data", "x4", "x16")

    assert grown([]).rounds == ROUNDS
    assert grown([0, 1]).rounds == ROUNDS - 2
    with pytest.raises(NotMeasuredError, match="no round has both"):
        grown(list(range(ROUNDS)))


def test_of_less_than_the_instrument_resolves_no_gain_is_shown() -> None:
    """However small the spread."""

    def shown(peak: float) -> Shown:
        rows = [
            _row("resize", name, {"scale": "0.5"}, peak=each * MIB, spread=0.001)
            for name, each in (("skimage_resize_ubyte", 8.0), ("skimage_resize_astype", peak))
        ]
        names = ("skimage_resize_astype", "skimage_resize_ubyte")
        return leaner(Figures([_comparison("resize", rows)]), "resize", *names, scale="0.5")[0].shown

    assert shown(6.5).holds < 0.001
    close = shown(7.6)
    assert close.fails < 0.001, "it is no gain that matters"
    assert (close.holds, close.partly) == (1.0, 1.0)


def test_the_surest_of_several_that_fail_is_corrected_for_their_number() -> None:
    found = both(Shown(holds=0.5, fails=0.01), Shown(holds=0.2, fails=0.9), Shown(fails=0.02))
    assert (found.holds, found.fails) == (1.0, pytest.approx(0.03))


def test_no_number_of_rounds_is_named_for_a_prediction() -> None:
    """Its interval holds a single trial and a fixed share: it does not end at 0."""
    points = {each: _sampled(each * MIB, str(each), 0.002) for each in (40, 160, 640)}
    part, said = at_readers_amount(law(points), 9_900 * MIB)
    assert "with 10,000" in said
    assert part.difference is not None
    assert part_of(part.difference, above()).rounds(0.001), "as a mean it would have one"
    assert part.rounds(0.001) is None


def test_no_verdict_rests_on_a_strategy_that_was_seen_to_deliver_wrong_data() -> None:
    """Most of its other trials are not checked; that it ends in another way may be what a claim is about."""
    laws = _laws("batching", {"load_all": lambda count: 10 * MIB + PICTURE_BYTES * count})
    for ended, may in (("wrong_output", False), ("over_budget", True)):
        rows = [
            _row("batching", "load_all", ends={ended: 1}, status="wrong output in 1 of 6"),
            _row("batching", "path_generator"),
        ]
        found = Figures([_comparison("batching", rows, laws=laws)])
        asked: list[Callable[[], object]] = [
            functools.partial(found.row, "batching", "load_all"),
            functools.partial(found.ratio, "batching", "load_all", "path_generator", "times"),
            functools.partial(found.law, "batching", "load_all"),
        ]
        for each in asked:
            if may:
                assert each()
            else:
                with pytest.raises(NotMeasuredError, match="load_all: wrong output in 1 of 6"):
                    each()
