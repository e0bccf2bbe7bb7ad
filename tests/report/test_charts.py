from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from loaders._law import Law
from loaders._report import charts, svg, vega
from loaders._rows import CaseLaws, Comparison, Row, comparison, loaders_of
from loaders._stats import Estimate
from loaders._trial.metrics import Metrics
from tests.report.test_findings import reads
from tests.test_rows import record

MIB = 2**20
EVIL = '<b>"&x'


def _rows(figures: dict[str, tuple[float, float]], rounds: int = 2) -> list[Row]:
    """Return rows of strategies with a time in seconds and a peak in MiB; the second round is worse by a tenth."""
    return comparison(
        [
            record(name, index, time=time * 1.1**index, peak=peak * 1.1**index)
            for index in range(rounds)
            for name, (time, peak) in figures.items()
        ]
    ).rows


def _comparison() -> Comparison:
    return comparison([record("numpy_to_numpy", 0, time=1.0)])


def _laws(*names: str) -> CaseLaws:
    points = [(40, Estimate(MIB, 0, 9 * MIB, 2)), (160, Estimate(2 * MIB, MIB, 9 * MIB, 2))]
    return CaseLaws({}, {name: Law("unknown", "two amounts", points) for name in names})


def _drawn(draw: charts.Draw, rows: Sequence[Row], of: Comparison | None = None) -> charts.Chart:
    chart = draw(of or _comparison(), rows)
    assert chart
    return chart


def _walked() -> list[Row]:
    walk = [(step * 7) % 1000 for step in range(1000)]
    return [msgspec.structs.replace(row, steps=list(range(1000)), walk=walk) for row in comparison(reads()).rows]


def _swept() -> Comparison:
    records = [
        record(
            f"py_function_{at}",
            index,
            question="python_map",
            case={"work": "array"},
            metrics=Metrics(epoch_time=1.0 / int(at), peak_memory=int(at) * 44 * MIB, bodies_in_flight=2),
        )
        for index in range(2)
        for at in ("1", "2", "4")
    ]
    return comparison(records)


DRAWN: dict[str, Callable[[], charts.Chart]] = {
    "time": lambda: _drawn(charts.time_chart, _rows({"numpy_to_numpy": (0.3, 24), "numpy_to_list": (1.2, 1054)})),
    "memory": lambda: _drawn(charts.memory_chart, _rows({"numpy_to_numpy": (0.3, 24), "numpy_to_list": (1.2, 1054)})),
    "trade-off": lambda: _drawn(
        charts.tradeoff_chart,
        _rows({"numpy_to_numpy": (0.3, 24), "numpy_to_list": (1.2, 1054), "mixed_copy": (1.3, 1100)}),
    ),
    "steps": lambda: _drawn(charts.steps_chart, comparison(reads()).rows),
    "sweep": lambda: _drawn(charts.sweep_chart, _swept().rows, _swept()),
    "laws": lambda: charts.laws_chart(_comparison(), _laws("load_all")),
    "order": lambda: _drawn(charts.order_chart, _walked()),
}

FIGURES = {
    "time": ["numpy_to_numpy, baseline: 315 ms (172 to 576)", "numpy_to_list: 1.26 s (687 ms to 2.31 s)"],
    "memory": ["numpy_to_numpy, baseline: 25.2 MiB (", "numpy_to_list: 1107 MiB ("],
    "trade-off": ["numpy_to_list: 1.26 s (687 ms to 2.31 s), 1107 MiB ("],
    "steps": ["interleave: plateau at 600 MiB, 380 MiB of it held by the allocator"],
    "sweep": ["py_function_4: 250 ms (250 to 250), 176 MiB (176 to 176), 2 in flight"],
    "laws": ["load_all, 40 samples: 1.0 MiB (0.0 to 9.0)"],
    "order": ["interleave: displacement 0.30"],
}


def _parsed(chart: charts.Chart) -> ElementTree.Element:
    return ElementTree.fromstring(chart.picture)  # noqa: S314


def _texts(chart: charts.Chart, tag: str) -> list[str]:
    return [each.text or "" for each in _parsed(chart).iter(f"{{{svg.NAMESPACE}}}{tag}")]


