"""The options of `harness data perrec-groups`, and its review log as tables of a database.

Users and items are numbered in the order of their names, so that nothing depends on the order of
rows and files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from harness.analysis.user_tables import table as read_table
from harness.base.errors import DataError, UsageError
from harness.contracts.task import Column
from harness.data.database import Database

if TYPE_CHECKING:
    from harness.data.read import Table

ALL = "all"
"""The folder of the groups of all domains."""

_DOMAIN = re.compile(r"([a-z0-9][a-z0-9_-]*)=(.+)", re.IGNORECASE | re.DOTALL)

Least = Annotated[int, Meta(ge=2)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The log, the folder of the groups, and the rules for them."""

    reviews: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="a file of reviews (parent_asin, user_id, rating, timestamp), or "
            "DOMAIN=FILE to write the domain's own groups too: JSONL, JSON, CSV, TSV or Parquet",
        ),
    ]
    domains: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[A-Za-z0-9][\w-]*=.")], ...],
        Meta(description="DOMAIN=NAME for a file of reviews of that name, with any ending"),
    ] = ()
    meta: Annotated[
        tuple[Path, ...],
        Meta(min_length=1, description="a file of items (parent_asin, title, author)"),
    ]
    out: Annotated[Path, Meta(description="the folder that the groups are written to")]
    window_days: Annotated[
        float, Meta(ge=0, description="the length of a window, including both ends")
    ] = 30.0
    min_history: Annotated[
        int, Meta(ge=0, description="a user has more ratings than this before the purchase")
    ] = 20
    min_difference: Annotated[
        float, Meta(ge=0, description="relative ratings in a group differ by more than this")
    ] = 0.6
    members: Annotated[Least, Meta(description="the largest number of users of an item")] = 5
    least_members: Annotated[
        Least,
        Meta(
            description="items with fewer users are left out; below 4, levels have different items"
        ),
    ] = 4
    test_items: Annotated[int, Meta(ge=1, description="test items; the others are held out")] = 200
    domain_items: Annotated[int, Meta(ge=1, description="test items of each domain")] = 50
    behaviours: Annotated[
        int, Meta(ge=0, description="behaviours drawn for tasks with ask: rating")
    ] = 1000
    strict: Annotated[
        bool, Meta(description="take averages over earlier ratings, not over whole histories")
    ] = False
    bad_rows: Annotated[
        Literal["refused", "left_out"],
        Meta(description="the treatment of ratings outside 1 to 5, and rows without id or time"),
    ] = "refused"
    seed: Annotated[int, Meta(description="another seed draws other items and users")] = 0

    def __post_init__(self) -> None:
        if self.least_members > self.members:
            raise ValueError(
                f"least_members={self.least_members} is more than members={self.members}"
            )


def review_files(settings: Settings) -> Iterator[tuple[str | None, Path]]:
    """Each file of reviews with its domain, None without one."""
    by_name = {name: domain for domain, _, name in (one.partition("=") for one in settings.domains)}
    for given in settings.reviews:
        named = _DOMAIN.fullmatch(given)
        domain = named[1] if named else by_name.get(Path(given).name.partition(".")[0])
        if domain == ALL:
            raise UsageError(
                f"the name {ALL!r} is reserved for the folder of all domains",
                where="--reviews",
                found=given,
                expected="DOMAIN=FILE with the domain's own name",
                hint=f"if this is a file's name, give it as ./{given}",
            )
        yield domain, Path(named[2] if named else given).expanduser()


UNIT = 1000
"""Ratings are stored in thousandths, so that sums are exact in any order."""

MILLISECONDS_A_SECOND = 1000
LARGEST_SECONDS = 1e11
"""Larger times are milliseconds since 1970."""

MEMORY = "300MB"
"""What the database may hold in memory, whatever the size of the log."""

FIT = {
    "user_id": (Column(), "user_id <> ''", "an id"),
    "parent_asin": (Column(), "parent_asin <> ''", "an id"),
    "rating": (
        Column(type="number"),
        f"rating * {UNIT} BETWEEN {UNIT} AND {5 * UNIT} "
        f"AND abs(rating * {UNIT} - round(rating * {UNIT})) < 1e-6",
        "a number from 1 to 5, with at most three decimals",
    ),
    "timestamp": (Column(type="integer"), "timestamp IS NOT NULL", "a time"),
}
"""The columns of reviews: the type, and the condition of a usable value in SQL and in words."""

ITEM_COLUMNS = {
    "parent_asin": Column(type="string"),
    "title": Column(type="string", required=False),
    "author": Column(type="any", required=False),
}

SPACES = "".join(filter(str.isspace, map(chr, range(0x3001))))
"""All characters that are white space: a title needs another one."""


