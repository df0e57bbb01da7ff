"""Builds groups from a review log: reads, filters, draws, writes and reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from harness.analysis.tool_report import settings_without, write_json
from harness.base.errors import UsageError
from harness.base.hashing import stable_int
from harness.contracts.report import Report, Sheet
from harness.runs.atomic_files import atomic_writer, make_folder
from harness_perrecbench.data.layout import ALWAYS, PUBLISHED
from harness_perrecbench.grouping.pool import Candidate, Histories, Pool, find
from harness_perrecbench.grouping.reading import (
    ALL,
    UNIT,
    Log,
    Settings,
    described,
    read,
    review_files,
    titled,
)
from harness_perrecbench.records import MEMBERS, Level

if TYPE_CHECKING:
    import numpy as np

OUT = "--out"
"""The option with the folder of the files."""

RECORD = "groups.json"
"""The file with the report, in that folder."""

DRAWN = "drawn_behavior.json"
"""Behaviours that the tool drew, in place of the published list."""


def run(settings: Settings) -> Report:
    """Write the groups of a log in the published layout, and report what each rule left."""
    check_empty(settings.out)
    titles = titled(settings.meta)
    log = read(settings)
    pool = find(log, titles, settings)
    del titles
    words = Words(log=log, past=pool.histories, strict=settings.strict)
    made = draw(pool, log, settings)
    alone = behaviours(pool.active, settings)
    users = {
        name: _users(drawn, pool, alone if name == ALL else []) for name, drawn in made.items()
    }
    shown = {item for every in users.values() for user in every for item in words.rated(user)}
    items = described(settings.meta, shown)
    write_list(folder_of(settings.out, ALL) / DRAWN, map(words.behaviour, alone))
    for name, drawn in made.items():
        place = folder_of(settings.out, name)
        _write_folder(place, drawn, users[name], words=words, items=items)
    written = [one for drawn in made.values() for one in drawn]
    write_json(settings.out / RECORD, account(log, pool, written, settings), option=OUT)
    left = pool.left.sheet(
        "What each rule leaves",
        notes=("each item that is left at the end has one group per level",),
    )
    groups = Sheet(
        title="Groups written",
        columns=("folder", "level", "to test", "held out"),
        rows=tuple(tuple(one.counts().values()) for one in written),
    )
    return Report(sheets=(left, groups), notes=notes(log, written, settings))


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The groups of a level in a folder: items, each with the ratings of its drawn users."""

    folder: str
    level: Level
    test: list[tuple[str, list[int]]]
    held_out: list[tuple[str, list[int]]]

    def counts(self) -> dict[str, str | int]:
        """The number of groups in each split, with folder and level."""
        split = {"test": len(self.test), "held_out": len(self.held_out)}
        return {"folder": self.folder, "level": self.level, **split}


def draw(pool: Pool, log: Log, settings: Settings) -> dict[str, list[Drawn]]:
    """The groups of each level in the folder of all items and in one per domain.

    Test items of one folder are held out of all others. Each level draws its own users.
    """

    def place(one: Candidate) -> int:
        return stable_int("test", settings.seed, log.items[one.item])

    def groups(own: Iterable[Candidate], level: Level) -> list[tuple[str, list[int]]]:
        return [
            (log.items[one.item], _of_level(one, level, log, pool.histories, settings))
            for one in own
            if len(one.rows) >= MEMBERS[level]
        ]

    folders = {ALL: pool.candidates}
    for number, domain in enumerate(log.domains):
        folders[domain] = [one for one in pool.candidates if log.domain_of[one.item] == number]
    tests = {}
    for name, own in folders.items():
        most = settings.test_items if name == ALL else settings.domain_items
        tests[name] = {one.item for one in sorted(own, key=place)[:most]}
    tested = set[int]().union(*tests.values())
    return {
        name: [
            Drawn(
                folder=name,
                level=level,
                test=groups((one for one in own if one.item in tests[name]), level),
                held_out=groups((one for one in own if one.item not in tested), level),
            )
            for level in MEMBERS
        ]
        for name, own in folders.items()
    }


def _of_level(
    candidate: Candidate, level: Level, log: Log, past: Histories, settings: Settings
) -> list[int]:
    """The ratings that a level draws of an item, in random order."""
    item = log.items[candidate.item]

    def place(row: int) -> int:
        return stable_int("level", settings.seed, level, item, log.users[past.user[row]])

    return sorted(candidate.rows, key=place)[: MEMBERS[level]]


def behaviours(active: np.ndarray, settings: Settings) -> list[int]:
    """A random choice of the ratings with a long enough history, each at most once, in order."""
    rng = Random(stable_int("behaviours", settings.seed))
    wanted = min(settings.behaviours, len(active))
    if wanted * 2 > len(active):
        ranked = sorted((rng.random(), row) for row in active.tolist())
        return sorted(row for _, row in ranked[:wanted])
    places: set[int] = set()
    while len(places) < wanted:
        places.add(int(rng.random() * len(active)))
    return [int(active[place]) for place in sorted(places)]


