"""The options of Tasks 2 and 3, their cases, and the loading of these from curated data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harness import Item
from harness.base.errors import UsageError
from harness_horizon.catalogue.titles import cleaned, items_digest
from harness_horizon.curation.ledger import complete_manifest

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset, Table

MANY = 10
"""The queries that a prompt asks for, and the most items that a long horizon has."""

SEPARATOR = " <SEP> "
CUT = "users with cases whose oldest titles are left out of the prompt"
ALONE = "users held out with a single item: without a case"
NO_HISTORY = "users without an item before 2020: dropped"
NO_TITLE = "items of these users without a title: not asked for"

AtLeastOne = Annotated[int, Meta(ge=1)]


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a task file."""

    ask: Annotated[
        Literal["next", "long"],
        Meta(description="queries for the next item, or descriptions of the ten items from 2020"),
    ] = "next"
    setting: Annotated[
        Literal["1c", "1d"], Meta(description="users trained on (1c), or held out (1d)")
    ] = "1d"
    prompt: Annotated[
        Literal["paper", "code", "one"],
        Meta(description="the paper's, the layout of the authors' code, or one query alone"),
    ] = "paper"
    history_characters: Annotated[
        AtLeastOne, Meta(description="the longest history in a prompt; the oldest titles go first")
    ] = 24_000
    first_k: Annotated[
        AtLeastOne | None, Meta(description="the first items from 2020 that a user is asked for")
    ] = None
    merge: Annotated[
        Literal["round_robin", "published"],
        Meta(description="how what the queries find becomes one list; the README explains both"),
    ] = "round_robin"

    @property
    def wanted(self) -> int:
        """How many queries a whole reply has."""
        return 1 if self.prompt == "one" else MANY


class Asked(Item, frozen=True, kw_only=True):
    """What scores need of a case: the number of titles that its prompt shows."""

    shown: int


class Case(Asked, frozen=True, kw_only=True):
    """Item of the stage `generate`: titles, the oldest first, and those that are to be found."""

    history: tuple[str, ...]
    truths: tuple[str, ...]


@dataclass(frozen=True)
class TitleData:
    """The users with cases, read from the table at each pass; `items` is the catalogue's digest.

    With `from_2020` the targets begin in 2020, else behind a first item of any date.
    """

    table: Table
    users: frozenset[str]
    folder: Path
    items: str
    from_2020: bool

    def people(self) -> Iterator[tuple[str, list[str], int]]:
        """Each chosen user with cleaned titles ("" for none) and the place of the first target."""
        names = ("user_id", "titles", "first", "before")
        for batch in self.table.batches(*names):
            columns = (batch.columns[name] for name in names)
            for number, row in enumerate(zip(*columns, strict=True), batch.first):
                user, titles, first, before = row
                place = before if self.from_2020 else first
                if user in self.users and not 0 < place < len(titles):
                    raise self.table.bad(number, "first", place, "a target behind a history")
                if user in self.users:
                    yield user, [cleaned(title) for title in titles], place


def questions(_upstreams: Any, data: TitleData, options: Options) -> Iterator[Case]:
    """The items of the stage `generate`: the cases, user by user, oldest first."""
    for user, titles, first in data.people():
        for place, truths in targets(titles, first, options):
            name = user if options.ask == "long" else f"{user}/{place}"
            history = recent([one for one in titles[:place] if one], options.history_characters)
            if history:
                yield Case(id=name, user=user, shown=len(history), history=history, truths=truths)


def targets(
    titles: Sequence[str], first: int, options: Options
) -> list[tuple[int, tuple[str, ...]]]:
    """For each case of a user the place where its history ends, and the titles to be found."""
    asked = {place: title for place, title in enumerate(titles) if title and place >= first}
    if options.ask == "long":
        return [(first, tuple(dict.fromkeys(asked.values()))[:MANY])] if asked else []
    return [(place, (title,)) for place, title in asked.items()][: options.first_k]


def recent(titles: Sequence[str], most: int) -> tuple[str, ...]:
    """The latest titles that fit into so many characters; of the last one as much as fits.

    >>> recent(["tin pot", "red kite", "old map"], 22)
    ('red kite', 'old map')
    """
    kept: list[str] = []
    room = most
    for title in reversed(titles):
        if kept and len(title) > room:
            break
        kept.append(title[:room])
        room -= len(title) + len(SEPARATOR)
    return tuple(reversed(kept))


def load(dataset: Dataset, options: Options) -> TitleData:
    """The chosen users with cases; DataError if the data's build is not complete."""
    if options.ask == "long" and (options.prompt == "one" or options.first_k):
        raise UsageError(
            "a single query, and the first items alone, are asked for with the next item",
            found=f"ask=long with prompt=one or first_k in {dataset.task}",
            expected="ask=next, or neither",
        )
    folder = dataset.path("manifest").parent
    build = complete_manifest(folder)
    from_2020 = options.ask == "long" and not build.options.get("published")
    table = dataset.table(f"cases_{options.setting}")
    columns = (batch.columns for batch in table.batches("user_id", "before"))
    rows = [row for one in columns for row in zip(one["user_id"], one["before"], strict=True)]
    asked = [user for user, before in rows if before or not from_2020]
    users = frozenset(dataset.choose(asked))
    data = TitleData(table, users, folder, items_digest(folder), from_2020)
    without = cut = 0
    for _, titles, first in data.people():
        without += titles[first:].count("")
        end = max((place for place, _ in targets(titles, first, options)), default=0)
        shown = [one for one in titles[:end] if one]
        cut += recent(shown, options.history_characters) != tuple(shown)
    roles = build.totals.get("roles", {}) if options.setting == "1d" else {}
    held_out = roles.get("held_out", len(rows))
    notes = {ALONE: held_out - len(rows), NO_HISTORY: len(rows) - len(asked),
             NO_TITLE: without, CUT: cut}  # fmt: skip
    for fact, number in notes.items():
        dataset.note(fact, number)
    return data
