"""Rules for the rows of a table, checked in SQL; an error names the first row that breaks one.

check(database, "ratings", table, not_blank("user"), Rule("stars > 5", "stars", "1 to 5 stars"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harness.data.database import SPACES

if TYPE_CHECKING:
    from harness.base.errors import DataError
    from harness.contracts.dataset import Database, Table

WORD = f"[^{SPACES[1:]}+"
"""A pattern for a word between spaces."""


class Rule(NamedTuple):
    """A condition in SQL that no row may fulfil, its column, and what the column should hold."""

    broken: str
    column: str
    expected: str


def not_blank(column: str, what: str = "an id") -> Rule:
    """The rule that no cell of a column is blank."""
    blank = f"regexp_full_match({column}, '{SPACES}*')"
    # Nearly all cells begin like this, and the pattern takes ten times as long.
    broken = f"CASE WHEN {column} BETWEEN '!' AND '~' THEN false ELSE {blank} END"
    return Rule(broken, column, f"{what} that is not blank")


def check(database: Database, name: str, table: Table, *rules: Rule) -> None:
    """Raise DataError for the first row that breaks a rule, the first of the rules that it does."""
    firsts = ", ".join(f"min(row) FILTER ({rule.broken})" for rule in rules)
    [found] = database.sql(f"SELECT {firsts} FROM {name}").fetchall()
    found_in = [(row, place) for place, row in enumerate(found) if row is not None]
    if found_in:
        row, place = min(found_in)
        raise refused(table, row, rules[place].column, rules[place].expected)


def refused(table: Table, row: int, column: str, expected: str) -> DataError:
    """The error for a cell, with its value and place in the file."""
    return table.bad(row, column, value_at(table, row, column), expected)


def value_at(table: Table, row: int, column: str) -> Any:
    """The value in a row of a table, which is read again up to it."""
    return next(values[column] for number, values in table.rows() if number == row)
