"""Builds groups from a review log: read, ruled, drawn, written, accounted for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.results.report import Report
from harness_perrecbench.grouping import writing
from harness_perrecbench.grouping.account import Written, account, notes, rules, written_groups
from harness_perrecbench.grouping.choosing import Drawn, behaviours, draw, folders
from harness_perrecbench.grouping.pool import Pool, find
from harness_perrecbench.grouping.reading import UNIT, Log, described, read, titled
from harness_perrecbench.grouping.settings import ALL, Settings

if TYPE_CHECKING:
    from harness_perrecbench.grouping.histories import Histories


def run(settings: Settings) -> Report:
    """Writes the groups of a log in the published layout, and tells what each rule left of it."""
    writing.refuse_full(settings.out)
    titles = titled(settings.meta)
    log = read(settings)
    pool = find(log, titles, settings)
    del titles
    words = Words(log=log, pool=pool, settings=settings)
    made = {
        folder.name: draw(folder, log, pool.histories, settings)
        for folder in folders(pool.candidates, log, settings)
    }
    alone = behaviours(pool.active, settings)
    users = {
        name: _users(drawn, pool, alone if name == ALL else []) for name, drawn in made.items()
    }
    shown = {item for every in users.values() for user in every for item in words.rated(user)}
    items = described(settings.meta, shown)
    writing.write_list(
        writing.folder_of(settings.out, ALL) / writing.DRAWN, map(words.behaviour, alone)
    )
    for name, drawn in made.items():
        place = writing.folder_of(settings.out, name)
        _write(place, drawn, users[name], words=words, items=items)
    written = [Written.of(name, drawn) for name, every in made.items() for drawn in every]
    writing.write_record(settings.out / writing.RECORD, account(log, pool, written, settings))
    return Report(
        sheets=(rules(pool.left), written_groups(written)),
        notes=notes(log, written, settings),
    )


@dataclass(frozen=True, kw_only=True)
class Words:
    """What a pool holds, in the words of the published files."""

    log: Log
    pool: Pool
    settings: Settings

    @property
    def past(self) -> Histories:
        """The histories of everybody."""
        return self.pool.histories

    def members(self, rows: list[int]) -> list[dict[str, Any]]:
        """The users of a group."""
        import numpy as np

        averages = self.past.averages(np.array(rows), strict=self.settings.strict).tolist()
        return [
            {
                "user_id": self.log.users[self.past.user[row]],
                "history_len": self._earlier(row),
                "relative_rating": self._rating(row) - average,
                "avg_rating": average,
            }
            for row, average in zip(rows, averages, strict=True)
        ]

    def behaviour(self, row: int) -> dict[str, Any]:
        """A rating that stands alone."""
        return {
            "user_id": self.log.users[self.past.user[row]],
            **self._told(row),
            "history_len": self._earlier(row),
        }

    def history(self, user: int) -> list[dict[str, Any]]:
        """What a user rated, oldest first."""
        return [self._told(row) for row in self._rows(user)]

    def rated(self, user: int) -> list[str]:
        """The items that a user rated."""
        return [self.log.items[self.past.item[row]] for row in self._rows(user)]

    def _told(self, row: int) -> dict[str, Any]:
        return {
            "parent_asin": self.log.items[self.past.item[row]],
            "rating": self._rating(row),
            "timestamp": int(self.past.time[row]),
        }

    def _rows(self, user: int) -> range:
        return range(int(self.past.starts[user]), int(self.past.starts[user + 1]))

    def _rating(self, row: int) -> float:
        return int(self.past.rating[row]) / UNIT

    def _earlier(self, row: int) -> int:
        return int(self.past.now[row] - self.past.starts[self.past.user[row]])


def _users(drawn: list[Drawn], pool: Pool, alone: list[int]) -> list[int]:
    """The users whose histories a folder needs, by name."""
    rows = {row for one in drawn for _, rows in (*one.test, *one.held_out) for row in rows}
    return sorted({int(pool.histories.user[row]) for row in rows.union(alone)})


def _write(
    place: Path, every: list[Drawn], users: list[int], *, words: Words, items: Mapping[str, Any]
) -> None:
    """Writes the groups of a folder with the histories and items that they name."""
    for drawn in every:
        for held_out, groups in ((False, drawn.test), (True, drawn.held_out)):
            if groups:
                writing.write_object(
                    place / writing.groups_file(drawn.level, held_out=held_out),
                    ((item, [words.members(rows)]) for item, rows in groups),
                )
    writing.write_object(
        place / writing.HISTORIES,
        ((words.log.users[user], words.history(user)) for user in users),
    )
    shown = sorted({item for user in users for item in words.rated(user)})
    writing.write_object(place / writing.ITEMS, ((item, items[item]) for item in shown))
