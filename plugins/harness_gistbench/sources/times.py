"""Times that can be compared, from numbers or from dates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from harness.contracts.dataset import Table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_LARGEST = 2**63 - 1
_LARGEST_EXACT = 2**53
"""With fractions, numbers are floats, which are exact for whole numbers up to here."""

_BESIDE = {
    "number": ("date", "a date in every row"),
    "date": ("number", "a number in every row"),
    "fraction": ("large", "a whole number, as others are above 2^53 and would be rounded"),
    "large": ("fraction", "a number up to 2^53, as others have fractions and it would be rounded"),
}
"""Of each kind the one that cannot stand beside it, and what an error then expects instead."""


@dataclass(kw_only=True)
class Clock:
    """Reads one column of times. State: the first value of each kind that it met.

    Numbers compare as numbers and dates as moments, those without a zone as of UTC and those
    without a time as of midnight. Both in one column are an error, and so are fractions beside
    whole numbers so large that either would be rounded.
    """

    table: Table
    column: str
    _met: dict[str, tuple[int, Any]] = field(default_factory=dict)

    def read(self, values: Sequence[Any], *, first: int) -> tuple[np.ndarray, np.ndarray]:
        """The times of rows from number `first` on, and which rows have one."""
        import numpy as np

        kinds = set(map(type, values))
        if kinds == {int} and (most := max(map(abs, values))) <= _LARGEST:
            self._meet("number", first, values[0])
            if most > _LARGEST_EXACT:
                place = next(place for place, one in enumerate(values) if abs(one) == most)
                self._meet("large", first + place, values[place])
            return np.array(values, dtype=np.int64), np.ones(len(values), dtype=np.bool_)
        moments: list[int | float | Decimal] = []
        timed = np.ones(len(values), dtype=np.bool_)
        for place, value in enumerate(values):
            if value is None or value == "" or (isinstance(value, str) and not value.strip()):
                timed[place] = False
                moments.append(0)
            else:
                moments.append(self._moment(value, first + place))
        whole = all(isinstance(one, int) for one in moments)
        return np.array(moments, dtype=np.int64 if whole else np.float64), timed

    def _moment(self, value: Any, row: int) -> int | float | Decimal:
        number = _as_number(value)
        if number is None:
            moment = _as_microseconds(value)
            if moment is None:
                expected = "a number, or a date such as 2024-05-31"
                raise self.table.bad(row, self.column, value, expected)
            self._meet("date", row, value)
            return moment
        self._meet("number", row, value)
        if abs(number) > _LARGEST:
            raise self.table.bad(row, self.column, value, "a number below 2^63")
        if abs(number) > _LARGEST_EXACT:
            self._meet("large", row, value)
        if not isinstance(number, int):
            self._meet("fraction", row, value)
        return number

    def _meet(self, kind: str, row: int, value: Any) -> None:
        if kind in self._met:
            return
        self._met[kind] = row, value
        excluded, expected = _BESIDE[kind]
        if excluded in self._met:
            earlier, known = self._met[excluded]
            raise self.table.bad(
                row, self.column, value, f"{expected}, as in row {earlier}: {known!r}"
            )


def _as_number(value: Any) -> int | float | Decimal | None:
    """The number that a value is: as an integer where it is whole, whatever it is written as."""
    if isinstance(value, str) and _NUMBER.fullmatch(text := value.strip()):
        value = float(text)
        if abs(value) >= _LARGEST_EXACT:
            value = Decimal(text)
    if isinstance(value, (float, Decimal)) and isfinite(value):
        return int(value) if value == int(value) else value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _as_microseconds(value: Any) -> int | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        return None
    moment = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND
