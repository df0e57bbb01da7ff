"""Nearest vectors by faiss: HNSW on a CPU, exact search on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.base.errors import DataError
from harness.runs.atomic_files import atomic_writer
from harness_horizon.catalogue.index_folder import COMMAND
from harness_horizon.catalogue.room import (
    BUILDING,
    GPU_PIECE,
    LINKS_OF_NODE,
    SEARCHING,
    M,
    check_gpu,
    gpu_memory,
)
from harness_horizon.catalogue.vectors import cosines, kth_cosines
from harness_horizon.curation.engine import OUT

if TYPE_CHECKING:
    from numpy.typing import NDArray

ASKED, DEPTH, SLACK = 1_000, 10, 1e-6
"""The titles whose nearest ones are looked up to measure the recall, how many of them, and how
much less a cosine may be than that of the last one by rounding alone."""

ON_CPU = "faiss-cpu"
PACKAGES = (ON_CPU, "faiss-gpu", "faiss-gpu-cu12", "faiss-gpu-cu11", "faiss-gpu-cuvs")


def checked_faiss() -> bool:
    """Whether the installed faiss can use a GPU.

    ModuleNotFoundError without faiss, DataError with two, which share a folder.
    """
    there = [name for name in PACKAGES if any(distributions(name=name))]
    if len(there) > 1:
        raise DataError(
            "two packages of faiss are installed, which overwrite each other's files",
            found=", ".join(there),
            expected="one of them",
            hint=f"pip uninstall {' '.join(there)}, then install one: the extra [cpu] or [gpu]",
        )
    if find_spec("faiss") is None:
        raise ModuleNotFoundError("No module named 'faiss'", name="faiss")
    return there not in ([], [ON_CPU])


def build(
    shards: list[NDArray[Any]], path: Path, threads: int | None, say: Callable[[int], None]
) -> None:
    """Write the HNSW of all rows, with the published parameters.

    The same rows make the same file where faiss builds a graph alike with any number of threads;
    elsewhere only one thread does.
    """
    import faiss

    if hasattr(faiss.cvar, "hnsw_deterministic_build"):
        faiss.cvar.hnsw_deterministic_build = True
    if threads:
        faiss.omp_set_num_threads(threads)
    dimensions, metric = shards[0].shape[1], faiss.METRIC_INNER_PRODUCT
    index: Any = (
        faiss.IndexHNSWSQ(dimensions, faiss.ScalarQuantizer.QT_fp16, M, metric)
        if shards[0].dtype == np.float16
        else faiss.IndexHNSWFlat(dimensions, M, metric)
    )
    index.hnsw.efConstruction, index.hnsw.efSearch = BUILDING, SEARCHING
    codes, links = faiss.downcast_index(index.storage).codes, index.hnsw.neighbors
    for held, most in (
        (codes, sum(one.nbytes for one in shards)),
        (links, sum(map(len, shards)) * LINKS_OF_NODE),
    ):
        held.resize(most)  # growing bit by bit would hold it twice for a moment
        held.resize(0)
    for one in shards:
        index.add(one.astype(np.float32))
        say(index.ntotal)
    with atomic_writer(path, option=OUT) as file:
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write, 1 << 20))


class FaissIndex:
    """An index in a file, which is mapped and not read; searched by its graph, or on a GPU."""

    def __init__(self, path: Path, *, gpu: bool = False) -> None:
        import faiss

        try:
            self._index: Any = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            found = str(error).strip().rpartition("\n")[2]
            raise DataError(
                "faiss cannot read this index", where=str(path), found=found,
                hint=f"use the faiss that built it, or build it: {COMMAND}",
            ) from error  # fmt: skip
        self._storage = faiss.downcast_index(self._index.storage)
        self._searched = self._on_gpu(faiss) if gpu else self._index

    def search(self, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """The positions of the `k` nearest vectors of each query; -1 where there is none."""
        found: NDArray[np.int64] = self._searched.search(queries, k)[1]
        return found

    def vectors(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors at some positions, as they are stored."""
        found: NDArray[np.float32] = self._storage.reconstruct_batch(positions)
        return found

    def _on_gpu(self, faiss: Any) -> Any:
        """All vectors on the first GPU in fp16, in pieces; DataError if it has no room."""
        count, dimensions = self._index.ntotal, self._index.d
        check_gpu(count, dimensions, gpu_memory("free"))
        self._resources = faiss.StandardGpuResources()
        config = faiss.GpuIndexFlatConfig()
        config.useFloat16 = True
        whole = faiss.IndexShards(dimensions, False, True)
        for start in range(0, count, GPU_PIECE):
            piece = faiss.GpuIndexFlatIP(self._resources, dimensions, config)
            piece.add(self._storage.reconstruct_n(start, min(GPU_PIECE, count - start)))
            whole.add_shard(piece)
        return whole


def recall(index: FaissIndex, shards: list[NDArray[Any]]) -> dict[str, int]:
    """How many of the nearest titles of a sample of titles are found, and of how many; ties count.

    A title is among its own nearest, and is not counted.
    """
    count = sum(map(len, shards))
    depth = min(DEPTH, count - 1)
    own = np.sort(np.random.default_rng(0).permutation(count)[:ASKED])
    queries = index.vectors(own)
    least = kth_cosines(shards, queries, depth + 1)
    hits = 0
    for row, query, places, bound in zip(
        own, queries, index.search(queries, depth + 1), least, strict=True
    ):
        others = index.vectors(places[(places >= 0) & (places != row)][:depth])
        hits += int((cosines(query[None], others) >= bound - SLACK).sum())
    return {"found": hits, "of": depth * len(own)}
