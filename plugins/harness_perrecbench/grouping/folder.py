"""A folder of groups in the published layout, read to be described."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.errors import DataError
from harness_perrecbench.grouping.writing import HISTORIES, ITEMS, folder_of, groups_file
from harness_perrecbench.records import MEMBERS, Level

T = TypeVar("T")


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
    """The groups of a domain in a folder of data, or of the folder that holds the files itself."""
    place = folder_of(data, domain)
    if not place.is_dir():
        place = data
    histories = _decoded(place / HISTORIES, dict[str, list[Rating]])
    items = _decoded(place / ITEMS, dict[str, dict[str, Any]])
    splits = []
    for held_out in (False, True):
        files = {level: place / groups_file(level, held_out=held_out) for level in MEMBERS}
        splits.append(
            [
                one
                for level, file in files.items()
                if file.exists()
                for one in _reviews(file, level, histories)
            ]
        )
    test, held_out_reviews = splits
    if not test and not held_out_reviews:
        raise DataError(
            "the folder holds no groups",
            where=str(place),
            expected=f"files such as {groups_file('easy', held_out=False)}",
        )
    return Groups(histories=histories, items=items, test=test, held_out=held_out_reviews)


def _reviews(file: Path, level: Level, histories: dict[str, list[Rating]]) -> Iterator[Review]:
    for item, groups in _decoded(file, dict[str, list[list[User]]]).items():
        for user in groups[0] if groups else ():
            if user.user_id not in histories:
                raise DataError(
                    "a user of a group has no history",
                    where=f"{file}, item {item}",
                    found=user.user_id,
                    expected=f"a user of {HISTORIES}",
                )
            rating = _rated(histories[user.user_id], item, user.history_len)
            yield Review(level=level, item=item, user=user, rating=rating)


def _rated(history: list[Rating], item: str, before: int) -> Rating | None:
    """The rating of the item: that which follows the history shown, else the first there is."""
    later = (one for one in history[before:] if one.parent_asin == item)
    return next(later, next((one for one in history if one.parent_asin == item), None))


def _decoded(file: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except OSError as error:
        raise DataError(
            "the file cannot be read", where=str(file), found=error.strerror or str(error)
        ) from error
    except msgspec.MsgspecError as error:
        raise DataError(
            "the file is not in the published layout", where=str(file), found=str(error)
        ) from error
