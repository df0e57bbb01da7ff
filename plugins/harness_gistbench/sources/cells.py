"""What sources share: queries for the texts of objects, and errors with the first bad row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from harness import DataError
    from harness.contracts.dataset import Database, Table

SPACES = (
    r"[\s\x0b\x1c-\x1f\x{85}\x{a0}\x{1680}"
    r"\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
)
"""What Python takes for a space, as a pattern of SQL."""

WORD = f"[^{SPACES[1:]}+"


class Rule(NamedTuple):
    """What no row of a table may be: a condition in SQL, the column, and what it should hold."""

    wrong: str
    column: str
    expected: str


def filled(column: str, what: str = "an id") -> Rule:
    """That no cell of a column is blank."""
    blank = f"regexp_full_match({column}, '{SPACES}*')"
    # Nearly all cells begin like this, and the pattern takes ten times as long.
    wrong = f"CASE WHEN {column} BETWEEN '!' AND '~' THEN false ELSE {blank} END"
    return Rule(wrong, column, f"{what} that is not blank")


def check(database: Database, name: str, table: Table, *rules: Rule) -> None:
    """Raise DataError for the first row that breaks a rule, the first of the rules that it does."""
    firsts = ", ".join(f"min(row) FILTER ({rule.wrong})" for rule in rules)
    [found] = database.sql(f"SELECT {firsts} FROM {name}").fetchall()
    broken = [(row, place) for place, row in enumerate(found) if row is not None]
    if broken:
        row, place = min(broken)
        raise refused(table, row, rules[place].column, rules[place].expected)


def refused(table: Table, row: int, column: str, expected: str) -> DataError:
    """The error for a cell, as it stands in its file."""
    return table.bad(row, column, value_at(table, row, column), expected)


def value_at(table: Table, row: int, column: str) -> Any:
    """The value in a row of a table."""
    return next(values[column] for number, values in table.rows() if number == row)


def described(table: str, thing: str, parts: str, *, unknown: Iterable[str] = ()) -> str:
    """A query for objects with the parts that say something of them, on one line.

    `parts` is a list in SQL; `unknown` are marks of what a source knows not.
    """
    nothing = ", ".join(f"'{one}'" for one in ("", *unknown))
    return (
        f"SELECT row, object, array_to_string(list_filter(parts, lambda part, place: "
        f"part NOT IN ({nothing}) AND list_position(parts, part) = place), ' | ') AS text "
        f"FROM (SELECT row, {thing} AS object, list_transform({parts}, lambda part: "
        f"trim(regexp_replace(coalesce(part, ''), '{SPACES}+', ' ', 'g'))) AS parts FROM {table})"
    )
