"""The vectors of titles in a memory-mapped file, embedded in shards and continued after a kill."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

import numpy as np

from harness.base.errors import DataError
from harness.contracts.embedder import LENGTH_SLACK, Embedder, checked_rows
from harness.runs.atomic_files import storage_error
from harness_horizon.curation.engine import OUT
from harness_horizon.curation.ledger import HINT, Ledger

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = "vectors"
SHARD = 65_536
"""The rows of a shard; its checksum is kept, so that what was embedded before a kill is trusted."""

TOGETHER = 4_096
"""Titles that are embedded at once: at most so many are embedded again after a kill."""

BLOCK = 8_192
"""Rows that are compared with all queries at once."""

Dtype = Literal["fp16", "fp32"]
NUMBERS: dict[Dtype, type[np.floating[Any]]] = {"fp16": np.float16, "fp32": np.float32}


class Vectors:
    """A file of rows that grows; `rows` maps it, so that no memory holds it."""

    def __init__(self, ledger: Ledger, dimensions: int, dtype: Dtype) -> None:
        self.path = ledger.folder / FOLDER / "rows"
        self.dimensions, self.dtype = dimensions, NUMBERS[dtype]
        self._ledger = ledger
        self._row = dimensions * np.dtype(self.dtype).itemsize

    def rows(self) -> NDArray[np.floating[Any]]:
        """The rows that are in the file."""
        count = self.path.stat().st_size // self._row if self.path.exists() else 0
        if not count:
            return np.empty((0, self.dimensions), self.dtype)
        return np.memmap(self.path, self.dtype, "r", shape=(count, self.dimensions))

    async def embed(self, embedder: Embedder, titles: Any, say: Callable[[int], None]) -> None:
        """Embed the titles whose rows are not in the file; `say` hears how many are."""
        self.path.parent.mkdir(exist_ok=True)
        done = self._kept()
        try:
            with self.path.open("ab") as file:
                file.truncate(done * self._row)
                while done < len(titles):
                    end = min(done + TOGETHER, done // SHARD * SHARD + SHARD, len(titles))
                    texts = titles[done:end].to_pylist()
                    found = checked_rows(await embedder.embed(texts), texts, embedder)
                    file.write(found.astype(self.dtype).tobytes())
                    file.flush()
                    done = end
                    say(done)
                    if done % SHARD == 0 or done == len(titles):
                        os.fsync(file.fileno())
                        self._finish((done - 1) // SHARD)
        except OSError as error:
            raise storage_error(self.path, error, option=OUT) from error

    def _kept(self) -> int:
        """The rows of an earlier process; DataError if a finished shard was changed."""
        rows = self.rows()
        shards = sum(1 for name in self._ledger.manifest.parts if name.startswith(f"{FOLDER}/"))
        for shard in range(shards):
            if self._checksum(rows, shard) != self._ledger.counts(f"{FOLDER}/{shard}"):
                raise DataError(
                    "the vectors were changed after they were embedded",
                    where=str(self.path),
                    found=f"another checksum of shard {shard}",
                    hint=HINT,
                )
        done = min(shards * SHARD, len(rows))
        lengths = np.linalg.norm(rows[done:].astype(np.float32), axis=1)
        wrong = np.flatnonzero(~(np.abs(lengths - 1) <= 2 * LENGTH_SLACK))
        return done + int(wrong[0] if len(wrong) else len(lengths))

    def _finish(self, shard: int) -> None:
        self._ledger.finish(f"{FOLDER}/{shard}", [], self._checksum(self.rows(), shard))

    def _checksum(self, rows: NDArray[Any], shard: int) -> dict[str, int]:
        own = rows[shard * SHARD : shard * SHARD + SHARD]
        return {"rows": len(own), "crc32": crc32(np.ascontiguousarray(own))}


def cosines(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float32]:
    """The cosine of each row of one array and each of another."""
    found: NDArray[np.float32] = one.astype(np.float32) @ other.astype(np.float32).T
    return found


def nearest(
    rows: NDArray[Any], queries: NDArray[np.float32], k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The cosines and positions of the `k` nearest of few rows, by exact search."""
    found = cosines(queries, rows)
    order = np.argsort(-found, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(found, order, 1), order


def kth_cosines(rows: NDArray[Any], own: NDArray[np.int64], k: int) -> NDArray[np.float32]:
    """The cosine of each of the rows `own` and the `k`-th nearest of all others."""
    best = np.full((len(own), k), -np.inf, np.float32)
    for start in range(0, len(rows), BLOCK):
        piece = rows[start : start + BLOCK]
        found = cosines(rows[own], piece)
        inside = np.flatnonzero((own >= start) & (own < start + BLOCK))
        found[inside, own[inside] - start] = -np.inf
        both = np.hstack([best, found])
        best = np.partition(both, both.shape[1] - k, axis=1)[:, -k:]
    return best.min(axis=1)
