"""Synthetic users as files in the published layout."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from harness.errors import StorageError, UsageError
from harness_gistbench.synthesis.drawing import Row

HEADER = ("user_id", "object_id", "object_text", "interaction_type", "interaction_time")
RECORD = "synthesis.json"
ROWS_A_GROUP = 1 << 16


def data_file(folder: Path, kind: Literal["csv", "parquet"]) -> Path:
    """Where the data goes: the name under which a task finds it in a folder."""
    return folder / f"engagements.{kind}"


def refuse_full(folder: Path) -> None:
    """Raise UsageError where data in the folder would be written over or mistaken for this."""
    if folder.is_dir():
        names = sorted(path.name for path in folder.iterdir())
        there = [name for name in names if name.partition(".")[0] == "engagements"]
        there += [RECORD] if (folder / RECORD).exists() else []
    else:
        there = [folder.name] if folder.exists() else []
    if there:
        raise UsageError(
            "the synthetic users cannot be written there",
            where=str(folder),
            found=", ".join(there),
            expected="a folder without data, or one that does not exist yet",
        )


def write(file: Path, users: Iterable[list[Row]]) -> None:
    """Writes the rows of all users; the file appears when it is whole."""
    part = file.with_name(f".{file.name}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            (_write_parquet if file.suffix == ".parquet" else _write_csv)(part, users)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritten(file, error) from error


def write_record(file: Path, text: bytes) -> None:
    """Writes the account of what was done."""
    try:
        file.write_bytes(text)
    except OSError as error:
        raise _unwritten(file, error) from error


def _write_csv(file: Path, users: Iterable[list[Row]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEADER)
        for rows in users:
            writer.writerows((one.user, one.object, one.text, one.signal, one.time) for one in rows)
        stream.flush()
        os.fsync(stream.fileno())


def _write_parquet(file: Path, users: Iterable[list[Row]]) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    kinds = (pa.int64(), pa.int64(), pa.string(), pa.string(), pa.int64())
    schema = pa.schema(list(zip(HEADER, kinds, strict=True)))

    def table(rows: list[Row]) -> Any:
        columns = [
            [one.user for one in rows],
            [one.object for one in rows],
            [one.text for one in rows],
            [one.signal for one in rows],
            [one.time for one in rows],
        ]
        return pa.table(columns, schema=schema)

    held: list[Row] = []
    with pq.ParquetWriter(file, schema) as writer:
        for rows in users:
            held += rows
            if len(held) >= ROWS_A_GROUP:
                writer.write_table(table(held))
                held = []
        writer.write_table(table(held))


def _unwritten(file: Path, error: OSError) -> StorageError:
    return StorageError(
        "the synthetic users could not be written",
        where=str(file),
        found=error.strerror or str(error),
    )
