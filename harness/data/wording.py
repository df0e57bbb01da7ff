"""Places, values and near misses in the errors about data."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

MOST_CHARACTERS = 80

MOST_NAMES = 12
"""The most names that an error lists before it counts the rest."""


def place(
    label: str, *, row: int | None = None, line: int | None = None, column: str | None = None
) -> str:
    """A place in a file: its label, data row (the first is 1) or line of the text, column."""
    parts = [label]
    if row is not None:
        parts.append(f"row {row}")
    elif line is not None:
        parts.append(f"line {line}")
    if column is not None:
        parts.append(f"column '{column}'")
    return ", ".join(parts)


def preview(value: Any) -> str:
    """A found value in an error: shortened, and with its kind unless it is a string."""
    if value is None:
        return "nothing"
    text = repr(value)
    if len(text) > MOST_CHARACTERS:
        text = f"{text[: MOST_CHARACTERS - 1]}…"
    return text if isinstance(value, str) else f"{text} ({kind_of(value)})"


def first_line(error: BaseException) -> str:
    """What a library's error says, without its further lines."""
    if isinstance(error, RecursionError):
        return "objects nested too deeply"
    said = error.args[0] if error.args else ""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(error)
    return text.strip().partition("\n")[0].rstrip()


def kind_of(value: Any) -> str:
    """The kind of a value, in the words of task files."""
    kinds = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "list",
        dict: "object",
    }
    return kinds.get(type(value), type(value).__name__)


def join_names(names: Iterable[str]) -> str:
    """Names in their order for an error; the surplus is counted."""
    every = list(names)
    if not every:
        return "none"
    text = ", ".join(every[:MOST_NAMES])
    return text if len(every) <= MOST_NAMES else f"{text} and {len(every) - MOST_NAMES} more"


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The most similar of the names, or None if none is similar."""
    by_folded = {known.casefold(): known for known in names}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.7)
    return by_folded[close[0]] if close else None
