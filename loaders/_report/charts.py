"""Charts: declared in Vega-Lite, readable without colour, with exact figures under the pointer. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from markupsafe import Markup

from loaders import _scale
from loaders._report import findings, svg, vega
from loaders._rows import CaseLaws, Comparison, Row, loaders_of
from loaders._stats import Estimate
from loaders._words import amount, case_in_words, duration, estimated, most, ordered, over_steps, roles

WIDTH, ROW_HEIGHT = 380, 22
LETTER_WIDTH = 7
"""Width reserved for each letter of a strategy's name: browsers' fonts differ."""

MAP_WIDTH, MAP_HEIGHT = 760, 330
LABEL_SIZE, LABEL_LETTER, LABEL_GAP, LABEL_MOVES = 11, 6, 9, 8
"""Of names beside marks, in pixels: the height, the width of a letter, the gap, and how many heights one may move."""

PANEL_WIDTH, PANEL_HEIGHT, COLUMNS = 230, 120, 3
LINE_POINTS = 60
"""Maximum number of points in a line over the batches."""

MIB = 2**20
SMALLEST_MEMORY = 0.1
"""Left end of a logarithmic memory axis, in MiB; smaller figures are drawn there."""

TIME_METRICS = {
    "epoch_time": "time of an epoch, start included",
    "steady_time": "time of an epoch once it runs",
    "sample_time": "time of a sample",
}
MEMORY, NEEDED = "peak memory above the baseline in MiB", "needed memory above the baseline in MiB"


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


def of_case(comparison: Comparison, rows: Sequence[Row], count: int | None = None) -> list[Chart]:
    """Return the charts for one case of a comparison, in the order of ``CHARTS``, and draw no others than these."""
    return list(islice(filter(None, (draw(comparison, rows) for draw in CHARTS)), count))


def time_chart(comparison: Comparison, rows: Sequence[Row]) -> Chart:
    """Return a chart of every strategy's time with its interval."""
    points = [_point(row, rows, row["time"], duration, 1e3) for row in rows if row["time"]]
    title = findings.of_time(rows, comparison.missing(rows[0].case) if rows else ())
    return _intervals(title, points, f"{time_name(rows)} in ms (log scale)")


def memory_chart(_: Comparison, rows: Sequence[Row]) -> Chart:
    """Return a chart of every strategy's peak memory with its interval."""
    return _memory(rows)


def _memory(rows: Sequence[Row], standing_alone: vega.Spec | None = None) -> Chart:
    points = [_point(row, rows, row["peak"], amount, 1 / MIB, SMALLEST_MEMORY) for row in rows if row["peak"]]
    return _intervals(findings.of_memory(rows), points, f"{MEMORY} (log scale)", standing_alone)


def memory_picture(rows: Sequence[Row]) -> str:
    """Return the SVG of ``memory_chart`` with the title drawn in, on a white background."""
    title = {"text": findings.of_memory(rows), "frame": "bounds", "fontSize": 13, "fontWeight": "bold", "offset": 12}
    return _memory(rows, {"background": "white", "title": title}).picture


def of_estimates(
    title: str, found: Mapping[str, Estimate | None], words: Callable[[Estimate], str], unit: float, axis: str
) -> Chart:
    """Return a chart of named figures with their intervals, the smallest first."""
    known = sorted(((name, each) for name, each in found.items() if each), key=lambda each: each[1].value)
    points: list[vega.Spec] = [
        {"strategy": name, "kind": "strategy", "hover": f"{name}: {words(each)}", **_bounds(each, unit, 1e-3)}
        for name, each in known
    ]
    return _intervals(title, points, axis)


