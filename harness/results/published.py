"""Tables of papers as data, which plugins ship: facts to hold one's own results against."""

from __future__ import annotations

from importlib import resources
from typing import Generic, TypeVar

import msgspec

from harness.results.report import Sheet

RowT = TypeVar("RowT", bound=msgspec.Struct)


class Published(msgspec.Struct, Generic[RowT], frozen=True, kw_only=True):
    """One table: where the paper has it, the unit of its numbers, and its rows.

    Numbers that the paper does not give are null; `notes` are what a reader must know of it.
    """

    source: str
    title: str
    units: str
    columns: tuple[str, ...]
    rows: tuple[RowT, ...]
    notes: tuple[str, ...] = ()

    def sheet(self, *, digits: int = 1) -> Sheet:
        """The table as a report shows it."""
        return Sheet(
            title=f"Published, {self.source}: {self.title} ({self.units})",
            columns=self.columns,
            rows=tuple(msgspec.structs.astuple(row) for row in self.rows),
            notes=self.notes,
            digits=digits,
        )


def read_published(package: str, name: str, kind: type[RowT]) -> Published[RowT]:
    """The table in the file `<name>.json` of a package, its rows of that type."""
    data = resources.files(package).joinpath(f"{name}.json").read_bytes()
    return msgspec.json.decode(data, type=Published[kind])  # type: ignore[valid-type]
