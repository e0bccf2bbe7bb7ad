"""Charts: declared with Altair, rendered to SVG text, readable without colour. Pure."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import altair as alt
import vl_convert

from loaders._report import findings
from loaders._rows import Comparison, Row
from loaders._stats import Estimate
from loaders._words import amount, duration, estimated

WIDTH = 380
LETTER_WIDTH = 7
ROW_HEIGHT = 22
SMALLEST_MEMORY = 0.1
"""In MiB: the left end of a logarithmic axis of memory; smaller figures are drawn there."""

TIME_METRICS = {"epoch_time": "time of an epoch", "sample_time": "time of a sample"}


def time_chart(comparison: Comparison, rows: Sequence[Row]) -> str:
    """Return the SVG of every strategy's time with its interval."""
    title = findings.of_time(rows)
    axis = f"{TIME_METRICS[comparison.ranked_by]} in ms (log scale)"
    points = [_point(row, rows, row.time, 1e3) for row in rows if row.time]
    said = "; ".join(f"{row.strategy} {estimated(row.time, duration)}" for row in rows if row.time)
    return _svg(_intervals(points, title, axis), f"{title}. {said}")


def memory_chart(rows: Sequence[Row], background: str = "transparent") -> str:
    """Return the SVG of every strategy's peak memory with its interval."""
    title = findings.of_memory(rows)
    points = [_point(row, rows, row.peak, 2**-20, at_least=SMALLEST_MEMORY) for row in rows if row.peak]
    said = "; ".join(f"{row.strategy} {estimated(row.peak, amount)}" for row in rows if row.peak)
    chart = _intervals(points, title, "peak memory above the baseline in MiB (log scale)", background)
    return _svg(chart, f"{title}. {said}")


def _point(row: Row, rows: Sequence[Row], estimate: Estimate, unit: float, at_least: float = 0.0) -> dict[str, Any]:
    low = estimate.value if estimate.low is None else estimate.low
    high = estimate.value if estimate.high is None else estimate.high
    return {
        "strategy": findings.name_of(row, rows),
        "value": max(at_least, estimate.value * unit),
        "low": max(at_least, low * unit),
        "high": max(at_least, high * unit),
        "kind": "baseline" if row.is_baseline else "strategy" if row.samples else "ended early",
    }


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
