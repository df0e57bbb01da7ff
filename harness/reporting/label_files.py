"""Files of items for people to label: even shares of what there is, as CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from harness.base.errors import UsageError
from harness.base.hashing import stable_int
from harness.reporting.text import clean_text
from harness.runs.atomic_files import atomic_write, make_folder

NameT = TypeVar("NameT")


def even(sizes: Mapping[NameT, int], total: int, seed: int) -> dict[NameT, int]:
    """Shares of a total, as equal as the sizes allow; the seed decides about the remainder."""
    shares = dict.fromkeys(sizes, 0)
    waiting = sorted(sizes, key=lambda name: stable_int(seed, repr(name)))
    left = min(total, sum(sizes.values()))
    while left:
        each = max(1, left // len(waiting))
        for name in waiting:
            more = min(each, sizes[name] - shares[name], left)
            shares[name] += more
            left -= more
        waiting = [name for name in waiting if shares[name] < sizes[name]]
    return shares


def csv_bytes(
    columns: Sequence[str], rows: Iterable[Mapping[str, str]], *, lines: bool = False
) -> bytes:
    """Rows of those columns as a CSV file; line ends in texts stay if `lines` is true.

    No spreadsheet takes a text for a formula.
    """
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        shown = {name: clean_text(text, lines=lines) for name, text in row.items()}
        writer.writerow({
            name: f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@")) else text
            for name, text in shown.items()
        })  # fmt: skip
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
