"""Claims about ``read_order``: how records are walked."""

from __future__ import annotations

from loaders._claims._declare import Found, claim
from loaders._claims._evidence import (
    Figures,
    NotMeasuredError,
    Part,
    Shown,
    both,
    exactly,
    margin_of_two,
    of_trials,
    part_of,
    ratio_of,
    unchanged,
)
from loaders._rows import Row
from loaders._words import amount, level, multiple


@claim("B7", "Interleave leaks; parallel reads do not.")
def interleave_leaks(figures: Figures) -> Found:
    """Growth of memory in use for interleave, and a bound on it for parallel reads, with 0.5 MB records."""
    rows = [figures.row("read_order", name, record="tensor") for name in ("interleave", "parallel_reads")]
    said = "; ".join(f"{_grows(row)}, peak {multiple(row['over_floor'])} its floor" for row in rows)
    one, other = (_leaks(row) for row in rows)
    return [Part(both(one, Shown(other.fails, other.holds)))], said


@claim("B8", "Removing prefetch, sharing the map function or reading one source changes nothing.")
def what_changes_nothing(figures: Figures) -> Found:
    """Every ratio of peaks has a 90 % interval within 5 % or 1 MiB.

    Sources with a function each are parsed before they are mixed and shuffled, others after that: what the shuffle
    buffer then holds differs too. Without ``prefetch``, tf.data may still read ahead (``inject_prefetch``).
    """
    pairs = [
        ("mixed_interleave_no_prefetch", "mixed_interleave"),
        ("mixed_interleave_map_apart", "mixed_interleave"),
        ("mixed_parallel_reads_no_prefetch", "mixed_parallel_reads"),
        ("mixed_parallel_reads_map_apart", "mixed_parallel_reads"),
        ("interleave", "mixed_interleave"),
        ("parallel_reads", "mixed_parallel_reads"),
    ]
    parts, said = [], []
    for one, other in pairs:
        rows = [figures.row("read_order", name, record="tensor") for name in (one, other)]
        difference = figures.ratio("read_order", one, other, "peaks", record="tensor")
        parts.append(part_of(difference, unchanged(margin_of_two(*rows))))
        said.append(f"{one} / {other}: {multiple(ratio_of(difference))}")
    return parts, f"peak memory: {'; '.join(said)}"


@claim("B9", "Range indexing stays flat.")
def range_indexing_is_flat(figures: Figures) -> Found:
    """The verdict on its memory is flat; in part where it is a plateau."""
    row = figures.row("read_order", "range_indexed", record="tensor")
    return [Part(of_trials(row.growth, row.samples, ["flat"], ["plateau"]))], _grows(row)


@claim("B10", "Tiny records never leak.")
def tiny_records_never_leak(figures: Figures) -> Found:
    """A bound on the growth of memory in use with one integer a record, for every order."""
    names = (
        *("range_indexed", "sequential", "parallel_reads", "mixed_parallel_reads"),
        *("interleave", "interleave_sequential", "interleave_deterministic_false", "mixed_interleave"),
    )
    rows = [figures.row("read_order", name, record="int64") for name in names]
    leaks = [_leaks(row) for row in rows]
    never = both(*(Shown(each.fails, each.holds) for each in leaks))
    return [Part(never)], "; ".join(_grows(row) for row in rows)


@claim("B11", "Parallel reads end with the last file alone; interleave mixes to the end.")
def the_last_file_comes_alone(figures: Figures) -> Found:
    """Over 90 % of the last tenth in order for the one, below 10 % for the other."""
    tails = {}
    for name in ("parallel_reads", "interleave"):
        order = figures.row("read_order", name, record="int64").order
        if order is None or order.tail_monotony is None:
            raise NotMeasuredError(f"the order of {name} was not measured")
        tails[name] = order.tail_monotony
    said = ", ".join(f"{name}: {tail:.0%}" for name, tail in tails.items())
    parts = [exactly(tails["parallel_reads"] > 0.9), exactly(tails["interleave"] < 0.1)]
    return parts, f"of the last tenth of the records, the share read on in order: {said}"


def _leaks(row: Row) -> Shown:
    """Return how surely memory in use grows, or does not: for that it needs a bound."""
    growing = of_trials(row.growth, row.samples, ["growing, in use"])
    if growing.holds < 1:
        return growing
    rests = of_trials(row.growth, row.samples, ["flat", "plateau"])
    held = of_trials(row.growth, row.samples, ["flat", "plateau", "growing, held by the allocator"])
    return Shown(fails=held.holds if row.in_use_bound is not None else rests.holds)


def _grows(row: Row) -> str:
    bound = "" if row.in_use_bound is None else f", in use at most {amount(row.in_use_bound)} more per 1000 steps"
    return f"{row.strategy} {level(row.growth, row['level'], row['level_held'])}{bound}"
