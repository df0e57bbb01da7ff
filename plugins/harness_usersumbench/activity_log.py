"""The activities of a source as tables of a database, and who has enough of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness import DataError
from harness.base.hashing import digest
from harness_usersumbench.questions import WRONG, Pool
from harness_usersumbench.records import OPTIONS_A_QUESTION
from harness_usersumbench.sources import SOURCES, check_times, layouts_of

if TYPE_CHECKING:
    from harness.contracts.dataset import Database, Table

UNKNOWN = "activities with an object that the data does not describe, left out"
LONGEST_NAME = 300
"""A longer name is cut, so that no object fills a prompt."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A database with the tables of a source, and what decides which users and activities count."""

    database: Database
    source: str
    least: int
    most: int
    last: str
    seed: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Log:
    """The activities of a source, in tables of a database whose names begin with `name`.

    NAME_things holds all objects that can be used and that somebody used, NAME_log all activities
    with one, NAME_recent the recent ones of users with enough of them, and NAME_future the last one
    of each user; `back` is an activity's place among the user's, 1 for the latest. `users` can be
    asked about, and have the categories of their next activity; `enough` have enough activities,
    and `notes` are counts of what was kept and left out. The objects' names have numbers, one for
    all names that differ in case only, and so have the categories, in the order of the alphabet.
    """

    database: Database
    name: str
    users: Mapping[str, tuple[int, ...]]
    enough: int
    notes: Mapping[str, int]
    names: Pool
    categories: tuple[str, ...]
    category_pool: Pool


def read_log(activities: Table, objects: Table, kept: Kept) -> Log:
    """The log of a source, from its tables of activities and of objects."""
    source, database = SOURCES[kept.source], kept.database
    check_times(source, activities, database)
    notes = layouts_of(source, activities, database)
    name = f"usersum_{digest([kept.source, kept.least, kept.most, kept.last, kept.seed])[:12]}"
    notes |= _clean(database, name, kept.source)
    [(timed,)] = database.sql(f"SELECT count(time) FROM {name}_events").fetchall()
    if 2 * notes[UNKNOWN] > timed:
        raise DataError(
            "the data describes too few of the objects that users had",
            where=objects.where,
            found=f"{notes[UNKNOWN]:,} of {timed:,} activities with an object without description",
            expected="the objects of at least half of the activities",
            hint="give the objects of these activities: most of each past is left out without",
        )
    counts = database.sql(f"SELECT sum(uses) FROM {name}_things GROUP BY named ORDER BY named")
    names = Pool([count for (count,) in counts.fetchall()])
    of_category = database.sql(f"""
        SELECT category, sum(uses) FROM (
            SELECT unnest(categories) AS category, uses FROM {name}_things
        ) GROUP BY category ORDER BY category
    """).fetchall()
    categories = tuple(category for category, _ in of_category)
    for what, number in (("objects", len(names.counts)), ("categories", len(categories))):
        if number < OPTIONS_A_QUESTION:
            raise DataError(
                f"the activities are of too few {what}: a question has five options",
                where=objects.where,
                found=f"{number} {what}" + _listed(notes),
                expected=f"at least five {what}",
                hint="give the whole data: wrong options are drawn from all of it",
            )
    notes |= _cut(database, name, kept, notes, where=activities.where)
    users, fewer = _askable(database, name, names=len(names.counts), categories=categories)
    notes["users with fewer than four wrong options, left out"] = fewer
    return Log(
        database=database,
        name=name,
        users=users,
        enough=len(users) + fewer,
        notes=notes,
        names=names,
        categories=categories,
        category_pool=Pool([count for _, count in of_category]),
    )


def _listed(notes: Mapping[str, int]) -> str:
    return "".join(f"\n      {fact}: {number:,}" for fact, number in notes.items() if number)


def _tidy(text: str) -> str:
    """The SQL of a text on one line, without control characters."""
    return rf"trim(regexp_replace({text}, '[\s\p{{Z}}\p{{C}}]+', ' ', 'g'))"


