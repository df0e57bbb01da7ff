"""`--columns` and `--values`: how the user's data names columns and writes their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from harness.base.errors import UsageError, did_you_mean, one_of

if TYPE_CHECKING:
    from harness.contracts.task import Column, Task


class _Place(NamedTuple):
    """A column of a task, and with `--values` a value in the data."""

    task: str
    table: str
    column: str
    written: str


def read_own_columns(option: str, given: Sequence[str]) -> list[tuple[str, str]]:
    """The paths and texts of --columns or --values; UsageError for one that lacks either."""
    # A value in the data may hold `=` and end with a space, unlike the name of a column.
    named = option == "--columns"
    found = []
    for text in given:
        path, equals, meant = text.partition("=") if named else text.rpartition("=")
        if not (path.strip() and equals and meant):
            form = "TABLE.COLUMN=NAME" if named else "TABLE.COLUMN.VALUE=MEANING"
            raise UsageError(
                f"{option} needs a column and a text", found=text, expected=f"{option} {form}"
            )
        found.append((path.strip() if named else path.lstrip(), meant))
    return found


def with_own_columns(
    tasks: Sequence[Task], columns: Mapping[str, str], values: Mapping[str, str]
) -> tuple[Task, ...]:
    """The tasks with the columns and values of the user's data.

        with_own_columns(tasks, {"engagements.user": "customer_id"}, {"kind.like": "positive"})

    A path is [TASK:][TABLE.]COLUMN, for values with the value in the data behind another dot. It
    applies to all tasks that have the column, and needs no table if each has it in only one.
    """
    changed = {task.name: task for task in tasks}
    for written, name in columns.items():
        for place in _places(tasks, written, "--columns"):
            changed[place.task] = _with(changed[place.task], place, called=name)
    for written, meant in values.items():
        for place in _places(tasks, written, "--values"):
            column = _column(changed[place.task], place)
            if column.one_of:
                one_of(
                    meant, column.one_of, f"no value of column '{place.column}' is {meant!r}",
                    where=f"--values {written}={meant}", listed="one of: {}",
                )  # fmt: skip
            values_now = {**column.values, place.written: meant}
            changed[place.task] = _with(changed[place.task], place, values=values_now)
    return tuple(changed.values())


def own_columns_of(
    task: Task, columns: Mapping[str, str], values: Mapping[str, str]
) -> tuple[str, ...]:
    """The options that apply to one task, as a command gives them."""
    return tuple(
        f"{option} {written}={given[written]}"
        for option, given in (("--columns", columns), ("--values", values))
        for written in given
        if any(_found(task, written, option))
    )


def named_columns(task: Task, columns: Mapping[str, str]) -> dict[str, set[str]]:
    """The columns of a task that --columns names in the data, by table."""
    found: dict[str, set[str]] = {}
    for written in columns:
        for place in _found(task, written, "--columns"):
            found.setdefault(place.table, set()).add(place.column)
    return found


def _places(tasks: Sequence[Task], written: str, option: str) -> list[_Place]:
    """The columns that a path names; UsageError if there is none, or several in one task."""
    places = []
    for task in tasks:
        found = list(_found(task, written, option))
        if len(found) > 1:
            tables = [place.table for place in found]
            raise UsageError(
                f"several tables of task {task.name!r} have the column {found[0].column!r}",
                where=f"{option} {written}",
                found=", ".join(tables),
                expected=f"the table too, as {tables[0]}.{written}",
            )
        places += found
    if not places:
        known = dict.fromkeys(
            f"{table}.{column}"
            for task in tasks
            for table, spec in task.data.tables.items()
            for column in spec.columns
        )
        form = "TABLE.COLUMN=NAME" if option == "--columns" else "TABLE.COLUMN.VALUE=MEANING"
        if option == "--values" and any(any(_found(task, written, "--columns")) for task in tasks):
            raise UsageError(
                f"{written!r} names a column and no value of it",
                where=option,
                expected=form,
                hint=f"put a value of your data behind it: {option} {written}.VALUE=MEANING",
            )
        raise UsageError(
            f"no chosen task has the column that {written!r} names",
            where=option,
            expected=f"{form} with one of: {', '.join(known) or 'no column'}",
            hint=did_you_mean(".".join(written.split(".")[:2]), known),
        )
    return places


def _found(task: Task, written: str, option: str) -> Iterator[_Place]:
    """The columns of a task that a path names: that of a table by its name, else any."""
    of_task, colon, path = written.partition(":")
    if not colon or of_task != task.name:
        path = written
    every = [(table, column) for table, spec in task.data.tables.items() for column in spec.columns]
    whole = [(f"{table}.{column}", table, column) for table, column in every]
    for known in (whole, [(column, table, column) for table, column in every]):
        matches = [
            _Place(task.name, table, column, path[len(start) + 1 :])
            for start, table, column in known
            if (path == start if option == "--columns" else path.startswith(f"{start}."))
        ]
        if matches:
            yield from matches
            return


def _column(task: Task, place: _Place) -> Column:
    return task.data.tables[place.table].columns[place.column]


def _with(task: Task, place: _Place, **changes: object) -> Task:
    replace = msgspec.structs.replace
    table = task.data.tables[place.table]
    column = replace(_column(task, place), **changes)
    table = replace(table, columns={**table.columns, place.column: column})
    tables = {**task.data.tables, place.table: table}
    return replace(task, data=replace(task.data, tables=tables))
