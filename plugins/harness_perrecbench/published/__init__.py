"""The tables of the PerRecBench paper as data: facts to hold one's own results against.

Each file `<name>.json` holds one table.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from harness.results.published import Published, read_published
from harness_perrecbench.published import rows

RowT = TypeVar("RowT", bound=msgspec.Struct)

TABLES: dict[str, type[msgspec.Struct]] = {
    "main": rows.Result,
    "prompting": rows.Prompting,
    "tuning": rows.Tuning,
    "statistics": rows.Statistic,
    "numbers": rows.Number,
}
"""The type of the rows of each table, in the paper's order; numbers told in its text come last."""


def published(kind: type[RowT]) -> Published[RowT]:
    """The table whose rows are of that type."""
    name = next(name for name, each in TABLES.items() if each is kind)
    return read_published(__name__, name, kind)
