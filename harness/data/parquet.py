"""Rows of Parquet files, read in record batches."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.data.fingerprint import stamp_of
from harness.data.opening import empty_file
from harness.errors import DataError

if TYPE_CHECKING:
    import pyarrow.parquet  # type: ignore[import-untyped]

BATCH_ROWS = 1024


def read_names(path: Path) -> tuple[str, ...]:
    """The names of a file's columns, in their order."""
    with _opened(path) as file:
        names = tuple(file.schema_arrow.names)
    for name in names:
        if names.count(name) > 1:
            raise DataError(
                f"two columns are called '{name}'",
                where=str(path),
                expected="a file that names each column once",
            )
    return names


def read_parquet(
    path: Path, *, wanted: Collection[str] | None
) -> Iterator[tuple[None, dict[str, Any]]]:
    """Each row, of the wanted columns or of all; a Parquet file has no lines."""
    with _opened(path) as file:
        columns = None if wanted is None else [n for n in file.schema_arrow.names if n in wanted]
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=columns):
            for row in batch.to_pylist():
                yield None, row


@contextmanager
def _opened(path: Path) -> Iterator[pyarrow.parquet.ParquetFile]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if stamp_of(path).size == 0:
        raise empty_file(path)
    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            "the file cannot be read as Parquet",
            where=str(path),
            found=str(error).splitlines()[0],
            expected="a whole Parquet file",
            hint="fetch or write it again; it may be cut off, or its name may end wrongly",
        ) from error
