"""Files of items for people to label, as CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from harness.base.errors import UsageError
from harness.reporting.table_files import safe_text
from harness.reporting.text import clean_text
from harness.runs.atomic_files import atomic_write, make_folder


def csv_bytes(
    columns: Sequence[str], rows: Iterable[Mapping[str, str]], *, lines: bool = False
) -> bytes:
    """Rows of those columns as CSV without formulas; line ends in texts stay if `lines` is true."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        shown = row if lines else {name: clean_text(text) for name, text in row.items()}
        writer.writerow({name: safe_text(text) for name, text in shown.items()})
    return file.getvalue().encode()


def refuse_taken(folder: Path, names: Collection[str]) -> None:
    """Raise UsageError if the folder holds one of the files: somebody may be labelling it."""
    taken = [name for name in names if (folder / name).exists()]
    if taken:
        raise UsageError(
            "there are items to label here already",
            where=str(folder),
            found=", ".join(taken),
            expected="a folder without them",
            hint="name another folder",
        )


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files into a folder, by their paths in it; `--out` chose the folder."""
    for name, content in files.items():
        make_folder((folder / name).parent, option="--out")
        atomic_write(folder / name, content, option="--out")
