"""Claims about ``known_issues``: what bug reports say, each with its bound."""

from __future__ import annotations

import math

from loaders._claims._declare import Found, claim
from loaders._claims._evidence import (
    Figures,
    NotMeasuredError,
    Part,
    Shown,
    above,
    exactly,
    less_than,
    of_trials,
    opposite_of,
    part_of,
)
from loaders._claims._figures import NOTICEABLE, ratio
from loaders._rows import Row
from loaders._stats import estimate
from loaders._words import amount, estimated, over_steps, percent

TENSORFLOW = "tensorflow"

IN_USE = ("growing, in use", "growing")
BY_ALLOCATOR = ("growing, held by the allocator",)

STAYS = 0.1
"""Of the data's bytes, from which on a cache in a file counts as taking memory for them."""

SHUFFLED = 1 / 4
"""Displacement below which an order counts as hardly shuffled; a perfect shuffle has a third."""

OFTEN = 0.5
"""An epoch that ends less often than this would have been met."""


@claim(
    "K1",
    "from_generator leaks.",
    issue="tensorflow/tensorflow#65675",
    reported="2.16.1 with Python 3.11; open",
    package=TENSORFLOW,
)
def from_generator_leaks(figures: Figures) -> Found:
    """Memory over the steps of four epochs grows; in part if the allocator holds what grows; not if it stays level;
    undecided unless most trials decide.
    """
    return _grows(figures, "from_generator", "steps")


@claim(
    "K2",
    "py_function leaks.",
    issue="tensorflow/tensorflow#61344",
    reported="2.12; said to be gone by 2.15",
    package=TENSORFLOW,
)
def py_function_leaks(figures: Figures) -> Found:
    """Memory over the steps of four epochs grows; in part if the allocator holds what grows; not if it stays level;
    undecided unless most trials decide.
    """
    return _grows(figures, "py_function", "steps")


@claim(
    "K3",
    "A shuffle buffer leaks.",
    issue="tensorflow/tensorflow#44176",
    reported="2.3, and in openvla/openvla#4",
    package=TENSORFLOW,
)
def shuffle_buffer_leaks(figures: Figures) -> Found:
    """Memory over the steps of four epochs grows, of samples that differ in size; in part if the allocator holds what
    grows; not if it stays level; undecided unless most trials decide.
    """
    parts, said = _grows(figures, "shuffle_buffer", "sizes")
    others = []
    for name, how in (("shuffle_buffer_one_arena", "one arena"), ("shuffle_buffer_tcmalloc", "tcmalloc")):
        try:
            others.append(f"with {how} {over_steps(figures.row('known_issues', name, data='sizes'))}")
        except NotMeasuredError:
            continue  # the verdict does not rest on them
    return parts, "; ".join([said, *others])


@claim(
    "K4",
    "cache(filename) takes memory all the same.",
    issue="tensorflow/tensorflow#56404",
    reported="2.9; closed without a cure",
    package=TENSORFLOW,
)
def a_cache_in_a_file_takes_memory(figures: Figures) -> Found:
    """It needs at least a tenth of the data's bytes more than no cache, by the interval."""
    cached, plain = (figures.row("known_issues", name, data="sizes") for name in ("cache_to_file", "tfdata_plain"))
    rounds = sorted(cached.needs.keys() & plain.needs.keys())
    written = cached["disk"]
    if not rounds or not written:
        raise NotMeasuredError("no figure")
    more = estimate([cached.needs[each] - plain.needs[each] for each in rounds], "linear")
    said = f"{estimated(more, amount)} more than without a cache, for {amount(written.value)} in the file"
    return [part_of(less_than(more, STAYS * written.value), above())], said


