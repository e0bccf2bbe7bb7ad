"""tf.data service: the same pipeline in workers, with every way of sharing the data out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from loaders._contract import Promise
from loaders._registry import Batch, Facts, Job, variant
from loaders.questions.service import PROMISES, READS, Files, of_files, of_shards, write_shards
from loaders.questions.service.nodes import answering, workers

ASKS_EVERY = 1.0
"""Seconds after which a client asks again whether its tasks are over
(``kDefaultTaskRefreshInterval`` in TensorFlow's data_service_dataset_op.cc)."""

TWO = 2
"""Workers of strategies that are there for that number only."""


def _serving(*, fixed: bool = False) -> dict[int | str, Facts]:
    """Return the numbers of workers of a sweep, with what starts them."""
    return {count: {"serve": workers(count, fixed=fixed)} for count in (1, TWO, 4)}


def _each(by: int) -> Promise:
    return Promise(by, by, "every image once by each worker")


for _count in _serving():
    PROMISES[f"service_{_count}_off"] = PROMISES[f"service_{_count}_off_uncompressed"] = _each(int(_count))
PROMISES["service_2_cached"] = Promise(0, None, "nothing")  # what has left the cache is missed


def _distributed(job: Job[Files], dataset: Any, policy: str, **more: Any) -> Any:
    import tensorflow as tf

    service = tf.data.experimental.service
    return dataset.apply(
        service.distribute(
            processing_mode=getattr(service.ShardingPolicy, policy), service=answering(job.served.address), **more
        )
    )


@variant(sweep=_serving() | {TWO: {"serve": workers(TWO), "quick": True}}, ends_late=ASKS_EVERY)
def service(job: Job[Files], _: int | str) -> Iterable[Batch]:
    """Workers: {at}, ``ShardingPolicy.DYNAMIC``: the next file goes to who asks."""
    return _distributed(job, of_files(job, READS), "DYNAMIC")


@variant(tier="same purpose", sweep=_serving(), ends_late=ASKS_EVERY)
def service_at_off(job: Job[Files], _: int | str) -> Iterable[Batch]:
    """Workers: {at}, ``ShardingPolicy.OFF``: each yields everything."""
    return _distributed(job, of_files(job, READS), "OFF")


@variant(sweep=_serving(fixed=True), convert=write_shards, ends_late=ASKS_EVERY)
def service_at_file(job: Job[Files], _: int | str) -> Iterable[Batch]:
    """Workers: {at}, ``ShardingPolicy.FILE``: each has files of records of its own."""
    return _distributed(job, of_shards(job, READS), "FILE")


@variant(sweep=_serving(), ends_late=ASKS_EVERY)
def service_at_uncompressed(job: Job[Files], _: int | str) -> Iterable[Batch]:
    """Workers: {at}, ``DYNAMIC``, ``compression=None``."""
    return _distributed(job, of_files(job, READS), "DYNAMIC", compression=None)


@variant(tier="same purpose", sweep=_serving(), ends_late=ASKS_EVERY)
def service_at_off_uncompressed(job: Job[Files], _: int | str) -> Iterable[Batch]:
    """Workers: {at}, ``OFF``, ``compression=None``."""
    return _distributed(job, of_files(job, READS), "OFF", compression=None)


@variant(sweep=_serving(fixed=True), convert=write_shards, ends_late=ASKS_EVERY)
def service_at_file_uncompressed(job: Job[Files], _: int | str) -> Iterable[Batch]:
    """Workers: {at}, ``FILE``, ``compression=None``."""
    return _distributed(job, of_shards(job, READS), "FILE", compression=None)


@variant(serve=workers(TWO), convert=write_shards, ends_late=ASKS_EVERY)
def service_2_shards(job: Job[Files]) -> Iterable[Batch]:
    """Workers: 2, ``DYNAMIC``, but what is shared out is a file of records instead of a photograph."""
    return _distributed(job, of_shards(job, READS), "DYNAMIC")


@variant(sweep=_serving(), series="workers")
def service_at_refreshed(job: Job[Files], _: int | str) -> Iterable[Batch]:
    """Workers: {at}, ``DYNAMIC``; the client asks after its tasks every 20 ms instead of every second.

    It learns that way that an epoch is over; otherwise epochs take whole seconds. The setting is none of
    ``distribute``'s, but of the function below it.
    """
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops import data_service_ops

    return of_files(job, READS).apply(
        data_service_ops._distribute(
            tf.data.experimental.service.ShardingPolicy.DYNAMIC,
            answering(job.served.address),
            task_refresh_interval_hint_ms=20,
        )
    )


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
