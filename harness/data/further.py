"""What else of a file cannot be used: told with the first, so that all can be mended at once."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from harness.data.wording import shown
from harness.errors import DataError

LOOKED_AT = 100_000
"""How many rows behind the first that cannot be used are looked at: a moment's work, whatever the
file holds."""

TOLD = 5
"""How many of the values found in them are told, the most frequent first."""

NEW_LINE = "\n            "
"""Under what an error says it found."""


def further_unfit(rows: Iterable[Sequence[tuple[str, Any]]]) -> str:
    """How many of these rows cannot be used either, and for which values; "" where all can.

    A row is what is wrong with it, as pairs of column and cell. A file that cannot be read any
    further is looked at as far as that goes: its next error will say why.
    """
    found: Counter[tuple[str, str]] = Counter()
    seen = unfit = 0
    try:
        for wrong in itertools.islice(rows, LOOKED_AT):
            seen += 1
            unfit += bool(wrong)
            found.update((column, shown(cell)) for column, cell in wrong)
    except DataError:
        pass
    if not unfit:
        return ""
    told = [
        f"{value} in '{column}' ({times:,})"
        for (column, value), times in sorted(found.items(), key=lambda one: (-one[1], one[0]))
    ]
    rest = f" and {len(told) - TOLD:,} other values" if len(told) > TOLD else ""
    return (
        f"{NEW_LINE}{unfit:,} of the next {seen:,} rows cannot be used either: "
        f"{', '.join(told[:TOLD])}{rest}"
    )
