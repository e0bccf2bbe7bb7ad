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
    known,
    less_than,
    of_trials,
    opposite_of,
    part_of,
)
from loaders._claims._figures import NOTICEABLE, ratio
from loaders._rows import Row
from loaders._words import amount, estimated, over_steps, percent

TENSORFLOW = "tensorflow"

IN_USE = ("growing, in use", "growing")
BY_ALLOCATOR = ("growing, held by the allocator",)

STAYS = 0.1
"""Of the data's bytes, from which on a cache in a file counts as taking memory for them."""

PICTURES = 1024
"""How many were reported to be held."""

HELD = PICTURES * 64 * 64 * 3 * 4
"""Bytes of the images that were reported to be held: ``pictures`` in float32."""

OFTEN = 0.5
"""What goes wrong at least this often would have been met."""


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

    As users run it: with what TensorFlow 2.21 does to malloc against the report (``loaders._malloc``).
    """
    return _grows(figures, "from_generator", "steps")


@claim(
    "K2",
    "py_function leaks.",
    issue="tensorflow/tensorflow#61344",
    reported="2.13; said to be gone by 2.15",
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
        if row := figures.aside("known_issues", name, data="sizes"):
            others.append(f"with {how} {over_steps(row)}")
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
    cached, without = (figures.row("known_issues", each, data="sizes") for each in ("cache_to_file", "tfdata_plain"))
    more, written = figures.increase(cached, without, "needs"), known(cached["disk"]).value
    said = f"{estimated(more, amount)} more than without a cache, for {amount(written)} in the file"
    return [part_of(less_than(more, STAYS * written), above())], said


@claim(
    "K5",
    "image_dataset_from_directory with batch_size=None holds 1024 images in memory.",
    issue="keras-team/keras#19502",
    reported="3.1; closed, and said to be fixed",
    package="keras",
)
def keras_holds_images(figures: Figures) -> Found:
    """It needs at least half of what 1024 images take more than with batches of 32, by the interval."""
    names = ("keras_image_dataset_unbatched", "keras_image_dataset")
    unbatched, batched = (figures.row("known_issues", each, data="pictures") for each in names)
    if (unbatched.delivered or 0) < PICTURES:
        raise NotMeasuredError(f"measured with {unbatched.delivered} pictures; of fewer than {PICTURES}, less is held")
    more = figures.increase(unbatched, batched, "needs")
    said = f"{estimated(more, amount)} more than with batches of 32; 1024 images are {amount(HELD)}"
    return [part_of(less_than(more, HELD / 2), above())], said


@claim(
    "K6",
    "PyDataset with several workers never ends its epoch.",
    issue="keras-team/keras#20425",
    reported="3.6; closed",
    package="keras",
)
def keras_workers_hang(figures: Figures) -> Found:
    """Any trial was ended by its deadline; not if so many epochs ended that fewer than half would have been met.

    The report is of PyTorch's backend; here the same workers feed TensorFlow's.
    """
    name, rows = "keras_pydataset_workers", figures.comparison("known_issues").rows
    row = next((row for row in rows if (row.strategy, row.case) == (name, {"data": "steps"})), None)
    if row is None or not row.trials:
        raise NotMeasuredError(f"known_issues {name} was not run")
    if row.ends.get("timed_out"):
        return [exactly(holds=True)], f"{row.samples} of {row.trials} trials ended: {row.status}"
    ended = row.samples * row.epochs
    if not ended:
        raise NotMeasuredError(f"{name}: {row.status}")
    said = f"all of {ended} epochs ended, so that less than {percent(_at_most(ended))} of them hang (95 %)"
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
    up before; not if so many trials looked that fewer than half would have been met: about ten, of which one in four
    looks.
    """
    row = figures.row("known_issues", "grain_processes", data="steps")
    if not row.left_behind:
        raise NotMeasuredError("what stayed was not counted")
    most, looked = max(row.left_behind), len(row.left_behind)
    said = f"{amount(most)} of shared memory stayed ({looked} of {row.trials} trials looked)"
    if most:
        return [exactly(holds=True)], said
    said += f", so that less than {percent(_at_most(looked))} leave some (95 %)"
    return [Part(Shown(fails=OFTEN**looked))], said


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


def _at_most(seen: int) -> float:
    """Return the share that may go wrong where none of so many did, with a confidence of 95 %."""
    return 1 - math.exp(math.log(1 - 0.95) / seen)


def _grows(figures: Figures, name: str, data: str) -> Found:
    """Test whether a strategy's memory grows, and say what the control's does: where that grows, nothing is shown."""
    row, control = (figures.row("known_issues", each, data=data) for each in (name, "python_loop"))
    shown = of_trials(row.growth, row.samples, IN_USE, BY_ALLOCATOR, most=True)
    is_sound = "growing" not in (control.growth or "")
    return [Part(shown if is_sound else Shown())], f"{_words_of(row)}; a Python loop {_words_of(control)}"


def _words_of(row: Row) -> str:
    return f"{over_steps(row)} ({row.trials} trials)"
