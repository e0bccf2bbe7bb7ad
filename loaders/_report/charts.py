"""Charts: declared in Vega-Lite, readable without colour, with exact figures under the pointer. Pure."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from loaders._report import findings, svg
from loaders._rows import CaseLaws, Comparison, Row
from loaders._stats import Estimate
from loaders._words import amount, duration, estimated, most, ordered, over_steps

Spec = dict[str, Any]
"""A part of a Vega-Lite specification, or data for one."""

WIDTH, ROW_HEIGHT = 380, 22
LETTER_WIDTH = 7
"""Width reserved for each letter of a strategy's name: browsers' fonts differ."""

PANEL_WIDTH, PANEL_HEIGHT, COLUMNS = 230, 120, 3
LINE_POINTS = 60
"""Maximum number of points in a line over the batches."""

MOST_TICKS = 8
FINE = [range(100, 1000, step) for step in (5, 10, 20, 50)]
GRIDS: list[Sequence[int]] = [*FINE, (100, 150, 200, 300, 500, 700), (100, 200, 500), (100, 300), (100,)]
"""Round numbers within a decade, in hundredths of it; the finest grid with at most ``MOST_TICKS`` ticks is used."""

MIB = 2**20
SMALLEST_MEMORY = 0.1
"""Left end of a logarithmic memory axis, in MiB; smaller figures are drawn there."""

TIME_METRICS = {
    "epoch_time": "time of an epoch, start included",
    "steady_time": "time of an epoch once it runs",
    "sample_time": "time of a sample",
}
MEMORY = "peak memory above the baseline in MiB"

# Every mark colour has a contrast of at least 4.5:1 against white.
BLUE, AMBER, GREEN, GREY, INK = "#1d4ed8", "#b45309", "#15803d", "#6b7280", "#222"
# There are as many shapes as strategies, so that shapes tell lines apart where colours repeat.
COLOURS = [BLUE, AMBER, GREEN, "#7e22ce", "#be123c", "#0f766e"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [12, 4]]
SHAPES = [
    *("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"),
    "M-1,-1L1,-1L-1,1L1,1Z",
    "M-1,-1L-1,1L1,-1L1,1Z",
    "M-1.3,-.4L1.3,-.4L1.3,.4L-1.3,.4Z",
    "M-.4,-1.3L.4,-1.3L.4,1.3L-.4,1.3Z",
    "M0,-1.4L.4,-.4L1.4,0L.4,.4L0,1.4L-.4,.4L-1.4,0L-.4,-.4Z",
]

CONFIG: Spec = {
    "aria": False,
    "background": None,
    "font": svg.FONT,
    "axis": {
        "domainColor": "#888",
        "gridColor": "#ddd",
        "labelAngle": 0,
        "labelFlush": False,
        "labelFontSize": 11,
        "labelLimit": 0,
        "labelOverlap": False,
        "tickColor": "#888",
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titleLimit": 0,
    },
    "axisY": {"titlePadding": 14},
    "header": {"labelFontSize": 11, "labelLimit": 0, "title": None},
    # The browser's font may be wider than the one used to lay out legends.
    "legend": {
        "columnPadding": 36,
        "labelFontSize": 11,
        "labelLimit": 0,
        "offset": 12,
        "orient": "top",
        "symbolLimit": 0,
        "title": None,
    },
    "point": {"filled": True, "opacity": 1},
    "title": {"anchor": "start", "frame": "group", "fontSize": 11, "fontWeight": "normal", "limit": 0, "offset": 10},
    "view": {"stroke": None},
}
_RANGE: Spec = {"type": "rule", "color": "#444", "strokeWidth": 2}
_HOVERED: Spec = {"type": "rect", "fill": "transparent"}
"""An invisible overlay for marks that are too small or too thin to point at."""


@dataclass(frozen=True)
class Chart:
    """A picture under its finding as the heading; the picture is empty if there is nothing to draw.

    ``is_wide`` means that it takes the full width of the page.
    """

    title: str
    picture: Markup = field(default_factory=Markup)
    is_wide: bool = False


Draw = Callable[[Comparison, Sequence[Row]], Chart | None]


def time_name(rows: Sequence[Row]) -> str:
    """Return what the time of a case's rows measures, in words."""
    return TIME_METRICS[rows[0].ranked_by] if rows else "time"


def of_case(comparison: Comparison, rows: Sequence[Row]) -> list[Chart]:
    """Return the charts for one case of a comparison, in the order of ``CHARTS``."""
    return [chart for draw in CHARTS if (chart := draw(comparison, rows))]


