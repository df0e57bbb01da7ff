"""Files of items for people to label: even shares of what there is, as CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from harness.base.errors import UsageError
from harness.base.hashing import stable_int
from harness.reporting.text import clean_text

NameT = TypeVar("NameT")


def check_not_there(folder: Path, names: Iterable[str]) -> None:
    """Raise UsageError if the folder has such files already: somebody may be labelling them."""
    taken = [name for name in names if (folder / name).exists()]
    if taken:
        raise UsageError(
            "there are items to label here already",
            where=str(folder),
            found=", ".join(taken),
            expected="a folder without them",
            hint="name another folder",
        )


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


def csv_bytes(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> bytes:
    """Rows of those columns as a CSV file."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(text) for name, text in row.items()} for row in rows)
    return file.getvalue().encode()


def _cell(text: str) -> str:
    """A text as a spreadsheet shows it and does not take for a formula."""
    shown = clean_text(text)
    return f"'{shown}" if shown.lstrip().startswith(("=", "+", "-", "@")) else shown
