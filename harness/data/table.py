"""One table of a task's data: rows with the columns and types that the task declares."""

from __future__ import annotations

import itertools
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.base.errors import DataError
from harness.data.batches import BATCH_ROWS, Batch, checked_whole
from harness.data.columns import Convert, Unfit, as_written, converter
from harness.data.wording import (
    columns_option,
    join_names,
    nearest,
    place,
    preview,
)

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

    from harness.contracts.task import Column
    from harness.data.source import Source

MOST_ROWS = 100_000
"""How many rows after the first bad one are checked, which takes a moment for any file."""

MOST_VALUES = 5
"""How many of the bad values are listed, the most frequent first."""


def further_unfit(rows: Iterable[Sequence[tuple[str, Any]]]) -> str:
    """How many of these rows are bad too, with their bad values; "" if none is.

    A row is given by its bad cells, as pairs of column and cell. If the file cannot be read
    further, the rows before that count: the next run reports why.
    """
    found: Counter[tuple[str, str]] = Counter()
    seen = unfit = 0
    try:
        for wrong in itertools.islice(rows, MOST_ROWS):
            seen += 1
            unfit += bool(wrong)
            found.update((column, preview(cell)) for column, cell in wrong)
    except DataError:
        pass
    if not unfit:
        return ""
    values = [
        f"{value} in '{column}' ({times:,})"
        for (column, value), times in sorted(found.items(), key=lambda one: (-one[1], one[0]))
    ]
    more = len(values) - MOST_VALUES
    rest = f" and {more:,} other values" if more > 0 else ""
    return (
        f"\n            {unfit:,} of the next {seen:,} rows cannot be used either: "
        f"{', '.join(values[:MOST_VALUES])}{rest}"
    )


