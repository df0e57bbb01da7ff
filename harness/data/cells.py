"""Cells of tables as values of the declared types.

Types are strict: a conversion that would lose something is an error. Whole numbers written as 7.0
are integers, string columns take integers as ids (7 becomes "7"), and number columns always give
floats. An empty cell of delimited text counts as absent, because it cannot distinguish the two.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from functools import cached_property, partial
from math import inf, isfinite, isnan
from typing import Any

import msgspec

from harness.base.errors import DataError
from harness.contracts.task import Column
from harness.data.wording import join_names, place, preview

LARGEST_EXACT = 2**53
"""Floats are exact for whole numbers up to here."""

NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""A pattern for a number as text, for Python and for SQL."""

MOST_DIGITS = 400

_WHOLE = re.compile(rf"[+-]?[0-9]{{1,{MOST_DIGITS}}}(?:\.0*)?", re.ASCII)
_NUMBER = re.compile(NUMBER, re.ASCII)
_TRUTH = {"true": True, "false": False, "1": True, "0": False}

Convert = Callable[[Any], Any]


@dataclass(eq=False)
class Unfit(Exception):
    """A value that does not fit its column; `expected` describes a valid one.

    `choices` are the valid values, if the task lists them.
    """

    problem: str
    expected: str
    hint: str | None = None
    choices: tuple[str, ...] = ()


def converter(column: Column, *, text: bool) -> Convert:
    """A function that converts a cell that is not absent to the column's type, or raises Unfit.

    `text` is true if cells are text, as in CSV, from which numbers must be read.
    """
    convert = (_CONVERT_TEXT if text else _CONVERT)[column.type]
    choices = column.one_of
    if not choices:
        return convert

    def checked(value: Any) -> Any:
        result = convert(value)
        if str(result) not in choices:
            expected = f"one of: {join_names(choices)}"
            raise Unfit("not one of the values that the task allows", expected, choices=choices)
        return result

    return checked


def _string(value: Any) -> str:
    if isinstance(value, str):
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


def _usual_numbers(kind: str, texts: Sequence[str]) -> list[int] | list[float] | None:
    """Texts as numbers, all at once; None if one of them must be looked at by itself.

    `int` and `float` take what the patterns take, and underscores and digits of other scripts.
    """
    joined = "".join(texts)
    if not joined.isascii() or "_" in joined:
        return None
    if kind == "integer" and joined.isdecimal() and max(map(len, texts)) <= MOST_DIGITS:
        return [*map(int, texts)]
    if kind == "number":
        with suppress(ValueError):
            numbers = [*map(float, texts)]
            return numbers if all(map(isfinite, numbers)) else None
    return None


def _number(value: Any) -> float:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        try:
            result = float(value)
        except OverflowError:
            result = inf
        if isfinite(result):
            return result
        if isnan(result):
            raise Unfit("not a number", "a finite number or null", "write a missing number as null")
    raise Unfit("not a number", "a finite number, such as 3.5")


def _number_text(value: str) -> float:
    stripped = value.strip()
    if _NUMBER.fullmatch(stripped) and isfinite(result := float(stripped)):
        return result
    hint = "write decimals with a point" if _NUMBER.fullmatch(stripped.replace(",", ".")) else None
    raise Unfit("not a number", "a finite number, such as 3.5", hint)


