"""Every figure of a row, in the order of the CSV file: those that a trial measures, and those that follow from several.

A trial's figures are declared on ``Metrics``; one that is not named here comes last.
"""

from __future__ import annotations

from loaders._figures import Figure, Unit, declared
from loaders._trial.metrics import Metrics

MEASURED = {figure.name: figure for figure in declared(Metrics).values() if figure.name}
"""The figures that are estimated over a strategy's own trials, by name."""

EPOCHS = 20
"""The number of epochs in a strategy's total unless stated otherwise: a short training run."""


def _ratio(name: str, unit: Unit, meaning: str) -> Figure:
    return Figure(name, unit, meaning, scale="ratio", judged=True)


_ORDER: tuple[Figure | str, ...] = (
    Figure("time", "s", "The metric that ranks the case.", scale="ratio"),
    *("start", "steady", "closing", "epoch"),
    Figure("total", "s", f"{EPOCHS} epochs, including the conversion.", f"{EPOCHS} epochs", scale="ratio"),
    _ratio("ratio", "times the baseline", "``time`` over the baseline's; none for the baseline itself."),
    _ratio(
        "best",
        "times the fastest",
        "``time`` over that of the case's fastest, without what ``is_apart`` and what failed; none for itself.",
    ),
    _ratio("total_best", "times the fastest in total", "The same for ``total``."),
    _ratio("pair", "times the strategy it matches", "``time`` over that of the strategy that it ``matches``."),
    *("throughput", "first_batch", "wait", "cpu", "peak", "peak_slow", "needed", "anonymous", "file"),
    _ratio(
        "peak_ratio", "times the baseline", "``peak`` over the baseline's; none if only one is below the resolution."
    ),
    Figure("over_floor", "times the floor", "``peak`` over the row's ``floor``.", "peak ÷ floor"),
    *("retained", "peak_tree", "held"),
    Figure("held_first", "bytes", "The memory that one process holds after the first step."),
    Figure("level", "bytes", "The memory held in the tail of the trace."),
    Figure("level_held", "bytes", "How much of ``level`` was freed but is kept by malloc."),
    *("convert_time", "convert_memory", "disk"),
    Figure(
        "saved",
        "s",
        "What an epoch saves over the baseline, or over the fastest without conversion.",
        "the conversion pays off",
    ),
    *("in_flight", "waiting", "waiting_bytes"),
)

_ARRANGED = [MEASURED[each] if isinstance(each, str) else each for each in _ORDER]

FIGURES = {figure.name: figure for figure in (*_ARRANGED, *MEASURED.values())}
