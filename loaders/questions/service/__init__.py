"""Service: tf.data service, for who outgrows one machine.

*Asked.* What does it cost to read through a dispatcher and workers, instead of in the process that trains? Where does
it pay? Does every image arrive as often as the documentation says?

*Held fixed.* 640 photographs, or all that there are, are read, decoded and reduced to 224x224 (uint8) by TensorFlow's
own operations, in batches of 32. The dispatcher and the workers are real processes on this machine, with as many cores
between them as a local pipeline has, and are up before the measurement begins. Where the system allows it they are
forks of the process that trains, made before that runs anything, each with all of its memory for itself. Each pipeline
has two reads under way, begins the next a little ahead, and decodes two at a time: so few that two workers wait for
slow files, and not for the two cores of the machines that the published figures come from. ``local_4`` and ``local_8``
have as many as two and four workers have together. With ``storage=slow`` every file arrives 20 ms later, as from object
storage, by a sleeping stage of tf.data, in ``ray_data`` by a sleeping task. Of files of records there are sixteen, so
that they are late less often: compare them with one another.

*Not measured.* A network: the loopback interface has no latency and no limit of its own. Machines with cores of their
own: what workers add here is reads under way, not processors. How long a service takes over a long epoch: its client
asks once a second whether the epoch is over, so that 640 photographs take whole seconds, however fast the workers are.
Only those that ask more often (``service_2_refreshed``) show what reading through it takes.

*Invisible when* one machine keeps up with a training step: then all of this is cost.

Memory is that of all processes, the dispatcher's and the workers' own TensorFlow included.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loaders._contract import Promise, Quality, digest, samples
from loaders._errors import WrongOutputError
from loaders._registry import Batch, Case, Job, Question, Variant

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf
    from numpy.typing import NDArray

    from loaders._corpus import Corpus

IMAGES = 640
SIDE = 224
READS = 2
"""Reads that one pipeline has under way: so few that two workers wait for slow files, and not for two cores. With four,
two workers delivered 1.8 times the images of one, with two 1.9, and with one 1.97: the less the processors had to do.
"""

LATE = {"local": 0.0, "slow": 0.02}
"""Seconds by which a file arrives later."""

SHARDS = 16
"""Files of records that ``write_shards`` makes."""

SHARD = "shard-{:02}.tfrecord"


@dataclass(frozen=True)
class Files:
    """JPEG files; the number of each is its place.

    Attributes
    ----------
    late
        Seconds by which a file arrives later.
    pace
        Seconds by which a record of a file of records does, where an epoch must last.
    """

    paths: list[str]
    late: float
    pace: float = 0.0

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Their numbers."""
        import numpy as np

        return np.arange(len(self.paths), dtype=np.int64)


def _prepare(corpus: Corpus, case: Case, seed: int) -> Files:  # noqa: ARG001 - every round reads alike
    paths = corpus.image_paths
    return Files([paths[index] for index in corpus.evenly(IMAGES)], LATE[case["storage"]])


PROMISES: dict[str, Promise] = {}
"""What is documented of a strategy's delivery while no process fails, where it is not every image once."""


DECODERS: dict[str, Callable[[str], NDArray[np.uint8]]] = {}
"""What makes the image of a file, for strategies that do not decode with TensorFlow."""


def _check(job: Job[Files], variant: Variant, batches: Iterable[Batch]) -> Quality:
    """Hold each image against its file, and how often it came against what is documented."""
    data = job.inputs
    expected = _digests(data, DECODERS.get(variant.name))
    came: Counter[int] = Counter()
    for batch in batches:
        for image, number in samples(batch):
            place = int(number)
            if not 0 <= place < len(data.paths) or digest((image,)) != expected(place):
                raise WrongOutputError(f"what came as image {place} is not what its file holds")
            came[place] += 1
    delivery = PROMISES.get(variant.name, Promise()).held(came[place] for place in range(len(data.paths)))
    if delivery.verdict == "broken":
        raise WrongOutputError(f"{delivery.promised} is documented: {delivery.words}")
    return Quality(delivery=delivery)