def time_chart(_: Comparison, rows: Sequence[Row]) -> Chart:
    """Return a chart of every strategy's time with its interval."""
    points = [_point(row, rows, row["time"], duration, 1e3) for row in rows if row["time"]]
    return _intervals(findings.of_time(rows), points, f"{time_name(rows)} in ms (log scale)")


def memory_chart(_: Comparison, rows: Sequence[Row]) -> Chart:
    """Return a chart of every strategy's peak memory with its interval."""
    return _memory(rows)


def _memory(rows: Sequence[Row], standing_alone: Spec | None = None) -> Chart:
    points = [_point(row, rows, row["peak"], amount, 1 / MIB, SMALLEST_MEMORY) for row in rows if row["peak"]]
    return _intervals(findings.of_memory(rows), points, f"{MEMORY} (log scale)", standing_alone)


def memory_picture(rows: Sequence[Row]) -> str:
    """Return the SVG of ``memory_chart`` with the title drawn in, on a white background."""
    title = {"text": findings.of_memory(rows), "frame": "bounds", "fontSize": 13, "fontWeight": "bold", "offset": 12}
    return _memory(rows, {"background": "white", "title": title}).picture


def tradeoff_chart(_: Comparison, rows: Sequence[Row]) -> Chart | None:
    """Return a chart of time against peak memory that marks the strategies no other beats in both."""
    if len([row for row in rows if row["time"] and row["peak"]]) <= 2:
        return None
    best = [row.strategy for row in findings.frontier(rows)]
    title = f"Best trade-offs between time and memory, from left to right: {', '.join(best)}"
    kinds = ["best trade-off", "beaten on both"]
    points: list[Spec] = [
        {
            "time": _bounds(row["time"], 1e3),
            "peak": _bounds(row["peak"], 1 / MIB, SMALLEST_MEMORY),
            "kind": kinds[row.strategy not in best],
            "hover": f"{_named(row, rows)}: {estimated(row['time'], duration)}, {estimated(row['peak'], amount)}",
            "is_baseline": row.is_baseline,
        }
        for row in rows
        if row["time"] and row["peak"]
    ]
    baseline = [each for each in points if each["is_baseline"]]
    marked = "; dashed: baseline strategy" if baseline else ""
    x = _logarithmic("time.value", f"time in ms (log scale){marked}", [each["time"]["value"] for each in points])
    y = _logarithmic("peak.value", None, [each["peak"]["value"] for each in points])
    ranges = {"type": "rule", "color": GREY}
    spec = {
        "width": WIDTH + 100,
        "height": 260,
        "title": f"{MEMORY} (log scale)",
        "data": {"values": points},
        "layer": [
            *(_reference("x", x, each["time"]["value"]) for each in baseline),
            *(_reference("y", y, each["peak"]["value"]) for each in baseline),
            {"mark": ranges, "encoding": {"x": {**x, "field": "time.low"}, "x2": {"field": "time.high"}, "y": y}},
            {"mark": ranges, "encoding": {"y": {**y, "field": "peak.low"}, "y2": {"field": "peak.high"}, "x": x}},
            {
                "mark": {"type": "point", "size": 80, "stroke": INK},
                "encoding": {
                    "x": x,
                    "y": y,
                    "shape": _nominal("kind", kinds, ["diamond", "circle"]),
                    "color": _nominal("kind", kinds, [GREEN, GREY]),
                    "description": {"field": "hover"},
                },
            },
        ],
    }
    return _chart(title, spec, [each["hover"] for each in points])


def steps_chart(_: Comparison, rows: Sequence[Row]) -> Chart | None:
    """Return a chart of memory over the batches: one panel per strategy, memory in use and held by malloc separate.

    Without any strategy's known buffer size there is nothing to compare the memory with, and no chart.
    """
    if not any(row.trace for row in rows) or all(row.floor is None for row in rows):
        return None
    kinds = ["resident", "in use", "held by the allocator"]
    panels = [(row, row.trace) for row in rows if row.trace]
    said = [f"{row.strategy}: {over_steps(row)}" for row, _ in panels]
    points: list[Spec] = []
    for (row, trace), hover in zip(panels, said, strict=True):
        points.append({"strategy": row.strategy, "hover": hover, "floor": row.floor / MIB if row.floor else None})
        every = max(1, math.ceil(len(trace.step) / LINE_POINTS))
        for kind, values in zip(kinds, (trace.resident, trace.in_use, trace.held), strict=True):
            drawn = list(zip(trace.step, values or (), strict=False))[::every]
            points += [{"strategy": row.strategy, "kind": kind, "step": at, "value": size / MIB} for at, size in drawn]
    title = findings.of_level(rows) or "Memory over the batches"
    lines: Spec = {
        "transform": [{"filter": "datum.kind"}],
        "mark": {"type": "line", "strokeWidth": 1.5},
        "encoding": {
            "x": _linear("step", "batches"),
            "y": _linear("value", "MiB above the baseline"),
            "color": _nominal("kind", kinds, [INK, BLUE, AMBER]),
            "strokeDash": _nominal("kind", kinds, [[1, 0], [6, 3], [2, 2]]),
        },
    }
    once = {
        "transform": [{"filter": "datum.hover"}],
        "layer": [
            {"mark": {"type": "rule", "color": GREEN}, "encoding": {"y": {"field": "floor", "type": "quantitative"}}},
            {"mark": _HOVERED, "encoding": {"description": {"field": "hover"}}},
        ],
    }
    return _panels(title, {"layer": [lines, once]}, points, ["The green line shows what the buffers need", *said])


