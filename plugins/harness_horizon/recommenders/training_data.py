"""The loader: histories as arrays, items as numbers, and a training case for each prefix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.base.errors import DataError
from harness_horizon.curation.ledger import check_files, complete_manifest
from harness_horizon.curation.splits import TRAIN, VALIDATION
from harness_horizon.next_item.cases import Options
from harness_horizon.recommenders.checkpoint import WEIGHTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLE = Path(__file__).parents[1] / "sample" / "data"
"""The bundled sample, which `--data sample` names."""

PADDING = 0
"""The number that stands where a history has no item; items are numbered from 1."""


@dataclass(frozen=True)
class Histories:
    """The items of many users, one user after the other, oldest item first.

    The history of user `n` is `items[offsets[n]:offsets[n + 1]]`. Items are rows of the catalogue.
    """

    offsets: NDArray[np.int64]
    items: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of items of each user."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class TrainingData:
    """The histories that may be trained on, and those that validate, from place `asked` on."""

    train: Histories
    validation: Histories
    asked: NDArray[np.int64]
    split: str
    """The digest of the split that the data belongs to."""

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The items with at least one training interaction: all that can be recommended."""
        return Vocabulary(np.unique(self.train.items))

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The training items in the numbers of the vocabulary."""
        return self.vocabulary.numbers(self.train.items)


@dataclass(frozen=True)
class Vocabulary:
    """The items that a recommender knows, in ascending order; the first has number 1."""

    items: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.items)

    def numbers(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of each item; `PADDING` for an item that is not known."""
        if not len(self.items):
            return np.full(len(items), PADDING)
        found = np.minimum(np.searchsorted(self.items, items), len(self.items) - 1)
        return np.where(self.items[found] == items, found + 1, PADDING)


def windows(
    numbers: NDArray[np.int64],
    first: NDArray[np.int64],
    end: NDArray[np.int64],
    length: int,
) -> NDArray[np.int64]:
    """A row for each history `numbers[first:end]`: its latest `length` items, then padding."""
    sizes = np.minimum(end - first, length)
    columns = np.arange(length)
    positions = (end - sizes)[:, None] + columns
    there = columns < sizes[:, None]
    found: NDArray[np.int64] = np.where(there, numbers[np.where(there, positions, 0)], PADDING)
    return found


def padded(histories: list[NDArray[np.int64]], length: int) -> NDArray[np.int64]:
    """A row for each history of numbers: its latest `length` known items, then padding."""
    rows = np.full((len(histories), length), PADDING, dtype=np.int64)
    for row, history in zip(rows, histories, strict=True):
        latest = history[history != PADDING][-length:]
        row[: len(latest)] = latest
    return rows


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
    """Each item that is asked of a validation history, after the known ones before it.

    These are of the latest items, as many as the question of a run has. A target that is not known
    is padding. Targets without a known item before them are left out.
    """
    histories, numbers = data.validation, data.vocabulary.numbers(data.validation.items)
    begin = np.repeat(histories.offsets[:-1], histories.sizes)
    asked = np.flatnonzero(np.arange(len(begin)) >= begin + np.repeat(data.asked, histories.sizes))
    known = numbers != PADDING
    place = np.concatenate([[0], np.cumsum(known)])
    first, end = place[np.maximum(begin[asked], asked - Options().length)], place[asked]
    there = end > first
    return Cases(numbers[known], first[there], end[there], numbers[asked][there])


def data_folder(data: Path) -> Path:
    """The folder of curated data that an option names; DataError if it can be none."""
    if data == Path("sample"):
        return SAMPLE
    if not data.is_dir() or (data / WEIGHTS).exists():
        raise DataError(
            "this is no folder of curated data",
            where="--data",
            found=f"{data}, a checkpoint" if data.is_dir() else f"no folder {data}",
            expected="a folder that `harness data horizon` wrote, or sample for the sample",
        )
    return data


def read_training(folder: Path) -> TrainingData:
    """The training data in a folder of curated data.

    DataError if its build is not complete, or if one of the files was changed since.
    """
    manifest = complete_manifest(folder)
    check_files(folder, manifest, TRAIN, VALIDATION)
    train, _ = read_histories(folder / TRAIN, "user_id")
    validation, asked = read_histories(folder / VALIDATION, "first")
    return TrainingData(train, validation, asked, manifest.digest)


def read_histories(path: Path, other: str) -> tuple[Histories, Any]:
    """The histories in a file, with the values of another column."""
    import pyarrow.parquet  # type: ignore[import-untyped]

    table = pyarrow.parquet.ParquetFile(path).read(columns=["items", other]).combine_chunks()
    lists = table.column("items").combine_chunks()
    sizes = lists.value_lengths().to_numpy(zero_copy_only=False)
    items = lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    histories = Histories(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), items)
    return histories, table.column(other).to_numpy()
