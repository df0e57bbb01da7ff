"""Tables that users add to stored runs: figures of models, labels, counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness.base.errors import UsageError
from harness.base.home import expanded
from harness.contracts.task import Column

if TYPE_CHECKING:
    from harness.data import Table


def table(path: str, name: str, columns: Mapping[str, Column]) -> Table:
    """The table in a file of any format that data may have; other columns are skipped."""
    from harness.data import Table
    from harness.data.read import FileSource
    from harness.data.records import stamp_of

    file = expanded(path)
    return Table(name=name, columns=columns, sources=(FileSource(path=file, stamp=stamp_of(file)),))


def read_models(
    path: str, columns: Mapping[str, Column], *, model: str
) -> dict[str, dict[str, Any]]:
    """The row of each model, by the model's name in lower case; DataError for repeated names."""
    rows = table(path, "figures", {model: Column(), **columns})
    found: dict[str, dict[str, Any]] = {}
    for number, row in rows.rows():
        name = row[model].strip().casefold()
        if name in found:
            raise rows.bad(number, model, row[model], "each model once")
        found[name] = row
    return found


def read_figures(path: str, *, model: str, column: str) -> dict[str, float]:
    """The figure of each model that has one, by the model's name in lower case."""
    columns = {column: Column(type="number", required=False)}
    rows = read_models(path, columns, model=model)
    figures = {name: row[column] for name, row in rows.items() if row[column] is not None}
    if not figures:
        there = table(path, "figures", columns).sources[0].columns()
        raise UsageError(
            f"no row has a figure in a column {column!r}",
            where=path,
            found=f"columns {', '.join(there or ['that differ by row'])}",
            expected="a column with a number for each model",
            hint="name the column with --column",
        )
    return figures


def names_of(*models: str) -> Iterator[str]:
    """The names that tables may have for a model, in lower case, the most exact first."""
    for name in models:
        yield name.casefold()
        bare = name.partition(":")[2] or name
        yield bare.casefold()
        yield bare.rpartition("/")[2].casefold()