def tradeoff_chart(_: Comparison, rows: Sequence[Row]) -> Chart | None:
    """Return a chart of time against memory that marks those that no other with their output beats in both.

    Memory is what is needed, where that is known, and else the peak, as in the ranking.
    """
    memory, held = ("needed", NEEDED) if any(row["needed"] for row in rows) else ("peak", MEMORY)
    found = [(row, row["time"], row[memory]) for row in rows]
    both = [(row, time, needed) for row, time, needed in found if time and needed]
    if len(both) <= 2:
        return None
    best = [row.strategy for row in findings.frontier(rows, memory)]
    those = f", from left to right: {findings.listed(best)}" if best else ": none is shown"
    title = f"Best trade-offs between time and memory{those}"
    shown = [row.strategy for row in loaders_of(rows) if findings.is_shown(row, memory)]
    kinds = ["best trade-off", "beaten on both", "not compared"]
    points: list[vega.Spec] = [
        {
            "time": _bounds(time, 1e3),
            "memory": _bounds(needed, 1 / MIB, SMALLEST_MEMORY),
            "kind": kinds[0 if row.strategy in best else 1 if row.strategy in shown else 2],
            "hover": f"{_named(row, rows)}: {estimated(time, duration)}, {estimated(needed, amount)}",
            "name": _marked(row.strategy, row),
            "is_baseline": row.is_baseline,
        }
        for row, time, needed in both
    ]
    baseline = [each for each in points if each["is_baseline"]]
    marked = "; dashed: baseline strategy" if baseline else ""
    x = vega.logarithmic("time.value", f"time in ms (log scale){marked}", [each["time"]["value"] for each in points])
    y = vega.logarithmic("memory.value", None, [each["memory"]["value"] for each in points])
    _name_marks(points, x["scale"]["domain"], y["scale"]["domain"])
    names: list[vega.Spec] = [
        {
            "transform": [{"filter": {"field": "side", "equal": side}}],
            "mark": {"type": "text", "align": align, "dx": dx, "fontSize": LABEL_SIZE, **look},
            "encoding": {"x": x, "y": {**y, "field": "label_at"}, "text": {"field": "name"}},
        }
        for side, align, dx in (("right", "left", LABEL_GAP), ("left", "right", -LABEL_GAP))
        for look in ({"stroke": "white", "strokeWidth": 3}, {"color": vega.INK})  # lines must not cross it out
    ]
    ranges = {"type": "rule", "color": vega.GREY}
    leader = {"type": "rule", "color": vega.GREY, "strokeWidth": 0.5}
    spec = {
        "width": MAP_WIDTH,
        "height": MAP_HEIGHT,
        "title": f"{held} (log scale)",
        "data": {"values": points},
        "layer": [
            *(vega.reference("x", x, each["time"]["value"]) for each in baseline),
            *(vega.reference("y", y, each["memory"]["value"]) for each in baseline),
            {"mark": ranges, "encoding": {"x": {**x, "field": "time.low"}, "x2": {"field": "time.high"}, "y": y}},
            {"mark": ranges, "encoding": {"y": {**y, "field": "memory.low"}, "y2": {"field": "memory.high"}, "x": x}},
            {
                "transform": [{"filter": {"field": "is_moved", "equal": True}}],
                "mark": leader,
                "encoding": {"x": x, "y": y, "y2": {"field": "label_at"}},
            },
            *names,
            {
                "mark": {"type": "point", "size": 80, "stroke": vega.INK},
                "encoding": {
                    "x": x,
                    "y": y,
                    "shape": vega.nominal("kind", kinds, ["diamond", "circle", "triangle"]),
                    "color": vega.nominal("kind", kinds, [vega.GREEN, vega.GREY, "white"]),
                    "description": {"field": "hover"},
                },
            },
        ],
    }
    return chart_of(title, spec, [each["hover"] for each in points], is_wide=True)


def _name_marks(points: list[vega.Spec], across: Sequence[float], upward: Sequence[float]) -> None:
    """Place each mark's name beside it: left of marks at the right edge, and moved up or down until it is free.

    ``label_at`` is the place on the axis of memory, ``side`` that beside the mark; ``is_moved`` says whether a line
    must lead from one to the other.
    """

    def place(value: float, ends: Sequence[float], length: float) -> float:
        value = min(max(value, ends[0]), ends[-1])
        return length * math.log(value / ends[0]) / math.log(ends[-1] / ends[0])

    places = [
        (place(each["time"]["value"], across, MAP_WIDTH), place(each["memory"]["value"], upward, MAP_HEIGHT))
        for each in points
    ]
    taken = [(x - LABEL_GAP / 2, x + LABEL_GAP / 2, y) for x, y in places]
    for each, (x, y) in zip(points, places, strict=True):
        length = LABEL_GAP + LABEL_LETTER * len(each["name"])
        each["side"] = "right" if x + length < MAP_WIDTH else "left"
        start, end = (x + LABEL_GAP / 2, x + length) if each["side"] == "right" else (x - length, x - LABEL_GAP / 2)
        moves = sorted(range(-LABEL_MOVES, LABEL_MOVES + 1), key=abs)
        free = (
            y + move * LABEL_SIZE
            for move in moves
            if 0 <= y + move * LABEL_SIZE <= MAP_HEIGHT
            and all(
                end <= other_start or other_end <= start or abs(y + move * LABEL_SIZE - at) >= LABEL_SIZE
                for other_start, other_end, at in taken
            )
        )
        at = next(free, y)
        taken.append((start, end, at))
        each["is_moved"] = abs(at - y) > LABEL_SIZE
        each["label_at"] = upward[0] * (upward[-1] / upward[0]) ** (at / MAP_HEIGHT)


