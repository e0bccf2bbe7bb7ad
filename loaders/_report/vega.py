"""Pieces of Vega-Lite specifications that charts share: axes, marks, colours. Pure."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

from loaders._report import svg

Spec = dict[str, Any]
"""A part of a Vega-Lite specification, or data for one."""

MOST_TICKS = 8
FINE = [range(100, 1000, step) for step in (5, 10, 20, 50)]
GRIDS: list[Sequence[int]] = [*FINE, (100, 150, 200, 300, 500, 700), (100, 200, 500), (100, 300), (100,)]
"""Round numbers within a decade, in hundredths of it; the finest grid with at most ``MOST_TICKS`` ticks is used."""

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
GRID: Spec = {"grid": True, "ticks": False, "labelPadding": 7}
"""For an axis whose lines cross the chart: a tick at the end of each would say nothing more."""

RANGE: Spec = {"type": "rule", "color": "#444", "strokeWidth": 2}
HOVERED: Spec = {"type": "rect", "fill": "transparent"}
"""An invisible overlay for marks that are too small or too thin to point at."""


def dots(places: Iterable[tuple[float, float]], width: int, height: int) -> str:
    """Return dots at places from (0, 0), bottom left, to (1, 1), as the data URL of a one-bit PNG for a panel.

    A thousand dots take fewer bytes as pixels than as shapes.
    """
    from PIL import Image, ImageDraw

    picture = Image.new("P", (2 * width, 2 * height))
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


def reference(channel: str, axis: Spec, value: float) -> Spec:
    """Return a dashed line at the baseline."""
    place = {key: each for key, each in axis.items() if key != "field"} | {"datum": value}
    mark = {"type": "rule", "strokeDash": [4, 4], "color": AMBER}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": {"x": None, "y": None, channel: place}}


def lines(points: list[Spec], names: Sequence[str], x: Spec, y: Spec) -> list[Spec]:
    """Return layers with a line, marks and intervals for each series; series differ in more than colour."""
    colour, dash, shape = (
        nominal("series", names, [choices[index % len(choices)] for index in range(len(names))])
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


def logarithmic(field: str, title: str | None, values: Sequence[float]) -> Spec:
    """Return a logarithmic axis between the ticks that enclose the values; what lies beyond is drawn at its end."""
    places = ticks(min(values), max(values))
    scale = {"type": "log", "domain": [places[0], places[-1]], "nice": False, "clamp": True}
    return {**linear(field, title), "scale": scale, "axis": {**GRID, "values": places, "format": ",~r"}}


def linear(field: str, title: str | None) -> Spec:
    axis = {**GRID, "tickCount": 4}
    return {"field": field, "type": "quantitative", "title": title, "axis": axis}


def nominal(field: str, names: Sequence[str], shown: Sequence[Any] = ()) -> Spec:
    """Return an encoding of names, each with its own appearance if ``shown`` gives any."""
    ways = {"scale": {"domain": names, "range": shown}} if shown else {"sort": names}
    return {"field": field, "type": "nominal", **ways}
