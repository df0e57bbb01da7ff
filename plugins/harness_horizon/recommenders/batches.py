"""The loader: a training case for each prefix of a history, in batches of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from harness_horizon.recommenders.training_data import PADDING, windows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from harness_horizon.recommenders.training_data import TrainingData


@dataclass(frozen=True)
class Cases:
    """Histories, and the item that follows each; both in the numbers of the vocabulary."""

    numbers: NDArray[np.int64]
    first: NDArray[np.int64]
    end: NDArray[np.int64]
    targets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.targets)

    def batches(
        self, size: int, length: int, order: NDArray[np.int64] | None = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Histories of at most `length` items and their targets, `size` cases at a time.

        The rows are as wide as the longest history of a batch, at most `length`.
        """
        order = np.arange(len(self)) if order is None else order
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            first, end = self.first[chosen], self.end[chosen]
            wide = int(min((end - first).max(), length))
            yield windows(self.numbers, first, end, wide), self.targets[chosen]


def training_cases(data: TrainingData) -> Cases:
    """Each item of a history but the first, after the items before it."""
    first = np.repeat(data.train.offsets[:-1], data.train.sizes)
    target = np.flatnonzero(np.arange(len(first)) > first)
    return Cases(data.numbers, first[target], target, data.numbers[target])


def validation_cases(data: TrainingData) -> Cases:
    """The last item of each validation history after the known ones before it.

    A target that is not known is padding. Histories without a known item before it are left out.
    """
    numbers = data.vocabulary.numbers(data.validation.items)
    last = data.validation.offsets[1:] - 1
    asked = np.zeros(len(numbers), dtype=bool)
    asked[last] = True
    kept = (numbers != PADDING) & ~asked
    place = np.concatenate([[0], np.cumsum(kept)])
    first, end = place[data.validation.offsets[:-1]], place[last]
    there = end > first
    return Cases(numbers[kept], first[there], end[there], numbers[last][there])
