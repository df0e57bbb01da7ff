"""What a task knows of the published data, held against what is found in a table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from harness.data.read import quoted

if TYPE_CHECKING:
    from harness.contracts.task import KnownFact
    from harness.data.database import Database
    from harness.data.read import Table

SHOWN = 12


class Measured(NamedTuple):
    """What was found in a table; `values` and `digest` are those of a column."""

    rows: int
    values: int
    digest: str


def measure(table: Table, column: str | None) -> Measured:
    """The number of a table's rows, and of a column's distinct values with their digest."""
    rows, values = 0, set[str]()
    for batch in table.batches(*([column] if column else [*table.columns][:1])):
        rows += len(batch)
        if column is not None:
            values.update(str(one) for one in batch.columns[column] if one is not None)
    return Measured(rows, *_distinct(values))


def measure_loaded(database: Database, name: str, column: str | None) -> Measured:
    """The same for a table that a database holds."""
    ((rows,),) = database.relation(name).aggregate("count(*)").fetchall()
    if column is None:
        return Measured(int(rows), 0, "")
    found = database.relation(name).project(quoted(column)).distinct().fetchall()
    return Measured(int(rows), *_distinct({str(one) for (one,) in found if one is not None}))


def _distinct(values: set[str]) -> tuple[int, str]:
    return len(values), hashlib.sha256("\n".join(sorted(values)).encode()).hexdigest()


def unlike(fact: KnownFact, found: Measured) -> Iterator[str]:
    """How a table differs from a fact about it."""
    table = f"table '{fact.table}'"
    column = f"'{fact.column}' in {table}"
    if fact.rows not in (None, found.rows):
        yield f"{table} has {found.rows:,} rows, not {fact.rows:,}"
    if fact.values not in (None, found.values):
        yield f"{column} has {found.values:,} distinct values, not {fact.values:,}"
    if fact.digest not in (None, found.digest):
        what = f"the file of {table}" if fact.column is None else column
        yield f"{what} has the digest {found.digest[:SHOWN]}…, not {fact.digest[:SHOWN]}…"
