"""Where a TFRecord file is damaged: the file and the record, in words. TensorFlow's own errors name neither."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from loaders._corpus._manifest import Shard


def damage(shards: Iterable[Shard]) -> Iterator[str]:
    """Yield what is wrong with each file, in words; nothing for an intact file.

    Files are read record by record with TensorFlow's reader, so every checksum is verified; a record's features are
    compared with those of the first readable record.
    """
    expected: dict[str, str] = {}
    for shard in shards:
        path, count = Path(shard.path), len(shard.offsets)
        if not path.exists():
            yield f"{path.name} is missing; it should hold {count} records"
        elif not path.stat().st_size:
            yield f"{path.name} is empty; it should hold {count} records"
        else:
            yield from _damage_in(path, count, expected)


def _damage_in(path: Path, count: int, expected: dict[str, str]) -> Iterator[str]:
    import tensorflow as tf

    records = iter(tf.data.TFRecordDataset(str(path)))
    number = 0
    while True:
        try:
            record = next(records).numpy()
        except StopIteration:
            break
        except tf.errors.DataLossError as error:
            how = "is cut off" if "truncated" in error.message else "does not fit its checksum"
            yield f"{path.name}: record {number} of {count} {how}"
            return
        try:
            features = tf.train.Example.FromString(record).features.feature
        except Exception:  # noqa: BLE001 - protobuf's DecodeError has no stable home
            yield f"{path.name}: record {number} of {count} is no tf.train.Example"
            return
        kinds = {name: _kind(feature) for name, feature in features.items()}
        expected.update({} if expected else kinds)
        if kinds != expected:
            found = f"has the features {_listed(kinds)} instead of {_listed(expected)}"
            yield f"{path.name}: record {number} of {count} {found}"
            return
        number += 1
    if number != count:
        yield f"{path.name} holds {number} records instead of {count}"


def _kind(feature: Any) -> str:
    return str(feature.WhichOneof("kind") or "nothing").removesuffix("_list")


def _listed(kinds: dict[str, str]) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in sorted(kinds.items())) or "none"