@claim(
    "K5",
    "image_dataset_from_directory with batch_size=None hardly shuffles.",
    issue="keras-team/keras#19502",
    reported="3.1: 1024 images at a time",
    package="keras",
)
def keras_hardly_shuffles(figures: Figures) -> Found:
    """The images' mean displacement is below a quarter of the data, where a perfect shuffle has a third."""
    row = figures.row("known_issues", "keras_image_dataset_unbatched", data="files")
    if row.order is None or not row.delivered:
        raise NotMeasuredError("no order")
    return [exactly(row.order.displacement < SHUFFLED)], (
        f"displacement {row.order.displacement:.2f} of {row.delivered} images"
    )


@claim(
    "K6",
    "PyDataset with several workers never ends its epoch.",
    issue="keras-team/keras#20425",
    reported="3.6; closed",
    package="keras",
)
def keras_workers_hang(figures: Figures) -> Found:
    """Any trial was ended by its deadline; not if so many epochs ended that fewer than half would have been met."""
    name, of = "keras_pydataset_workers", figures.comparison("known_issues")
    found = [row for row in of.rows if row.strategy == name]
    if not found or not found[0].trials:
        raise NotMeasuredError(f"known_issues {name} was not run")
    (row,) = found
    if any(end.startswith("timed out") for end in row.status.split("; ")):  # in a message it may stand as well
        return [exactly(holds=True)], f"{row.samples} of {row.trials} trials ended: {row.status}"
    ended = row.samples * of.epochs
    if not ended:
        raise NotMeasuredError(f"{name}: {row.status}")
    bound = 1 - math.exp(math.log(1 - 0.95) / ended)
    said = f"all of {ended} epochs ended, so that less than {percent(bound)} of them hang (95 %)"
    return [Part(Shown(fails=OFTEN**ended))], said


@claim(
    "K7",
    "DataLoader's workers copy a list, and not an array.",
    issue="pytorch/pytorch#13246",
    reported="since 0.4; open",
    package="torch",
)
def workers_copy_lists(figures: Figures) -> Found:
    """Memory of the process tree, without files' pages, grows over a long epoch with a list of strings, and stays level
    with an array of them; undecided unless most trials decide.
    """
    of_list, said_of_list = _grows(figures, "torch_dataloader_list", "paths")
    of_array, said_of_array = _grows(figures, "torch_dataloader_array", "paths")
    return [*of_list, *map(opposite_of, of_array)], f"list: {said_of_list}; array: {said_of_array}"


@claim(
    "K8",
    "grain leaves shared memory behind.",
    issue="google/grain#1031",
    reported="0.2; open",
    package="grain",
)
def grain_leaves_shared_memory(figures: Figures) -> Found:
    """Pieces of shared memory as large as a batch are there three seconds after an epoch, another one having been given
    up before.
    """
    row = figures.row("known_issues", "grain_processes", data="steps")
    if row.left_behind is None:
        raise NotMeasuredError("what stayed was not counted")
    return [exactly(row.left_behind > 0)], f"{amount(row.left_behind)} of shared memory stayed ({row.trials} trials)"


@claim(
    "K9",
    "DYNAMIC sharding of many small elements is slow.",
    issue="tensorflow/tensorflow#70541",
    reported="2.15.1; open",
    package=TENSORFLOW,
)
def dynamic_sharding_is_slow(figures: Figures) -> Found:
    """Time with DYNAMIC over that with OFF, of one worker that hands out single samples, interval above 1.1."""
    part, said = ratio(
        figures, "known_issues", "service_dynamic", "service_off", "times", above(NOTICEABLE), data="steps"
    )
    return [part], said


def _grows(figures: Figures, name: str, data: str) -> Found:
    """Test whether a strategy's memory grows, and say what the control's does."""
    row, control = (figures.row("known_issues", each, data=data) for each in (name, "python_loop"))
    shown = of_trials(row.growth, row.samples, IN_USE, BY_ALLOCATOR, most=True)
    return [Part(shown)], f"{_words_of(row)}; a Python loop {_words_of(control)}"


def _words_of(row: Row) -> str:
    return f"{over_steps(row)} ({row.trials} trials)"
