"""Claims about ``selection``: lists and arrays."""

from __future__ import annotations

from loaders._claims._declare import Found, claim
from loaders._claims._evidence import Figures, below, part_of, ratio_to, within
from loaders._claims._figures import NOTICEABLE, joined, ratio
from loaders._words import amount, estimated


@claim("C1", "Lists work at a normal level of memory.")
def lists_are_normal(figures: Figures) -> Found:
    """At most a fifth of the mixed form's peak."""
    return joined([ratio(figures, "selection", "list_to_list", "numpy_to_list", "peaks", below(0.2))])


@claim("C2", "All NumPy halves it.")
def numpy_halves_it(figures: Figures) -> Found:
    """At most half of the lists' peak."""
    return joined([ratio(figures, "selection", "numpy_to_numpy", "list_to_list", "peaks", below(0.5))])


@claim("C3", "The mixed form keeps every old array alive: about 1100 MiB.")
def mixed_keeps_every_array(figures: Figures) -> Found:
    """Within 20 % of the bytes of a hundred arrays."""
    row = figures.row("selection", "numpy_to_list")
    expected = sum((500 - drawn) * 32 * 32 * 3 * 8 for drawn in range(100))
    said = f"{estimated(row['peak'], amount)}; a hundred arrays kept whole are {amount(expected)}"
    return [part_of(ratio_to(row["peak"], expected), within(0.8, 1.2))], said


@claim("C4", "Either cure removes it.")
def either_cure_removes_it(figures: Figures) -> Found:
    """At most a fifth of the mixed form's peak."""
    return joined(
        [
            ratio(figures, "selection", cure, "numpy_to_list", "peaks", below(0.2))
            for cure in ("mixed_tolist", "mixed_copy")
        ]
    )


@claim("C5", "del on a list moves references only and copies no data.")
def del_moves_references(figures: Figures) -> Found:
    """Peak with del over peak without it, interval below 1.1."""
    return joined([ratio(figures, "selection", "list_to_list", "list_skipping", "peaks", below(NOTICEABLE))])
