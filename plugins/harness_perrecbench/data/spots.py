"""Places in a table, and nested values read from them as types."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import msgspec

if TYPE_CHECKING:
    from harness import DataError
    from harness.data import Table

Stars: TypeAlias = Annotated[float, msgspec.Meta(ge=1, le=5)]
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
"""One step of the path by which a value that is not what it should be is told."""

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A cell of a table, which errors name."""

    table: Table
    row: int
    column: str

    def beside(self, column: str) -> Spot:
        """Another cell of the same row."""
        return Spot(table=self.table, row=self.row, column=column)

    def bad(self, value: Any, expected: str) -> DataError:
        """The error for a value that cannot be used here."""
        return self.table.bad(self.row, self.column, value, expected)

    def read(self, values: Any, kind: type[T], *, written: bool = False) -> list[T]:
        """A list of objects as structs; `written` says that their numbers may be texts."""
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