@dataclass(frozen=True, kw_only=True)
class Words:
    """The ratings of all users, in the format of the published files."""

    log: Log
    past: Histories
    strict: bool

    def members(self, rows: list[int]) -> list[dict[str, Any]]:
        import numpy as np

        averages = self.past.averages(np.array(rows), strict=self.strict).tolist()
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
        return {
            "user_id": self.log.users[self.past.user[row]],
            **self._row(row),
            "history_len": self._earlier(row),
        }

    def history(self, user: int) -> list[dict[str, Any]]:
        """A user's ratings, oldest first."""
        return [self._row(row) for row in self._rows(user)]

    def rated(self, user: int) -> list[str]:
        return [self.log.items[self.past.item[row]] for row in self._rows(user)]

    def _row(self, row: int) -> dict[str, Any]:
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
    """The users whose histories a folder needs, in the order of names."""
    rows = {row for one in drawn for _, rows in (*one.test, *one.held_out) for row in rows}
    return sorted({int(pool.histories.user[row]) for row in rows.union(alone)})


def _write_folder(
    place: Path, every: list[Drawn], users: list[int], *, words: Words, items: Mapping[str, Any]
) -> None:
    """Write the groups of a folder with their histories and items."""
    for drawn in every:
        for held_out, groups in ((False, drawn.test), (True, drawn.held_out)):
            if groups:
                write_object(
                    place / groups_file(drawn.level, held_out=held_out),
                    ((item, [words.members(rows)]) for item, rows in groups),
                )
    write_object(
        place / ALWAYS["histories"],
        ((words.log.users[user], words.history(user)) for user in users),
    )
    shown = sorted({item for user in users for item in words.rated(user)})
    write_object(place / ALWAYS["items"], ((item, items[item]) for item in shown))


def notes(log: Log, written: Sequence[Drawn], settings: Settings) -> tuple[str, ...]:
    found = [f"written: {settings.out}, with a report in {RECORD}"]
    ratings = "earlier ratings" if settings.strict else "whole histories, with the rating itself"
    found.append(f"averages and relative ratings: of a user's {ratings}")
    if log.left_out:
        found.append(f"{log.left_out} rows without id, time or rating from 1 to 5 were left out")
    for one in written:
        name = f"{one.level} in {one.folder}"
        if not one.test and not one.held_out:
            found.append(f"{name}: no files, because no item has enough users")
        elif not one.held_out:
            found.append(f"{name}: no held-out groups, because every item is a test item")
    return tuple(found)


def account(log: Log, pool: Pool, written: Sequence[Drawn], settings: Settings) -> dict[str, Any]:
    """The report as a JSON value, with the settings; files appear by name, without their folder."""
    reviews = [{"file": path.name, "domain": domain} for domain, path in review_files(settings)]
    return {
        "reviews": sorted(reviews, key=lambda one: (one["file"], one["domain"] or "")),
        "meta": sorted(path.name for path in settings.meta),
        "settings": settings_without(settings, "reviews", "domains", "meta", "out"),
        "time_unit": "seconds" if log.ticks == 1 else "milliseconds",
        "rows_left_out": log.left_out,
        "rules": pool.left.json(),
        "groups": [one.counts() for one in written],
    }


def groups_file(level: str, *, held_out: bool) -> str:
    """The name of the file with the groups of a level."""
    return PUBLISHED["held_out" if held_out else "test"].format(level=level)


def folder_of(root: Path, name: str) -> Path:
    """The folder for the files of a domain, or of `all` domains."""
    return root / name / f"{name}-processed"


def check_empty(folder: Path) -> None:
    """Raise UsageError unless the folder is empty or does not exist."""
    there = [folder.name] if folder.exists() and not folder.is_dir() else []
    if folder.is_dir():
        there = sorted(path.name for path in folder.iterdir())
    if there:
        raise UsageError(
            "the folder for the groups is not empty",
            where=str(folder),
            found=", ".join(there[:5]),
            expected="--out: an empty folder, or one that does not exist yet",
        )


def write_object(file: Path, entries: Iterable[tuple[str, Any]]) -> None:
    """Write one JSON object, one entry per line."""
    encode = msgspec.json.encode
    _write(file, b"{", (encode(key) + b": " + encode(value) for key, value in entries), b"}")


def write_list(file: Path, values: Iterable[Any]) -> None:
    """Write one JSON array, one value per line."""
    _write(file, b"[", map(msgspec.json.encode, values), b"]")


def _write(file: Path, start: bytes, lines: Iterable[bytes], end: bytes) -> None:
    make_folder(file.parent, option=OUT)
    with atomic_writer(file, option=OUT) as stream:
        stream.write(start)
        for number, line in enumerate(lines):
            stream.write(b",\n" + line if number else line)
        stream.write(end + b"\n")