def sweep_chart(comparison: Comparison, rows: Sequence[Row]) -> Chart | None:
    """Return a chart of time, peak memory and bodies actually in flight, over the swept setting."""
    if not any(row.series for row in rows):
        return None
    title = findings.of_sweep(rows)
    swept = [row for row in rows if row.series and row.samples]
    places = list(dict.fromkeys(row.at for row in sorted(swept, key=lambda row: (len(row.at), row.at))))
    series = list(dict.fromkeys(row.series for row in swept))
    said = [
        f"{_named(row, rows)}: {estimated(row['time'], duration)}, {estimated(row['peak'], amount)}, "
        f"{most(row['in_flight'])} in flight"
        for row in swept
    ]
    marked = "; dashed: baseline" if any(row.is_baseline for row in rows) else ""
    x = {**_nominal("at", places), "title": f"{comparison.about.sweeps}{marked}"}
    figures: list[tuple[str, Callable[[Row], Estimate | None], float]] = [
        (f"{time_name(rows)} in ms", lambda row: row["time"], 1e3),
        (MEMORY, lambda row: row["peak"], 1 / MIB),
        ("peak number of bodies in flight", lambda row: row["in_flight"], 1),
    ]
    panels: list[Spec] = []
    for name, figure, unit in figures:
        y = _linear("value", None)
        points: list[Spec] = [
            {"series": row.series, "at": row.at, "hover": hover, **_bounds(estimate, unit)}
            for row, hover in zip(swept, said, strict=True)
            if (estimate := figure(row))
        ]
        baseline = [estimate.value * unit for row in rows if row.is_baseline and (estimate := figure(row))]
        if points:
            layers = [*(_reference("y", y, value) for value in baseline), *_lines(points, series, x, y)]
            panels.append({"width": PANEL_WIDTH, "height": 160, "title": name, "layer": layers})
    return _chart(title, {"hconcat": panels}, said, is_wide=True) if panels else Chart(title, is_wide=True)


def laws_chart(comparison: Comparison, found: CaseLaws) -> Chart:
    """Return a chart of the memory that every strategy needs over the amount of data, with intervals."""
    title = findings.of_laws(found) or "Memory by amount of data"
    about = {row.strategy: row for row in comparison.rows}
    names = [_marked(name, about.get(name)) for name in found.laws]
    points: list[Spec] = [
        {
            "series": name,
            "samples": samples,
            "hover": f"{name}, {samples} samples: {estimated(needed, amount)}",
            **_bounds(needed, 1 / MIB, SMALLEST_MEMORY),
        }
        for name, law in zip(names, found.laws.values(), strict=True)
        for samples, needed in law.points
    ]
    if not points:
        return Chart(title, is_wide=True)
    x = {
        **_linear("samples", "samples in the data set (log scale)"),
        "scale": {"type": "log", "nice": False, "padding": 12},
        "axis": {"grid": True, "values": sorted({each["samples"] for each in points}), "format": ",d"},
    }
    y = _logarithmic("value", None, [each["value"] for each in points])
    spec = {
        "width": 440,
        "height": 280,
        "padding": {"left": 5, "top": 5, "bottom": 5, "right": 60},
        "title": "memory needed above the baseline in MiB (log scale)",
        "layer": _lines(points, names, x, y),
        "config": {**CONFIG, "legend": {**CONFIG["legend"], "orient": "right"}},
    }
    return _chart(title, spec, [each["hover"] for each in points], is_wide=True)


