"""tf.data service: the same pipeline in workers, with every way of sharing the data out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from loaders._contract import Promise
from loaders._registry import Batch, Job, variant
from loaders.questions.service import PROMISES, READS, Files, of_files, of_shards, write_shards
from loaders.questions.service.nodes import answering, workers

TWO, FOUR = 2, 4
"""Workers."""

PROMISES["service_2_off"] = PROMISES["service_2_off_uncompressed"] = Promise(
    TWO, TWO, "every image once by each worker"
)
PROMISES["service_4_off"] = Promise(FOUR, FOUR, "every image once by each worker")
PROMISES["service_2_cached"] = Promise(0, None, "nothing")  # what has left the cache is missed


def _distributed(job: Job[Files], dataset: Any, policy: str, **more: Any) -> Any:
    import tensorflow as tf

    service = tf.data.experimental.service
    return dataset.apply(
        service.distribute(
            processing_mode=getattr(service.ShardingPolicy, policy), service=answering(job.served.address), **more
        )
    )


@variant(serve=workers(1))
def service_1(job: Job[Files]) -> Iterable[Batch]:
    """One worker, ``ShardingPolicy.DYNAMIC``."""
    return _distributed(job, of_files(job, READS), "DYNAMIC")


@variant(serve=workers(TWO), quick=True)
def service_2(job: Job[Files]) -> Iterable[Batch]:
    """Two workers, ``ShardingPolicy.DYNAMIC``: the next file goes to who asks."""
    return _distributed(job, of_files(job, READS), "DYNAMIC")


@variant(serve=workers(FOUR))
def service_4(job: Job[Files]) -> Iterable[Batch]:
    """Four workers, ``ShardingPolicy.DYNAMIC``."""
    return _distributed(job, of_files(job, READS), "DYNAMIC")


@variant(tier="same purpose", serve=workers(TWO))
def service_2_off(job: Job[Files]) -> Iterable[Batch]:
    """Two workers, ``ShardingPolicy.OFF``: each yields everything."""
    return _distributed(job, of_files(job, READS), "OFF")


@variant(tier="same purpose", serve=workers(FOUR))
def service_4_off(job: Job[Files]) -> Iterable[Batch]:
    """Four workers, ``ShardingPolicy.OFF``: each yields everything."""
    return _distributed(job, of_files(job, READS), "OFF")


@variant(serve=workers(TWO, fixed=True), convert=write_shards)
def service_2_file(job: Job[Files]) -> Iterable[Batch]:
    """Two workers, ``ShardingPolicy.FILE``: each has files of records of its own."""
    return _distributed(job, of_shards(job, READS), "FILE")


@variant(serve=workers(FOUR, fixed=True), convert=write_shards)
def service_4_file(job: Job[Files]) -> Iterable[Batch]:
    """Four workers, ``ShardingPolicy.FILE``."""
    return _distributed(job, of_shards(job, READS), "FILE")


@variant(serve=workers(TWO), convert=write_shards)
def service_2_shards(job: Job[Files]) -> Iterable[Batch]:
    """Two workers, ``DYNAMIC``, but what is shared out is a file of records instead of a photograph."""
    return _distributed(job, of_shards(job, READS), "DYNAMIC")


@variant(serve=workers(TWO))
def service_2_uncompressed(job: Job[Files]) -> Iterable[Batch]:
    """Two workers, ``DYNAMIC``, ``compression=None``."""
    return _distributed(job, of_files(job, READS), "DYNAMIC", compression=None)


@variant(tier="same purpose", serve=workers(TWO))
def service_2_off_uncompressed(job: Job[Files]) -> Iterable[Batch]:
    """Two workers, ``OFF``, ``compression=None``."""
    return _distributed(job, of_files(job, READS), "OFF", compression=None)


@variant(serve=workers(TWO, fixed=True), convert=write_shards)
def service_2_file_uncompressed(job: Job[Files]) -> Iterable[Batch]:
    """Two workers, ``FILE``, ``compression=None``."""
    return _distributed(job, of_shards(job, READS), "FILE", compression=None)


def _refreshed(job: Job[Files]) -> Iterable[Batch]:
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops import data_service_ops

    return of_files(job, READS).apply(
        data_service_ops._distribute(
            tf.data.experimental.service.ShardingPolicy.DYNAMIC,
            answering(job.served.address),
            task_refresh_interval_hint_ms=20,
        )
    )


@variant(serve=workers(1), series="workers", at="1")
def service_1_refreshed(job: Job[Files]) -> Iterable[Batch]:
    """One worker, ``DYNAMIC``; the client asks after its tasks every 20 ms instead of every second.

    It learns that way that an epoch is over; otherwise epochs take whole seconds. The setting is none of
    ``distribute``'s, but of the function below it.
    """
    return _refreshed(job)


@variant(serve=workers(TWO), series="workers", at="2")
def service_2_refreshed(job: Job[Files]) -> Iterable[Batch]:
    """Two workers, and a client that asks every 20 ms."""
    return _refreshed(job)


@variant(serve=workers(FOUR), series="workers", at="4")
def service_4_refreshed(job: Job[Files]) -> Iterable[Batch]:
    """Four workers, and a client that asks every 20 ms."""
    return _refreshed(job)


@variant(tier="same purpose", serve=workers(TWO))
def service_2_cached(job: Job[Files]) -> Iterable[Batch]:
    """Two workers that do the work once for two clients (``CrossTrainerCache``), both of which are read in turn."""
    import tensorflow as tf

    service = tf.data.experimental.service

    def client(name: str) -> Any:
        cache = service.CrossTrainerCache(trainer_id=name)
        distributed = _distributed(
            job, of_files(job, READS, endless=True), "OFF", job_name="cached", cross_trainer_cache=cache
        )
        return distributed.take(-(-len(job.inputs.paths) // job.batch_size))

    def batches() -> Iterator[Batch]:
        for pair in zip(client("one"), client("two"), strict=True):
            yield from pair

    return batches()
