"""Generators and other plain Python."""

import ctypes
import hashlib
import random
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

STEPS, BATCH = 100, 8
kept = []


def _batch(step, values=256, seconds=0.002):
    """Make a batch, after a wait as for a disk."""
    time.sleep(seconds)
    return np.full((BATCH, values), step, np.float32) + np.arange(BATCH, dtype=np.float32)[:, None] / BATCH


def sound():
    for step in range(STEPS):
        yield _batch(step)


class closes_late:  # noqa: N801 - called as the functions are
    """Its iterator takes 0.3 s to be dropped, as tf.data's may."""

    def __iter__(self):
        return _Closing()


class _Closing:
    def __init__(self):
        self._batches = sound()

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._batches)

    def __del__(self):
        time.sleep(0.3)


def sound_list():
    return [_batch(step, seconds=0) for step in range(STEPS)]


def sound_fast():
    """Takes some microseconds a batch."""
    for step in range(STEPS):
        yield _batch(step, seconds=0)


def sound_zip():
    """An iterator that cannot be read twice."""
    return zip(map(_batch, range(STEPS)), range(STEPS), strict=True)


def sound_threads():
    """Eight batches ahead on two threads."""
    with ThreadPoolExecutor(2) as pool:
        ahead = deque(pool.submit(_batch, step) for step in range(8))
        for step in range(8, STEPS + 8):
            yield ahead.popleft().result()
            if step < STEPS:
                ahead.append(pool.submit(_batch, step))


def sound_large():
    """Makes batches of 4 MiB, and keeps none."""
    for step in range(STEPS):
        yield _batch(step, 2**17)


def sound_dicts():
    for step in range(STEPS):
        yield {"image": _batch(step), "label": {"fine": np.full(BATCH, step), "coarse": np.full(BATCH, step // 10)}}


def sound_single():
    """Delivers samples, not batches."""
    for step in range(STEPS):
        yield np.full((16, 16, 3), step, np.uint8), step


class Sound:
    """An iterable that can be read again and again."""

    def __init__(self, shuffle):
        self.shuffle = shuffle

    def __len__(self):
        return STEPS

    def __iter__(self):
        order = list(range(STEPS))
        if self.shuffle:
            random.shuffle(order)
        return map(_batch, order)


def sound_iterable():
    return Sound(shuffle=False)


def sound_shuffled():
    return Sound(shuffle=True)


def endless():
    step = 0
    while True:
        yield _batch(step % STEPS)
        step += 1


def leak_python():
    """Keeps 64 KiB of each step in small objects, which do not come from malloc."""
    for step in range(STEPS):
        kept.append([bytes(range(200)) + bytes([step % 256, index % 256]) for index in range(270)])
        yield _batch(step)


def leak_malloc():
    """Keeps 64 KiB of each step in an array."""
    for step in range(STEPS):
        kept.append(np.ones(2**13))
        yield _batch(step)


def leak_large():
    """Keeps every batch of 1 MiB."""
    for step in range(STEPS):
        batch = _batch(step, 2**15)
        kept.append(batch)
        yield batch


def plateau():
    """Fills a cache of 32 MiB, and then keeps to it."""
    for step in range(STEPS):
        if len(kept) < 64:
            kept.append(np.ones(2**16))
        yield _batch(step)


def held():
    """Shrinks two pieces to 64 bytes, which leaves a hole between them that is too small for the next step's pieces."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = libc.realloc.restype = ctypes.c_void_p
    libc.realloc.argtypes = ctypes.c_void_p, ctypes.c_size_t
    for step in range(STEPS):
        size = 2**15 + 8 * len(kept)
        pieces = [libc.malloc(size), libc.malloc(size)]
        for piece in pieces:
            ctypes.memset(piece, 1, size)
        kept.extend(libc.realloc(piece, 64) for piece in pieces)
        yield _batch(step)


def spike():
    """Holds 256 MiB before the first batch, and frees them."""
    everything = np.ones(2**25)
    total = everything.sum()
    del everything
    for step in range(STEPS):
        yield _batch(step) + np.float32(total * 0)


def uneven():
    """Leaves out other samples in each epoch."""
    for step in range(STEPS):
        if random.random() < 0.9:
            yield _batch(step)


def twice():
    """Delivers its first batch twice."""
    for step in (0, *range(STEPS)):
        yield _batch(step)


def raises():
    """Comes upon a damaged sample."""
    for step in range(STEPS):
        if step == 37:
            raise ValueError("sample 37 is damaged")
        yield _batch(step)


def work(more=0):
    """Waits as for a disk, and hashes for half as long; both take this many per cent more."""
    block = bytes(2**15)
    for step in range(STEPS):
        for _ in range(20 + more // 5):
            hashlib.blake2b(block).digest()
        yield _batch(step, seconds=0.002 * (1 + more / 100))


def slow():
    """Works for 20 ms on each batch, in the consumer's own time."""
    for step in range(STEPS // 4):
        values = np.random.default_rng(step).random(10**5)
        for _ in range(12):
            values = np.sort(values[::-1].copy())
        yield _batch(step) + np.float32(values[0] * 0)
