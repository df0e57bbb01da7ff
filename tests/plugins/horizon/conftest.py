"""Small training data, and one thread, since the tests share their cores."""

import sys
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from harness_horizon.recommenders.training_data import Histories, TrainingData


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a test is the first to import torch, which takes seconds."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def histories(lists: Iterable[Iterable[int]]) -> Histories:
    """Histories from lists of items."""
    rows = [list(one) for one in lists]
    offsets = np.cumsum([0, *map(len, rows)])
    return Histories(offsets, np.array([item for row in rows for item in row], dtype=np.int64))


def made_data(
    train: list[list[int]], validation: list[list[int]] | None = None, split: str = "s"
) -> TrainingData:
    """Training data from lists of items; the last item of a validation history is asked."""
    others = histories(train if validation is None else validation)
    return TrainingData(histories(train), others, others.sizes - 1, split)


@pytest.fixture
def training_data() -> Callable[..., TrainingData]:
    return made_data


@pytest.fixture
def walks(training_data: Callable[..., TrainingData]) -> TrainingData:
    """Ten users who walk through things of their own; a part of this is asked."""
    rows = [[(start * 8 + step) * 5 + 3 for step in range(8)] for start in range(10)]
    return training_data(rows, [row[:7] for row in rows])
