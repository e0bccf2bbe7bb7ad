"""Charts: declared with Altair, rendered to SVG text, readable without colour. Pure."""

from __future__ import annotations

import base64
import html
import textwrap
from collections.abc import Sequence
from typing import Any

import altair as alt
import vl_convert

from loaders._report import findings
from loaders._rows import Comparison, Row
from loaders._stats import Estimate
from loaders._words import amount, duration, estimated, level, most, ordered, small_amount

WIDTH = 380
LETTER_WIDTH = 7
ROW_HEIGHT = 22
PANEL_WIDTH, PANEL_HEIGHT, COLUMNS = 230, 120, 3
TITLE, WIDE_TITLE = 66, 104
"""Letters in a line of a title."""

SERIES_COLOURS = ["#1d4ed8", "#b45309", "#15803d"]
MIB = 2**20
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


def tradeoff_chart(rows: Sequence[Row]) -> str:
    """Return the SVG of time against peak memory, with the strategies marked that no other beats in both."""
    best = [row.strategy for row in findings.frontier(rows)]
    points = [
        {
            "strategy": findings.name_of(row, rows),
            "time": row.time.value * 1e3,
            "memory": max(SMALLEST_MEMORY, row.peak.value / MIB),
            "kind": "best trade-off" if row.strategy in best else "beaten in both",
        }
        for row in rows
        if row.time and row.peak
    ]
    title = f"Best trade-offs of time and memory, from left to right: {', '.join(best)}"
    kinds = ["best trade-off", "beaten in both"]
    base = alt.Chart(_data(points)).encode(
        x=alt.X("time:Q", scale=alt.Scale(type="log", nice=False, padding=20), title="time in ms (log scale)"),
        y=alt.Y(
            "memory:Q",
            scale=alt.Scale(type="log", nice=False, padding=20),
            title="peak memory above the baseline in MiB (log scale)",
        ),
    )
    marks = base.mark_point(size=80, filled=True, opacity=1, stroke="#222").encode(
        shape=alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=["diamond", "circle"]), title=None),
        color=alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=["#15803d", "#9ca3af"]), title=None),
    )
    declared: dict[str, Any] = (
        marks.properties(width=WIDTH + 100, height=260, title=_titled(title))
        .configure(background="transparent", font="system-ui, sans-serif")
        .configure_axis(labelFontSize=11, titleFontSize=11, gridColor="#ddd")
        .configure_legend(orient="top")
        .to_dict()
    )
    return _svg(declared, title)


def memory_chart(rows: Sequence[Row], background: str = "transparent") -> str:
    """Return the SVG of every strategy's peak memory with its interval."""
    title = findings.of_memory(rows)
    points = [_point(row, rows, row.peak, 2**-20, at_least=SMALLEST_MEMORY) for row in rows if row.peak]
    said = "; ".join(f"{row.strategy} {estimated(row.peak, amount)}" for row in rows if row.peak)
    chart = _intervals(points, title, "peak memory above the baseline in MiB (log scale)", background)
    return _svg(chart, f"{title}. {said}")


def steps_chart(rows: Sequence[Row]) -> str:
    """Return the SVG of memory over the batches: a panel a strategy, what is in use and what malloc holds apart."""
    panels = [row for row in rows if row.trace]
    kinds = ["resident", "in use", "held by the allocator"]
    points = []
    for row in panels:
        assert row.trace  # noqa: S101 - for the type checker: asked above
        for kind, values in zip(kinds, (row.trace.resident, row.trace.in_use, row.trace.held), strict=True):
            points += [
                {
                    "strategy": row.strategy,
                    "kind": kind,
                    "step": step,
                    "value": value / MIB,
                    "floor": row.floor / MIB if row.floor else None,
                }
                for step, value in zip(row.trace.step, values or (), strict=False)
            ]
    title = findings.of_growth(rows).partition(". ")[0] or "Memory over the batches"
    base = alt.Chart().encode(x=alt.X("step:Q", title="batches"), y=alt.Y("value:Q", title="MiB above the baseline"))
    lines = base.mark_line(strokeWidth=1.5).encode(
        color=alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=["#222", "#1d4ed8", "#b45309"]), title=None),
        strokeDash=alt.StrokeDash("kind:N", scale=alt.Scale(domain=kinds, range=[[1, 0], [6, 3], [2, 2]]), title=None),
    )
    floor = alt.Chart().mark_rule(color="#15803d").encode(y="mean(floor):Q")
    chart = _panels(alt.layer(lines, floor, data=_data(points)), [row.strategy for row in panels], title)
    said = "; ".join(f"{row.strategy} {level(row.growth, row.level, row.level_held)}" for row in panels)
    return _svg(chart, f"{title}. The green line is what the buffers need. {said}")


