"""Rows of Parquet files, read in record batches."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import DataError
from harness.data.fingerprint import stamp_of
from harness.data.opening import empty_file

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet  # type: ignore[import-untyped]

BATCH_ROWS = 1024
READ_AHEAD = 1 << 20
"""Bytes of a column that are held while it is read; a mapped file would fill the memory."""


def read_names(path: Path) -> tuple[str, ...]:
    """The names of a file's columns in order."""
    with _opened(path) as file:
        names = tuple(file.schema_arrow.names)
    for name in names:
        if names.count(name) > 1:
            raise DataError(
                f"two columns have the name '{name}'",
                where=str(path),
                expected="a file that names each column once",
            )
    return names


def read_parquet(
    path: Path, *, wanted: Collection[str] | None
) -> Iterator[tuple[None, dict[str, Any]]]:
    """Each row, of the wanted columns or of all; a Parquet file has no lines."""
    for batch in read_batches(path, wanted=wanted, rows=BATCH_ROWS):
        for row in batch.to_pylist():
            yield None, row


def read_batches(
    path: Path, *, wanted: Collection[str] | None, rows: int
) -> Iterator[pa.RecordBatch]:
    """The rows as columns, at most `rows` rows at a time.

    Row groups are read one by one, as one iterator over all of them holds more with each.
    """
    with _opened(path) as file:
        columns = None if wanted is None else [n for n in file.schema_arrow.names if n in wanted]
        for group in range(file.num_row_groups):
            yield from file.iter_batches(batch_size=rows, row_groups=[group], columns=columns)


@contextmanager
def _opened(path: Path) -> Iterator[pyarrow.parquet.ParquetFile]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if stamp_of(path).size == 0:
        raise empty_file(path)
    try:
        with pq.ParquetFile(path, buffer_size=READ_AHEAD) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            "the file cannot be read as Parquet",
            where=str(path),
            found=str(error).splitlines()[0],
            expected="a whole Parquet file",
            hint="fetch or write it again; it may be cut off, or have the wrong extension",
        ) from error
