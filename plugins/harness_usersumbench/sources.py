"""The three sources as SQL: who did what when, and what the objects are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.contracts.dataset import Database, Table

LATEST = 100_000_000_000
"""The first number that is no time in seconds; as milliseconds, it is in 1973."""

SECONDS = "seconds since 1970, as a whole number of at most 11 digits"
MILLISECONDS = "milliseconds since 1970, as a whole number of at least 12 digits"


@dataclass(frozen=True, kw_only=True)
class Clock:
    """A column of times: those that cannot be used by a condition, and what is expected."""

    column: str
    wrong: str
    expected: str


def _seconds(column: str) -> Clock:
    return Clock(column=column, wrong=f"{column} NOT BETWEEN 0 AND {LATEST - 1}", expected=SECONDS)


@dataclass(frozen=True, kw_only=True)
class Source:
    """A layout of data.

    `events` selects user, item, time in seconds and row of each activity from the table
    `activities`; `things` selects item, name, categories and row of each object from the table
    `objects`. `layouts` are
    conditions by what is noted of the rows that meet them; a row that meets none of several is an
    error. `published` is how many users the paper has.
    """

    activities: str
    objects: str
    events: str
    things: str
    clocks: tuple[Clock, ...]
    published: str
    layouts: Mapping[str, str]


SOURCES: Mapping[str, Source] = {
    "movielens": Source(
        activities="ratings",
        objects="movies",
        events='SELECT "user", movie AS item, "timestamp" AS time, row FROM ratings',
        things="SELECT movie AS item, title AS name, string_split(genres, '|') AS categories, row "
        "FROM movies",
        clocks=(_seconds("timestamp"),),
        published="4,297 in the paper",
        layouts={},
    ),
    "yelp": Source(
        activities="reviews",
        objects="businesses",
        events="SELECT user_id AS user, business_id AS item, "
        "epoch(TRY_CAST(date AS TIMESTAMP))::BIGINT AS time, row FROM reviews",
        things="SELECT business_id AS item, name, string_split(categories, ',') AS categories, row "
        "FROM businesses",
        clocks=(
            Clock(
                column="date",
                wrong="date <> '' AND TRY_CAST(date AS TIMESTAMP) IS NULL",
                expected="a date such as 2018-07-07 22:09:11",
            ),
        ),
        published="6,798 in the paper",
        layouts={},
    ),
    "amazon": Source(
        activities="reviews",
        objects="products",
        events="SELECT coalesce(user_id, reviewerID) AS user, coalesce(parent_asin, asin) AS item, "
        'coalesce("timestamp" // 1000, unixReviewTime) AS time, row FROM reviews',
        things="""
            SELECT coalesce(parent_asin, asin) AS item, title AS name,
                CASE WHEN json_array_length(coalesce(categories, category)) > 0
                    THEN json_extract_string(coalesce(categories, category), '$[*]')
                    WHEN main_category IS NOT NULL THEN [main_category] END AS categories,
                row
            FROM products""",
        clocks=(
            _seconds("unixReviewTime"),
            Clock(column="timestamp", wrong=f'"timestamp" < {LATEST}', expected=MILLISECONDS),
        ),
        published="the paper's 5,046 are of unnamed categories, and not expected",
        layouts={
            "activities in the layout of 2023": "user_id IS NOT NULL AND parent_asin IS NOT NULL",
            "activities in the layout of 2018": "reviewerID IS NOT NULL AND asin IS NOT NULL",
        },
    ),
}
"""The sources by their names in the option `source`."""


def check_times(source: Source, table: Table, database: Database) -> None:
    """Raise DataError for the first row with a time that is of another kind than expected."""
    for clock in source.clocks:
        found = database.sql(
            f'SELECT row, "{clock.column}" FROM {source.activities} '
            f"WHERE {clock.wrong} ORDER BY row LIMIT 1"
        ).fetchall()
        for row, value in found:
            raise table.bad(row, clock.column, value, clock.expected)


def layouts_of(source: Source, table: Table, database: Database) -> dict[str, int]:
    """How many activities are in each of several layouts, by the columns that they have."""
    if not source.layouts:
        return {}
    ways = " ".join(f"WHEN {met} THEN '{name}'" for name, met in source.layouts.items())
    found = database.sql(
        f"SELECT CASE {ways} END AS layout, count(*), min(row) FROM {source.activities} "
        "GROUP BY layout ORDER BY layout"
    ).fetchall()
    for layout, _, row in found:
        if layout is None:
            raise table.bad(
                row,
                "parent_asin",
                None,
                "the keys of 2023 (user_id, parent_asin, timestamp) or of 2018 (reviewerID, asin, "
                "unixReviewTime)",
            )
    return {layout: number for layout, number, _ in found}
