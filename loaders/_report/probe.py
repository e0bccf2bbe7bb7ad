"""What was found about somebody's own pipeline, as one page to be sent on."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from loaders._probe import words
from loaders._probe.found import Found
from loaders._probe.gates import Gate
from loaders._report import vega
from loaders._report.charts import Chart, chart_of
from loaders._report.page import part, templates
from loaders._words import growth_in_words

MIB = 2**20


def render(found: Found, judged: Sequence[Gate], command: str) -> str:
    """Return the page."""
    return (
        templates()
        .get_template("probe.html.j2")
        .render(
            found=found,
            answers=words.answers(found),
            cure=words.cure(found),
            lines=words.lines(found),
            gates=words.gate_lines(judged),
            conditions=words.conditions(found),
            chart=memory_chart(found),
            command=command,
            style=Markup(part("page.css")),  # noqa: S704 - our own
        )
    )


def memory_chart(found: Found) -> Chart | None:
    """Return a chart of memory over the batches; ``None`` without a trace."""
    trace = found.trace
    if trace is None or len(trace.step) < 2:
        return None
    kinds = {"resident": trace.resident, "in use": trace.in_use, "held by the allocator": trace.held}
    there = {kind: values for kind, values in kinds.items() if values}
    points: list[vega.Spec] = [
        {"kind": kind, "step": at, "value": size / MIB}
        for kind, values in there.items()
        for at, size in zip(trace.step, values, strict=True)
    ]
    spec: vega.Spec = {
        "width": 640,
        "height": 220,
        "data": {"values": points},
        "mark": {"type": "line", "strokeWidth": 1.5},
        "encoding": {
            "x": vega.linear("step", "batches"),
            "y": vega.linear("value", "MiB above the baseline"),
            "color": vega.nominal("kind", [*there], [vega.INK, vega.BLUE, vega.AMBER][: len(there)]),
            "strokeDash": vega.nominal("kind", [*there], [[1, 0], [6, 3], [2, 2]][: len(there)]),
        },
    }
    said = growth_in_words(found.growth) if found.growth else "no verdict"
    whose = "memory of all processes together" if trace.tree else "memory"
    return chart_of(f"{whose.capitalize()} over the steps", spec, [said])
