"""An embedder that counts letters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harness import Embedder, EmbedderSettings, Identity


class Letters(Embedder):
    def __init__(self, settings: EmbedderSettings) -> None:
        self._letters = settings.args.get("letters", "aeiou")
        self.identity = Identity(kind="acme-letters", name=self._letters)

    async def open(self) -> None:
        self.dimensions = len(self._letters)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        counts = [[text.casefold().count(one) + 1 for one in self._letters] for text in texts]
        rows = np.array(counts, dtype=np.float32)
        lengths: NDArray[np.float32] = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / lengths).astype(np.float32)
