"""Times that can be compared, from a column of numbers or of dates, in SQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from harness.data.read import LARGEST_EXACT, NUMBER
from harness_gistbench.sources.rules import SPACES, refused, value_at

if TYPE_CHECKING:
    from harness.contracts.dataset import Database, Table

_ZONE = "(?:Z|[+-][0-9]{2}:[0-9]{2})"
_HOUR = r"[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?"
_DATE = f"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:{_HOUR}{_ZONE}?)?"
"""The usual ways to write a date; Python reads the others."""

_INSTEAD = {
    "neither": "a number, or a date such as 2024-05-31",
    "too large": "a number below 2^63",
    "number": "a date in every row",
    "date": "a number in every row",
    "fraction": "a whole number, as others are above 2^53 and would be rounded",
    "large": "a number up to 2^53, as others have fractions and it would be rounded",
    "both": "a whole number, or a number up to 2^53: a larger one with a fraction is rounded",
}
"""What an error expects instead of a kind that is wrong, or cannot stand beside another."""


def with_times(database: Database, name: str, table: Table, column: str) -> str:
    """A query for the rows of a table with one column more, `moment`: what another column says.

    Numbers compare as numbers and dates as moments, those without a zone as of UTC and those
    without a time as of midnight. Both in one column are an error, and so are fractions beside
    whole numbers so large that either would be rounded.
    """
    cells = (
        f"SELECT *, CASE WHEN TRY_CAST({column}::VARCHAR AS BIGINT)::VARCHAR = {column}::VARCHAR "
        f"THEN {column}::VARCHAR ELSE "
        f"nullif(regexp_extract({column} ->> '$', '^{SPACES}*({NUMBER}){SPACES}*$', 1), '') END "
        f"AS digits FROM {name}"
    )
    numbers = (
        "SELECT * EXCLUDE (digits), TRY_CAST(digits AS DOUBLE) AS number, "
        f"CASE WHEN abs(TRY_CAST(digits AS DOUBLE)) >= {LARGEST_EXACT} "
        "THEN TRY_CAST(digits AS DECIMAL(38, 15)) END AS exact, "
        f"CASE WHEN digits IS NULL AND NOT regexp_full_match({column} ->> '$', '{SPACES}*') "
        f"THEN {column} ->> '$' END AS said FROM ({cells})"
    )
    dates = (
        "SELECT *, nullif(regexp_extract(said, "
        f"'^{SPACES}*({_DATE}){SPACES}*$', 1), '') AS usual FROM ({numbers})"
    )
    known = f"dates_{name}"
    database.sql(f"CREATE OR REPLACE TEMP TABLE {known} (said VARCHAR, other BIGINT)")
    moments = (
        "SELECT rows.* EXCLUDE (usual), coalesce(other, CASE WHEN "
        f"regexp_matches(usual, '{_ZONE}$') THEN epoch_us(TRY_CAST(usual AS TIMESTAMPTZ)) "
        "ELSE epoch_us(TRY_CAST(usual AS TIMESTAMP)) END) AS date "
        f"FROM ({dates}) AS rows LEFT JOIN {known} USING (said)"
    )
    first = _first_rows(database, moments)
    if "neither" in first:
        unusual = f"SELECT DISTINCT said FROM ({dates}) WHERE said IS NOT NULL AND usual IS NULL"
        others = [said for (said,) in database.sql(unusual).fetchall()]
        database.sql(
            f"INSERT INTO {known} SELECT unnest($1::VARCHAR[]), unnest($2::BIGINT[])",
            [others, list(map(_as_microseconds, others))],
        )
        first = _first_rows(database, moments)
    _check(first, table, column)
    fractions = "fraction" in first
    number = "number" if fractions else "coalesce(exact::BIGINT, number::BIGINT)"
    return (
        "SELECT * EXCLUDE (said, number, exact, date), "
        f"coalesce({number}, date) AS moment FROM ({moments})"
    )


def _first_rows(database: Database, moments: str) -> dict[str, int]:
    """The first row of each kind of time that there is."""
    kinds = {
        "number": "number IS NOT NULL",
        "date": "date IS NOT NULL",
        "large": f"abs(exact) > {LARGEST_EXACT}",
        "fraction": "CASE WHEN exact IS NULL THEN number <> trunc(number) "
        "ELSE exact <> trunc(exact) END",
        "too large": f"abs(number) >= {LARGEST_EXACT} AND coalesce(abs(exact) > {2**63 - 1}, true)",
        "neither": "said IS NOT NULL AND date IS NULL",
    }
    firsts = ", ".join(f"min(row) FILTER ({rule})" for rule in kinds.values())
    [found] = database.sql(f"SELECT {firsts} FROM ({moments})").fetchall()
    return {kind: row for kind, row in zip(kinds, found, strict=True) if row is not None}


def _check(first: dict[str, int], table: Table, column: str) -> None:
    """Raise DataError for the first time that cannot stand where it does."""
    wrong = [(first[kind], _INSTEAD[kind]) for kind in ("neither", "too large") if kind in first]
    for one, other in (("number", "date"), ("large", "fraction")):
        if one in first and other in first:
            earlier, later = sorted((one, other), key=first.__getitem__)
            row = first[earlier]
            beside = f"{_INSTEAD[later]}, as in row {row}: {value_at(table, row, column)!r}"
            wrong.append((first[later], _INSTEAD["both"] if row == first[later] else beside))
    if wrong:
        row, expected = min(wrong)
        raise refused(table, row, column, expected)


def _as_microseconds(text: str) -> int | None:
    """The moment of a date since 1970, of any form that Python knows; None of anything else."""
    try:
        value = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    moment = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
