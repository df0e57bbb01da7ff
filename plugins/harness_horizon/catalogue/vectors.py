"""The vectors of titles in memory-mapped shards, embedded once and continued after a kill."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from harness.contracts.embedder import Embedder, checked_rows
from harness_horizon.curation.ledger import Ledger

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = "vectors"
SHARD = 65_536
"""The rows of a file. A graph is built shard by shard: other shards make another graph."""

TOGETHER = 4_096
"""Titles that are embedded at once: at most so many are embedded again after a kill."""

BLOCK = 8_192
"""Rows that are compared with all queries at once."""

Dtype = Literal["fp16", "fp32"]


def numbers(dtype: str) -> np.dtype[Any]:
    """The numbers that are stored."""
    return np.dtype(np.float16 if dtype == "fp16" else np.float32)


async def embed(
    ledger: Ledger, embedder: Embedder, titles: Any, dtype: Dtype, say: Callable[[int], None]
) -> None:
    """Embed the titles whose rows are in no file; `say` hears how many titles have rows."""
    (ledger.folder / FOLDER).mkdir(exist_ok=True)
    for number, start in enumerate(range(0, len(titles), SHARD)):
        part = f"{FOLDER}/{number:06d}"
        own = titles[start : start + SHARD]
        if ledger.has(part):
            continue
        path = ledger.folder / part
        with path.open("ab") as file:
            row = embedder.dimensions * numbers(dtype).itemsize
            done = path.stat().st_size // row
            file.truncate(done * row)
            while done < len(own):
                texts = own[done : done + TOGETHER].to_pylist()
                rows = checked_rows(await embedder.embed(texts), texts, embedder)
                file.write(rows.astype(numbers(dtype)).tobytes())
                file.flush()
                os.fsync(file.fileno())
                done += len(texts)
                say(start + done)
        ledger.finish(part, [path], {"rows": done, "dimensions": embedder.dimensions})


def shards(ledger: Ledger, dtype: Dtype) -> list[NDArray[Any]]:
    """The rows of all finished shards, mapped and not read."""
    parts = sorted(part for part in ledger.manifest.parts if part.startswith(f"{FOLDER}/"))
    return [
        np.memmap(
            ledger.folder / part, numbers(dtype), "r",
            shape=(counts["rows"], counts["dimensions"]),
        )
        for part, counts in ((part, ledger.counts(part)) for part in parts)
    ]  # fmt: skip


def cosines(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """The cosine of each row of one array and each of another.

    How a sum is rounded depends on the machine, and on what else is multiplied at the same time.
    With 64 bits this shows in the sixteenth digit only, which is always rounded away.
    """
    found: NDArray[np.float64] = one.astype(np.float64) @ other.astype(np.float64).T
    return found


class SmallIndex:
    """Vectors in memory, searched exactly."""

    def __init__(self, rows: NDArray[np.float32]) -> None:
        self._rows = rows

    def search(self, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """The positions of the `k` nearest vectors of each query, of equal ones the first."""
        return np.argsort(-cosines(queries, self._rows).round(6), axis=1, kind="stable")[:, :k]

    def vectors(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors at some positions."""
        return self._rows[positions]


def kth_cosines(
    pieces: list[NDArray[Any]], queries: NDArray[np.float32], k: int
) -> NDArray[np.float64]:
    """The cosine of each query and its `k`-th nearest row, by exact search."""
    best = np.full((len(queries), k), -np.inf)
    for piece in pieces:
        for start in range(0, len(piece), BLOCK):
            both = np.hstack([best, cosines(queries, piece[start : start + BLOCK])])
            best = np.partition(both, both.shape[1] - k, axis=1)[:, -k:]
    return best.min(axis=1)
