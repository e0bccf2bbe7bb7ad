"""Charts: declared with Altair, rendered to SVG text, readable without colour. Pure."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import altair as alt
import vl_convert

from loaders._rows import Comparison, Row
from loaders._stats import Estimate
from loaders._words import amount, duration, estimated, factor

WIDTH = 380
LETTER_WIDTH = 7
ROW_HEIGHT = 22
SMALLEST_MEMORY = 0.1
"""In MiB: the left end of a logarithmic axis of memory; smaller figures are drawn there."""

TIME_METRICS = {"epoch_time": "time of an epoch", "sample_time": "time of a sample"}


def time_chart(comparison: Comparison, rows: Sequence[Row]) -> str:
    """Return the SVG of every strategy's time with its interval."""
    title = _finding_of_time(rows)
    axis = f"{TIME_METRICS[comparison.ranked_by]} in ms (log scale)"
    points = [_point(row, rows, row.time, 1e3) for row in rows if row.time]
    said = "; ".join(f"{row.strategy} {estimated(row.time, duration)}" for row in rows if row.time)
    return _svg(_intervals(points, title, axis), f"{title}. {said}")


def memory_chart(rows: Sequence[Row], background: str = "transparent") -> str:
    """Return the SVG of every strategy's peak memory with its interval."""
    title = _finding_of_memory(rows)
    points = [_point(row, rows, row.peak, 2**-20, at_least=SMALLEST_MEMORY) for row in rows if row.peak]
    said = "; ".join(f"{row.strategy} {estimated(row.peak, amount)}" for row in rows if row.peak)
    chart = _intervals(points, title, "peak memory above the baseline in MiB (log scale)", background)
    return _svg(chart, f"{title}. {said}")


def _name(row: Row, rows: Sequence[Row]) -> str:
    """Return a strategy's name, with its tier where there are several: they do not deliver the same."""
    return f"{row.strategy} ({row.tier})" if len({each.tier for each in rows}) > 1 else row.strategy


def _point(row: Row, rows: Sequence[Row], estimate: Estimate, unit: float, at_least: float = 0.0) -> dict[str, Any]:
    low = estimate.value if estimate.low is None else estimate.low
    high = estimate.value if estimate.high is None else estimate.high
    return {
        "strategy": _name(row, rows),
        "value": max(at_least, estimate.value * unit),
        "low": max(at_least, low * unit),
        "high": max(at_least, high * unit),
        "kind": "baseline" if row.is_baseline else "strategy" if row.samples else "ended early",
    }


def _finding_of_time(rows: Sequence[Row]) -> str:
    """Say which strategy is fastest, and by how much, if the intervals allow."""
    timed = [row for row in rows if row.time]
    if not timed:
        return "No strategy was timed"
    best = timed[0]
    if best.is_baseline:
        return f"{best.strategy}, the baseline, is fastest"
    baseline = next((row.strategy for row in rows if row.is_baseline), "the baseline")
    if best.ratio is None or best.ratio.low is None:
        return f"{_name(best, rows)} was fastest, but a single sample shows no difference"
    if not best.ratio.differs_from_one:
        return f"No difference in time between {best.strategy} and {baseline}"
    return f"{_name(best, rows)} is fastest: {factor(1 / best.ratio.value)} faster than {baseline}"


def _finding_of_memory(rows: Sequence[Row]) -> str:
    measured = sorted((row for row in rows if row.peak), key=lambda row: row.peak.value if row.peak else 0.0)
    if not measured or measured[0].peak is None or measured[-1].peak is None:
        return "No strategy's memory was measured"
    least, most = measured[0], measured[-1]
    low, high = amount(measured[0].peak.value), amount(measured[-1].peak.value)
    return f"From {low} ({least.strategy}) to {high} ({most.strategy})"


def _intervals(points: list[dict[str, Any]], title: str, axis: str, background: str = "transparent") -> dict[str, Any]:
    """Declare a chart: one line a strategy, a mark for the estimate, a rule for its interval."""
    order = [point["strategy"] for point in points]
    kinds = ["baseline", "strategy", "ended early"]
    # The browser's font may be wider than the one that the labels are laid out with here.
    axis_of_names = alt.Axis(
        labelLimit=340, ticks=False, domain=False, minExtent=LETTER_WIDTH * max(map(len, order), default=0)
    )
    base = alt.Chart(_data(points)).encode(y=alt.Y("strategy:N", sort=order, title=None, axis=axis_of_names))
    scale = alt.Scale(type="log", nice=False, padding=12)
    ranges = base.mark_rule(strokeWidth=2, color="#444").encode(x=alt.X("low:Q", scale=scale, title=axis), x2="high:Q")
    marks = base.mark_point(size=90, filled=True, opacity=1, stroke="#222").encode(
        x="value:Q",
        shape=alt.Shape(
            "kind:N", scale=alt.Scale(domain=kinds, range=["diamond", "circle", "triangle-right"]), legend=None
        ),
        color=alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=["#b45309", "#1d4ed8", "#7f1d1d"]), legend=None),
    )
    reference = (
        alt.Chart(_data([point for point in points if point["kind"] == "baseline"]))
        .mark_rule(strokeDash=[4, 4], color="#b45309")
        .encode(x="value:Q")
    )
    chart = (
        (reference + ranges + marks)
        .properties(
            width=WIDTH,
            height=ROW_HEIGHT * max(1, len(points)),
            title=alt.TitleParams(title, anchor="start", fontSize=13, limit=WIDTH + 200, frame="bounds"),
        )
        .configure(background=background, font="system-ui, sans-serif")
        .configure_axis(labelFontSize=11, titleFontSize=11, gridColor="#ddd")
        .configure_view(stroke=None)
    )
    declared: dict[str, Any] = chart.to_dict()
    return declared


def _data(points: list[dict[str, Any]]) -> alt.Data:
    return alt.Data(values=points)  # type: ignore[no-untyped-call] # generated from Vega-Lite's schema


def _svg(chart: dict[str, Any], description: str) -> str:
    """Render to SVG text that carries its own description for those who cannot see it."""
    svg: str = vl_convert.vegalite_to_svg(chart)
    label = html.escape(description, quote=True)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
