"""What is printed, and what is written to files and read from them."""

import csv
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rich.console import Console


def lines_on(show: Callable[[Console], object], *, width: int, **options: Any) -> list[str]:
    """The lines that are printed on a console of this width, without blanks at their ends."""
    file = io.StringIO()
    show(Console(file=file, width=width, color_system=None, **options))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def write_json_lines(path: Path, rows: Iterable[Any]) -> Path:
    """The file, with each row as a line of JSON; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read_json_lines(path: Path) -> list[Any]:
    """What each line of a file of JSON lines holds."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def write_csv(path: Path, *lines: str) -> str:
    """Where the file is, with these lines."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file by column."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
