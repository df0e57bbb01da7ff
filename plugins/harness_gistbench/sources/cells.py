"""What cells of a source's tables say: ids, and the parts of a text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.data import Batch, Table


def ids(table: Table, batch: Batch, column: str) -> list[str]:
    """The ids in a column of a batch; a blank one is an error that names its row."""
    found = batch.columns[column]
    if "" in found or any(map(str.isspace, found)):
        place = next(place for place, one in enumerate(found) if not one.strip())
        raise table.bad(batch.first + place, column, found[place], "an id that is not blank")
    return found


def described(parts: Iterable[str | None], *, unknown: frozenset[str] = frozenset()) -> str:
    """The parts that say something, on one line; `unknown` are marks of what a source knows not."""
    tidy = (" ".join(part.split()) for part in parts if part)
    return " | ".join(dict.fromkeys(part for part in tidy if part and part not in unknown))
