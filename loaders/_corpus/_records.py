"""TFRecord files: what a record holds, and the shards that records are written into."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loaders._corpus._manifest import Shard

SHARDS = 5


def labelled_record(image: bytes, label: int) -> bytes:
    """Return a serialised ``tf.train.Example`` of an image, in any encoding, and its label."""
    import tensorflow as tf

    encoded = tf.train.Feature(bytes_list=tf.train.BytesList(value=[image]))
    index = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
    features = tf.train.Features(feature={"image": encoded, "label": index})
    return bytes(tf.train.Example(features=features).SerializeToString(deterministic=True))


def write_shards(root: Path, name: str, records: Iterator[bytes], count: int) -> list[Shard]:
    """Write ``count`` records, in order and as they come, into TFRecord files of about equal length."""
    import tensorflow as tf

    shards = []
    for index in range(SHARDS):
        path = f"{name}-{index:05}-of-{SHARDS:05}.tfrecord"
        offsets, lengths, position = [], [], 0
        with tf.io.TFRecordWriter(str(root / path)) as writer:
            for record in itertools.islice(records, (index + 1) * count // SHARDS - index * count // SHARDS):
                writer.write(record)
                # A TFRecord is: length (8 bytes), its checksum (4), the payload, its checksum (4).
                # https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
                offsets.append(position + 12)
                lengths.append(len(record))
                position += 16 + len(record)
        shards.append(Shard(path, offsets, lengths))
    return shards


@contextmanager
def silent_stderr() -> Iterator[None]:
    """Discard what native code writes to standard error."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
