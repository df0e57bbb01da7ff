"""Nearest vectors by faiss: HNSW on a CPU, exact search on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.base.errors import DataError
from harness_horizon.catalogue.room import BUILDING, GPU_PIECE, SEARCHING, M, check_gpu, free_on_gpu
from harness_horizon.catalogue.vectors import Dtype, cosines, kth_cosines

if TYPE_CHECKING:
    from numpy.typing import NDArray

PIECE = 65_536
"""The rows that are added to a graph together; another number makes another graph."""

ASKED, DEPTH, SLACK = 1_000, 10, 1e-6
"""The titles whose nearest ones are looked up to measure the recall, how many of them, and how
much less a cosine may be than that of the last one by rounding alone."""

ON_CPU = ("faiss-cpu",)
ON_GPU = ("faiss-gpu", "faiss-gpu-cu12", "faiss-gpu-cu11", "faiss-gpu-cuvs")


def checked_faiss() -> bool:
    """Whether the installed faiss can use a GPU.

    ModuleNotFoundError without faiss, DataError with two, which share a folder and break each other.
    """
    there = [name for name in (*ON_CPU, *ON_GPU) if _installed(name)]
    if len(there) > 1:
        raise DataError(
            "two packages of faiss are installed, which overwrite each other's files",
            found=", ".join(there),
            expected="one of them",
            hint=f"pip uninstall {' '.join(there)}, then install one: the extra [cpu] or [gpu]",
        )
    if find_spec("faiss") is None:
        raise ModuleNotFoundError("No module named 'faiss'", name="faiss")
    return bool(there) and there[0] in ON_GPU


def _installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def build_graph(
    rows: NDArray[Any], dtype: Dtype, threads: int | None, say: Callable[[int], None]
) -> Any:
    """The HNSW of all rows, with the published parameters.

    The same rows make the same graph where faiss builds it alike with any number of threads;
    elsewhere only one thread does.
    """
    import faiss  # type: ignore[import-not-found]

    if hasattr(faiss.cvar, "hnsw_deterministic_build"):
        faiss.cvar.hnsw_deterministic_build = True
    if threads:
        faiss.omp_set_num_threads(threads)
    count, dimensions = rows.shape
    metric = faiss.METRIC_INNER_PRODUCT
    if dtype == "fp16":
        kind = faiss.ScalarQuantizer.QT_fp16
        index = faiss.IndexHNSWSQ(dimensions, kind, M, metric)
    else:
        index = faiss.IndexHNSWFlat(dimensions, M, metric)
    index.hnsw.efConstruction, index.hnsw.efSearch = BUILDING, SEARCHING
    _reserve(faiss.downcast_index(index.storage), count)
    return _filled(index, rows, say)


def build_flat(rows: NDArray[Any], dtype: Dtype, say: Callable[[int], None]) -> Any:
    """All rows without a graph, for exact search."""
    import faiss

    dimensions, metric = rows.shape[1], faiss.METRIC_INNER_PRODUCT
    index = (
        faiss.IndexScalarQuantizer(dimensions, faiss.ScalarQuantizer.QT_fp16, metric)
        if dtype == "fp16"
        else faiss.IndexFlatIP(dimensions)
    )
    _reserve(index, len(rows))
    return _filled(index, rows, say)


def _reserve(storage: Any, rows: int) -> None:
    """Take the memory of all vectors once: growing would hold them twice for a moment."""
    storage.codes.resize(rows * storage.sa_code_size())
    storage.codes.resize(0)


def _filled(index: Any, rows: NDArray[Any], say: Callable[[int], None]) -> Any:
    for start in range(0, len(rows), PIECE):
        index.add(rows[start : start + PIECE].astype(np.float32))
        say(index.ntotal)
    return index


def write(index: Any, path: Path) -> None:
    """Write an index as faiss does."""
    import faiss

    faiss.write_index(index, str(path))


class FaissIndex:
    """An index in a file, which is mapped and not read; searched by a graph, or exactly."""

    def __init__(self, path: Path, *, gpu: bool) -> None:
        import faiss

        self._index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        graph = hasattr(self._index, "hnsw")
        self._storage = faiss.downcast_index(self._index.storage) if graph else self._index
        self._searched = self._on_gpu(faiss) if gpu else self._index

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def search(
        self, queries: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The cosines and positions of the `k` nearest vectors of each query; -1 for none."""
        found: tuple[NDArray[np.float32], NDArray[np.int64]] = self._searched.search(queries, k)
        return found

    def vectors(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors at some positions."""
        found: NDArray[np.float32] = self._storage.reconstruct_batch(positions)
        return found

    def _on_gpu(self, faiss: Any) -> Any:
        """All vectors on the first GPU in fp16, in pieces; DataError if it has no room."""
        dimensions = self._index.d
        check_gpu(len(self), dimensions, free_on_gpu())
        self._resources = faiss.StandardGpuResources()
        config = faiss.GpuIndexFlatConfig()
        config.useFloat16 = True
        whole = faiss.IndexShards(dimensions, False, True)
        for start in range(0, len(self), GPU_PIECE):
            piece = faiss.GpuIndexFlatIP(self._resources, dimensions, config)
            end = min(start + GPU_PIECE, len(self))
            for first in range(start, end, PIECE):
                piece.add(self._storage.reconstruct_n(first, min(PIECE, end - first)))
            whole.add_shard(piece)
        return whole


def recall(index: Any, rows: NDArray[Any]) -> dict[str, int]:
    """How many of the nearest titles of a sample of titles are found, and of how many; ties count.

    A title is not counted as near itself.
    """
    count = len(rows)
    depth = min(DEPTH, count - 1)
    own = np.sort(np.random.default_rng(0).permutation(count)[:ASKED])
    if not depth:
        return {"found": 0, "of": 0}
    _, found = index.search(rows[own].astype(np.float32), depth + 1)
    least = kth_cosines(rows, own, depth)
    hits = 0
    for place, row, bound in zip(found, own, least, strict=True):
        others = place[(place >= 0) & (place != row)][:depth]
        hits += int((cosines(rows[row : row + 1], rows[others]) >= bound - SLACK).sum())
    return {"found": hits, "of": depth * len(own)}
