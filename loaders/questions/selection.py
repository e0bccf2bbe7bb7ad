"""Selection: draw samples without replacement from an in-memory array.

*Asked.* Active learning, bootstrapping and hand-written samplers draw images at random from an array and take
them out of it. Does it matter whether the data and the selection are lists, arrays or a mixture?

*Held fixed.* The source is 500 (11.7 MiB) or 2000 (46.9 MiB) float64 patches of photographs, 32x32x3 each. It is in
memory before the memory baseline is read and is held throughout, so memory is what a strategy needs on top. There are
100 draws. The selection is kept while retained memory is read, because it is what remains when the source is gone.

*Not measured.* Reading the images from disk.

*Invisible when* the source is small compared with the machine's memory and is drawn from only a few times: each draw of
the mixed form keeps one more copy of the whole source alive.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loaders._contract import Cause, Quality, check_drawn_from
from loaders._errors import WrongOutputError
from loaders._registry import Batch, Case, Job, Question, Variant, variant

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from loaders._corpus import Corpus

DRAWS = 100

LEAST_APART = 5
"""Neighbours among images that were drawn at random lie in at least so many different distances from each other; in a
slice it is one. In 100 000 random draws of 100 out of 500 they were never fewer than 12. That the images come from more
than half of the source is asked as well: a random draw from a part of it has as many distances."""


@dataclass(frozen=True)
class Source:
    """The images to draw from: (n, 32, 32, 3) float64 in 0..1."""

    images: NDArray[np.float64]
    draws: int = DRAWS


def _prepare(corpus: Corpus, case: Case, seed: int) -> Source:  # noqa: ARG001 - the seed drives the draws only
    import numpy as np

    images = corpus.patches()[: int(case["images"])] / 255.0
    # Distinct by construction (flat sky gives equal patches), so that drawing one image twice is noticed.
    images[:, 0, 0, 0] = np.arange(len(images)) / len(images)
    return Source(images)


def _check(job: Job[Source], variant: Variant, batches: Iterable[Batch]) -> Quality:  # noqa: ARG001
    universe = [(image,) for image in job.inputs.images]
    places = sorted(check_drawn_from(universe, job.inputs.draws, batches))
    apart = {after - before for before, after in itertools.pairwise(places)}
    if len(apart) < LEAST_APART or places[-1] - places[0] < len(universe) / 2:
        raise WrongOutputError(
            f"the images drawn are not random: they lie between {places[0]} and {places[-1]} of {len(universe)}, "
            f"and {' or '.join(map(str, sorted(apart)[:LEAST_APART]))} apart"
        )
    return Quality()


QUESTION = Question(
    prepare=_prepare,
    check=_check,
    when="draw images at random from an array in memory",
    axes={"images": ("500", "2000")},
    keeps_output=True,
)


NESTED = Cause(
    0.25,
    1.0,
    "asv times with Python's garbage collector off; on, it traverses this strategy's half a million lists",
)
"""Both strategies take 0.30 to 0.43 s as they are and 0.09 to 0.13 s after ``gc.disable()``; no other one changes."""


@variant(quick=True, asv_differs=NESTED)
def list_to_list(job: Job[Source]) -> Iterable[Batch]:
    """Nested lists, made of the array first: append to the selection, ``del`` from the data."""
    import random

    rng = random.Random(job.seed)  # noqa: S311
    data = job.inputs.images.tolist()
    selected = []
    for _ in range(job.inputs.draws):
        i = rng.randrange(len(data))
        selected.append(data[i])
        del data[i]
    return [selected]


@variant(asv_differs=NESTED)
def list_skipping(job: Job[Source]) -> Iterable[Batch]:
    """Nested lists, made of the array first: append to the selection unless already drawn; nothing is deleted."""
    import random

    rng = random.Random(job.seed)  # noqa: S311
    data = job.inputs.images.tolist()
    selected = []
    drawn: set[int] = set()
    while len(drawn) < job.inputs.draws:
        i = rng.randrange(len(data))
        if i not in drawn:
            drawn.add(i)
            selected.append(data[i])
    return [selected]


@variant(baseline=True, quick=True)
def numpy_to_numpy(job: Job[Source]) -> Iterable[Batch]:
    """Arrays: ``np.concatenate`` onto the selection, ``np.delete`` from the data."""
    import numpy as np

    rng = np.random.default_rng(job.seed)
    data = job.inputs.images
    selected = np.empty((0, *data.shape[1:]))
    for _ in range(job.inputs.draws):
        i = rng.integers(len(data))
        selected = np.concatenate([selected, data[i : i + 1]])
        data = np.delete(data, i, axis=0)
    return [selected]


@variant(quick=True)
def numpy_to_list(job: Job[Source]) -> Iterable[Batch]:
    """Mixed: append ``data[i]``, a view that keeps the whole old array alive, to a list."""
    import numpy as np

    rng = np.random.default_rng(job.seed)
    data = job.inputs.images
    selected = []
    for _ in range(job.inputs.draws):
        i = rng.integers(len(data))
        selected.append(data[i])
        data = np.delete(data, i, axis=0)
    return [selected]


@variant
def mixed_tolist(job: Job[Source]) -> Iterable[Batch]:
    """Mixed, cured: append ``data[i].tolist()``, which shares nothing with the array."""
    import numpy as np

    rng = np.random.default_rng(job.seed)
    data = job.inputs.images
    selected = []
    for _ in range(job.inputs.draws):
        i = rng.integers(len(data))
        selected.append(data[i].tolist())
        data = np.delete(data, i, axis=0)
    return [selected]


@variant(quick=True)
def mixed_copy(job: Job[Source]) -> Iterable[Batch]:
    """Mixed, cured: append ``np.array(data[i])``, a copy of one image."""
    import numpy as np

    rng = np.random.default_rng(job.seed)
    data = job.inputs.images
    selected = []
    for _ in range(job.inputs.draws):
        i = rng.integers(len(data))
        selected.append(np.array(data[i]))
        data = np.delete(data, i, axis=0)
    return [selected]


@variant(quick=True)
def permutation_index(job: Job[Source]) -> Iterable[Batch]:
    """One permutation and one fancy index; nothing is deleted."""
    import numpy as np

    data = job.inputs.images
    order = np.random.default_rng(job.seed).permutation(len(data))
    return [data[order[: job.inputs.draws]]]


@variant(quick=True)
def generator_choice(job: Job[Source]) -> Iterable[Batch]:
    """``Generator.choice(data, n, replace=False)``: NumPy draws and copies."""
    import numpy as np

    return [np.random.default_rng(job.seed).choice(job.inputs.images, job.inputs.draws, replace=False)]


@variant
def boolean_mask(job: Job[Source]) -> Iterable[Batch]:
    """A mask of the images left to draw from, and one boolean index at the end."""
    import numpy as np

    rng = np.random.default_rng(job.seed)
    data = job.inputs.images
    left = np.ones(len(data), bool)
    for _ in range(job.inputs.draws):
        left[rng.choice(np.flatnonzero(left))] = False
    return [data[~left]]


@variant
def swap_with_last(job: Job[Source]) -> Iterable[Batch]:
    """Draw an index, swap it with the last one, shorten by one; one fancy index at the end."""
    import numpy as np

    rng = np.random.default_rng(job.seed)
    data = job.inputs.images
    index = np.arange(len(data))
    left = len(index)
    for _ in range(job.inputs.draws):
        i = rng.integers(left)
        left -= 1
        index[i], index[left] = index[left], index[i]
    return [data[index[left:]]]
