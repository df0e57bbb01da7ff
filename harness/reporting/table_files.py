"""Tables as files for other programs: CSV for spreadsheets, Parquet for everything else."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from harness.analysis.run_tables import Export, Kind
from harness.reporting.text import clean_text

ROWS = 5000
"""Rows that are held in memory at once while Parquet is written."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Starts of texts that spreadsheets take for formulas: a model's text must not run as one."""


def write_csv(folder: Path, table: Export) -> Path:
    """The CSV file of the table: a missing value is empty, an empty text is `""`."""
    path = folder / f"{table.name}.csv"
    with path.open("x", encoding="utf-8", newline="") as file:
        file.write(",".join(_quoted(name) for name in table.columns) + "\r\n")
        for row in table.rows():
            file.write(",".join(csv_cell(row[name]) for name in table.columns) + "\r\n")
    return path


def csv_cell(value: Any) -> str:
    """A value as a cell; text is escaped for terminals and cannot be taken for a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _quoted(value)
    return repr(value)


def write_parquet(folder: Path, table: Export) -> Path:
    """The Parquet file of the table, with unchanged texts."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    kinds: dict[Kind, Any] = {
        "text": pa.string(), "number": pa.float64(), "whole": pa.int64(), "truth": pa.bool_(),
    }  # fmt: skip
    schema = pa.schema([(name, kinds[kind]) for name, kind in table.columns.items()])
    path = folder / f"{table.name}.parquet"
    with pq.ParquetWriter(path, schema) as writer:
        rows = table.rows()
        while part := list(islice(rows, ROWS)):
            writer.write_table(pa.Table.from_pylist(part, schema=schema))
    return path


def _quoted(text: str) -> str:
    clean = clean_text(text, lines=True)
    # Some spreadsheets skip blanks before a formula.
    if text.startswith(FORMULA) or clean.lstrip().startswith(FORMULA):
        clean = f"'{clean}"
    doubled = clean.replace('"', '""')
    return f'"{doubled}"'
