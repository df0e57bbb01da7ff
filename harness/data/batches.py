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
"""The first rows of a column, which show whether its values repeat."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Consecutive rows of a table as columns; `first` is the number of the first row."""

    first: int
    columns: Mapping[str, list[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))


def checked_whole(array: pa.Array, column: Column) -> list[Any] | None:
    """The values of an arrow column, as `rows` gives them, if its type shows that all are valid.

    None if a value may be invalid: then each must be checked or converted on its own.
    """
    import pyarrow as pa

    if column.values or (array.null_count and column.required):
        return None
    kind = array.type
    hashed = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
    if hashed and len(array) > SAMPLE and len(array[:SAMPLE].unique()) <= SAMPLE // 4:
        array = array.dictionary_encode()  # so that each of few values is checked only once
    if pa.types.is_dictionary(array.type):
        known = checked_whole(array.dictionary, column)
        if known is None:
            return None
        return [None if at is None else known[at] for at in array.indices.to_pylist()]
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