def sweep_chart(rows: Sequence[Row], axis: str, time_axis: str) -> str:
    """Return the SVG of time, peak memory and what really ran, over what the series differ in."""
    swept = [row for row in rows if row.series and row.samples]
    places = list(dict.fromkeys(row.at for row in sorted(swept, key=lambda row: (len(row.at), row.at))))
    panels = [
        (time_axis, [_swept(row, row.time, 1e3) for row in swept if row.time]),
        ("peak memory above the baseline in MiB", [_swept(row, row.peak, 1 / MIB) for row in swept if row.peak]),
        ("bodies in flight, at the most", [_swept(row, row.in_flight, 1) for row in swept if row.in_flight]),
    ]
    series = list(dict.fromkeys(row.series for row in swept))
    charts = []
    for title, points in panels:
        if not points:
            continue
        x = alt.X("at:N", sort=places, title=axis, axis=alt.Axis(labelAngle=0))
        base = alt.Chart(_data(points)).encode(
            x=x,
            color=alt.Color("series:N", scale=alt.Scale(domain=series, range=SERIES_COLOURS), title=None),
        )
        y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=True))
        charts.append(
            (
                base.mark_line(strokeWidth=1.5).encode(
                    y=y, strokeDash=alt.StrokeDash("series:N", scale=alt.Scale(domain=series), title=None)
                )
                + base.mark_point(size=50, filled=True).encode(
                    y=y, shape=alt.Shape("series:N", scale=alt.Scale(domain=series), title=None)
                )
                + base.mark_rule().encode(y="low:Q", y2="high:Q")
            ).properties(width=PANEL_WIDTH, height=160)
        )
    title = findings.of_sweep(rows)
    declared: dict[str, Any] = (
        alt.hconcat(*charts)
        .properties(title=_titled(title, WIDE_TITLE))
        .configure(background="transparent", font="system-ui, sans-serif")
        .configure_axis(labelFontSize=10, titleFontSize=10, gridColor="#eee")
        .configure_legend(orient="top")
        .to_dict()
    )
    said = "; ".join(
        f"{row.strategy} {estimated(row.time, duration)}, {estimated(row.peak, amount)}, "
        f"{most(row.in_flight)} in flight"
        for row in swept
    )
    return _svg(declared, f"{title}. {said}")


def _swept(row: Row, estimate: Estimate, unit: float) -> dict[str, Any]:
    low, high = (estimate.value if each is None else each for each in (estimate.low, estimate.high))
    values = {"value": estimate.value * unit, "low": max(0.0, low * unit), "high": high * unit}
    return {"series": row.series, "at": row.at, **values}


