"""Printing of commands: errors on standard error, JSON and two-column lists on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

Row = tuple[str, str]
"""A name and its text."""


def print_error(error: object) -> None:
    """Print an error on standard error, without control codes that a server may have sent."""
    from harness.reporting.text import clean_text

    print(clean_text(f"harness: {error}", lines=True), file=sys.stderr)


def print_json(value: Any) -> None:
    """Print a value as a JSON document in ASCII, so that no model's text controls the terminal."""
    import json

    import msgspec

    json.dump(msgspec.to_builtins(value), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def print_sections(sections: Iterable[tuple[str, Sequence[Row]]]) -> None:
    """Print rows under their titles; a title without rows is left out."""
    for title, rows in sections:
        if rows:
            print(f"{title}:")
            print_rows(rows)


def print_rows(rows: Sequence[Row]) -> None:
    """Print two columns, the second wrapped to the width of the terminal."""
    import shutil
    import textwrap

    from harness.reporting.text import clean_text

    rows = [(clean_text(name), clean_text(text)) for name, text in rows]
    left = max(len(name) for name, _ in rows) + 4
    width = max(shutil.get_terminal_size((100, 24)).columns - left, 30)
    for name, text in rows:
        first, *more = textwrap.wrap(text, width) or [""]
        print(f"  {name.ljust(left - 2)}{first}".rstrip())
        for line in more:
            print(" " * left + line)
