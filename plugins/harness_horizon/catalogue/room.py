"""What an index takes of memory, of disk and of a GPU, worked out from its numbers."""

from __future__ import annotations

import subprocess
from typing import Literal, NamedTuple

from harness.base.errors import DataError
from harness_horizon.curation.engine import size

M, BUILDING, SEARCHING = 64, 256, 256
"""The published parameters of HNSW: links of a node, efConstruction and efSearch."""

LINKS_OF_NODE = 2 * M + 2
"""The links of a node at the bottom, and its share of those above."""

NODE = 4 * LINKS_OF_NODE + 12
"""The bytes of a node: its links, its level and where its links begin."""

TITLE = 100
"""The bytes of a title of ordinary length, with its number and its key."""

GPU_PIECE = 1 << 20
"""The rows that are copied to a GPU together; faiss may hold a piece twice while it grows."""

GPU_SCRATCH = 2_000_000_000
"""What faiss and CUDA take on a GPU besides vectors."""


class Room(NamedTuple):
    """The bytes that an index takes: of memory, of disk while it is built, and afterwards."""

    memory: int
    working: int
    disk: int


def room_of(titles: int, dimensions: int, number: int) -> Room:
    """What an index of so many titles takes, with numbers of so many bytes.

    >>> room_of(35_000_000, 768, 4).memory // 10**9
    126
    """
    vectors = titles * dimensions * number
    index = vectors + titles * NODE
    disk = index + titles * TITLE
    return Room(index, disk + vectors, disk)


def gpu_needs(titles: int, dimensions: int) -> int:
    """The bytes of a GPU that exact search in fp16 takes.

    >>> gpu_needs(35_000_000, 768) // 10**9
    57
    """
    row = 2 * dimensions
    return titles * row + min(titles, GPU_PIECE) * row + GPU_SCRATCH


def check_gpu(titles: int, dimensions: int, free: int | None) -> None:
    """Raise DataError if a GPU with so many free bytes has no room; None is not known."""
    needed = gpu_needs(titles, dimensions)
    if free is not None and needed > free:
        raise DataError(
            "the GPU has too little room for exact search",
            found=f"{size(free)} free",
            expected=f"{size(needed)}: {titles:,} x {dimensions} numbers in fp16, and room to work",
            hint="search on the CPU: device=cpu; or free the GPU",
        )


def gpu_memory(which: Literal["free", "total"]) -> int | None:
    """The bytes of the first GPU; None if nvidia-smi does not say."""
    try:
        found = subprocess.run(
            ["nvidia-smi", f"--query-gpu=memory.{which}", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=60, check=True,
        ).stdout.split()  # fmt: skip
        return int(found[0]) << 20
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