def scaling_chart(comparison: Comparison) -> str:
    """Return the SVG of every strategy's peak memory over the amount of data."""
    points = [
        {"strategy": each.strategy, "samples": samples, "value": max(SMALLEST_MEMORY, peak.value / MIB)}
        for each in comparison.scaling
        for samples, peak in each.points
    ]
    names = [each.strategy for each in comparison.scaling]
    title = findings.of_scaling(comparison.scaling)
    base = alt.Chart(_data(points)).encode(
        x=alt.X("samples:Q", scale=alt.Scale(type="log"), title="samples in the data (log scale)"),
        y=alt.Y("value:Q", scale=alt.Scale(type="log"), title="peak memory above the baseline in MiB (log scale)"),
        color=alt.Color("strategy:N", sort=names, title=None, scale=alt.Scale(scheme="tableau20")),
    )
    chart = (
        base.mark_line().encode(strokeDash=alt.StrokeDash("strategy:N", sort=names, legend=None))
        + base.mark_point(filled=True, size=60).encode(shape=alt.Shape("strategy:N", sort=names, legend=None))
    ).properties(width=440, height=280, title=_titled(title))
    declared: dict[str, Any] = (
        chart.configure(background="transparent", font="system-ui, sans-serif")
        .configure_axis(labelFontSize=11, titleFontSize=11, gridColor="#ddd")
        .configure_legend(symbolLimit=0, labelLimit=260)
        .to_dict()
    )
    said = "; ".join(
        f"{each.strategy} {estimated(each.per_sample, small_amount)} a sample" for each in comparison.scaling
    )
    return _svg(declared, f"{title}. {said}")


def order_picture(rows: Sequence[Row]) -> str:
    """Return an ``img`` of the place on disk of each delivered record: a panel a strategy.

    Thousands of dots are smaller as pixels than as shapes.
    """
    panels = [row for row in rows if row.steps and row.walk]
    points = []
    for row in panels:
        walked = zip(row.steps or (), row.walk or (), strict=True)
        points += [{"strategy": row.strategy, "step": step, "place": place} for step, place in walked]
    title = findings.of_order(rows)
    dots = (
        alt.Chart(_data(points))
        .mark_point(size=3, filled=True, opacity=1, color="#1d4ed8")
        .encode(x=alt.X("step:Q", title="delivered"), y=alt.Y("place:Q", title="record on disk"))
    )
    chart = _panels(dots, [row.strategy for row in panels], title, background="white")
    picture = base64.b64encode(vl_convert.vegalite_to_png(chart, scale=1.5)).decode()
    said = "; ".join(f"{row.strategy}: {ordered(row.order)}" for row in panels)
    return f'<img alt="{html.escape(f"{title}. {said}", quote=True)}" src="data:image/png;base64,{picture}">'


def _panels(chart: Any, names: list[str], title: str, background: str = "transparent") -> dict[str, Any]:
    """Put one small chart for each strategy side by side."""
    declared: dict[str, Any] = (
        chart.properties(width=PANEL_WIDTH, height=PANEL_HEIGHT)
        .facet(
            facet=alt.Facet("strategy:N", sort=names, title=None, header=alt.Header(labelFontSize=11, labelLimit=260)),
            columns=COLUMNS,
        )
        .properties(title=_titled(title, WIDE_TITLE))
        .configure(background=background, font="system-ui, sans-serif")
        .configure_axis(labelFontSize=10, titleFontSize=10, gridColor="#eee")
        .configure_legend(orient="top")
        .to_dict()
    )
    return declared


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
            title=_titled(title, frame="bounds"),
        )
        .configure(background=background, font="system-ui, sans-serif")
        .configure_axis(labelFontSize=11, titleFontSize=11, gridColor="#ddd")
        .configure_view(stroke=None)
    )
    declared: dict[str, Any] = chart.to_dict()
    return declared


def _titled(title: str, letters: int = TITLE, **options: Any) -> alt.TitleParams:
    """Return a title in as many lines as it takes."""
    return alt.TitleParams(textwrap.wrap(title, letters), anchor="start", fontSize=13, limit=10 * letters, **options)


def _data(points: list[dict[str, Any]]) -> alt.Data:
    return alt.Data(values=points)  # type: ignore[no-untyped-call] # generated from Vega-Lite's schema


def _svg(chart: dict[str, Any], description: str) -> str:
    """Render to SVG text that carries its own description for those who cannot see it."""
    svg: str = vl_convert.vegalite_to_svg(chart)
    label = html.escape(description, quote=True)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
