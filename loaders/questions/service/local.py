"""The same pipeline in the process that trains."""

from __future__ import annotations

from collections.abc import Iterable

from loaders._registry import Batch, Job, variant
from loaders.questions.service import READS, Files, of_files, of_shards, write_shards


@variant(baseline=True, quick=True)
def local(job: Job[Files]) -> Iterable[Batch]:
    """The pipeline in the process that trains, two reads under way."""
    return of_files(job, READS).prefetch(2)


@variant
def local_4(job: Job[Files]) -> Iterable[Batch]:
    """The same with four reads under way, as two workers have."""
    return of_files(job, 2 * READS).prefetch(2)


@variant
def local_8(job: Job[Files]) -> Iterable[Batch]:
    """The same with eight reads under way, as four workers have."""
    return of_files(job, 4 * READS).prefetch(2)


@variant(convert=write_shards)
def local_shards(job: Job[Files]) -> Iterable[Batch]:
    """The same from sixteen files of records."""
    return of_shards(job, READS).prefetch(2)
