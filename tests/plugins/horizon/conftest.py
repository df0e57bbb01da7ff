"""Small training data, and one thread, since the tests share their cores."""

import sys

import numpy as np
import pytest
from harness_horizon.recommenders.training_data import Histories, TrainingData


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch):
    """Also where a test is the first to import torch, which takes seconds."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def histories(rows):
    """Histories from lists of items."""
    return Histories(np.cumsum([0, *map(len, rows)]), np.concatenate(rows, dtype=np.int64))


def made_data(train, validation=None, split="s"):
    """Training data from lists of items; the last item of a validation history is asked."""
    others = histories(train if validation is None else validation)
    return TrainingData(histories(train), others, others.sizes - 1, split)
