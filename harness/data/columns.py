"""Conversion of cells to the types that columns declare.

Types are strict: a conversion that would lose something is an error. Whole numbers written as 7.0
are integers, string columns take integers as ids (7 becomes "7"), and number columns always give
floats. An empty cell of CSV or TSV counts as absent, because these formats cannot distinguish the
two; every other format can.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from harness.data.wording import join_names

if TYPE_CHECKING:
    from harness.contracts.task import Column

Convert = Callable[[Any], Any]

_WHOLE = re.compile(r"[+-]?[0-9]{1,400}(?:\.0*)?", re.ASCII)
NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""A pattern for a number as text, for Python and for SQL."""

_NUMBER = re.compile(NUMBER, re.ASCII)
_TRUTH = {"true": True, "false": False, "1": True, "0": False}
LARGEST_EXACT = 2**53
"""Floats are exact for whole numbers up to here."""


@dataclass(eq=False)
class Unfit(Exception):
    """A value that does not fit its column; `expected` describes a valid one.

    `choices` are the valid values, if the task lists them.
    """

    problem: str
    expected: str
    hint: str | None = None
    choices: tuple[str, ...] = ()


def as_written(cell: Any) -> str:
    """A cell as the keys of a column's `values` write it."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return cell if isinstance(cell, str) else str(cell)


def converter(column: Column, *, text: bool) -> Convert:
    """A function that converts a cell that is not absent to the column's type, or raises Unfit.

    `text` is true if cells are text, as in CSV, from which numbers must be read.
    """
    convert = (_FROM_TEXT if text else _FROM_VALUE)[column.type]
    if not column.one_of:
        return convert
    allowed = frozenset(column.one_of)
    choices = column.one_of

    def checked(value: Any) -> Any:
        result = convert(value)
        if str(result) not in allowed:
            raise Unfit(
                "not one of the values that the task allows",
                f"one of: {join_names(choices)}",
                choices=choices,
            )
        return result

    return checked


def _string(value: Any) -> str:
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise Unfit(
                    "the text holds half of a surrogate pair", "text that can be written as UTF-8"
                ) from None
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    raise Unfit("not a string", "text, or a whole number used as an id")


def _integer(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_EXACT:
        return int(value)
    raise Unfit("not an integer", "a whole number, such as 42")


def _integer_text(value: str) -> int:
    stripped = value.strip()
    if not _WHOLE.fullmatch(stripped):
        hint = None
        if _NUMBER.fullmatch(stripped) and "e" in stripped.lower():
            hint = "spreadsheets write long numbers like this and lose digits: export it as text"
        raise Unfit("not an integer", "a whole number, such as 42", hint)
    return int(stripped.partition(".")[0])


def _number(value: Any) -> float:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        try:
            result = float(value)
        except OverflowError:
            result = math.inf
        if math.isfinite(result):
            return result
        if math.isnan(result):
            raise Unfit("not a number", "a finite number or null", "write a missing number as null")
    raise Unfit("not a number", "a finite number, such as 3.5")


def _number_text(value: str) -> float:
    stripped = value.strip()
    if _NUMBER.fullmatch(stripped) and math.isfinite(result := float(stripped)):
        return result
    hint = "write decimals with a point" if _NUMBER.fullmatch(stripped.replace(",", ".")) else None
    raise Unfit("not a number", "a finite number, such as 3.5", hint)


def _plain(kind: type, problem: str, expected: str, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    raise Unfit(problem, expected)


def _boolean_text(value: str) -> bool:
    result = _TRUTH.get(value.strip().casefold())
    if result is None:
        raise Unfit("not a boolean", "true, false, 1 or 0")
    return result


def _json(kind: type, problem: str, expected: str, value: str) -> Any:
    try:
        result = msgspec.json.decode(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        result = None
    if isinstance(result, kind):
        return result
    hint = None
    if value.strip()[:1] in "[{" and "'" in value:
        hint = 'JSON quotes text with "; write the column with json.dumps, not with str or repr'
    raise Unfit(problem, expected, hint)


_FROM_VALUE: dict[str, Convert] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": partial(_plain, bool, "not a boolean", "true or false"),
    "list": partial(_plain, list, "not a list", "a list"),
    "object": partial(_plain, dict, "not an object", "an object"),
    "any": lambda value: value,
}
_FROM_TEXT: dict[str, Convert] = {
    **_FROM_VALUE,
    "integer": _integer_text,
    "number": _number_text,
    "boolean": _boolean_text,
    "list": partial(_json, list, "not a list", 'a JSON list, such as ["a", "b"]'),
    "object": partial(_json, dict, "not an object", 'a JSON object, such as {"a": 1}'),
}