def steps_chart(_: Comparison, rows: Sequence[Row]) -> Chart | None:
    """Return a chart of memory over the batches: one panel per strategy, memory in use and held by malloc separate.

    Without any strategy's known buffer size there is nothing to compare the memory with, and no chart.
    """
    if not any(row.trace for row in rows) or all(row.floor is None for row in rows):
        return None
    kinds = ["resident", "in use", "held by the allocator"]
    panels = [(row, row.trace) for row in rows if row.trace]
    said = [f"{row.strategy}: {over_steps(row)}" for row, _ in panels]
    points: list[vega.Spec] = []
    for (row, trace), hover in zip(panels, said, strict=True):
        points.append({"strategy": row.strategy, "hover": hover, "floor": row.floor / MIB if row.floor else None})
        every = max(1, math.ceil(len(trace.step) / LINE_POINTS))
        for kind, values in zip(kinds, (trace.resident, trace.in_use, trace.held), strict=True):
            drawn = list(zip(trace.step, values or (), strict=False))[::every]
            points += [{"strategy": row.strategy, "kind": kind, "step": at, "value": size / MIB} for at, size in drawn]
    title = findings.of_level(rows) or "Memory over the batches"
    lines: vega.Spec = {
        "transform": [{"filter": "datum.kind"}],
        "mark": {"type": "line", "strokeWidth": 1.5},
        "encoding": {
            "x": vega.linear("step", "batches"),
            "y": vega.linear("value", "MiB above the baseline"),
            "color": vega.nominal("kind", kinds, [vega.INK, vega.BLUE, vega.AMBER]),
            "strokeDash": vega.nominal("kind", kinds, [[1, 0], [6, 3], [2, 2]]),
        },
    }
    once = {
        "transform": [{"filter": "datum.hover"}],
        "layer": [
            {
                "mark": {"type": "rule", "color": vega.GREEN},
                "encoding": {"y": {"field": "floor", "type": "quantitative"}},
            },
            {"mark": vega.HOVERED, "encoding": {"description": {"field": "hover"}}},
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
    x = {**vega.nominal("at", places), "title": f"{comparison.about.sweeps}{marked}"}
    figures: list[tuple[str, Callable[[Row], Estimate | None], float]] = [
        (f"{time_name(rows)} in ms", lambda row: row["time"], 1e3),
        (MEMORY, lambda row: row["peak"], 1 / MIB),
        ("peak number of bodies in flight", lambda row: row["in_flight"], 1),
    ]
    panels: list[vega.Spec] = []
    for name, figure, unit in figures:
        y = vega.linear("value", None)
        points: list[vega.Spec] = [
            {"series": row.series, "at": row.at, "hover": hover, **_bounds(estimate, unit)}
            for row, hover in zip(swept, said, strict=True)
            if (estimate := figure(row))
        ]
        baseline = [estimate.value * unit for row in rows if row.is_baseline and (estimate := figure(row))]
        if points:
            layers = [*(vega.reference("y", y, value) for value in baseline), *vega.lines(points, series, x, y)]
            panels.append({"width": PANEL_WIDTH, "height": 160, "title": name, "layer": layers})
    return chart_of(title, {"hconcat": panels}, said, is_wide=True) if panels else Chart(title, is_wide=True)


def scale_chart(comparison: Comparison, rows: Sequence[Row]) -> Chart | None:
    """Return a chart of what more workers deliver: as measured, as predicted here, as projected elsewhere."""
    cost, cores = _scale.costs(rows), comparison.environment.cores
    if cost is None:
        return None
    measured, here, apart = "measured", f"predicted, {cores} cores shared by all", "projected, a machine for each"
    counts = [2**power for power in range(1 + math.ceil(math.log2(max(2, *_scale.by_workers(rows), cost.most(cores)))))]
    points: list[vega.Spec] = [
        {"series": measured, "workers": count, **_bounds(rate, 1)}
        for count, row in _scale.by_workers(rows).items()
        if (rate := _scale.rate(row))
    ]
    for name, delivers in ((here, cost.here), (apart, cost.elsewhere)):
        points += [
            {"series": name, "workers": count, **_bounds(Estimate(delivers(count, cores), None, None, 1), 1)}
            for count in counts
        ]
    said = [f"{each['series']}: {each['workers']} workers, {each['value']:.0f} images/s" for each in points]
    points = [{**each, "hover": words} for each, words in zip(points, said, strict=True)]
    x = {
        **vega.linear("workers", "workers (log scale)"),
        "scale": {"type": "log", "nice": False, "padding": 12},
        "axis": {**vega.GRID, "values": counts},
    }
    y = vega.logarithmic("value", None, [each[end] for each in points for end in ("low", "high")])
    spec = {
        "width": 440,
        "height": 240,
        "padding": {"left": 5, "top": 5, "bottom": 5, "right": 60},
        "title": "images a second (log scale)",
        "layer": vega.lines(points, [measured, here, apart], x, y),
        "config": {**vega.CONFIG, "legend": {**vega.CONFIG["legend"], "orient": "right"}},
    }
    title = (
        f"What more workers deliver with {case_in_words(rows[0].case)}: measured, predicted for this machine, and "
        "projected for machines of their own"
    )
    return chart_of(title, spec, said, is_wide=True)


def workers_chart(comparison: Comparison) -> Chart | None:
    """Return the chart of what more workers deliver, of the last case that has one."""
    return next((chart for _, rows in reversed(comparison.cases) if (chart := scale_chart(comparison, rows))), None)


def laws_chart(comparison: Comparison, found: CaseLaws) -> Chart:
    """Return a chart of the memory that every strategy needs over the amount of data, with intervals."""
    title = findings.of_laws(found) or "Memory by amount of data"
    about = {row.strategy: row for row in comparison.rows}
    names = [_marked(name, about.get(name)) for name in found.laws]
    points: list[vega.Spec] = [
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
        **vega.linear("samples", "samples in the data set (log scale)"),
        "scale": {"type": "log", "nice": False, "padding": 12},
        "axis": {**vega.GRID, "values": sorted({each["samples"] for each in points}), "format": ",d"},
    }
    y = vega.logarithmic("value", None, [each["value"] for each in points])
    spec = {
        "width": 440,
        "height": 280,
        "padding": {"left": 5, "top": 5, "bottom": 5, "right": 60},
        "title": "memory needed above the baseline in MiB (log scale)",
        "layer": vega.lines(points, names, x, y),
        "config": {**vega.CONFIG, "legend": {**vega.CONFIG["legend"], "orient": "right"}},
    }
    return chart_of(title, spec, [each["hover"] for each in points], is_wide=True)


def order_chart(_: Comparison, rows: Sequence[Row]) -> Chart | None:
    """Return a chart of the place on disk of each delivered record: one panel per strategy."""
    title = findings.of_order(rows)
    panels = [(row, list(zip(row.steps, row.walk, strict=True))) for row in rows if row.steps and row.walk]
    if not panels:
        return None
    last_step, last_place = (max(1, *(dot[axis] for _, dots in panels for dot in dots)) for axis in (0, 1))
    points: list[vega.Spec] = [
        {
            "strategy": row.strategy,
            "origin": 0,
            "dots": vega.dots(
                [(step / last_step, place / last_place) for step, place in dots], PANEL_WIDTH, PANEL_HEIGHT
            ),
            "hover": f"{row.strategy}: {ordered(row.order)}",
        }
        for row, dots in panels
    ]
    corner = {"align": "left", "baseline": "bottom", "width": PANEL_WIDTH, "height": PANEL_HEIGHT, "aspect": False}
    dots = {
        "mark": {"type": "image", **corner},
        "encoding": {
            "x": {
                **vega.linear("origin", "position in the output"),
                "scale": {"domain": [0, last_step], "nice": False},
            },
            "y": {**vega.linear("origin", "position on disk"), "scale": {"domain": [0, last_place], "nice": False}},
            "url": {"field": "dots"},
            "description": {"field": "hover"},
        },
    }
    return _panels(title, dots, points, [each["hover"] for each in points])


CHARTS: list[Draw] = [
    tradeoff_chart,
    time_chart,
    memory_chart,
    sweep_chart,
    steps_chart,
    order_chart,
]
"""What is drawn for each case, in this order; a chart with nothing to say about it returns ``None``."""


def chart_of(
    title: str, spec: vega.Spec, said: Iterable[str], names: Iterable[str] = (), *, is_wide: bool = False
) -> Chart:
    picture = svg.drawn({"config": vega.CONFIG, **spec}, f"{title}. {'; '.join(said)}", names)
    return Chart(title, Markup(picture), is_wide)  # noqa: S704 - from an XML tree, which escapes


def _intervals(title: str, points: list[vega.Spec], axis: str, standing_alone: vega.Spec | None = None) -> Chart:
    """Return a chart with one row per strategy: a mark for the estimate, a rule for its interval."""
    if not points:
        return Chart(title)
    names = [each["strategy"] for each in points]
    y: vega.Spec = {
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
    x = vega.logarithmic("value", axis, [each[end] for each in points for end in ("low", "high")])
    kinds = ["baseline", "strategy", "ended early"]
    spec = {
        "width": WIDTH,
        "height": ROW_HEIGHT * len(points),
        "data": {"values": points},
        "encoding": {"y": y},
        "layer": [
            *(vega.reference("x", x, each["value"]) for each in points if each["kind"] == "baseline"),
            {"mark": vega.RANGE, "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}}},
            {
                "mark": {"type": "point", "size": 90, "stroke": vega.INK},
                "encoding": {
                    "x": x,
                    "shape": {**vega.nominal("kind", kinds, ["diamond", "circle", "triangle-right"]), "legend": None},
                    "color": {**vega.nominal("kind", kinds, [vega.AMBER, vega.BLUE, "#7f1d1d"]), "legend": None},
                },
            },
            {"mark": vega.HOVERED, "encoding": {"description": {"field": "hover"}}},
        ],
    }
    return chart_of(title, spec | (standing_alone or {}), [each["hover"] for each in points], names)


def _point(
    row: Row, rows: Sequence[Row], figure: Estimate, words: Callable[[float], str], unit: float, at_least: float = 0.0
) -> vega.Spec:
    kind = "baseline" if row.is_baseline else "strategy" if row.samples else "ended early"
    name = _named(row, rows)
    hover = f"{name}: {estimated(figure, words)}"
    return {"strategy": name, "kind": kind, "hover": hover, **_bounds(figure, unit, at_least)}


def _named(row: Row, rows: Sequence[Row]) -> str:
    """Return a strategy's name with the meaning of its mark's shape and colour."""
    name = _marked(findings.name_of(row, rows), row)
    return name if row.samples else f"{name}, ended early"


def _marked(name: str, row: Row | None) -> str:
    """Return a strategy's name with any role that sets it apart: baseline, or what is never recommended."""
    if row is None:
        return name
    return ", ".join([name, *(["baseline"] if row.is_baseline else []), *roles(row)])


def _bounds(figure: Estimate, unit: float, at_least: float = 0.0) -> dict[str, float]:
    """Return an estimate and its interval in the unit of an axis; a single sample has no interval."""
    low, high = (figure.value if bound is None else bound for bound in (figure.low, figure.high))
    ends = {"value": figure.value, "low": low, "high": high}
    return {name: max(at_least, value * unit) for name, value in ends.items()}


def _panels(title: str, panel: vega.Spec, points: list[vega.Spec], said: Iterable[str]) -> Chart:
    """Return a chart with one small panel per strategy, side by side."""
    names = list(dict.fromkeys(each["strategy"] for each in points))
    spec = {
        "data": {"values": points},
        "facet": {"field": "strategy", "type": "nominal", "sort": names},
        "columns": COLUMNS,
        "spec": {"width": PANEL_WIDTH, "height": PANEL_HEIGHT, **panel},
        "config": {**vega.CONFIG, "view": {}},
    }
    return chart_of(title, spec, said, names, is_wide=True)