def order_chart(_: Comparison, rows: Sequence[Row]) -> Chart | None:
    """Return a chart of the place on disk of each delivered record: one panel per strategy."""
    title = findings.of_order(rows)
    panels = [(row, list(zip(row.steps, row.walk, strict=True))) for row in rows if row.steps and row.walk]
    if not panels:
        return None
    last_step, last_place = (max(dot[axis] for _, dots in panels for dot in dots) for axis in (0, 1))
    points: list[Spec] = [
        {
            "strategy": row.strategy,
            "origin": 0,
            "dots": _dots([(step / last_step, place / last_place) for step, place in dots]),
            "hover": f"{row.strategy}: {ordered(row.order)}",
        }
        for row, dots in panels
    ]
    corner = {"align": "left", "baseline": "bottom", "width": PANEL_WIDTH, "height": PANEL_HEIGHT, "aspect": False}
    dots = {
        "mark": {"type": "image", **corner},
        "encoding": {
            "x": {**_linear("origin", "position in the output"), "scale": {"domain": [0, last_step], "nice": False}},
            "y": {**_linear("origin", "position on disk"), "scale": {"domain": [0, last_place], "nice": False}},
            "url": {"field": "dots"},
            "description": {"field": "hover"},
        },
    }
    return _panels(title, dots, points, [each["hover"] for each in points])


CHARTS: list[Draw] = [
    time_chart,
    memory_chart,
    tradeoff_chart,
    sweep_chart,
    steps_chart,
    order_chart,
]
"""What is drawn for each case, in this order; a chart with nothing to say about it returns ``None``."""


def _dots(places: Iterable[tuple[float, float]]) -> str:
    """Return dots at places from (0, 0), bottom left, to (1, 1), as the data URL of a one-bit PNG.

    A thousand dots take fewer bytes as pixels than as shapes.
    """
    from PIL import Image, ImageDraw

    picture = Image.new("P", (2 * PANEL_WIDTH, 2 * PANEL_HEIGHT))
    picture.putpalette(bytes.fromhex("ffffff" + BLUE[1:]))
    draw = ImageDraw.Draw(picture)
    for x, y in places:
        across, down = round(x * (picture.width - 3)), round((1 - y) * (picture.height - 3))
        draw.rectangle((across, down, across + 2, down + 2), fill=1)
    file = io.BytesIO()
    picture.save(file, "PNG", bits=1, transparency=0, optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def ticks(low: float, high: float) -> list[float]:
    """Return a few round numbers for a logarithmic axis, from at most ``low`` to at least ``high``, both positive."""
    if high < 1.1 * low:
        low, high = low / 1.05, high * 1.05
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    for numbers in GRIDS:
        grid = [float(f"{number}e{decade - 2}") for decade in decades for number in numbers]
        first, last = max(tick for tick in grid if tick <= low), min(tick for tick in grid if tick >= high)
        found = [tick for tick in grid if first <= tick <= last]
        if len(found) <= MOST_TICKS:
            break
    return found


def _chart(title: str, spec: Spec, said: Iterable[str], names: Iterable[str] = (), *, is_wide: bool = False) -> Chart:
    picture = svg.drawn({"config": CONFIG, **spec}, f"{title}. {'; '.join(said)}", names)
    return Chart(title, Markup(picture), is_wide)  # noqa: S704 - from an XML tree, which escapes


def _intervals(title: str, points: list[Spec], axis: str, standing_alone: Spec | None = None) -> Chart:
    """Return a chart with one row per strategy: a mark for the estimate, a rule for its interval."""
    if not points:
        return Chart(title)
    names = [each["strategy"] for each in points]
    y: Spec = {
        "field": "strategy",
        "type": "nominal",
        "sort": names,
        "title": None,
        "scale": {"type": "band"},
        "axis": {
            "ticks": False,
            "domain": False,
            "labelPadding": 8,
            "minExtent": 8 + LETTER_WIDTH * max(map(len, names)),
        },
    }
    x = _logarithmic("value", axis, [each[end] for each in points for end in ("low", "high")])
    kinds = ["baseline", "strategy", "ended early"]
    spec = {
        "width": WIDTH,
        "height": ROW_HEIGHT * len(points),
        "data": {"values": points},
        "encoding": {"y": y},
        "layer": [
            *(_reference("x", x, each["value"]) for each in points if each["kind"] == "baseline"),
            {"mark": _RANGE, "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}}},
            {
                "mark": {"type": "point", "size": 90, "stroke": INK},
                "encoding": {
                    "x": x,
                    "shape": {**_nominal("kind", kinds, ["diamond", "circle", "triangle-right"]), "legend": None},
                    "color": {**_nominal("kind", kinds, [AMBER, BLUE, "#7f1d1d"]), "legend": None},
                },
            },
            {"mark": _HOVERED, "encoding": {"description": {"field": "hover"}}},
        ],
    }
    return _chart(title, spec | (standing_alone or {}), [each["hover"] for each in points], names)


def _point(
    row: Row, rows: Sequence[Row], figure: Estimate, words: Callable[[float], str], unit: float, at_least: float = 0.0
) -> Spec:
    kind = "baseline" if row.is_baseline else "strategy" if row.samples else "ended early"
    name = _named(row, rows)
    hover = f"{name}: {estimated(figure, words)}"
    return {"strategy": name, "kind": kind, "hover": hover, **_bounds(figure, unit, at_least)}


def _named(row: Row, rows: Sequence[Row]) -> str:
    """Return a strategy's name with the meaning of its mark's shape and colour."""
    name = _marked(findings.name_of(row, rows), row)
    return name if row.samples else f"{name}, ended early"


def _marked(name: str, row: Row | None) -> str:
    """Return a strategy's name with any role that sets it apart: baseline, ceiling or historic."""
    if row is None:
        return name
    what = [("baseline", row.is_baseline), ("ceiling", row.ceiling), ("historic", row.historic)]
    return ", ".join([name, *(word for word, holds in what if holds)])


def _bounds(figure: Estimate, unit: float, at_least: float = 0.0) -> dict[str, float]:
    """Return an estimate and its interval in the unit of an axis; a single sample has no interval."""
    low, high = (figure.value if bound is None else bound for bound in (figure.low, figure.high))
    ends = {"value": figure.value, "low": low, "high": high}
    return {name: max(at_least, value * unit) for name, value in ends.items()}


def _reference(channel: str, axis: Spec, value: float) -> Spec:
    """Return a dashed line at the baseline."""
    place = {key: each for key, each in axis.items() if key != "field"} | {"datum": value}
    mark = {"type": "rule", "strokeDash": [4, 4], "color": AMBER}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": {"x": None, "y": None, channel: place}}


def _lines(points: list[Spec], names: Sequence[str], x: Spec, y: Spec) -> list[Spec]:
    """Return layers with a line, marks and intervals for each series; series differ in more than colour."""
    colour, dash, shape = (
        _nominal("series", names, [choices[index % len(choices)] for index in range(len(names))])
        for choices in (COLOURS, DASHES, SHAPES)
    )
    layers: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 1.5}, "encoding": {"y": y, "strokeDash": {**dash, "legend": None}}},
        {"mark": "rule", "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}}},
        {
            "mark": {"type": "point", "size": 60},
            "encoding": {"y": y, "shape": shape, "description": {"field": "hover"}},
        },
    ]
    # The legend's symbols have the shapes; a dashed outline would spoil them.
    encoding = {"x": x, "color": {**colour, "legend": {"title": None}}}
    return [{"data": {"values": points}, "encoding": encoding, "layer": layers}]


