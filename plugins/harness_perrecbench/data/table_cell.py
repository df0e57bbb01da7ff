"""Cells of tables with nested values, which are read as types; errors name the cell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from harness.base.errors import DataError
    from harness.data.read import Table

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
"""One step of the path at which msgspec found a value that does not fit."""

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """One cell, given by its table, row number and column.

    for row, values in table.rows():
        cell = TableCell(table=table, row=row, column="history")
        ratings = cell.read(values["history"], Rating)
        if not ratings:
            raise cell.bad(ratings, "at least one rating")
    """

    table: Table
    row: int
    column: str

    def beside(self, column: str) -> TableCell:
        """Another cell of the same row."""
        return TableCell(table=self.table, row=self.row, column=column)

    def bad(self, value: Any, expected: str) -> DataError:
        """The error for a value that cannot be used here."""
        return self.table.bad(self.row, self.column, value, expected)

    def read(self, values: Any, kind: type[T], *, written: bool = False) -> list[T]:
        """A list of objects as structs; with `written`, numbers may be texts."""
        try:
            return msgspec.convert(values, list[kind], strict=not written)  # type: ignore[valid-type]
        except msgspec.ValidationError as error:
            problem, _, path = str(error).rstrip("`").partition(" - at `$")
            found = values
            for name, number in _STEP.findall(path):
                found = found[name] if name else found[int(number)]
            fields = ", ".join(kind.__struct_fields__)
            expected = f"a list of objects with {fields} ({problem}{path and ' at '}{path})"
            raise self.bad(found, expected) from None
