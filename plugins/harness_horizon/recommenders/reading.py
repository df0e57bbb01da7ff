"""Reads histories and cases from the folder that the curation wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness_horizon.curation.ledger import complete_manifest
from harness_horizon.curation.splits import TRAIN, VALIDATION
from harness_horizon.recommenders.training_data import Histories, TrainingData

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLE = Path(__file__).parents[1] / "sample" / "data"
"""The bundled sample, which `--data sample` names."""


def data_folder(data: Path) -> Path:
    """The folder of curated data that an option names."""
    return SAMPLE if data == Path("sample") else data


def read_training(folder: Path) -> TrainingData:
    """The training data in a folder of curated data; DataError if its build is not complete."""
    split = complete_manifest(folder).digest
    train, _ = read_histories(folder / TRAIN)
    asked, first = read_histories(folder / VALIDATION, "first")
    return TrainingData(train, cut(asked, first + 1), split)


def read_histories(path: Path, *others: str) -> tuple[Histories, Any]:
    """The histories in a file, with the values of another column."""
    import pyarrow.parquet  # type: ignore[import-untyped]

    table = pyarrow.parquet.read_table(path, columns=["items", *others]).combine_chunks()
    lists = table.column("items").combine_chunks()
    sizes = lists.value_lengths().to_numpy(zero_copy_only=False)
    items = lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    histories = Histories(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), items)
    return histories, table.column(others[0]).to_numpy().astype(np.int64) if others else None


def cut(histories: Histories, sizes: NDArray[np.int64]) -> Histories:
    """The first items of each history, as many as `sizes` says."""
    place = np.arange(len(histories.items)) - np.repeat(histories.offsets[:-1], histories.sizes)
    kept = place < np.repeat(sizes, histories.sizes)
    offsets = np.concatenate([[0], np.cumsum(np.minimum(sizes, histories.sizes))])
    return Histories(offsets.astype(np.int64), histories.items[kept])
