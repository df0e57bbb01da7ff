"""The users, ratings and movies of MovieLens 1M."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from harness import DataError
from harness_behaviour.building.draws import who_has
from harness_behaviour.building.log import Log, check_inventory, groups_of
from harness_behaviour.records import PROXIES

if TYPE_CHECKING:
    from harness.contracts.dataset import Database, Table
    from harness_behaviour.records import Proxy

TABLES = ("users", "ratings", "movies")

LEAST_TOGETHER = 30
"""How many users share age, gender and occupation at least."""

AGES = {
    "1": "Under 18",
    "18": "18-24",
    "25": "25-34",
    "35": "35-44",
    "45": "45-49",
    "50": "50-55",
    "56": "56+",
}
GENDERS = {"F": "Female", "M": "Male"}
OTHER = "other"
OCCUPATIONS = (
    OTHER, "academic/educator", "artist", "clerical/admin", "college/grad student",
    "customer service", "doctor/health care", "executive/managerial", "farmer", "homemaker",
    "K-12 student", "lawyer", "programmer", "retired", "sales/marketing", "scientist",
    "self-employed", "technician/engineer", "tradesman/craftsman", "unemployed", "writer",
)  # fmt: skip
"""The labels of the readme of MovieLens 1M."""

CODES = {
    "age": AGES,
    "gender": GENDERS,
    "occupation": {str(code): label for code, label in enumerate(OCCUPATIONS)},
}


class Demography(NamedTuple):
    """What is known of a user, in the order in which prompts say it."""

    age: str
    gender: str
    occupation: str


def read(users: Table, ratings: Table, movies: Table, database: Database) -> Log:
    """The log of MovieLens; DataError for a user, a movie or a rating that cannot be used."""
    everybody = demographies(users)
    titles = titles_of(movies)
    check_inventory(len(titles), where="the table 'movies'")
    check_known(ratings, database)
    inventory = {movie: number for number, movie in enumerate(titles)}
    together = Counter(everybody.values())
    kept = {
        user: own
        for user, own in everybody.items()
        if own.occupation != OTHER and together[own] >= LEAST_TOGETHER
    }
    pairs = database.sql('SELECT DISTINCT "user", movie FROM ratings ORDER BY ALL').fetchnumpy()
    [(rows,)] = database.sql("SELECT count(*) FROM ratings").fetchall()
    active = sorted(kept.keys() & set(pairs["user"].tolist()))
    other = sum(own.occupation == OTHER for own in everybody.values())
    small = len(everybody) - len(kept) - other
    if not active:
        raise DataError(
            "no user is left to build prompts of",
            where="the tables 'users' and 'ratings'",
            found=f"{other:,} users of occupation '{OTHER}', {small:,} of combinations of age, "
            f"gender and occupation below {LEAST_TOGETHER} users (the largest of all has "
            f"{max(together.values(), default=0):,}), {len(kept):,} without a rating",
            expected=f"a combination of {LEAST_TOGETHER} users: all of users.dat, not a part of it",
        )
    numbers = {user: number for number, user in enumerate(active)}
    of_users = np.array([numbers.get(user, -1) for user in pairs["user"].tolist()], dtype=np.int64)
    of_items = np.array([inventory[movie] for movie in pairs["movie"].tolist()], dtype=np.int64)
    there = of_users >= 0
    had = who_has(of_users[there], of_items[there], of_users=len(active), inventory=len(titles))
    demography = [kept[user] for user in active]
    shown: dict[Proxy, tuple[str, ...]] = {"none": (), "all": Demography._fields}
    values = {
        proxy: [
            tuple(getattr(one, name) for name in shown.get(proxy, (proxy,))) for one in demography
        ]
        for proxy in PROXIES["movies"]
    }
    texts = tuple(titles.values())
    return Log(
        domain="movies",
        had=had,
        groups={
            proxy: groups_of(own, proxy=proxy, where="the tables 'users' and 'ratings'")
            for proxy, own in values.items()
        },
        titles=lambda items: {item: texts[item] for item in items},
        notes={
            "users of occupation 'other', left out": other,
            f"users of combinations below {LEAST_TOGETHER} users, left out": small,
            "users without a rating, left out": len(kept) - len(active),
            "repeated ratings of a movie by a user, counted once": rows - len(of_users),
        },
    )


def demographies(users: Table) -> dict[str, Demography]:
    """The demography of each user; DataError for an unknown code or a user given twice."""
    found: dict[str, Demography] = {}
    for row, cells in users.rows():
        if cells["user"] in found:
            raise users.bad(row, "user", cells["user"], "each user once")
        for column, codes in CODES.items():
            if cells[column] not in codes:
                raise users.bad(row, column, cells[column], f"one of: {', '.join(codes)}")
        found[cells["user"]] = Demography(
            *(codes[cells[column]] for column, codes in CODES.items())
        )
    return found


def titles_of(movies: Table) -> dict[str, str]:
    """The title of each movie, in the order of the movies' ids; DataError for one given twice."""
    found, ids = dict[str, str](), dict[str, str]()
    for row, cells in movies.rows():
        title = " ".join(cells["title"].split())
        if not title.isascii() and _is_utf8(cells["title"]):
            raise movies.bad(row, "title", title, "a file in ISO-8859-1, as MovieLens 1M is, not "
                             "in UTF-8: iconv -f UTF-8 -t ISO-8859-1 movies.dat")  # fmt: skip
        if cells["movie"] in found:
            raise movies.bad(row, "movie", cells["movie"], "each movie once")
        if title in ids:
            raise movies.bad(row, "title", title, f"a title of its own: movie {ids[title]} has it")
        found[cells["movie"]] = title
        ids[title] = cells["movie"]
    return {movie: found[movie] for movie in sorted(found)}


def _is_utf8(title: str) -> bool:
    """Whether the bytes that were read as ISO-8859-1 are UTF-8, which real titles never are."""
    try:
        title.encode("iso-8859-1").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def check_known(ratings: Table, database: Database) -> None:
    """Raise DataError for the first rating of a user or movie that the data does not describe."""
    for column, table in {"user": "users", "movie": "movies"}.items():
        unknown = database.sql(
            f'SELECT row, "{column}" FROM ratings ANTI JOIN {table} USING ("{column}") '
            "ORDER BY row LIMIT 1"
        ).fetchall()
        for row, value in unknown:
            raise ratings.bad(row, column, value, f"a {column} in the table '{table}'")
