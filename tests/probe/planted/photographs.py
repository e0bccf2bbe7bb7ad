"""600 photographs in JPEG files, read from disk: with OpenCV in a generator, and with tf.data."""

import tempfile
from pathlib import Path

import cv2
import numpy as np
import skimage.data
import tensorflow as tf

COUNT, BATCH, SIDE = 600, 32, 224


def _written():
    """Write crops of a photograph, no two of the same place."""
    picture = cv2.cvtColor(skimage.data.astronaut(), cv2.COLOR_RGB2BGR)
    folder = Path(tempfile.mkdtemp())
    for number in range(COUNT):
        top, left = 11 * (number // 25), 11 * (number % 25)
        cv2.imwrite(str(folder / f"{number:03}.jpg"), picture[top : top + SIDE, left : left + SIDE])
    return sorted(map(str, folder.iterdir()))


PATHS = _written()


def sound():
    for begin in range(0, COUNT, BATCH):
        names = PATHS[begin : begin + BATCH]
        yield np.stack([cv2.cvtColor(cv2.imread(name), cv2.COLOR_BGR2RGB) for name in names]), np.arange(len(names))


def sound_tfdata():
    def read(path):
        return tf.io.decode_jpeg(tf.io.read_file(path), channels=3)

    return tf.data.Dataset.from_tensor_slices(PATHS).map(read, num_parallel_calls=2).batch(BATCH).prefetch(2)