@dataclass(frozen=True, kw_only=True)
class Log:
    """All usable ratings of a log, in the tables of a database.

    `users` (`user_at`, `name`), `items` (`item_at`, `name`, `domain`, `titled`), `ratings`
    (`user_at`, `item_at`, `rating` in thousandths, `time`), and `meta` (`name`, `title`, `author`)
    with the described items that have a title. `user_at` and `item_at` are places among the sorted
    names, `domain` is the place of the item's domain, or the number of domains if it has none.
    `ticks` are the units of time per second, and `left_out` counts bad rows.
    """

    database: Database
    domains: tuple[str, ...]
    ticks: int
    left_out: int

    def described(self, items: str, params: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Title and author of the items whose names a query selects, in the published format.

        Of several descriptions of an item, the alphabetically first counts.
        """
        rows = self.database.sql(
            f"SELECT name, title, author FROM meta WHERE name IN ({items}) ORDER BY name", params
        ).fetchall()
        for name, found in groupby(rows, key=lambda row: row[0]):
            title, author = min((title, _author(author)) for _, title, author in found)
            yield name, {"title": title, **({"author": {"name": author}} if author else {})}


def read(settings: Settings) -> Log:
    """All ratings of the log; DataError with file and line for a bad row."""
    files = list(review_files(settings))
    domains = tuple(sorted({domain for domain, _ in files if domain}))
    refused = settings.bad_rows == "refused"
    columns = {name: replace(column, required=refused) for name, (column, *_) in FIT.items()}
    meta = {f"meta_{place}": _table(path, ITEM_COLUMNS) for place, path in enumerate(settings.meta)}
    reviews = {f"reviews_{place}": _table(path, columns) for place, (_, path) in enumerate(files)}
    database = Database({**meta, **reviews}, memory=MEMORY)
    database.sql(
        f"""
        SELECT parent_asin AS name, title, author
        FROM ({" UNION ALL ".join(f"FROM {name}" for name in meta)})
        WHERE trim(title, '{SPACES}') <> ''
        """
    ).create_view("meta")
    for name, table in reviews.items() if refused else ():
        bad = " UNION ALL ".join(
            f"SELECT row, '{column}', to_json({column}) FROM {name} WHERE NOT ({fits})"
            for column, (_, fits, _) in FIT.items()
        )
        for row, column, value in database.sql(f"{bad} ORDER BY ALL LIMIT 1").fetchall():
            raise table.bad(row, column, json.loads(value), FIT[column][-1])
    every = " UNION ALL ".join(
        f"SELECT *, {domains.index(domain) if domain else len(domains)} AS domain FROM {name}"
        for name, (domain, _) in zip(reviews, files, strict=True)
    )
    usable = f"({every}) WHERE {' AND '.join(fits for _, fits, _ in FIT.values())}"
    database.sql(
        f"""
        SELECT (row_number() OVER (ORDER BY name) - 1)::INTEGER AS user_at, name
        FROM (SELECT DISTINCT user_id AS name FROM {usable})
        """
    ).create("users")
    database.sql(
        f"""
        SELECT (row_number() OVER (ORDER BY name) - 1)::INTEGER AS item_at, name, domain,
            name IN (SELECT name FROM meta) AS titled
        FROM (SELECT parent_asin AS name, min(domain) AS domain FROM {usable} GROUP BY name)
        """
    ).create("items")
    database.sql(
        f"""
        SELECT user_at, item_at, round(rating * {UNIT})::SMALLINT AS rating, timestamp AS time
        FROM (SELECT * FROM {usable})
        JOIN users ON user_id = users.name JOIN items ON parent_asin = items.name
        """
    ).create("ratings")
    [(read_rows,)] = database.sql(f"SELECT count(*) FROM ({every})").fetchall()
    [(found, latest)] = database.sql("SELECT count(*), max(abs(time)) FROM ratings").fetchall()
    if not found:
        raise DataError(
            "the files of reviews contain no usable rating",
            where=", ".join(str(path) for _, path in files),
            found=f"{read_rows} rows without an id, a time or a rating from 1 to 5",
            expected="rows with user_id, parent_asin, a timestamp and a rating from 1 to 5",
        )
    return Log(
        database=database,
        domains=domains,
        ticks=MILLISECONDS_A_SECOND if latest > LARGEST_SECONDS else 1,
        left_out=read_rows - found,
    )


def _table(path: Path, columns: Mapping[str, Column]) -> Table:
    if not path.is_file():
        raise DataError(
            "the file does not exist", where=str(path), expected="the path of an existing file"
        )
    return read_table(str(path), path.name, columns)


def _author(value: str | None) -> str:
    """The name of an author, given as JSON; empty without one."""
    found = json.loads(value) if value else None
    name = found.get("name") if isinstance(found, dict) else found
    return name.strip() if isinstance(name, str) else ""
