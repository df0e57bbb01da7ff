"""Tables over files, and the data of a task in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import DataError
from harness.contracts.task import Column, DataSpec, DelimitedSpec
from harness.data import Table, TaskData, open_dataset
from harness.data.fingerprint import stamp_of
from harness.data.source import FileSource


def table_of(
    *paths: Path, columns: Mapping[str, Column], name: str = "people", of_run: bool = False,
    **written: Any,
) -> Table:  # fmt: skip
    """The table in these files, which are delimited as written."""
    delimited = DelimitedSpec(**written)
    sources = [FileSource(path=path, stamp=stamp_of(path), delimited=delimited) for path in paths]
    return Table(name=name, columns=columns, sources=sources, of_run=of_run)


def refused(table: Table) -> DataError:
    """The error of reading its rows."""
    with pytest.raises(DataError) as caught:
        list(table.rows())
    return caught.value


def data_in(place: Path | str | None, spec: DataSpec, **options: Any) -> TaskData:
    """The data of the task `t` in this place, without a limit."""
    usual = {"limit": None, "seed": 0, "package": None, "task": "t"}
    return open_dataset(spec, data=None if place is None else str(place), **{**usual, **options})
