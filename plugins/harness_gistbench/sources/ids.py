"""Ids that say whom or what a row is about."""

from __future__ import annotations

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
