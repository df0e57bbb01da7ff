"""Vectors made of hashed words and parts of words: like texts get like vectors, without weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

from harness.contracts.embedder import Embedder, EmbedderSettings
from harness.contracts.identity import Identity
from harness_embedders.arguments import check_known, count_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KIND = "hashing"
DIMENSIONS = 384
PART = 4
"""The letters of a word's parts."""


def make(kind: str, settings: EmbedderSettings) -> Embedder:
    """The embedder that the arguments describe."""
    check_known(kind, settings.args, ("dimensions",))
    return HashingEmbedder(count_of(kind, settings.args, "dimensions", DIMENSIONS))


class HashingEmbedder(Embedder):
    """Counts hashed features. Counts are never negative, so that no text gets a vector of zeros."""

    def __init__(self, dimensions: int) -> None:
        self.identity = Identity(kind=KIND, name="words", details={"dimensions": dimensions})
        self.dimensions = dimensions

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row of length 1 for each text."""
        import numpy as np

        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            words = re.findall(r"\w+", text.casefold()) or [text]
            features = [feature for word in words for feature in hashes(word)]
            np.add.at(row, np.array(features, dtype=np.int64) % self.dimensions, 1)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows


@lru_cache(maxsize=100_000)
def hashes(word: str) -> tuple[int, ...]:
    """The hashes of a word, which counts twice, and of its parts."""
    marked = f"<{word}>"
    parts = [marked[at : at + PART] for at in range(len(marked) - PART + 1)]
    return tuple(crc32(text.encode("utf-8", "replace")) for text in (marked, word, *parts))
