"""Keras ``PyDataset``."""

import keras
import numpy as np

STEPS, BATCH = 100, 8


class Numbers(keras.utils.PyDataset):
    """Delivers numbers."""

    def __init__(self, leaks=False, **how):
        super().__init__(**how)
        self.leaks, self.kept = leaks, []

    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        if self.leaks:
            self.kept.append(np.ones(2**13))
        samples = np.arange(index * BATCH, (index + 1) * BATCH)
        return np.repeat(samples[:, None], 64, 1).astype(np.float32), samples


def sound():
    return Numbers()


def sound_threads():
    return Numbers(workers=2)


def leak():
    return Numbers(leaks=True)
