"""The histories of the people chosen, most recent first, and the pool of objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Any

import msgspec

from harness import DataError
from harness.base.hashing import digest
from harness_gistbench.log_index import IS_POSITIVE, LogIndex
from harness_gistbench.records import SIGNALS, PoolObject, Signal

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset
    from harness_gistbench.records import Options

TOGETHER = 20_000
"""Engagements that are read at once, of one user or several."""


class Engagement(msgspec.Struct, frozen=True, gc=False):
    """One thing that a person did."""

    object: str
    text: str
    signal: Signal


@dataclass(frozen=True, kw_only=True)
class Histories:
    """What people did, of the people chosen, and the objects that may be distractors.

    `signals` and `pool` are those of the whole data, the pool in the order of its ranks. `torn`
    objects have several texts, `without` are users without a positive engagement.

    State: `_near` are the histories that were read last.
    """

    users: Sequence[str]
    signals: tuple[Signal, ...]
    pool: tuple[PoolObject, ...]
    seed: int
    torn: int
    without: int
    _places: Mapping[str, int] = field(repr=False)
    _index: LogIndex = field(repr=False)
    _table: str = field(repr=False)
    _counts: Mapping[str, int] = field(repr=False)
    _own: Mapping[str, frozenset[str]] = field(repr=False)
    _near: dict[str, list[Engagement]] = field(repr=False, default_factory=dict)

    def history(self, user: str) -> list[Engagement]:
        """All engagements of a person, most recent first.

        Those of one time are in the order of the data, as are those without one, which come last.
        """
        if user not in self._near:
            self._read_from(user)
        return self._near[user]

    def own_of_pool(self, user: str) -> frozenset[str]:
        """The objects of the pool that a person engaged with."""
        return self._own.get(user, frozenset())

    def count(self, user: str) -> int:
        """How many engagements a person has."""
        return self._counts[user]

    def _read_from(self, user: str) -> None:
        """Reads the history of a user and those of the next ones, as many as are read at once."""
        first = self._places[user]
        sizes = accumulate(self._counts[one] for one in self.users[first : first + TOGETHER])
        many = max(1, sum(1 for _ in takewhile(lambda size: size <= TOGETHER, sizes)))
        self._near.clear()
        self._near.update((one, []) for one in self.users[first : first + many])
        rows = self._index.sql(
            f"SELECT place, object, text, signal FROM {self._table} "
            "WHERE place BETWEEN ? AND ? ORDER BY place, time DESC NULLS LAST, row",
            [first, first + many - 1],
        )
        for place, thing, text, code in rows:
            self._near[self.users[place]].append(Engagement(thing, text, SIGNALS[code]))


def gather(index: LogIndex, dataset: Dataset, options: Options) -> Histories:
    """The histories of the users that the run keeps, chosen from those with enough engagements."""
    least = options.min_engagements
    enough = index.column(f"SELECT user FROM {index.people} WHERE kept >= ?", [least])
    ordered = "engagements in the order of the data, as none has a time"
    oldest = "engagements without a time, taken as the oldest"
    facts = {
        "engagements left out for want of a rating": index.unrated,
        "engagements left out as their object has no text": index.unknown,
        ordered if index.untimed == index.engagements else oldest: index.untimed,
        f"users left out with fewer than {least} engagements": index.users - len(enough),
    }
    for fact, number in facts.items():
        dataset.note(fact, number)
    where = ", ".join(one.label for of in dataset.tables.values() for one in of.sources)
    [most] = index.column(f"SELECT max(kept) FROM {index.people}")
    if most and not enough:
        raise DataError(
            f"no user has {least} engagements, the fewest that task '{dataset.task}' takes",
            where=where,
            found=f"{index.users:,} users; the most engagements of one are {most:,}",
            hint=f"take users with fewer: --set min_engagements={most}",
        )
    users = dataset.choose(enough)
    if not index.positive:
        raise DataError(
            f"no interest can be verified with the data of task '{dataset.task}'",
            where=where,
            found=f"{index.engagements:,} engagements, and none of them positive",
            expected="engagements of the type explicit_positive or implicit_positive",
            hint="`harness data describe` shows the types of engagement that the data has",
        )
    given = index, tuple(users), options.pool, dataset.seed
    found: Histories = dataset.once(tuple(dataset.tables), histories_of, *given)
    fact = "users without a positive engagement, who score 0 whoever is asked"
    dataset.note(fact, found.without)
    dataset.note("objects with several texts, of which the first is taken", found.torn)
    return found


def histories_of(*given: Any) -> Histories:
    """The histories of these users, behind the tables that they are from."""
    *_, index, users, pool, seed = given
    table = f"histories_{digest([index.people, users, pool, seed])}"
    index.sql(
        f"CREATE TEMP TABLE {table} AS WITH chosen AS MATERIALIZED "
        "(SELECT unnest($1) AS user, unnest(range(len($1))) AS place) "
        f"SELECT place, row, time, object, text, signal FROM ({index.rows}) JOIN chosen "
        "USING (user) WHERE kept ORDER BY place",
        [list(users)],
    )
    things = index.pool(pool, seed=seed)
    counts = index.sql(
        f"SELECT place, count(*), count(*) FILTER ({IS_POSITIVE}) FROM {table} GROUP BY place"
    )
    [torn] = index.column(
        f"SELECT count(*) FROM {index.things} WHERE torn AND "
        f"(object IN (SELECT object FROM {table}) OR object IN (SELECT unnest($1)))",
        [list(things)],
    )
    own: dict[str, set[str]] = defaultdict(set)
    for place, thing in index.sql(
        f"SELECT DISTINCT place, object FROM {table} WHERE object IN (SELECT unnest($1))",
        [list(things)],
    ):
        own[users[place]].add(thing)
    return Histories(
        users=users,
        signals=index.signals,
        pool=tuple(PoolObject(*one) for one in things.items()),
        seed=seed,
        torn=torn,
        without=len(users) - sum(positive > 0 for _, _, positive in counts),
        _places={user: place for place, user in enumerate(users)},
        _index=index,
        _table=table,
        _counts={users[place]: count for place, count, _ in counts},
        _own={user: frozenset(things) for user, things in own.items()},
    )
