from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from loaders._report import svg

EVIL = "<b>\"&x</b>\x1b'"


def _spec(**mark: Any) -> dict[str, Any]:
    return {
        "config": {"aria": False, "background": None},
        "data": {"values": [{"name": name, "x": 10 / 3 * place} for place, name in enumerate(["title", EVIL, "z"])]},
        "mark": {"type": "bar", **mark},
        "encoding": {
            "x": {"field": "x", "type": "quantitative", "title": "how much"},
            "y": {"field": "name", "type": "nominal", "title": None, "sort": ["title", EVIL, "z"]},
            "description": {"field": "name"},
        },
    }


def _elements(text: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(text).iter(f"{{{svg.NAMESPACE}}}{tag}"))  # noqa: S314


def _texts(text: str, tag: str) -> list[str]:
    return ["".join(each.itertext()) for each in _elements(text, tag)]


def test_the_picture_is_described_in_words_and_nothing_within_it_is() -> None:
    root = ElementTree.fromstring(svg.drawn(_spec(), f"all of {EVIL}"))  # noqa: S314
    assert (root.get("role"), root.get("aria-label")) == ("img", f"all of {EVIL}".replace("\x1b", "\ufffd"))
    assert all("aria-label" not in each.attrib and "role" not in each.attrib for each in list(root.iter())[1:])


def test_a_description_is_a_tooltip_and_markup_in_it_is_text() -> None:
    drawn = svg.drawn(_spec(), "")
    assert _texts(drawn, "title") == ["title", EVIL.replace("\x1b", "\ufffd"), "z"]
    assert not _elements(drawn, "b")


def test_what_is_not_painted_can_be_pointed_at() -> None:
    assert svg.drawn(_spec(fill="transparent"), "").count('pointer-events="all"') == 1
    assert "pointer-events" not in svg.drawn(_spec(), "")


def test_a_text_that_is_not_measured_is_shown_all_the_same() -> None:
    measured, not_measured = svg.drawn(_spec(), ""), svg.drawn(_spec(), "", ["title", EVIL, "z"])
    assert _texts(measured, "text") == _texts(not_measured, "text")
    assert {"title", "z", "how much"} <= set(_texts(not_measured, "text"))


def test_it_is_much_smaller_and_draws_as_much() -> None:
    import vl_convert

    spec = {**_spec(), "data": {"values": [{"name": name, "x": 10 / 3} for name in "abc"]}}
    spec["encoding"]["y"]["sort"] = ["a", "b", "c"]
    whole = vl_convert.vegalite_to_svg(spec)
    drawn = svg.drawn(spec, "")
    assert len(drawn) < len(whole) / 2
    for tag in ("text", "line"):
        assert len(_elements(drawn, tag)) == len(_elements(whole, tag))
    assert not any(len(number.partition(".")[2]) > 1 for number in svg._NUMBER.findall(drawn))


@pytest.mark.parametrize(
    ("inner", "together"),
    [("translate(0.5,-2)", {"transform": "translate(1.5,0)"}), ("translate(-1,-2)", {})],
)
def test_a_group_keeps_its_place_when_it_is_merged_with_another(inner: str, together: dict[str, str]) -> None:
    outer = ElementTree.fromstring(  # noqa: S314
        f'<g transform="translate(1,2)"><g transform="{inner}" fill="red"><path d="M0,0"/></g></g>'
    )
    (merged,) = svg._regrouped(outer)
    assert merged.attrib == {"fill": "red", **together}