def _digests(data: Files, decoder: Callable[[str], NDArray[np.uint8]] | None) -> Callable[[int], bytes]:
    """Return a function that gives the digest of an image by its number."""
    import tensorflow as tf

    compiled = tf.function(lambda path: _decoded(tf.io.read_file(path)))

    @functools.cache
    def expected(place: int) -> bytes:
        path = data.paths[place]
        return digest((decoder(path) if decoder else compiled(tf.constant(path)).numpy(),))

    return expected


QUESTION = Question(
    prepare=_prepare,
    check=_check,
    axes={"storage": tuple(LATE)},
    ranked_by="steady_time",
    epochs=2,
    quick_epochs=2,
    sweeps="workers",
    apart=True,
    fresh=True,  # what a trial retains varies by MiB: hundreds of rounds would show forks to differ by less than one
    modules=("local", "workers"),
)


def _decoded(encoded: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    picture = tf.io.decode_jpeg(encoded, channels=3)
    return tf.cast(tf.round(tf.image.resize(picture, (SIDE, SIDE), method="area")), tf.uint8)


def _arriving(dataset: Any, late: float, reads: int, *, deterministic: bool) -> Any:
    """Let each element pass only after it has been under way for some seconds, with several under way at a time."""
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops.testing import sleep

    if not late:
        return dataset
    microseconds = round(late * 1e6)

    def arriving(*element: Any) -> Any:
        return tf.data.Dataset.from_tensors(element if len(element) > 1 else element[0]).apply(sleep(microseconds))

    return dataset.interleave(arriving, cycle_length=reads, num_parallel_calls=reads, deterministic=deterministic)


def of_files(job: Job[Files], reads: int, *, endless: bool = False) -> Any:
    """Return a pipeline over the files, batched: as it runs locally, or in each worker."""
    import tensorflow as tf

    data = job.inputs
    paths = tf.data.Dataset.from_tensor_slices((data.paths, data.numbers))
    if endless:
        paths = paths.repeat()
    arrived = _arriving(paths, data.late, reads, deterministic=False)

    def image(path: tf.Tensor, number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return _decoded(tf.io.read_file(path)), number

    return arrived.map(image, num_parallel_calls=reads, deterministic=False).batch(job.batch_size)


def of_shards(job: Job[Files], reads: int) -> Any:
    """Return a pipeline over files of records, each with its number in front of it; a whole file is late but once."""
    import tensorflow as tf

    data = job.inputs
    names = [str(job.directory / SHARD.format(shard)) for shard in range(min(SHARDS, len(data.paths)))]

    def image(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        number = tf.io.decode_raw(tf.strings.substr(record, 0, 8), tf.int64)[0]
        return _decoded(tf.strings.substr(record, 8, -1)), number

    # Every worker must see the files in one order: FILE counts them off, and 80 of 640 images came twice without this.
    files = _arriving(tf.data.Dataset.from_tensor_slices(names), data.late, reads, deterministic=True)
    records = files.interleave(tf.data.TFRecordDataset, cycle_length=reads, num_parallel_calls=reads)
    paced = _arriving(records, data.pace, reads, deterministic=False)
    return paced.map(image, num_parallel_calls=reads, deterministic=False).batch(job.batch_size)


def write_shards(job: Job[Files]) -> None:
    """Write the photographs into files of records."""
    from pathlib import Path

    import tensorflow as tf

    paths = job.inputs.paths
    for shard in range(min(SHARDS, len(paths))):
        with tf.io.TFRecordWriter(str(job.directory / SHARD.format(shard))) as file:
            for number in range(shard, len(paths), SHARDS):
                file.write(number.to_bytes(8, "little") + Path(paths[number]).read_bytes())
