"""Tables as files for other programs: CSV for spreadsheets, Parquet for everything else."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from harness.analysis.run_tables import Export, Kind
from harness.reporting.text import clean_text

ROWS = 5000
"""Rows that are in memory at once."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Starts of texts that spreadsheets take for formulas: a model's text must not run as one."""


def write_table(folder: Path, table: Export, kind: Literal["csv", "parquet"]) -> Path:
    """The file of a table; in CSV, nothing stands for a missing value and `""` for an empty text.

    Parquet has texts as they are; in CSV they control no terminal and are no formulas.
    """
    import duckdb
    import pyarrow as pa  # type: ignore[import-untyped]

    kinds: dict[Kind, Any] = {
        "text": pa.string(), "number": pa.float64(), "whole": pa.int64(), "truth": pa.bool_(),
    }  # fmt: skip
    schema = pa.schema([(name, kinds[kind]) for name, kind in table.columns.items()])
    texts = [name for name, kind in table.columns.items() if kind == "text"]
    failed: list[Exception] = []

    def batches() -> Iterator[Any]:
        try:
            rows = table.rows()
            while part := list(islice(rows, ROWS)):
                if kind == "csv":
                    for row in part:
                        row.update((name, safe_text(row[name])) for name in texts if row[name])
                yield pa.RecordBatch.from_pylist(part, schema=schema)
        except Exception as error:  # DuckDB would say no more of it than its text
            failed.append(error)
            raise

    path = folder / f"{table.name}.{kind}"
    columns = ", ".join(_quoted(name, '"') for name in texts)
    form = f"FORMAT csv, HEADER, FORCE_QUOTE ({columns})" if kind == "csv" else "FORMAT parquet"
    target = _quoted(str(path), "'")
    with duckdb.connect() as connection:
        connection.register("rows", pa.RecordBatchReader.from_batches(schema, batches()))
        try:
            connection.execute(f"COPY rows TO {target} ({form})")
        except duckdb.Error:
            if failed:
                raise failed[0] from None
            raise
    return path


def safe_text(text: str) -> str:
    """The text without control characters that no spreadsheet takes for a formula."""
    clean = clean_text(text, lines=True)
    # Some spreadsheets skip blanks before a formula.
    formula = text.startswith(FORMULA) or clean.lstrip().startswith(FORMULA)
    return f"'{clean}" if formula else clean


def _quoted(text: str, mark: str) -> str:
    return f"{mark}{text.replace(mark, 2 * mark)}{mark}"