def test_what_is_not_compared_is_not_called_beaten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cure is no loader of its own, and what may beat the others is not said to be beaten."""
    found = comparison(reads())
    drawn: list[Any] = []
    monkeypatch.setattr(charts, "chart_of", lambda _, spec, *__, **___: drawn.append(spec))
    charts.tradeoff_chart(found, found.rows)
    points = drawn[0]["data"]["values"]
    kinds = {each["hover"].partition(":")[0].partition(",")[0]: each["kind"] for each in points}
    assert kinds["interleave_mmap_threshold"] == "not compared"
    assert "best trade-off" in kinds.values()
    assert "not compared" not in {kinds[row.strategy] for row in loaders_of(found.rows)}


@pytest.mark.parametrize("kind", DRAWN)
def test_every_chart_says_its_figures_in_words_and_under_the_pointer(kind: str) -> None:
    chart = DRAWN[kind]()
    label = _parsed(chart).get("aria-label") or ""
    assert label.startswith(chart.title)
    for figure in FIGURES[kind]:
        assert figure in label
        assert any(figure in hover for hover in _texts(chart, "title"))


@pytest.mark.parametrize("kind", DRAWN)
def test_the_title_is_for_the_page_to_show(kind: str) -> None:
    chart = DRAWN[kind]()
    assert chart.title
    assert chart.title not in _texts(chart, "text")


def test_the_picture_that_stands_alone_has_its_title_in_it() -> None:
    picture = charts.memory_picture(_rows({"numpy_to_numpy": (0.3, 24), "numpy_to_list": (1.2, 1054)}))
    assert ">Peak memory ranges from 25.2 MiB (numpy_to_numpy) to 1107 MiB (numpy_to_list)</text>" in picture
    assert 'fill="white"' in picture


@pytest.mark.parametrize("draw", charts.CHARTS)
def test_without_figures_there_is_no_picture(draw: charts.Draw) -> None:
    failed = comparison([record("numpy_to_list", 0, status="failed", message="x")]).rows
    for rows in ([], failed):
        chart = draw(_comparison(), rows)
        assert chart is None or not chart.picture
    assert not charts.laws_chart(_comparison(), _laws()).picture


def test_names_full_of_markup_are_text() -> None:
    rows = _rows({"numpy_to_numpy": (0.3, 24), EVIL: (1.2, 1054), "value": (1.0, 1.0), "Ā": (2.0, 2.0)})
    for draw in (charts.time_chart, charts.memory_chart, charts.tradeoff_chart):
        chart = _drawn(draw, rows)
        assert "<b>" not in chart.picture
        assert any(hover.startswith((f"{EVIL}: 1.26 s", f"{EVIL}: 1107")) for hover in _texts(chart, "title"))
    assert {EVIL, "value", "Ā", "numpy_to_numpy, baseline"} <= set(_texts(_drawn(charts.memory_chart, rows), "text"))


def test_a_strategy_may_be_called_as_a_field_of_the_data() -> None:
    named, other = (
        _drawn(charts.memory_chart, _rows({"numpy_to_numpy": (0.3, 24), name: (1.2, 1054)})).picture
        for name in ("value", "sieve")
    )
    assert named == other.replace("sieve", "value")


def test_an_order_of_one_record_is_a_dot_in_the_corner() -> None:
    """Whoever handed it in, it does not end the page."""
    rows = [msgspec.structs.replace(row, steps=[0], walk=[0]) for row in comparison(reads()).rows]
    assert _drawn(charts.order_chart, rows)


def test_a_single_sample_is_drawn_without_an_interval() -> None:
    chart = _drawn(charts.time_chart, _rows({"numpy_to_numpy": (0.3, 24), "numpy_to_list": (0.3, 1054)}, rounds=1))
    assert "numpy_to_list: 300 ms (single sample)" in _texts(chart, "title")
    assert {"280", "300", "320"} & set(_texts(chart, "text"))


def test_memory_too_small_for_the_axis_is_drawn_at_its_end() -> None:
    chart = _drawn(charts.memory_chart, _rows({"numpy_to_numpy": (0.3, 0), "numpy_to_list": (1.2, 1054)}))
    assert "0.1" in _texts(chart, "text")
    assert 'transform="translate(0,11)" d="M-4.7,0L0,-4.7' in chart.picture, "the baseline's mark, on the left"
    assert "numpy_to_numpy, baseline: 0.0 MiB (0.0 to 0.0)" in _texts(chart, "title")
    assert "NaN" not in chart.picture


def test_a_strategy_that_ended_early_is_named_as_such() -> None:
    records = [record("numpy_to_numpy", 0, 0.3, 24), record("numpy_to_list", 0, status="over_budget", peak=850)]
    assert "numpy_to_list, ended early" in _texts(_drawn(charts.memory_chart, comparison(records).rows), "text")


def test_more_lines_than_colours_differ_in_their_marks() -> None:
    many = [f"s{number}" for number in range(len(vega.SHAPES))]
    picture = charts.laws_chart(_comparison(), _laws(*many)).picture
    marks = re.findall(r'<path[^>]* d="([^"]+)"[^>]*><title>', picture)
    assert len(set(marks)) == len(many) > len(vega.COLOURS)


def test_a_trace_is_thinned_and_may_be_empty() -> None:
    rows = comparison(reads()).rows
    trace = rows[0].trace
    assert trace
    many = {"step": [*range(1000)], "seconds": [0.0] * 1000, "resident": [MIB] * 1000}
    long = msgspec.structs.replace(trace, **many, in_use=None, held=None)
    empty = msgspec.structs.replace(trace, step=[], seconds=[], resident=[], in_use=[], held=[])
    chart = _drawn(charts.steps_chart, [msgspec.structs.replace(rows[0], trace=each) for each in (long, empty)])
    line = max(re.findall(r' d="([^"]*)"', chart.picture), key=len)
    assert 30 <= line.count("L") < charts.LINE_POINTS


@pytest.mark.parametrize(("kind", "series"), [("sweep", "py_function"), ("laws", "load_all")])
def test_lines_have_a_legend(kind: str, series: str) -> None:
    assert series in _texts(DRAWN[kind](), "text")


def test_dots_stand_where_they_belong_and_take_little_room() -> None:
    address = vega.dots([(0.0, 0.0), (0.5, 1.0)], 230, 120)
    picture = Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))).convert("RGBA")
    opaque = [divmod(at, picture.width)[::-1] for at, alpha in enumerate(picture.getchannel("A").tobytes()) if alpha]
    middle = picture.width // 2
    assert {y for x, y in opaque if x < 10} == set(range(picture.height - 3, picture.height))
    assert {y for x, y in opaque if x >= 10} == {0, 1, 2}
    assert all(x < 10 or abs(x - middle) < 4 for x, _ in opaque)
    assert len(vega.dots([(each / 1000, each * 7 % 1000 / 1000) for each in range(1000)], 230, 120)) < 6000


@given(st.floats(1e-6, 1e9), st.floats(1, 1e9))
@example(0.1, 1.0)
@example(1.0, 1000.0)
def test_ticks_are_few_round_numbers_around_all_values(low: float, ratio: float) -> None:
    high = low * ratio
    found = vega.ticks(low, high)
    assert found[0] <= low <= high <= found[-1]
    assert found == sorted(set(found))
    assert found[0] > 0
    assert 2 <= len(found) <= max(vega.MOST_TICKS, 2 + len(f"{int(ratio)}"))
    assert all(len(f"{tick:.6e}".partition("e")[0].replace(".", "").rstrip("0")) <= 3 for tick in found)
    if ratio < 1e6:
        assert found[-1] / found[0] < max(1.5, ratio * 12)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (12.0, 640.0, [10, 20, 50, 100, 200, 500, 1000]),
        (0.1, 88.0, [0.1, 0.3, 1, 3, 10, 30, 100]),
        (0.1, 90_000.0, [0.1, 1, 10, 100, 1000, 10_000, 100_000]),
        (190.0, 211.0, [190, 195, 200, 205, 210, 215]),
    ],
)
def test_ticks_are_finer_where_the_span_is_short(low: float, high: float, expected: list[float]) -> None:
    assert vega.ticks(low, high) == expected


@pytest.mark.parametrize("colour", [*vega.COLOURS, vega.GREY, vega.INK])
def test_marks_stand_out_from_white(colour: str) -> None:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [part / 255 for part in bytes.fromhex(digits)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    assert 1.05 / (luminance + 0.05) >= 4.5
