"""Rows as columns of Python values, checked many at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

    from harness.contracts.task import Column

BATCH_ROWS = 1 << 14

SAMPLE = 64
"""Rows of a column that show whether its values repeat."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Consecutive rows of a table, column by column; `first` is the number of the first of them."""

    first: int
    columns: Mapping[str, list[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))


def checked_whole(array: pa.Array, column: Column) -> list[Any] | None:
    """The values of an arrow column where all are seen at once to be fit, as rows would give them.

    None where any might not be: then each must be looked at, for its conversion or its error.
    """
    import pyarrow as pa

    if array.null_count and column.required:
        return None
    if not pa.types.is_dictionary(array.type) and _repeats(array):
        array = array.dictionary_encode()
    if pa.types.is_dictionary(array.type):
        known = checked_whole(array.dictionary, column)
        if known is None:
            return None
        return [None if at is None else known[at] for at in array.indices.to_pylist()]
    kind = array.type
    if column.one_of and pa.types.is_nested(kind):
        return None
    values: list[Any]
    if column.type == "string" and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        values = array.to_pylist()
    elif column.type == "string" and pa.types.is_integer(kind):
        values = array.cast(pa.string()).to_pylist()
    elif (column.type == "integer" and pa.types.is_integer(kind)) or column.type == "any":
        values = array.to_pylist()
    else:
        return None
    if column.one_of and not {str(one) for one in set(values) - {None}} <= set(column.one_of):
        return None
    return values


def _repeats(array: pa.Array) -> bool:
    """Whether few values seem to stand in many rows, so that each is best looked at once."""
    import pyarrow as pa

    kind = array.type
    hashed = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
    return hashed and len(array) > SAMPLE and len(array[:SAMPLE].unique()) <= SAMPLE // 4
