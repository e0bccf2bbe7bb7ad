"""Worker processes by ``multiprocessing``."""

import functools
import multiprocessing
import time

import numpy as np

STEPS, BATCH = 400, 8
kept = []


def _batch(step):
    time.sleep(0.002)
    return np.full((BATCH, 256), step, np.float32) + np.arange(BATCH, dtype=np.float32)[:, None] / BATCH


def _leaking(step):
    kept.append(np.ones(2**13))
    return _batch(step)


@functools.cache
def _pool():
    """One worker, which lives as long as the program."""
    return multiprocessing.get_context("fork").Pool(1)


def _through(work):
    return _pool().imap(work, range(STEPS))


def sound():
    return _through(_batch)


def leak():
    """The worker keeps 64 KiB of each step."""
    return _through(_leaking)
