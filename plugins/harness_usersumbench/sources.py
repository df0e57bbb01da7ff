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
MILLISECONDS = "milliseconds since 1970, as a whole number of 12 to 14 digits"


@dataclass(frozen=True, kw_only=True)
class Clock:
    """A column of times: those that cannot be used by a condition, and what is expected."""

    column: str
    wrong: str
    expected: str


def _seconds(column: str) -> Clock:
    return Clock(
        column=column, wrong=f'"{column}" NOT BETWEEN 0 AND {LATEST - 1}', expected=SECONDS
    )


@dataclass(frozen=True, kw_only=True)
class Source:
    """A layout of data.

    `events` selects user, item, time in seconds and row of each activity from the table
    `activities`; `things` selects item, name, categories and row of each object from the table
    `objects`. `layouts` are the keys that each activity has in one of several layouts.
    `published` is how many users the paper has.
    """

    activities: str
    objects: str
    events: str
    things: str
    clocks: tuple[Clock, ...]
    published: str
    layouts: Mapping[str, tuple[str, ...]]


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
            Clock(
                column="timestamp",
                wrong=f'"timestamp" NOT BETWEEN {LATEST} AND {1000 * LATEST - 1}',
                expected=MILLISECONDS,
            ),
        ),
        published="the paper's 5,046 are of unnamed categories, and not expected",
        layouts={
            "2023": ("user_id", "parent_asin"),
            "2018": ("reviewerID", "asin"),
        },
    ),
}
"""The sources by their names in the option `source`."""


def check_times(source: Source, table: Table, database: Database) -> None:
    """Raise DataError for the first row with a time that is of another kind than expected."""
    for clock in source.clocks:
        [(many, row, value)] = database.sql(
            f'SELECT count(*), min(row), arg_min("{clock.column}", row) FROM {source.activities} '
            f"WHERE {clock.wrong}"
        ).fetchall()
        if many:
            error = table.bad(row, clock.column, value, clock.expected)
            error.found = f"{error.found}; rows like this: {many:,}"
            error.hint = f"write all times of {clock.column!r} in this way, or leave those rows out"
            raise error


def layouts_of(source: Source, table: Table, database: Database) -> dict[str, int]:
    """How many activities are in each of several layouts, noticed by the columns they have.

    DataError for the first one in none of them.
    """
    if not source.layouts:
        return {}
    met = {
        layout: " AND ".join(f"{key} IS NOT NULL" for key in keys)
        for layout, keys in source.layouts.items()
    }
    ways = " ".join(f"WHEN {condition} THEN '{layout}'" for layout, condition in met.items())
    found = database.sql(
        f"SELECT CASE {ways} END AS layout, count(*), min(row) FROM {source.activities} "
        "GROUP BY layout ORDER BY layout"
    ).fetchall()
    for layout, _, row in found:
        if layout is None:
            keys = next(iter(source.layouts.values()))
            [values] = database.sql(
                f"SELECT {', '.join(keys)} FROM {source.activities} WHERE row = {row}"
            ).fetchall()
            of_each = (f"{' and '.join(keys)} ({name})" for name, keys in source.layouts.items())
            error = table.bad(row, keys[values.index(None)], None, " or ".join(of_each))
            error.hint = "give whole rows of one of these layouts, or leave that row out"
            raise error
    return {f"activities in the layout of {layout}": number for layout, number, _ in found}