@dataclass(frozen=True, kw_only=True)
class Table:
    """The rows of one or several sources, checked while they are read.

        for number, row in table.rows():
            if row["age"] < 0:
                raise table.bad(number, "age", row["age"], "an age of 0 or more")

    A row holds the declared columns only, under their own names instead of a source's aliases; with
    no declared columns it holds all cells unchanged. An optional column that is absent, null or an
    empty cell is None; for a required column this is an error.

    With `of_run`, errors propose options of a run.
    """

    name: str
    columns: Mapping[str, Column]
    sources: Sequence[Source]
    of_run: bool = False

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Number and values of each row; each call reads from the start.

        Numbers start at 1, do not count a header, and continue over several files.
        """
        number = 0
        for source in self.sources:
            for values in self._values(source, self.columns):
                number += 1
                yield number, values
        if number == 0:
            raise self._empty()

    def batches(self, *names: str) -> Iterator[Batch]:
        """The same rows as columns, many at a time: the named columns, or all declared ones.

        Only these columns are checked. With no declared columns, a batch has every column of any of
        its rows, and None for rows without it. Sources that are stored as columns (Parquet and
        splits of the hub) are read many times faster than by rows.
        """
        number = 0
        for source in self.sources:
            parts = self.columns_of(source, names) if self.columns else _as_is(source, names)
            for columns in parts:
                batch = Batch(first=number + 1, columns=columns)
                yield batch
                number += len(batch)
        if number == 0:
            raise self._empty()

    @property
    def where(self) -> str:
        """The table's name, and the files or addresses that it is read from, for errors."""
        labels = [source.label for source in self.sources]
        more = f" and {len(labels) - 1:,} more" if len(labels) > 1 else ""
        return f"table '{self.name}', {labels[0]}{more}" if labels else f"table '{self.name}'"

    def bad(self, row: int, column: str, value: Any, expected: str) -> DataError:
        """The error for a value that a benchmark cannot use, with its file and line.

        `row` is the number that `rows` gave. Finding the line reads the table again.
        """
        read = (
            (source.label, number, line)
            for source in self.sources
            for number, (line, _) in enumerate(source.rows(None), 1)
        )
        label, number, line = next(itertools.islice(read, row - 1, None), (self.name, row, None))
        return DataError(
            "a value that cannot be used",
            where=place(label, row=number, line=line, column=column),
            found=preview(value),
            expected=expected,
        )

    def _empty(self) -> DataError:
        return DataError(
            f"table '{self.name}' has no rows",
            where=join_names(source.label for source in self.sources),
            expected="at least one row",
        )

    def columns_of(
        self, source: Source, names: Collection[str] = ()
    ) -> Iterator[dict[str, list[Any]]]:
        """The rows of one of the sources as columns, many at a time: those named, or all."""
        names = names or self.columns
        header = source.columns()
        fields: list[Field] = []
        if header is not None:
            fields = self.fields(header, names, text=source.text, where=source.label)
        wanted = {field.key for field in fields if field.key}
        batches = source.batches(wanted, rows=BATCH_ROWS) if wanted else None
        if batches is None:
            for part in _parts(self._values(source, names)):
                yield {name: [row[name] for row in part] for name in names}
            return
        before = 0
        for batch in batches:
            columns, unfit = {}, []
            for field in fields:
                try:
                    columns[field.name] = self._column(source, batch, field, before=before)
                except _BadRow as bad:
                    unfit.append(bad)
            if unfit:
                first = min(unfit, key=lambda bad: bad.row)
                left = itertools.chain([batch.slice(first.row - before)], batches)
                rest = (cells for part in left for cells in part.to_pylist())
                raise self._unfit(first, names, source, rest)
            yield columns
            before += batch.num_rows

    def _column(
        self, source: Source, batch: pa.RecordBatch, field: Field, *, before: int
    ) -> list[Any]:
        if field.key is None:
            return [None] * batch.num_rows
        array = batch.column(field.key)
        values = checked_whole(array, self.columns[field.name])
        if values is not None:
            return values
        return [
            field.checked(cell, source=source, row=row, line=None)
            for row, cell in enumerate(array.to_pylist(), before + 1)
        ]

    def _values(self, source: Source, names: Collection[str]) -> Iterator[dict[str, Any]]:
        if not self.columns:
            yield from (dict(cells) for _, cells in source.rows(None))
            return
        header = source.columns()
        fields: Sequence[Field] = ()
        if header is not None:
            fields = self.fields(header, names, text=source.text, where=source.label)
        wanted = None if header is None else {field.key for field in fields if field.key}
        keys: KeysView[str] | None = None
        rows = source.rows(wanted)
        for row, (line, cells) in enumerate(rows, 1):
            if header is None and cells.keys() != keys:
                keys = cells.keys()
                where = place(source.label, row=row, line=line)
                fields = self.fields(tuple(keys), names, text=source.text, where=where)
            try:
                values = {
                    field.name: field.checked(
                        None if field.key is None else cells[field.key],
                        source=source,
                        row=row,
                        line=line,
                    )
                    for field in fields
                }
            except _BadRow as bad:
                rest = (behind for _, behind in rows)
                raise self._unfit(bad, names, source, rest) from None
            yield values

    def fields(
        self, present: Sequence[str], names: Collection[str], *, text: bool, where: str
    ) -> list[Field]:
        """The named columns with their names among those present; DataError if a required column
        of the table is missing."""
        of = self.name if self.of_run else None
        fields = _fields(self.columns, present, text=text, where=where, table=of)
        return [field for field in fields if field.name in names]

    def _unfit(
        self,
        bad: _BadRow,
        names: Collection[str],
        source: Source,
        rest: Iterable[Mapping[str, Any]],
    ) -> DataError:
        """The error for a bad row, which counts the bad ones of the rest as well."""
        further = further_unfit(self._wrong(names, source, rest))
        bad.error.found = f"{bad.error.found}{further}"
        return bad.error

    def _wrong(
        self, names: Collection[str], source: Source, rest: Iterable[Mapping[str, Any]]
    ) -> Iterator[list[tuple[str, Any]]]:
        """The bad cells of each remaining row of the source, with the source's column names."""
        keys: KeysView[str] | None = None
        # If only some columns are requested, a source gives no others.
        requested = {name: column for name, column in self.columns.items() if name in names}
        for cells in rest:
            if cells.keys() != keys:
                keys = cells.keys()
                fields = _fields(requested, tuple(keys), text=source.text, where=source.label)
            yield [
                (field.key, cells[field.key])
                for field in fields
                if field.key is not None and not field.takes(cells[field.key])
            ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """A column with its conversion: `key` is its name in the source, None if absent.

    `meant` are the values that texts in the data stand for. `table` is the table's name, if errors
    propose options of a run.
    """

    name: str
    key: str | None
    required: bool
    blank: str | None
    convert: Convert
    meant: Mapping[str, Any]
    table: str | None

    def takes(self, cell: Any) -> bool:
        """Whether the cell can be used."""
        try:
            self.value(cell)
        except Unfit:
            return False
        return True

    def value(self, cell: Any) -> Any:
        if self.meant and isinstance(cell, (str, int, float)):
            written = as_written(cell)
            if written in self.meant:
                return self.meant[written]
        if cell is None or cell == self.blank:
            if not self.required:
                return None
            raise Unfit("the value is missing", "a value in every row")
        return self.convert(cell)

    def checked(self, cell: Any, *, source: Source, row: int, line: int | None) -> Any:
        """The value of a cell; raises _BadRow if it cannot be used."""
        try:
            return self.value(cell)
        except Unfit as unfit:
            if unfit.choices and self.table is not None:
                meaning = shlex.quote(f"{self.table}.{self.name}.{as_written(cell)}=MEANING")
                unfit.hint = f"if it stands for one of these: --values {meaning}"
            error = DataError(
                unfit.problem,
                where=place(source.label, row=row, line=line, column=self.key),
                found=preview(cell),
                expected=unfit.expected,
                hint=unfit.hint,
            )
            raise _BadRow(row, error) from None


class _BadRow(Exception):
    """A row with a cell that cannot be used; the rows after it are not checked yet."""

    def __init__(self, row: int, error: DataError) -> None:
        self.row = row
        self.error = error


def _parts(rows: Iterator[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    while part := list(itertools.islice(rows, BATCH_ROWS)):
        yield part


def _as_is(source: Source, names: Collection[str]) -> Iterator[dict[str, list[Any]]]:
    """Batches without declared columns; rows of JSON may have different columns."""
    for part in _parts(cells for _, cells in source.rows(None)):
        wanted = names or dict.fromkeys(name for row in part for name in row)
        yield {name: [row.get(name) for row in part] for name in wanted}


def _fields(
    columns: Mapping[str, Column],
    present: Sequence[str],
    *,
    text: bool,
    where: str,
    table: str | None = None,
) -> list[Field]:
    keys = {
        name: next((known for known in column.names(name) if known in present), None)
        for name, column in columns.items()
    }
    missing = [name for name, column in columns.items() if column.required and keys[name] is None]
    if missing:
        raise _missing(missing, columns, present, where=where, table=table)
    return [
        Field(
            name=name,
            key=keys[name],
            required=column.required,
            blank="" if text else None,
            convert=converter(column, text=text),
            meant=meanings(name, column),
            table=table,
        )
        for name, column in columns.items()
    ]


def meanings(name: str, column: Column) -> dict[str, Any]:
    """What texts in a column stand for, as typed values; DataError if one cannot be typed."""
    convert = converter(column, text=True)
    try:
        return {written: convert(meant) for written, meant in column.values.items()}
    except Unfit as unfit:
        raise DataError(
            f"the values of column '{name}' stand for something that is none of its values: "
            f"{unfit.problem}",
            found=join_names(dict.fromkeys(column.values.values())),
            expected=unfit.expected,
        ) from None


def _missing(
    names: Sequence[str],
    columns: Mapping[str, Column],
    present: Sequence[str],
    *,
    where: str,
    table: str | None,
) -> DataError:
    taken = {one for name, column in columns.items() for one in column.names(name)}
    free = [name for name in present if name not in taken]
    hints = []
    for name in names:
        wanted = columns[name].names(name)
        near = next((found for one in wanted if (found := nearest(one, free))), None)
        if near and table is not None:
            option = columns_option(table, name, near)
            hints.append(f"'{near}' is the nearest name: if it is '{name}', give {option}")
        elif near:
            hints.append(f"'{near}' is the nearest name: rename it if it is '{name}'")
        elif table is not None and free:
            hints.append(f"if '{name}' has another name: {columns_option(table, name, 'NAME')}")
    if len(present) == 1:
        other = next((mark for mark in ";\t|," if mark in present[0]), None)
        if other:
            hints = [f"the header seems to be separated by {other!r}; CSV needs commas, TSV tabs"]
    return DataError(
        f"column '{names[0]}' is missing"
        if len(names) == 1
        else f"columns {join_names(names)} are missing",
        where=where,
        found=f"columns {join_names(present)}",
        expected=", ".join(
            " or ".join(f"'{one}'" for one in columns[name].names(name)) for name in names
        ),
        hint="; ".join(hints) or None,
    )
