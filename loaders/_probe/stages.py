"""What tf.data knows of a pipeline that has run: what it rewrote, and which stage took longest.

tf.data keeps a model of each running pipeline for its autotuning: a node for each stage, with the elements it produced
and the processor time that it took by itself
(https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/framework/model.proto). It can be read from the
iterator while it runs, by a function that is not part of TensorFlow's public interface; where that fails, nothing is
said.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from loaders._probe.adapt import Batches
from loaders._units import Count, Name, Seconds

INTERNAL = frozenset(
    ("Root", "Model", "Options", "Finalize", "MaxIntraOpParallelism", "PrivateThreadPool", "MemoryCacheImpl")
)
"""What stands around a pipeline, and is no stage of it."""


class Stage(msgspec.Struct, frozen=True):
    """One stage of a pipeline.

    Attributes
    ----------
    elements
        How many it produced.
    seconds
        The processor time that it took by itself, all its threads together.
    parallelism
        How many threads it may use, as tuned at the end.
    """

    name: Name
    elements: Count
    seconds: Seconds
    parallelism: Count = 1

    @property
    def elapsed(self) -> float:
        """The seconds that the stage takes at least, if all its threads are busy."""
        return self.seconds / max(1, self.parallelism)


class Stages(msgspec.Struct, frozen=True):
    """A pipeline's stages, from its source to its end, and how tf.data changed what was written.

    ``added`` and ``removed`` count the stages that run and were not written, and the other way round.
    """

    stages: list[Stage]
    added: dict[Name, Count] = {}
    removed: dict[Name, Count] = {}

    @property
    def slowest(self) -> Stage | None:
        """The stage that takes longest; ``None`` if none was seen to take any time."""
        found = max(self.stages, key=lambda each: each.elapsed, default=None)
        return found if found and found.elapsed else None


class Observer:
    """Asks for tf.data's model while a pipeline is read. A stage leaves the model once its input has ended."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._epochs: list[Any] = []

    def __call__(self, number: int, iterator: Iterator[Any]) -> None:
        """Ask after the first batch of an epoch, the second, the fourth and so on: the last full model counts."""
        if number == 1:
            self._epochs.append(None)
        if number & (number - 1):
            return
        model = _model(self._batches.made, iterator)
        last = self._epochs[-1]
        if model is not None and (last is None or len(model.nodes) >= len(last.nodes)):
            self._epochs[-1] = model

    def found(self) -> Stages | None:
        """Return what tf.data told; ``None`` if it is no tf.data pipeline, or this version does not tell.

        What was rewritten is that of the first epoch, which fills a cache; the times are those of the last.
        """
        known = [each for each in self._epochs if each is not None]
        written = _written(self._batches.made) if known else None
        if written is None:
            return None
        first, last = stages(known[0], *written), stages(known[-1], *written)
        return msgspec.structs.replace(last, added=first.added, removed=first.removed)


def _model(made: Any, iterator: Iterator[Any]) -> Any:
    """Return the model of a running pipeline, or ``None``."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and isinstance(made, tensorflow.data.Dataset):
        with contextlib.suppress(Exception):  # whatever a version without this interface raises
            from tensorflow.python.data.experimental.ops import iterator_model_ops

            return iterator_model_ops.get_model_proto(iterator)
    return None


def _written(made: Any) -> tuple[list[str], list[str]] | None:
    """Return the operations of a pipeline as it was written, and those in its functions."""
    with contextlib.suppress(Exception):  # as above
        import tensorflow as tf

        graph = tf.compat.v1.GraphDef.FromString(made._as_serialized_graph().numpy())
        inner = [node.op for function in graph.library.function for node in function.node_def]
        return [node.op for node in graph.node], inner
    return None


def stages(model: Any, written: Iterable[str], inner: Iterable[str] = ()) -> Stages:
    """Return the stages of a ``ModelProto``, compared with the operations of the graph as it was written.

    ``inner`` are the operations in its functions: how often these run depends on the data.
    """
    found = [
        Stage(
            _plain(node.name),
            max(0, int(node.num_elements)),
            max(0.0, node.processing_time / 1e9),
            max(1, round(max((each.value for each in _parameters(node) if each.name == "parallelism"), default=1))),
        )
        for node in _from_source(model)
        if _plain(node.name) not in INTERNAL
    ]
    runs = Counter(each.name for each in found)
    wrote = Counter(_plain(op) for op in written if "Dataset" in op)
    apart = INTERNAL | {_plain(op) for op in inner}
    difference = {name: runs[name] - wrote[name] for name in sorted({*runs, *wrote} - apart)}
    return Stages(
        found,
        added={name: count for name, count in difference.items() if count > 0},
        removed={name: -count for name, count in difference.items() if count < 0},
    )


def _from_source(model: Any) -> Sequence[Any]:
    """Return a model's nodes in the order in which data flows through them."""
    order: list[Any] = []
    seen: set[int] = set()

    def visit(number: int) -> None:
        if number in seen or number not in model.nodes:
            return
        seen.add(number)
        node = model.nodes[number]
        for each in node.inputs:
            visit(each)
        order.append(node)

    visit(model.output)
    return order


def _parameters(node: Any) -> Iterable[Any]:
    found = node.parameters
    return found.values() if hasattr(found, "values") else found


def _plain(name: str) -> str:
    """Return an operation's name without what only TensorFlow needs.

    ``ParallelMapDatasetV2`` is ``ParallelMap``, ``FiniteTake`` is ``Take``, ``MemoryCache`` is ``Cache``.
    """
    plain = re.sub(r"(?:V\d+|\(.*|:.*)$", "", name.replace("Dataset", ""))
    plain = re.sub(r"^(?:Finite|Forever|Empty|From)(?=[A-Z])", "", plain)
    return re.sub(r"^(?:Memory|File)Cache$", "Cache", plain)
