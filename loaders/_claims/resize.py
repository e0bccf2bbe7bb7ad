"""Claims about ``resize``: scikit-image and OpenCV."""

from __future__ import annotations

from loaders._claims._declare import Found, claim
from loaders._claims._evidence import Figures, NotMeasuredError, above, less_than, part_of
from loaders._claims._figures import MIB, joined, leaner, ratio
from loaders._words import amount, estimated

LEAK = 12 * MIB
"""A call: the least that a write-up saw resize leak."""

MANY_CALLS = 4
"""One-time memory is told from a leak by several calls."""


@claim("B1", "skimage's resize leaks 12 to 56 MiB a call.")
def resize_leaks(figures: Figures) -> Found:
    """At least 12 MiB per call are held beyond its output, after one call and after all."""
    parts, said = [], []
    for scale in ("0.5", "2.0", "3.5"):
        row = figures.row("resize", "skimage_resize_ubyte", scale=scale)
        calls = (row.delivered or 0) * row.epochs
        if row["retained"] is None or calls < MANY_CALLS:
            raise NotMeasuredError(f"no figure after {MANY_CALLS} calls or more")
        output = float(scale) ** 2 * 640 * 480 * 3
        for held, made in ((row["held_first"], 1), (row["retained"], calls)):
            parts.append(part_of(less_than(held, output + LEAK * made), above()))
        held_first, retained = (estimated(row[each], amount) for each in ("held_first", "retained"))
        said.append(f"{scale}: {held_first} after one call, {retained} after {calls} or more")
    temporary = estimated(figures.row("resize", "skimage_resize_ubyte", scale="3.5")["peak"], amount)
    return parts, f"held, one output included: {', '.join(said)}; what it needs meanwhile ({temporary}) is given back"


@claim("B2", "OpenCV is over ten times as fast as skimage's rescale.")
def opencv_is_ten_times_as_fast(figures: Figures) -> Found:
    """Time ratio, interval above 10, as typed and with the same output, at 0.5 and 3.5."""
    pairs = {
        "as typed": ("skimage_rescale_ubyte", "opencv_linear"),
        "with the same output": ("skimage_antialiased_float", "opencv_antialiased_float"),
    }
    asked = [(how, scale) for how in pairs for scale in ("0.5", "3.5")]
    return joined(
        [ratio(figures, "resize", *pairs[how], "times", above(10), scale=scale) for how, scale in asked],
        *(f"{how} at {scale}" for how, scale in asked),
    )


@claim("B3", "preserve_range().astype is leaner than img_as_ubyte.")
def astype_is_leaner(figures: Figures) -> Found:
    """Ratio of peaks, interval below 1, at 0.5 and 3.5."""
    return joined(
        [
            leaner(figures, "resize", "skimage_resize_astype", "skimage_resize_ubyte", scale=scale)
            for scale in ("0.5", "3.5")
        ],
        "0.5",
        "3.5",
    )
