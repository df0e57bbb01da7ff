"""A folder of groups in the published layout, read to be described."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness import DataError
from harness_perrecbench.data.layout import (
    ALWAYS,
    GROUPS,
    Spot,
    domains,
    open_levels,
    refuse_recorded,
)
from harness_perrecbench.grouping.settings import ALL
from harness_perrecbench.grouping.writing import groups_file

if TYPE_CHECKING:
    from harness import Dataset
    from harness.data import Table
    from harness_perrecbench.records import Level


class Rating(msgspec.Struct, frozen=True):
    """A rating of a history."""

    parent_asin: str
    rating: float
    timestamp: int | float | None = None


class User(msgspec.Struct, frozen=True):
    """A user of a group."""

    user_id: str
    history_len: int
    relative_rating: float
    avg_rating: float


@dataclass(frozen=True, kw_only=True)
class Review:
    """One user of one group, with what the user rated the item.

    `rating` is None where the history does not hold it.
    """

    level: Level
    item: str
    user: User
    rating: Rating | None

    @property
    def pair(self) -> tuple[str, str]:
        """What makes it the same review at another level."""
        return self.user.user_id, self.item


@dataclass(frozen=True, kw_only=True)
class Groups:
    """The first group of each item, by level, those to test and those held out apart."""

    histories: dict[str, list[Rating]]
    items: dict[str, dict[str, Any]]
    test: list[Review]
    held_out: list[Review]

    def text(self, item: str) -> str:
        """Title and author of an item, what a prompt shows of it."""
        told = self.items.get(item, {})
        author = told.get("author")
        name = author.get("name") if isinstance(author, dict) else author
        return "\n".join(str(part) for part in (told.get("title"), name) if part)


def read(data: Path, domain: str) -> Groups:
    """The groups in a folder of data, or of one domain in it: whatever `--data` takes."""
    from harness.plugin_manager import load_plugins

    place = _place(data, domain)
    datasets = open_levels(place, load_plugins())
    refuse_recorded(place, datasets, "what is described is taken from")
    if not any(split in one.tables for one in datasets.values() for split in GROUPS.values()):
        raise DataError(
            "the folder holds no groups",
            where=str(place),
            expected=f"files such as {groups_file('easy', held_out=False)}",
            hint=f"a domain in it: --domain {found[0]}" if (found := domains(place)) else None,
        )
    first = datasets["easy"]
    lacking = [file for table, file in ALWAYS.items() if table not in first.tables]
    if lacking:
        raise DataError(
            "the folder holds groups without what goes with them",
            where=str(place),
            found=f"no {', no '.join(lacking)}",
            expected=" and ".join(ALWAYS.values()),
        )
    histories = _histories(first.table("histories"))
    test, held_out = (
        [
            review
            for level, dataset in datasets.items()
            if table in dataset.tables
            for review in _reviews(dataset, table, level, histories)
        ]
        for table in (GROUPS["test"], GROUPS["held_out"])
    )
    items = {values["item"]: values["about"] for _, values in first.table("items").rows()}
    return Groups(histories=histories, items=items, test=test, held_out=held_out)


def _place(data: Path, domain: str) -> Path:
    """The folder of a domain: that given, where it is its own, or else one in it."""
    if domain == ALL or data.name in (domain, f"{domain}-processed"):
        return data
    if not (data / domain).is_dir():
        raise DataError(
            "the folder holds none of that domain",
            where=str(data),
            found=f"folders of the domains {', '.join(domains(data)) or 'none'}",
            expected=f"{domain}/{domain}-processed",
        )
    return data / domain


def _histories(table: Table) -> dict[str, list[Rating]]:
    return {
        values["user"]: Spot(table=table, row=row, column="history").read(values["history"], Rating)
        for row, values in table.rows()
    }


def _reviews(
    dataset: Dataset, name: str, level: Level, histories: dict[str, list[Rating]]
) -> Iterator[Review]:
    table = dataset.table(name)
    for row, values in table.rows():
        spot = Spot(table=table, row=row, column="groups")
        for user in spot.read(values["groups"][0], User) if values["groups"] else ():
            if user.user_id not in histories:
                raise DataError(
                    "a user of a group has no history",
                    where=f"{dataset.path(name)}, item {values['item']}",
                    found=user.user_id,
                    expected=f"a user of {ALWAYS['histories']}",
                )
            rating = _rated(histories[user.user_id], values["item"], user.history_len)
            yield Review(level=level, item=values["item"], user=user, rating=rating)


def _rated(history: list[Rating], item: str, before: int) -> Rating | None:
    """The rating of the item: that which follows the history shown, else the first there is."""
    later = (one for one in history[before:] if one.parent_asin == item)
    return next(later, next((one for one in history if one.parent_asin == item), None))
