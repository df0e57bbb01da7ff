"""Reads the published tables: histories, items, profiles, and groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from harness_perrecbench.data.layout import GROUPS, FoundGroup, GroupUser, Stars, wrong_size
from harness_perrecbench.data.table_cell import TableCell
from harness_perrecbench.ranking import DIGITS, ranks_of
from harness_perrecbench.records import MEMBERS, Behaviour, Options, Thing

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset, Table


class Bought(msgspec.Struct, frozen=True, gc=False):
    """One behaviour of a history: an item and the user's rating."""

    parent_asin: str
    rating: Stars


class _User(GroupUser, frozen=True):
    history_len: Annotated[int, msgspec.Meta(ge=0)]
    avg_rating: Stars


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question of the data about a user and an item.

    `before` is the number of behaviours before the query, `rating` the rating in the group or list,
    `relative` the relative rating in the group, and `spot` the place in the file.
    """

    user: str
    item: str
    before: int
    rating: float
    relative: float | None = None
    spot: TableCell


@dataclass(frozen=True, kw_only=True)
class AskedGroup(FoundGroup):
    """A group of users and one item; the item's id is the group's."""

    asked: tuple[Asked, ...]


@dataclass(frozen=True, kw_only=True)
class History:
    """All ratings of a user, oldest first."""

    bought: list[Bought]
    spot: TableCell


@dataclass(frozen=True, kw_only=True)
class Histories:
    """The history of every user, and the mean of all ratings."""

    of: Mapping[str, History]
    average: float

    def raters(self, items: Iterable[str]) -> dict[str, list[tuple[str, float]]]:
        """The users and ratings of each of these items."""
        raters: dict[str, list[tuple[str, float]]] = {item: [] for item in items}
        for user, history in self.of.items():
            for one in history.bought:
                if one.parent_asin in raters:
                    raters[one.parent_asin].append((user, one.rating))
        return raters


def read_rows(table: Table) -> list[tuple[int, dict[str, Any]]]:
    """All rows of a small table, for `once`."""
    return list(table.rows())


def read_histories(table: Table) -> Histories:
    """All histories of a table; every rating is checked."""
    of = {}
    for row, values in table.rows():
        spot = TableCell(table=table, row=row, column="history")
        of[values["user"]] = History(bought=spot.read(values["history"], Bought), spot=spot)
    totals = [fsum([one.rating for one in history.bought]) for history in of.values()]
    number = sum(len(history.bought) for history in of.values())
    return Histories(of=of, average=fsum(totals) / max(number, 1))


@dataclass(frozen=True, kw_only=True)
class Things:
    """The items of a table, checked when they are looked up: row number, title and author."""

    table: Table
    rows: Mapping[str, tuple[int, Any, Any]]
    _things: dict[str, Thing] = field(default_factory=dict)

    def of(self, item: str, *, at: TableCell) -> Thing:
        """The item of an id that the data names at a spot."""
        if item in self._things:
            return self._things[item]
        if item not in self.rows:
            raise at.bad(item, "an item in the table 'items'")
        row, title, author = self.rows[item]
        if not isinstance(title, str):
            raise self.table.bad(row, "about", {"title": title}, "a title that is a string")
        name = author.get("name") if isinstance(author, dict) else None
        thing = Thing(title=title, author=name if isinstance(name, str) else None)
        return self._things.setdefault(item, thing)

    def behaviour(self, bought: Bought, *, at: TableCell) -> Behaviour:
        """A behaviour for prompts, from a history at a spot."""
        thing = self.of(bought.parent_asin, at=at)
        return Behaviour(title=thing.title, author=thing.author, rating=bought.rating)


def read_things(table: Table) -> Things:
    """All items of a table, with title and author only."""
    rows = {
        values["item"]: (row, values["about"].get("title"), values["about"].get("author"))
        for row, values in table.rows()
    }
    return Things(table=table, rows=rows)


def read_profiles(table: Table) -> dict[str, str]:
    """The profile of each user with one."""
    return {
        values["user"]: values["profile"]
        for _, values in table.rows()
        if (values["profile"] or "").strip()
    }


def first_groups(dataset: Dataset, options: Options) -> dict[str, AskedGroup]:
    """The first group of each item in the task's split, by item; the others are noted."""
    first: dict[str, AskedGroup] = {}
    later = empty = 0
    for item, groups, spot in _rows_of_groups(dataset, options.split):
        if groups:
            first[item] = _group(item, groups[0], spot, options)
        empty += not groups
        later += len(groups[1:])
    dataset.note("items left out as they have no group", empty)
    dataset.note("groups left out as not the first of their item", later)
    return first


def held_out_groups(dataset: Dataset, options: Options) -> Iterator[AskedGroup]:
    """All held-out groups of all items, in the order of the table."""
    for item, groups, spot in _rows_of_groups(dataset, "held_out"):
        for group in groups:
            yield _group(item, group, spot, options)


def _rows_of_groups(dataset: Dataset, split: str) -> Iterator[tuple[str, list[Any], TableCell]]:
    table = dataset.table(GROUPS[split])
    for row, values in dataset.once(GROUPS[split], read_rows):
        spot = TableCell(table=table, row=row, column="groups")
        yield values["item"], values["groups"], spot


def _group(item: str, group: Any, spot: TableCell, options: Options) -> AskedGroup:
    users = spot.read(group, _User)
    ids = [user.user_id for user in users]
    if len(users) != MEMBERS[options.level]:
        expected = f"{MEMBERS[options.level]} users in each group of level {options.level}"
        raise wrong_size(spot.bad(ids, expected), len(users), options)
    if len(set(ids)) < len(ids):
        raise spot.bad(ids, "each user of a group once")
    return AskedGroup(
        id=item,
        about=item,
        users=frozenset(ids),
        asked=tuple(
            Asked(
                user=user.user_id,
                item=item,
                before=user.history_len,
                rating=round(user.relative_rating + user.avg_rating, 6),
                relative=user.relative_rating,
                spot=spot,
            )
            for user in users
        ),
        ranks=ranks_of([round(user.relative_rating, DIGITS) for user in users]),
    )
