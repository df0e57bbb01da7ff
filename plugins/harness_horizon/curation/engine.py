"""DuckDB under a limit of memory, and files that it writes whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import DataError, Interrupted, StorageError
from harness.runs.atomic_files import UNFINISHED, make_folder, storage_error, sync_folder

if TYPE_CHECKING:
    import duckdb

OUT = "--out"
"""The option with the folder of all files."""

SHARE = 0.75
"""How much of the memory DuckDB may manage; the rest is for what it does not count."""

MEMORY_A_THREAD = 400_000_000
"""Each thread holds buffers of its own, more so while it writes many files."""

MOST_THREADS = 16

FAST = "COMPRESSION snappy, PARQUET_VERSION V2, DICTIONARY_SIZE_LIMIT 5000"
"""For files that do not stay, which are written faster. A dictionary of users or items that differ
in nearly every row would be for nothing."""

SMALL_ROW_GROUPS = 20_480
"""Rows of a group in a file of many written at once: each holds a group in memory."""

_DISK_FULL = ("no space left", "file too large", "disk quota", "max_temp_directory_size")


@dataclass(frozen=True)
class Engine:
    """A connection to DuckDB whose spill folder is in the folder of the output."""

    connection: duckdb.DuckDBPyConnection
    folder: Path

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self.connection.execute(query).fetchall()

    def one(self, query: str) -> dict[str, int]:
        """The only row of a query, by column."""
        found = self.connection.execute(query)
        names = [column[0] for column in found.description or ()]
        [row] = found.fetchall()
        return dict(zip(names, row, strict=True))

    def run(self, statement: str) -> None:
        """Carry out a statement."""
        self.connection.execute(statement)

    def write(self, query: str, path: Path, options: str = "COMPRESSION zstd") -> None:
        """Write the rows of a query to Parquet: to a file, or to a folder that `options` divide.

        It appears when it is whole.
        """
        make_folder(path.parent, option=OUT)
        unfinished = path.with_name(f".{path.name}{UNFINISHED}")
        _remove(unfinished)
        self.run(f"COPY ({query}) TO {text(unfinished)} (FORMAT parquet, {options})")
        _keep(unfinished, path)


def text(value: str | Path) -> str:
    """A text as SQL writes it."""
    return "'" + str(value).replace("'", "''") + "'"


def location(file: Path) -> str:
    """The path of a file that SQL reads; none of its parts but `*.parquet` stands for others."""
    escaped = re.sub(r"[*?[]", r"[\g<0>]", str(file.absolute()))
    return text(re.sub(r"/\[\*\]\.parquet$", "/*.parquet", escaped))


def parquet(*files: Path, numbered: bool = False) -> str:
    """The rows of Parquet files, for SQL; with `numbered`, each has its `file_row_number`."""
    listed = ", ".join(map(location, files))
    row = ", file_row_number=true" if numbered else ""
    return f"read_parquet([{listed}], hive_partitioning=false{row})"


def say_disk(out: Path, most: int, left: int, *, least: int) -> None:
    """Print what some work takes on the disk; StorageError if `least` has no room."""
    free = shutil.disk_usage(out).free
    sizes = f"about {size(most)} while it works, {size(left)} when it is done"
    if least > free:
        raise StorageError(
            "the disk has too little room",
            where=str(out),
            found=f"{size(free)} free",
            expected=sizes,
            hint=f"free some space, or name another folder ({OUT})",
        )
    print(f"disk: {sizes}; {size(free)} are free in {out}", file=sys.stderr)


def size(count: int) -> str:
    """A number of bytes for people."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


@contextmanager
def engine(out: Path, memory: int) -> Iterator[Engine]:
    """An engine that holds at most its share of so many bytes; errors are those of a person."""
    import duckdb

    spill = out / "spill"
    shutil.rmtree(spill, ignore_errors=True)
    make_folder(spill, option=OUT)
    threads = max(1, min(os.cpu_count() or 1, memory // MEMORY_A_THREAD, MOST_THREADS))
    try:
        with duckdb.connect(
            config={
                "memory_limit": f"{round(memory * SHARE)}B",
                "temp_directory": str(spill),
                "threads": threads,
                "autoinstall_known_extensions": False,
            }
        ) as connection:
            yield Engine(connection, out)
    except (KeyboardInterrupt, RuntimeError, duckdb.InterruptException) as error:
        if isinstance(error, RuntimeError) and "interrupted" not in str(error):
            raise
        raise Interrupted(  # in a query, Ctrl-C is a RuntimeError
            "stopped",
            where=str(out),
            hint="all finished parts are kept: the same command continues from there",
        ) from error
    except duckdb.Error as error:
        raise _said(error, out, memory) from error
    except OSError as error:
        raise storage_error(out, error, option=OUT) from error
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def _said(error: duckdb.Error, out: Path, memory: int) -> Exception:
    import duckdb

    said = str(error).splitlines()[0]
    if any(one in said.lower() for one in _DISK_FULL):
        return StorageError(
            "cannot write",
            where=str(out),
            found=said,
            hint="free some space, then repeat the same command: it continues where it stopped",
        )
    if isinstance(error, duckdb.OutOfMemoryException):
        return DataError(
            "the memory is not enough for this work",
            where="--memory",
            found=f"{memory / 1e9:.1f} GB; {said}",
            hint="repeat the command with more memory: it continues where it stopped",
        )
    return DataError("the data cannot be read or written", where=str(out), found=said)


def _keep(unfinished: Path, path: Path) -> None:
    """Make what was written durable, and give it its name."""
    for one in (unfinished, *unfinished.rglob("*")):
        if one.is_file():
            with one.open("rb") as file:
                os.fsync(file.fileno())
    if path.is_dir():
        _remove(path)
    unfinished.replace(path)
    sync_folder(path.parent)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