def _panels(title: str, panel: Spec, points: list[Spec], said: Iterable[str]) -> Chart:
    """Return a chart with one small panel per strategy, side by side."""
    names = list(dict.fromkeys(each["strategy"] for each in points))
    spec = {
        "data": {"values": points},
        "facet": {"field": "strategy", "type": "nominal", "sort": names},
        "columns": COLUMNS,
        "spec": {"width": PANEL_WIDTH, "height": PANEL_HEIGHT, **panel},
        "config": {**CONFIG, "view": {}},
    }
    return _chart(title, spec, said, names, is_wide=True)


def _logarithmic(field: str, title: str | None, values: Sequence[float]) -> Spec:
    """Return a logarithmic axis between the ticks that enclose the values; what lies beyond is drawn at its end."""
    places = ticks(min(values), max(values))
    scale = {"type": "log", "domain": [places[0], places[-1]], "nice": False, "clamp": True}
    return {**_linear(field, title), "scale": scale, "axis": {"grid": True, "values": places, "format": ",~r"}}


def _linear(field: str, title: str | None) -> Spec:
    axis = {"grid": True, "tickCount": 4}
    return {"field": field, "type": "quantitative", "title": title, "axis": axis}


def _nominal(field: str, names: Sequence[str], shown: Sequence[Any] = ()) -> Spec:
    """Return an encoding of names, each with its own appearance if ``shown`` gives any."""
    ways = {"scale": {"domain": names, "range": shown}} if shown else {"sort": names}
    return {"field": field, "type": "nominal", **ways}
