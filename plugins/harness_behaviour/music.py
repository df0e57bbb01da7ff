"""The profiles and listening events of last.fm 1K."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from harness import DataError
from harness_behaviour.building.draws import who_has
from harness_behaviour.building.log import Log, check_inventory, groups_of
from harness_behaviour.records import PROXIES

if TYPE_CHECKING:
    from harness.contracts.dataset import Database, Table
    from harness_behaviour.building.draws import Numbers
    from harness_behaviour.records import Proxy, Recipe

CONTINENTS = ("Europe", "North America", "South America", "United Kingdom")
"""The continents whose users are kept; the United Kingdom is one by itself."""

GENDERS = {"f": "Female", "m": "Male"}


class Profile(NamedTuple):
    """What is known of a listener; None for what is not."""

    gender: str | None
    country: str | None
    continent: str | None


def read(profile: Table, events: Table, database: Database, recipe: Recipe) -> Log:
    """The log of last.fm; DataError for a profile or an event that cannot be used."""
    profiles = read_profiles(profile)
    plays = _Plays(database, recipe.music_item)
    plays.check_known(events)
    check_inventory(plays.inventory, where="the table 'events'")
    near = [user for user, own in profiles.items() if own.continent in (*CONTINENTS, None)]
    kept = sorted(user for user in near if plays.counts[user] >= recipe.min_interactions)
    if not kept:
        raise DataError(
            f"no user has {recipe.min_interactions:,} interactions",
            where="the table 'events'",
            found=f"the most of one user are {max(plays.counts.values(), default=0):,}",
            expected=f"a user of {', '.join(CONTINENTS)} with {recipe.min_interactions:,}",
            hint="--set min_interactions=N",
        )
    users, items = plays.of(kept)
    demography = [profiles[user] for user in kept]
    values = _values(demography, Counter(own.country for own in profiles.values()), recipe)
    where = "the tables 'profile' and 'events'"
    unknown = "out of the proxies that need it"
    return Log(
        domain="music",
        had=who_has(users, items, of_users=len(kept), inventory=plays.inventory),
        groups={
            proxy: groups_of(values[proxy], proxy=proxy, where=where) for proxy in PROXIES["music"]
        },
        titles=plays.titles,
        notes={
            "users of another continent, left out": len(profiles) - len(near),
            f"users with fewer than {recipe.min_interactions:,} interactions, left out": len(near)
            - len(kept),
            f"users of unknown gender, {unknown}": sum(one.gender is None for one in demography),
            f"users of unknown country, {unknown}": sum(one.country is None for one in demography),
            f"events without a name of the {recipe.music_item}, left out": plays.nameless,
        },
    )


def read_profiles(profile: Table) -> dict[str, Profile]:
    """The profile of each user; DataError for an unknown gender or country, or a user twice."""
    continents = continent_of()
    found: dict[str, Profile] = {}
    for row, cells in profile.rows():
        user, gender, country = cells["user"], cells["gender"], cells["country"]
        if user in found:
            raise profile.bad(row, "user", user, "each user once")
        if gender is not None and gender not in GENDERS:
            raise profile.bad(row, "gender", gender, f"one of: {', '.join(GENDERS)}, or nothing")
        if country is not None and country not in continents:
            raise profile.bad(row, "country", country, "a country as last.fm writes it, or nothing")
        found[user] = Profile(
            gender=GENDERS[gender] if gender else None,
            country=country,
            continent=continents[country] if country else None,
        )
    return found


def continent_of() -> dict[str, str]:
    """The continent of each country."""
    written = (Path(__file__).parent / "continents.json").read_bytes()
    continents = msgspec.json.decode(written, type=dict[str, list[str]])
    return {country: name for name, countries in continents.items() for country in countries}


def _values(
    demography: Sequence[Profile], users: Mapping[str | None, int], recipe: Recipe
) -> dict[Proxy, list[tuple[str, ...] | None]]:
    """The values of each user in each proxy; `users` of a country, whatever these listened to."""
    large = {country for country, many in users.items() if many >= recipe.min_users_per_country}
    return {
        "none": [() for _ in demography],
        "country": [_known(one.country if one.country in large else None) for one in demography],
        "continent": [_known(one.continent) for one in demography],
        "gender": [_known(one.gender) for one in demography],
        "gender_continent": [_known(one.gender, one.continent) for one in demography],
    }


def _known(*values: str | None) -> tuple[str, ...] | None:
    """The values, or None if one of them is unknown."""
    known = tuple(one for one in values if one is not None)
    return known if len(known) == len(values) else None


class _Plays:
    """Who played which items, in tables of a database; items are numbered by their folded names.

    State: the tables, which are made at the start.
    """

    def __init__(self, database: Database, item: str) -> None:
        self._database = database
        self._plays, self._names = f"behaviour_{item}_plays", f"behaviour_{item}_names"
        columns = ("artist",) if item == "artist" else ("track", "artist")
        listed = ", ".join(columns)
        self._make(
            f"{self._plays}_written",
            f'SELECT "user", {listed}, count(*) AS times FROM events GROUP BY ALL',
        )
        # Names on one line, without control characters.
        tidied = ", ".join(
            rf"trim(regexp_replace({one}, '[\s\p{{Z}}\p{{C}}]+', ' ', 'g')) AS tidy_{one}"
            for one in columns
        )
        self._make(
            self._names,
            f"""
            SELECT {listed}, {" || ' — ' || ".join(f"tidy_{one}" for one in columns)} AS shown,
                times, (dense_rank() OVER (
                    ORDER BY {", ".join(f"lower(nfc_normalize(tidy_{one}))" for one in columns)}
                ) - 1)::INTEGER AS item
            FROM (
                SELECT {listed}, {tidied}, sum(times) AS times
                FROM {self._plays}_written GROUP BY {listed}
            ) WHERE {" AND ".join(f"tidy_{one} <> ''" for one in columns)}
            """,
        )
        self._make(
            self._plays,
            f"""
            SELECT "user", item, sum(written.times) AS times
            FROM {self._plays}_written AS written JOIN {self._names} USING ({listed})
            GROUP BY ALL
            """,
        )
        [(items,)] = database.sql(f"SELECT max(item) FROM {self._names}").fetchall()
        [(rows,)] = database.sql(f"SELECT sum(times) FROM {self._plays}_written").fetchall()
        counts = database.sql(f'SELECT "user", sum(times) FROM {self._plays} GROUP BY "user"')
        self.inventory = 0 if items is None else items + 1
        self.counts = Counter({user: int(times) for user, times in counts.fetchall()})
        self.nameless = int(rows) - sum(self.counts.values())

    def _make(self, table: str, query: str) -> None:
        self._database.sql(f"CREATE OR REPLACE TABLE {table} AS {query}")

    def check_known(self, events: Table) -> None:
        """Raise DataError for the first event of a user who has no profile."""
        unknown = f"""SELECT "user" FROM {self._plays}_written ANTI JOIN profile USING ("user")"""
        if self._database.sql(f"{unknown} LIMIT 1").fetchall():
            [(row, user)] = self._database.sql(
                f'SELECT row, "user" FROM events WHERE "user" IN ({unknown}) ORDER BY row LIMIT 1'
            ).fetchall()
            raise events.bad(row, "user", user, "a user in the table 'profile'")

    def of(self, users: Sequence[str]) -> tuple[Numbers, Numbers]:
        """The pairs of a user, by its place among those given, and an item."""
        found = self._database.sql(
            f"""
            SELECT place - 1 AS user_at, item
            FROM {self._plays} JOIN (
                SELECT unnest($users) AS "user", generate_subscripts($users, 1) AS place
            ) USING ("user")
            """,
            {"users": list(users)},
        ).fetchnumpy()
        return found["user_at"].astype(np.int64), found["item"].astype(np.int64)

    def titles(self, items: Sequence[int]) -> dict[int, str]:
        """The most frequent name of each item."""
        found = self._database.sql(
            f"""
            SELECT item, shown FROM (
                SELECT item, shown, sum(times) AS times FROM {self._names}
                WHERE item IN (SELECT unnest($items)) GROUP BY ALL
            ) QUALIFY row_number() OVER (PARTITION BY item ORDER BY times DESC, shown) = 1
            """,
            {"items": list(items)},
        )
        return dict(found.fetchall())
