"""Vega-Lite specifications to SVG text: small, with a text alternative and script-free tooltips. Pure."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any
from xml.etree import ElementTree

import vl_convert

NAMESPACE = "http://www.w3.org/2000/svg"
FONT = "system-ui, sans-serif"

GEOMETRY = frozenset({"d", "dy", "height", "transform", "viewBox", "width", "x", "x2", "y", "y2"})
INHERITED = (
    "fill",
    "font-size",
    "font-weight",
    "pointer-events",
    "stroke",
    "stroke-dasharray",
    "stroke-width",
    "text-anchor",
)
KEPT = GEOMETRY.union(INHERITED, {"href", "opacity", "preserveAspectRatio"})
"""The attributes that draw something. Vega's others serve its scripts or label the parts of an ``img``."""

TEXTS = frozenset({"domain", "sort", "title", "values"})
"""The parts of a specification whose strings are displayed or are data."""

DEFAULTS = {
    ("font-weight", "normal"),
    ("opacity", "1"),
    ("pointer-events", "none"),
    ("stroke-width", "1"),
    ("transform", "translate(0,0)"),
    ("x2", "0"),
    ("y2", "0"),
}

# Characters not allowed in XML; vl_convert aborts the process on them.
NOT_XML = dict.fromkeys([*({*range(32)} - {*map(ord, "\t\n\r")}), 0xFFFE, 0xFFFF], "\N{REPLACEMENT CHARACTER}")

_NUMBER = re.compile(r"-?\d*\.?\d+(?:e[-+]?\d+)?")
_SHIFT = re.compile(r"translate\((.+),(.+)\)")


def drawn(spec: Mapping[str, Any], description: str, unmeasured: Iterable[str] = ()) -> str:
    """Return the SVG of a Vega-Lite specification.

    Parameters
    ----------
    spec
        A mark's ``description`` becomes its tooltip, a ``<title>`` element.
    description
        Everything the picture shows, for readers who cannot see it.
    unmeasured
        Texts for which the layout reserves enough room anyway, as it does for titles. vl_convert spends most of its
        time measuring text, a millisecond per twenty letters, so it gets one letter in place of each such text, which
        is put back afterwards.
    """
    letters: dict[str, str] = {}
    for text in unmeasured:
        letters.setdefault(text, _letter(letters))
    short = _shortened(spec, letters, is_text=False)
    # Vega's own output is parsed here: no document type, no entities.
    root = ElementTree.fromstring(_laid_out(json.dumps(short)))  # noqa: S314
    texts = {letter: text for text, letter in letters.items()}
    for element in root.iter(f"{{{NAMESPACE}}}text"):
        element.text = texts.get(element.text or "", element.text)
    (small,) = _smaller(root)
    small.attrib = {"xmlns": NAMESPACE, "role": "img", "aria-label": description, "font-family": FONT, **small.attrib}
    return ElementTree.tostring(small, "unicode").translate(NOT_XML)


@functools.cache
def _laid_out(spec: str) -> str:
    """Return what vl_convert makes of a specification; a page that is tried with fewer charts asks for most again."""
    return vl_convert.vegalite_to_svg(spec)


def _letter(letters: Sized) -> str:
    """Return a letter that is not the whole of any other text in a chart, starting with Ā."""
    return chr(0x100 + len(letters))


def _shortened(part: Any, letters: dict[str, str], *, is_text: bool) -> Any:
    """Return a part of a specification with letters in place of texts; titles get a letter too."""
    if isinstance(part, Mapping):
        if isinstance(title := part.get("title"), str):
            letters.setdefault(title, _letter(letters))
        return {key: _shortened(each, letters, is_text=is_text or key in TEXTS) for key, each in part.items()}
    if isinstance(part, list):
        return [_shortened(each, letters, is_text=is_text) for each in part]
    return letters.get(part, part.translate(NOT_XML)) if is_text and isinstance(part, str) else part


def _smaller(element: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """Yield a shorter equivalent of an element: the element itself, its children, or nothing."""
    if element.get("display") == "none":
        return
    tag = element.tag = element.tag.removeprefix(f"{{{NAMESPACE}}}")
    hover = "" if tag == "g" else element.get("aria-label", "")
    element.attrib = dict(_attributes(element))
    if tag == "text" and not len(element) and not {"x", "y"} & element.attrib.keys():
        _place(element)
    element[:] = [each for child in element for each in _smaller(child)]
    unpainted = tag == "path" and not {"fill", "stroke"} & element.attrib.keys()
    if hover:
        ElementTree.SubElement(element, "title").text = hover
        if unpainted:
            element.set("pointer-events", "all")
    if tag == "g":
        yield from _regrouped(element)
    elif hover or not unpainted:
        yield element


def _place(text: ElementTree.Element) -> None:
    """Give a text that is only moved its place, which is shorter."""
    if moved := _SHIFT.fullmatch(text.get("transform", "")):
        del text.attrib["transform"]
        text.attrib |= {name: value for name, value in zip("xy", moved.groups(), strict=True) if value != "0"}


def _attributes(element: ElementTree.Element) -> Iterator[tuple[str, str]]:
    for qualified, value in element.items():
        name = qualified.rpartition("}")[2]
        short = _NUMBER.sub(_tenths, value) if name in GEOMETRY else value
        if name in KEPT and (name, short) not in DEFAULTS:
            yield name, short


def _tenths(number: re.Match[str]) -> str:
    return f"{round(float(number[0]), 1) + 0:g}"  # + 0 makes a negative zero a zero


def _regrouped(group: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """Move attributes that all children share to their group; yield the group only if it still has any effect."""
    for name in INHERITED:
        values = {child.get(name) for child in group}
        if len(values) == 1 and (value := values.pop()) is not None:
            group.set(name, value)
            for child in group:
                del child.attrib[name]
    if not group.attrib:
        yield from group
    elif len(group) == 1 and group[0].tag == "g":
        (inner,) = group
        shift = _sum(group.attrib.pop("transform", ""), inner.attrib.pop("transform", ""))
        inner.attrib = {**group.attrib, **inner.attrib, **shift}
        yield inner
    elif len(group):
        yield group


def _sum(*shifts: str) -> dict[str, str]:
    """Add up translations; a group's ``transform`` holds nothing else here."""
    found = [match for shift in shifts if (match := _SHIFT.fullmatch(shift))]
    x, y = (sum(float(match[axis]) for match in found) for axis in (1, 2))
    return {"transform": f"translate({x:g},{y:g})"} if x or y else {}
