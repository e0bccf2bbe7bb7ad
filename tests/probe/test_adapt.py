"""Whatever a function returns is drained batch by batch, and counted."""

from __future__ import annotations

import gc
import itertools
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from loaders._probe import adapt, question
from loaders._probe.adapt import Batches, count, leaves
from loaders._registry import Skip

PICTURES = np.zeros((4, 8, 8, 3), np.uint8)
LABELS = np.arange(4)


@dataclass
class Pair:
    """A batch of a class of the user's own."""

    one: Any
    two: Any


@pytest.mark.parametrize(
    ("batch", "arrays", "samples"),
    [
        (PICTURES, 1, 4),
        ((PICTURES, LABELS), 2, 4),
        ([PICTURES, LABELS], 2, 4),
        ({"image": PICTURES, "label": {"fine": LABELS, "coarse": LABELS}}, 3, 4),
        (Pair(PICTURES, [LABELS, LABELS]), 3, 4),
        ((PICTURES, LABELS, None), 2, 4),
        ((PICTURES[0], 3), 2, 1),  # a single sample
        (PICTURES[0], 1, 1),
        ((PICTURES[0], np.zeros(5)), 2, 1),
        (7, 1, 1),
        ("text", 1, 1),
        (["one", "two", "three"], 1, 3),  # a column of texts
        ([1.0, 2.0], 1, 2),
        ([np.zeros((8, 8, 3))] * 32, 1, 32),  # a list of pictures
        ((np.zeros((0, 8)), np.zeros(0)), 2, 0),
        ((), 0, 0),
    ],
)
def test_a_batch_is_counted_however_it_nests_its_arrays(batch: Any, arrays: int, samples: int) -> None:
    found = [*leaves(batch)]
    assert (len(found), count(found)) == (arrays, samples)


def test_what_cannot_be_counted_is_named() -> None:
    with pytest.raises(Skip, match=r"a batch holds a builtins\.object, whose samples cannot be counted"):
        count([object()])


def _read(call: Callable[[], Any], epochs: int = 1, steps: int | None = None) -> list[list[Any]]:
    batches = Batches(call, steps, "train.py:make").build()
    return [[batch.arrays[0] for batch in batches] for _ in range(epochs)]


def test_what_can_be_read_once_is_made_again() -> None:
    class Once:
        def __init__(self) -> None:
            self.left = [1, 2, 3]

        def __iter__(self) -> Iterator[int]:
            while self.left:
                yield self.left.pop(0)

    assert _read(Once, 3) == [[1, 2, 3]] * 3
    assert _read(Once, 3, steps=2) == [[1, 2], [3, 1], [2, 3]]
    assert _read(list, 3) == [[]] * 3


def test_an_iterable_is_read_again_and_a_one_way_iterator_is_made_again() -> None:
    calls: list[int] = []

    def made() -> list[int]:
        calls.append(1)
        return [1, 2]

    def generated() -> Iterator[int]:
        calls.append(1)
        yield from (1, 2)

    assert _read(made, 3) == [[1, 2]] * 3
    assert len(calls) == 1
    assert _read(generated, 3) == [[1, 2]] * 3
    assert len(calls) == 1 + 3


def test_an_endless_one_goes_on_where_its_epoch_ended() -> None:
    assert _read(itertools.count, 3, steps=2) == [[0, 1], [2, 3], [4, 5]]
    assert _read(lambda: [1, 2, 3], 3, steps=2) == [[1, 2], [3, 1], [2, 3]]
    assert _read(lambda: iter([1, 2, 3]), 2, steps=2) == [[1, 2], [3, 1]]
    assert _read(list, 2, steps=2) == [[], []]


@pytest.mark.parametrize(("steps", "taken", "gone"), [(None, 2, 1), (None, 1, 1), (2, 2, 0)])
def test_an_iterator_is_dropped_with_its_epoch_and_not_with_the_last_batch(
    steps: int | None, taken: int, gone: int
) -> None:
    """So that what tf.data takes for it can be told from the batches; a stream goes on with the same iterator."""
    dropped: list[int] = []

    class Two:
        def __init__(self) -> None:
            self.left = iter((1, 2))

        def __iter__(self) -> Iterator[int]:
            return self

        def __next__(self) -> int:
            return next(self.left)

        def __del__(self) -> None:
            dropped.append(1)

    class Made:
        def __iter__(self) -> Iterator[int]:
            return Two()

    batches = Batches(Made, steps, "").build()
    epoch = iter(batches)
    assert len([*itertools.islice(epoch, taken)]) == taken
    if taken == 2:
        assert next(epoch, None) is None
    assert not dropped
    del epoch
    assert len(dropped) == gone


