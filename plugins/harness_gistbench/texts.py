"""The texts of a great many objects, found by the objects' hashes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from zlib import crc32

from harness.data.sampling import ranks
from harness_gistbench.spool import Spool

if TYPE_CHECKING:
    import numpy as np

    from harness_gistbench.log import Log
    from harness_gistbench.survey import RowsFile

_TOGETHER = 1 << 18

_encoded = partial(str.encode, errors="surrogatepass")


class TextIndex:
    """Objects of these hashes with their texts; where a log has several of one, its first."""

    def __init__(self, *hashes: np.ndarray) -> None:
        import numpy as np

        every = np.concatenate(hashes)
        every.sort()
        self._hashes = every[np.concatenate(([True], every[1:] != every[:-1]))]
        del every
        self._starts = np.full(len(self._hashes), -1, dtype=np.int64)
        self._sizes = np.zeros(len(self._hashes), dtype=np.uint32)
        self._spool = Spool()

    def __len__(self) -> int:
        return len(self._hashes)

    def numbers(self, hashes: np.ndarray) -> np.ndarray:
        """What the objects of these hashes are called here."""
        import numpy as np

        found = np.empty(len(hashes), dtype=np.int32)
        for start in range(0, len(hashes), _TOGETHER):
            part = hashes[start : start + _TOGETHER]
            # Looked up in their own order, hashes would each be far from the one before.
            order = np.argsort(part)
            found[start + order] = np.searchsorted(self._hashes, part[order])
        return found

    def fill(self, log: Log, *, seed: int, hashed: RowsFile | None = None) -> int:
        """Takes the texts from a log, once, and tells how many objects have another one as well.

        Of the same rows `hashed` knows the objects already.
        """
        import numpy as np

        # Short, as there are millions of objects.
        digests = np.zeros(len(self._hashes), dtype=np.uint32)
        torn = np.zeros(len(self._hashes), dtype=np.bool_)
        first = end = 0
        for part in log.texts():
            hashes = (
                ranks(part.objects, seed=seed)
                if hashed is None
                else hashed.objects(first, len(part.objects))
            )
            first += len(part.objects)
            numbers = np.minimum(self.numbers(hashes), len(self._hashes) - 1)
            wanted = self._hashes[numbers] == hashes
            if "" in part.texts:
                wanted &= np.array([text != "" for text in part.texts])
            mine = np.flatnonzero(wanted)
            rows = np.flatnonzero(wanted & (self._starts[numbers] < 0))
            rows = rows[np.sort(np.unique(numbers[rows], return_index=True)[1])]
            chosen = rows.tolist()
            sizes = self._spool.add(
                [part.objects[row] for row in chosen], [part.texts[row] for row in chosen]
            )
            ends = end + np.cumsum(sizes)
            self._starts[numbers[rows]] = ends - sizes
            self._sizes[numbers[rows]] = sizes
            end = int(ends[-1]) if len(ends) else end
            texts = map(_encoded, map(part.texts.__getitem__, mine.tolist()))
            told = np.fromiter(map(crc32, texts), dtype=np.uint32, count=len(mine))
            digests[numbers[rows]] = told[np.searchsorted(mine, rows)]
            torn[numbers[mine[digests[numbers[mine]] != told]]] = True
        self._spool.seal()
        return int(torn.sum())

    def read(self, numbers: np.ndarray) -> list[tuple[str, str]]:
        """Object and text of each number."""
        return self._spool.read(self._starts[numbers], self._sizes[numbers])
