"""How errors about data name places, values and near misses."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

SHOWN = 80
"""How many characters of a found value an error shows."""

LISTED = 12
"""How many names an error lists before it counts the rest."""


def place(
    label: str, *, row: int | None = None, line: int | None = None, column: str | None = None
) -> str:
    """Where something stands: file, data row (the first is 1), line of the text, column."""
    parts = [label]
    if row is not None:
        parts.append(f"row {row}" + (f" (line {line})" if line is not None else ""))
    elif line is not None:
        parts.append(f"line {line}")
    if column is not None:
        parts.append(f"column '{column}'")
    return ", ".join(parts)


def shown(value: Any) -> str:
    """A found value as an error prints it: with its kind where that is the point, cut short."""
    if value is None:
        return "nothing"
    text = repr(value)
    if len(text) > SHOWN:
        text = f"{text[: SHOWN - 1]}…"
    return text if isinstance(value, str) else f"{text} ({kind_of(value)})"


def kind_of(value: Any) -> str:
    """What a value is, in the words of task files."""
    kinds = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "list",
        dict: "object",
    }
    return kinds.get(type(value), type(value).__name__)


def listed(names: Iterable[str]) -> str:
    """Names for an error, in their order, the surplus counted."""
    every = list(names)
    if not every:
        return "none"
    text = ", ".join(every[:LISTED])
    return text if len(every) <= LISTED else f"{text} and {len(every) - LISTED} more"


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name most like the one given, if any is like it at all."""
    by_folded = {known.casefold(): known for known in names}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.7)
    return by_folded[close[0]] if close else None
