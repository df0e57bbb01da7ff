"""Times that can be compared, from numbers or from dates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from harness.errors import DataError

if TYPE_CHECKING:
    import numpy as np

    from harness.data import Table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_LARGEST = 2**63 - 1


@dataclass(kw_only=True)
class Clock:
    """Reads one column of times. State: the first number and the first date that it met.

    Numbers compare as numbers and dates as moments, those without a zone as of UTC and those
    without a time as of midnight. Both in one column are an error.
    """

    table: Table
    column: str
    _met: dict[str, tuple[int, Any]] = field(default_factory=dict)

    def read(self, values: Sequence[Any], *, first: int) -> tuple[np.ndarray, np.ndarray]:
        """The times of rows from number `first` on, and which rows have one."""
        import numpy as np

        kinds = set(map(type, values))
        if kinds == {int} and max(map(abs, values)) <= _LARGEST:
            self._meet("a number", first, values[0])
            return np.array(values, dtype=np.int64), np.ones(len(values), dtype=np.bool_)
        moments: list[int | float] = []
        timed = np.ones(len(values), dtype=np.bool_)
        for place, value in enumerate(values):
            if value is None or value == "" or (isinstance(value, str) and not value.strip()):
                timed[place] = False
                moments.append(0)
            else:
                moments.append(self._moment(value, first + place))
        whole = all(isinstance(one, int) and abs(one) <= _LARGEST for one in moments)
        return np.array(moments, dtype=np.int64 if whole else np.float64), timed

    def _moment(self, value: Any, row: int) -> int | float:
        number = _as_number(value)
        moment = _as_microseconds(value) if number is None else None
        if number is None and moment is None:
            raise self.table.bad(row, self.column, value, "a number, or a date such as 2024-05-31")
        self._meet("a date" if number is None else "a number", row, value)
        return number if number is not None else moment  # type: ignore[return-value]

    def _meet(self, kind: str, row: int, value: Any) -> None:
        if kind in self._met:
            return
        self._met[kind] = row, value
        if len(self._met) > 1:
            other, (earlier, known) = next(iter(self._met.items()))
            raise self._mixed(other, earlier, known, row=row, value=value)

    def _mixed(self, kind: str, earlier: int, known: Any, *, row: int, value: Any) -> DataError:
        return self.table.bad(
            row, self.column, value, f"{kind} in every row, as in row {earlier}: {known!r}"
        )


def _as_number(value: Any) -> int | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, (float, Decimal)):
        number = float(value)
        return number if abs(number) < float("inf") else None
    if isinstance(value, str) and _NUMBER.fullmatch(text := value.strip()):
        try:
            return int(text)
        except ValueError:
            number = float(text)
            return number if abs(number) < float("inf") else None
    return None


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
