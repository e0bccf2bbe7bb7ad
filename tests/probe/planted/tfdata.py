"""tf.data pipelines."""

import numpy as np
import tensorflow as tf

COUNT, BATCH = 800, 8


def _samples():
    return tf.data.Dataset.range(COUNT)


def _work(number):
    return tf.cast(number, tf.float32) + tf.range(64, dtype=tf.float32), number


def sound():
    return _samples().map(_work, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).prefetch(2)


def sound_plain():
    return _samples().map(_work).batch(BATCH)


def sound_dict():
    return _samples().map(lambda number: {"a": number, "b": (number, number * 2)}).batch(BATCH)


def sound_ragged():
    return tf.data.Dataset.from_tensor_slices(tf.ragged.range(tf.range(1, 401))).batch(BATCH)


def sound_strings():
    return tf.data.Dataset.from_tensor_slices([f"sample {number}" for number in range(COUNT)]).batch(BATCH)


def sound_generator():
    def rows():
        for number in range(COUNT // 2):
            yield np.full(16, number, np.float32)

    return tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([16], tf.float32)).batch(4)


def given_back():
    """Arrays of half a mebibyte, each of which is new memory: TensorFlow sets a threshold of malloc before it calls."""

    def rows():
        for number in range(COUNT):
            yield np.full((1, 2**17), number, np.float32)

    return tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([1, 2**17], tf.float32))


def shuffled():
    return _samples().shuffle(COUNT).map(_work).batch(BATCH)


def augmented():
    def noisy(number):
        return tf.cast(number, tf.float32) + tf.random.uniform([64])

    return _samples().map(noisy).batch(BATCH)


def cached():
    """Fills its cache of 25 MiB in the first epoch."""
    return _samples().map(lambda number: tf.fill([2**13], tf.cast(number, tf.float32))).cache().batch(BATCH)


def endless():
    return sound().repeat()


def not_the_bottleneck():
    return _samples().take(200).map(_work).batch(BATCH).prefetch(tf.data.AUTOTUNE)


def slow_stage():
    """Sorts in its second map, which takes nearly all of the time."""

    def heavy(values, number):
        for _ in range(6):
            values = tf.sort(tf.random.uniform([20_000]))
        return values[:64], number

    return _samples().take(200).map(_work).map(heavy).batch(BATCH)


kept = []


def leak():
    """Keeps 64 KiB of each batch in Python."""

    def keep(number):
        kept.append(np.ones(2**13))
        return number

    batches = _samples().batch(BATCH)
    return batches.map(lambda numbers: tf.numpy_function(keep, [numbers], tf.int64))
