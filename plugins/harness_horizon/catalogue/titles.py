"""Titles as they are compared: cleaned, distinct and numbered."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import numpy as np

from harness.base.errors import DataError
from harness_horizon.curation.ledger import complete_manifest
from harness_horizon.curation.stages import ITEMS
from harness_horizon.next_item.cases import SETTINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray


def cleaned(title: str | None) -> str:
    """A title as it is compared: NFC, and one blank for any blanks; empty if there is none.

    >>> cleaned(" A\\n thing "), cleaned("None"), cleaned(None)
    ('A thing', '', '')
    """
    text = " ".join(normalize("NFC", title or "").split())
    return "" if text == "None" else text


def items_digest(data: Path) -> str:
    """The digest of the items of curated data, which stands for its catalogue."""
    for part in complete_manifest(data).parts.values():
        if ITEMS in part.files:
            return part.files[ITEMS].digest
    raise DataError("the curated data has no items", where=str(data), expected=ITEMS)


def distinct_titles(data: Path) -> Any:
    """The distinct cleaned titles of curated data as an Arrow array: `row` is the place in it."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    file = pq.ParquetFile(data / ITEMS)
    text = pa.large_string()
    parts = [
        pa.array(map(cleaned, batch.column(0).to_pylist()), text)
        for batch in file.iter_batches(columns=["title"])
    ]
    found = pc.unique(pa.chunked_array(parts, text))
    return found.filter(pc.not_equal(found, ""))


def true_titles(data: Path) -> set[str]:
    """The cleaned titles of all targets of all cases."""
    import pyarrow.parquet as pq

    found: set[str] = set()
    for setting in SETTINGS:
        file = pq.ParquetFile(data / f"cases-{setting}.parquet")
        for batch in file.iter_batches(columns=["titles", "first"]):
            for row in batch.to_pylist():
                found.update(map(cleaned, row["titles"][row["first"] :]))
    return found - {""}


class Titles:
    """The titles of an index by position, and their rows in the catalogue."""

    def __init__(self, table: Any) -> None:
        self.titles = table.column("title").chunk(0)
        self.rows, self._order = (table.column(one).chunk(0).to_numpy() for one in ("row", "order"))

    def __len__(self) -> int:
        return len(self.rows)

    def position(self, title: str) -> int | None:
        """Where a cleaned title is; None if the catalogue lacks it."""
        place = bisect_left(self._order, title, key=lambda one: self.titles[one].as_py())
        found = int(self._order[min(place, len(self) - 1)])
        return found if self.titles[found].as_py() == title else None


def table_of(titles: Any, rows: NDArray[np.int64]) -> Any:
    """The table of an index's titles, those in the given rows, with the order of their texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kept = titles.take(pa.array(rows))
    return pa.table({"title": kept, "row": rows, "order": pc.sort_indices(kept)})


def sampled(titles: Any, data: Path, size: int) -> NDArray[np.int64]:
    """The rows of `size` titles: all true ones, and others by chance."""
    import pyarrow as pa
    import pyarrow.compute as pc

    true = pa.array(sorted(true_titles(data)), titles.type)
    among = pc.is_in(titles, value_set=true).to_numpy(zero_copy_only=False)
    by_chance = np.where(among, -1.0, np.random.default_rng(0).random(len(titles)))
    return np.sort(np.argsort(by_chance, kind="stable")[: max(size, int(among.sum()))])