@pytest.mark.parametrize("steps", [None, 2])
def test_what_was_returned_goes_with_what_the_trial_has_built(steps: int | None) -> None:
    """Or else it would be retained afterwards, by the suite and not by the user's code."""
    alive: list[weakref.ref[Any]] = []

    class Made(list[int]):
        pass

    def make() -> Made:
        made = Made([1, 2])
        alive.append(weakref.ref(made))
        return made

    job: Any = SimpleNamespace(inputs=Batches(make, steps, ""))
    built = question.pipeline(job)
    assert len(list(built)) == 2
    assert alive[0]() is not None
    del built
    gc.collect()
    assert alive[0]() is None


def test_nothing_of_a_batch_is_kept_while_the_next_is_made() -> None:
    alive: list[int] = []

    class Counted:
        shape = (1,)

        def __init__(self) -> None:
            alive.append(1)

        def __del__(self) -> None:
            alive.pop()

    def generated() -> Iterator[Counted]:
        for _ in range(3):
            assert not alive
            yield Counted()

    for batch in Batches(generated, None, "").build():
        assert len(batch[0]) == 1
        del batch


def test_what_it_raises_ends_its_epoch_and_stays_known() -> None:
    def generated() -> Iterator[int]:
        yield from range(3)
        raise ValueError("damaged")

    batches = Batches(generated, None, "").build()
    assert [len(batch[0]) for batch in batches] == [1, 1, 1]
    assert batches.failed is not None
    assert (batches.failed.step, repr(batches.failed.__cause__)) == (3, "ValueError('damaged')")
    assert [*batches] == []


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (None, "train.py:make returns nothing, and not an iterable of batches"),
        (3, "train.py:make returns a int, and not an iterable of batches"),
        ("photos/", "train.py:make returns a str"),
        ({"train": []}, "train.py:make returns a dict"),
        (len, "returns a builtin_function_or_method, and not an iterable of batches; name a function that makes"),
    ],
)
def test_what_is_no_pipeline_is_said(made: Any, said: str) -> None:
    with pytest.raises(Skip, match=said.replace("(", r"\(")):
        _read(lambda: made)


def test_of_several_pipelines_one_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dataset:
        """Stands in for TensorFlow's."""

    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(data=SimpleNamespace(Dataset=Dataset)))
    with pytest.raises(Skip, match="returns 2 things, one of them a pipeline; name a function that returns it alone"):
        adapt.source((Dataset(), Dataset()), "train.py:make", bounded=False)


def test_an_epoch_of_keras_begins_as_in_fit_and_ends_whether_or_not_a_batch_after_the_last_is_asked_for() -> None:
    calls: list[str] = []
    ahead = deque([1])

    class Adapter:
        enqueuer = SimpleNamespace(ready_queue=SimpleNamespace(queue=ahead))

        def on_epoch_begin(self) -> None:
            calls.append("begin")

        def on_epoch_end(self) -> None:
            calls.append("end")

        def get_tf_dataset(self) -> list[int]:
            calls.append("shapes")  # read here: workers that are forked meanwhile can hang
            return [1, 2]

    source = object.__new__(adapt._Keras)
    source._adapter, source._batches, source._is_finite = Adapter(), None, False
    one = iter(source)
    assert [next(one), next(one)] == [1, 2]
    del one
    assert ahead, "where there is no end, the next epoch goes on with what was made ahead"
    source._is_finite = True
    one = iter(source)  # as the next epoch begins
    assert next(one) == 1
    del one
    assert not ahead, "it would be of the epoch before"
    one = iter(source)
    assert next(one) == 1
    assert calls == ["shapes", "begin", "end", "begin", "end", "begin"], "made once, not in each epoch's time"
