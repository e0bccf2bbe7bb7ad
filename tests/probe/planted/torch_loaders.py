"""A torch ``DataLoader``."""

import numpy as np
import torch

COUNT, BATCH = 800, 8


class Numbers(torch.utils.data.Dataset):
    """Delivers numbers."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return np.full(64, index, np.float32), index


def sound():
    return torch.utils.data.DataLoader(Numbers(), batch_size=BATCH)


def sound_workers():
    return torch.utils.data.DataLoader(Numbers(), batch_size=BATCH, num_workers=1)
