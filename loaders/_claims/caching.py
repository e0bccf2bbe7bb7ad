"""Claims about ``caching``: where a cache stands."""

from __future__ import annotations

from loaders._claims._declare import Found, claim
from loaders._claims._evidence import Figures, NotMeasuredError, above, less_than, light, margin_of_two, part_of
from loaders._claims._figures import PICTURE_BYTES, at_readers_amount, gigabytes, joined, ratio
from loaders._words import amount, estimated

LIGHT = 1.25
"""Peak over that of the same pipeline without a cache, up to which a cache is light in part."""


@claim("A7", "A cache after the heavy step can exhaust memory.")
def cached_pixels_exhaust_memory(figures: Figures) -> Found:
    """By its interval, it needs at least 80 % of the decoded data's bytes more than no cache; by its law, 10 000
    pictures need more than this machine's memory; in part where these would fit.
    """
    cached, plain = figures.row("caching", "cache_after_decode"), figures.row("caching", "no_cache")
    memory = figures.comparison("caching").environment.memory
    if not cached.delivered or not memory:
        raise NotMeasuredError("no figure")
    more_by = figures.increase(cached, plain, "peaks")
    data = cached.delivered * PICTURE_BYTES
    keeps = part_of(less_than(more_by, 0.8 * data), above())
    said = f"{estimated(more_by, amount)} more than no_cache, for {amount(data)} of decoded pictures"
    exhausts, also = at_readers_amount(figures.law("caching", "cache_after_decode"), memory)
    return [keeps, exhausts], f"{said}; {also}, of {gigabytes(memory)} here"


@claim("A8", "A cache before the heavy step is light.")
def cached_paths_and_files_are_light(figures: Figures) -> Found:
    """Peak with cached paths, and with cached files, over that without cache: within 5 % or 1 MiB; in part up to
    1.25.
    """
    plain = figures.row("caching", "no_cache")
    found = []
    for name in ("cache_paths", "cache_encoded"):
        margin = margin_of_two(figures.row("caching", name), plain)
        found.append(ratio(figures, "caching", name, "no_cache", "peaks", light(margin, max(LIGHT, margin))))
    return joined(found)
