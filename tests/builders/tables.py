"""Tables over files, and the data of a task in a folder."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.base.errors import DataError
from harness.contracts.task import Column, DataSpec, DelimitedSpec
from harness.data import Table, TaskData, open_dataset
from harness.data.read import FileSource
from harness.data.records import stamp_of


def table_of(
    *paths: Path, columns: Mapping[str, Column], name: str = "people",
    named: Collection[str] | None = None, **written: Any,
) -> Table:  # fmt: skip
    """The table in these files, which are delimited as written."""
    delimited = DelimitedSpec(**written)
    sources = [FileSource(path=path, stamp=stamp_of(path), delimited=delimited) for path in paths]
    return Table(name=name, columns=columns, sources=sources, named=named)


def refused(table: Table) -> DataError:
    """The error of reading its rows."""
    with pytest.raises(DataError) as caught:
        list(table.rows())
    return caught.value


def data_in(place: Path | str | None, spec: DataSpec, **options: Any) -> TaskData:
    """The data of the task `t` in this place, without a limit."""
    usual = {"limit": None, "seed": 0, "package": None, "task": "t"}
    return open_dataset(spec, data=None if place is None else str(place), **{**usual, **options})


def written(path: Path, columns: Mapping[str, Any]) -> Path:
    """The file with these columns, as CSV, JSON lines or Parquet by its name."""
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
        return path
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    with path.open("w", newline="") as file:
        if path.suffix == ".csv":
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)
        else:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return path
