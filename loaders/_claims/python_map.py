"""Claims about ``python_map``: ``py_function`` and its parallelism."""

from __future__ import annotations

from loaders._claims._declare import Found, claim
from loaders._claims._evidence import Figures, NotMeasuredError, Part, Shown, above, less_than, part_of
from loaders._claims._figures import NOTICEABLE, faster, joined, leaner, ratio
from loaders._words import amount


@claim("A1", "Memory grows with num_parallel_calls when the consumer is slow.")
def grows_with_calls(figures: Figures) -> Found:
    """Peak at 8 calls over peak at 1, interval above 1.1, for arrays and for scalars."""
    parts, said = joined(
        [
            ratio(figures, "python_map", "py_function_8", "py_function_1", "peaks", above(NOTICEABLE), work=work)
            for work in ("array", "scalar")
        ],
        "array",
        "scalar",
    )
    flight = figures.row("python_map", "py_function_8", work="array")["in_flight"]
    return parts, said + (f"; bodies in flight at 8: {flight.value:.3g}" if flight else "")


@claim("A2", "deterministic=False relieves memory.")
def order_costs_memory(figures: Figures) -> Found:
    """Peak without over peak with order, interval below 1, at 4 and at 8 calls."""
    return joined(
        [
            leaner(figures, "python_map", f"{name}_nondeterministic", name, work="array")
            for name in ("py_function_4", "py_function_8")
        ]
    )


@claim("A3", "Four workers and a modest prefetch tame it.")
def four_workers_and_a_modest_prefetch(figures: Figures) -> Found:
    """Peak of 4 calls over that of 8, and peak of 4 with prefetch 2 over that of 4 without, intervals below 1."""
    return joined(
        [
            leaner(figures, "python_map", "py_function_4", "py_function_8", work="array"),
            leaner(figures, "python_map", "py_function_4_prefetch_2", "py_function_4", work="array"),
        ],
        "four workers",
        "a modest prefetch",
    )


@claim("A4", "A prefetch of 2 or 3 beats AUTOTUNE on memory.")
def small_prefetch_against_autotune(figures: Figures) -> Found:
    """Peak with prefetch 2 over that with AUTOTUNE, interval below 1."""
    two, auto = "py_function_4_prefetch_2", "py_function_4_prefetch_autotune"
    return joined([leaner(figures, "python_map", two, auto, work="array")])


@claim("A5", "Native operations beat py_function.")
def native_beats_python(figures: Figures) -> Found:
    """Time of native over py_function at 4 calls, and of a native loader over that by numpy_function, intervals below
    1; in part where it is less than 10 % faster.
    """
    return joined(
        [
            faster(figures, "python_map", "native_4", "py_function_4", work="decode"),
            faster(figures, "batching", "tfdata_paths_autotune", "tfdata_numpy_function"),
        ],
        "one map",
        "a whole loader",
    )


@claim("A6", "Outputs pile up as Python objects.")
def outputs_pile_up(figures: Figures) -> Found:
    """Elements wait; in part where malloc's statistics show that it holds them, as buffers of tensors and arrays."""
    row = figures.row("python_map", "py_function_8", work="array")
    if not row["waiting"] or not row["waiting_bytes"] or not row.trace or not row.trace.in_use:
        raise NotMeasuredError("what waits was not measured")
    booked = max(row.trace.in_use)
    said = f"{row['waiting'].value:.3g} elements wait at the most, {amount(row['waiting_bytes'].value)}"
    part = part_of(less_than(row["waiting"], 1), above())
    if row["waiting"].value < 1 or booked <= row["waiting_bytes"].value / 2:
        return [part], said
    buffers = Part(Shown(fails=part.shown.fails, partly=part.shown.holds))
    return [buffers], f"{said}; they pile up, as buffers of tensors or arrays: malloc has {amount(booked)} in use"