def _clean(database: Database, name: str, source: str) -> dict[str, int]:
    """Make the tables of things and of the log, of activities that can be used; the notes.

    An object that the data describes several times is the one in the first row.
    """
    database.sql(f"CREATE OR REPLACE VIEW {name}_events AS {SOURCES[source].events}")
    database.sql(f"""
        CREATE OR REPLACE TABLE {name}_described AS
        SELECT item, name,
            [one for one, place in categories if list_position(categories, one) = place]
                AS categories
        FROM (
            SELECT item, {_tidy("name")} AS name,
                [{_tidy("one")} for one in categories if {_tidy("one")} <> ''] AS categories
            FROM (SELECT DISTINCT ON (item) * FROM ({SOURCES[source].things}) ORDER BY item, row)
        )
    """)
    database.sql(f"""
        CREATE OR REPLACE TABLE {name}_things AS
        SELECT item, thing, cut, name, categories, uses,
            dense_rank() OVER (ORDER BY lower(name)) - 1 AS named
        FROM (
            SELECT item, row_number() OVER (ORDER BY item) - 1 AS thing,
                length(name) > {LONGEST_NAME} AS cut,
                CASE WHEN cut THEN left(name, {LONGEST_NAME - 1}) || '…' ELSE name END AS name,
                categories
            FROM {name}_described WHERE name <> '' AND len(categories) > 0
        ) JOIN (
            SELECT item, count(*) AS uses FROM {name}_events WHERE time IS NOT NULL GROUP BY item
        ) USING (item)
    """)
    database.sql(f"""
        CREATE OR REPLACE TABLE {name}_log AS
        SELECT user, time, row, thing, named FROM {name}_events JOIN {name}_things USING (item)
        WHERE time IS NOT NULL
    """)
    [(untimed, unknown, bare)] = database.sql(f"""
        SELECT count(*) FILTER (time IS NULL),
            count(*) FILTER (time IS NOT NULL AND described.item IS NULL),
            count(*) FILTER (time IS NOT NULL AND described.item IS NOT NULL
                AND things.item IS NULL)
        FROM {name}_events AS events LEFT JOIN {name}_described AS described USING (item)
        LEFT JOIN {name}_things AS things USING (item)
    """).fetchall()
    [(cut,)] = database.sql(f"SELECT count(*) FROM {name}_things WHERE cut").fetchall()
    [(again,)] = database.sql(
        f"SELECT count(item) - count(DISTINCT item) FROM ({SOURCES[source].things})"
    ).fetchall()
    return {
        "activities without a time, left out": untimed,
        UNKNOWN: unknown,
        "activities with an object without a name or category, left out": bare,
        "descriptions of objects that an earlier row describes, left out": again,
        f"objects with a name that was cut to {LONGEST_NAME} characters": cut,
    }


def _cut(
    database: Database, name: str, kept: Kept, earlier: Mapping[str, int], *, where: str
) -> dict[str, int]:
    """Make the tables of users, recent activities and futures; the notes."""
    database.sql(f"""
        CREATE OR REPLACE TABLE {name}_users AS
        SELECT user, count(*) AS activities, count(DISTINCT named) AS names FROM {name}_log
        GROUP BY user HAVING count(*) >= {kept.least}
    """)
    [(users, fewer, largest)] = database.sql(f"""
        SELECT count(*), count(*) FILTER (activities < {kept.least}),
            coalesce(max(activities), 0)
        FROM (SELECT count(*) AS activities FROM {name}_log GROUP BY user)
    """).fetchall()
    if users == fewer:
        raise DataError(
            f"no user has {kept.least} activities",
            where=where,
            found=f"{users:,} users; the most activities of one are {largest:,}" + _listed(earlier),
            expected=f"a user with at least {kept.least} activities that can be used",
            hint=f"--set min_activities={largest}"
            if largest > 1
            else "give data in which somebody has done more",
        )
    database.sql(f"""
        CREATE OR REPLACE TABLE {name}_recent AS
        SELECT user, time, thing,
            row_number() OVER (PARTITION BY user ORDER BY time DESC, row DESC) AS back
        FROM {name}_log SEMI JOIN {name}_users USING (user) QUALIFY back <= {kept.most}
    """)
    by_chance = f"arg_min(back, stable_rank(user || ' ' || back, {kept.seed}))"
    database.sql(f"""
        CREATE OR REPLACE TABLE {name}_future AS
        SELECT user, {by_chance if kept.last == "any_tied" else "min(back)"} AS back,
            count(*) AS tied
        FROM {name}_recent SEMI JOIN (
            SELECT user, max(time) AS time FROM {name}_recent GROUP BY user
        ) USING (user, time) GROUP BY user
    """)
    [(cut, tied)] = database.sql(f"""
        SELECT count(*) FILTER (activities > {kept.most}), count(*) FILTER (tied > 1)
        FROM {name}_users JOIN {name}_future USING (user)
    """).fetchall()
    return {
        f"users with fewer than {kept.least} activities, left out": fewer,
        f"users cut to their last {kept.most} activities": cut,
        "users with several last activities at one time": tied,
    }


def _askable(
    database: Database, name: str, *, names: int, categories: Sequence[str]
) -> tuple[dict[str, tuple[int, ...]], int]:
    """The users with four wrong options for each question, and the number of other users."""
    found = database.sql(f"""
        SELECT user, categories, {names} - names >= {WRONG}
        FROM {name}_users JOIN {name}_future USING (user) JOIN {name}_recent USING (user, back)
        JOIN {name}_things USING (thing) ORDER BY user
    """).fetchall()
    numbers = {category: number for number, category in enumerate(categories)}
    users = {
        user: tuple(numbers[category] for category in own)
        for user, own, is_enough in found
        if is_enough and len(numbers) - len(own) >= WRONG
    }
    return users, len(found) - len(users)