def _plain(kind: type, problem: str, expected: str, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    raise Unfit(problem, expected)


def _boolean_text(value: str) -> bool:
    result = _TRUTH.get(value.strip().lower())
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


_CONVERT: dict[str, Convert] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": partial(_plain, bool, "not a boolean", "true or false"),
    "list": partial(_plain, list, "not a list", "a list"),
    "object": partial(_plain, dict, "not an object", "an object"),
    "any": lambda value: value,
}
_CONVERT_TEXT: dict[str, Convert] = {
    **_CONVERT,
    "integer": _integer_text,
    "number": _number_text,
    "boolean": _boolean_text,
    "list": partial(_json, list, "not a list", 'a JSON list, such as ["a", "b"]'),
    "object": partial(_json, dict, "not an object", 'a JSON object, such as {"a": 1}'),
}
_HELD_AS: dict[str, type] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "list": list, "object": dict,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Field:
    """A column with its conversion: `key` is its name in the source, None if absent.

    `text` is true if cells are text. `table` is the table's name, if errors propose options of a
    run.
    """

    name: str
    key: str | None
    column: Column
    text: bool = False
    table: str | None = None

    @cached_property
    def convert(self) -> Convert:
        """The conversion of a cell that is not absent and stands for nothing else."""
        return converter(self.column, text=self.text)

    @cached_property
    def meanings(self) -> Mapping[str, Any]:
        """What texts in the data stand for, as typed values; DataError if one cannot be typed."""
        convert = converter(self.column, text=True)
        try:
            return {written: convert(text) for written, text in self.column.values.items()}
        except Unfit as unfit:
            raise DataError(
                f"the values of column '{self.name}' stand for something that is none of its "
                f"values: {unfit.problem}",
                found=join_names(dict.fromkeys(self.column.values.values())),
                expected=unfit.expected,
            ) from None

    def value(self, cell: Any) -> Any:
        """The value of a cell, or Unfit."""
        if self.meanings and isinstance(cell, (str, int, float)):
            written = as_written(cell)
            if written in self.meanings:
                return self.meanings[written]
        if cell is None or (self.text and cell == ""):
            if not self.column.required:
                return None
            raise Unfit("the value is missing", "a value in every row")
        return self.convert(cell)

    def values(self, cells: list[Any]) -> list[Any]:
        """The values of the cells of this column, as `value` gives them, or Unfit."""
        column, types = self.column, {*map(type, cells)}
        if not column.required:
            types.discard(type(None))
        if not (types or self.meanings):
            return cells
        held = _HELD_AS.get(column.type)
        fits = type(None) not in types if held is None else types <= {held}
        if fits and not (self.meanings or column.one_of):
            if self.text and "" in cells:
                if not column.required:
                    return [cell or None for cell in cells]
            elif held is not float or all(cell is None or isfinite(cell) for cell in cells):
                return cells
        if (self.meanings or column.one_of) and self.text and held not in (list, dict):
            distinct = {cell: self.value(cell) for cell in {*cells}}
            return [distinct[cell] for cell in cells]
        if self.text and "" not in cells and not self.meanings:
            return _usual_numbers(column.type, cells) or [*map(self.convert, cells)]
        return [self.value(cell) for cell in cells]

    def error(self, cell: Any, unfit: Unfit, *, label: str, row: int) -> DataError:
        """The error for an unfit cell in this row of a source."""
        hint = unfit.hint
        if unfit.choices and self.table is not None:
            meaning = shlex.quote(f"{self.table}.{self.name}.{as_written(cell)}=MEANING")
            hint = f"if it stands for one of these: --values {meaning}"
        return DataError(
            unfit.problem,
            where=place(label, row=row, column=self.key),
            found=preview(cell),
            expected=unfit.expected,
            hint=hint,
        )


def as_written(cell: Any) -> str:
    """A cell as the keys of a column's `values` write it."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return cell if isinstance(cell, str) else str(cell)


def converted(
    fields: Sequence[Field], cells: list[list[Any]], *, label: str, first: int
) -> tuple[dict[str, list[Any]], DataError | None]:
    """The values of the columns of some rows up to the first bad row, and its error.

    `label` is the source of the rows, and `first` the number of the first one there.
    """
    try:
        return {one.name: one.values(of) for one, of in zip(fields, cells, strict=True)}, None
    except Unfit:
        pass
    for at, row in enumerate(zip(*cells, strict=True)):
        for one, cell in zip(fields, row, strict=True):
            try:
                one.value(cell)
            except Unfit as unfit:
                good = [of[:at] for of in cells]
                values, _ = converted(fields, good, label=label, first=first)
                return values, one.error(cell, unfit, label=label, row=first + at)
    raise AssertionError("no row has the unfit cell of a column")
