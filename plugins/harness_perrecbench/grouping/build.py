"""Builds groups from a review log: reads, filters, draws, writes and reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from harness.analysis.tool_report import check_empty, settings_without, write_json
from harness.base.hashing import stable_int
from harness.contracts.report import Report, Sheet
from harness_perrecbench.data.layout import ALWAYS, PUBLISHED, GroupUser
from harness_perrecbench.grouping.json_files import write_list, write_object
from harness_perrecbench.grouping.pool import Candidate, Pool, find
from harness_perrecbench.grouping.reading import ALL, UNIT, Log, Settings, read, review_files
from harness_perrecbench.records import MEMBERS, Level

OUT = "--out"
"""The option with the folder of the files."""

RECORD = "groups.json"
"""The file with the report, in that folder."""

DRAWN = "drawn_behavior.json"
"""Behaviours that the tool drew, in place of the published list."""

PAST = "past JOIN users USING (user_at) JOIN items USING (item_at)"
BATCH_USERS = 5_000


def run(settings: Settings) -> Report:
    """Write the groups of a log in the published layout, and report what each rule left."""
    check_empty(settings.out, "the folder for the groups", option=OUT)
    log = read(settings)
    pool = find(log, settings)
    made = draw(pool, log, settings)
    alone = behaviours(pool.active, log, settings)
    write_list(folder_of(settings.out, ALL) / DRAWN, alone, option=OUT)
    for name, drawn in made.items():
        users = {one["user_id"] for one in alone} if name == ALL else set()
        _write_folder(folder_of(settings.out, name), drawn, users, log)
    written = [one for drawn in made.values() for one in drawn]
    reviews = [{"file": path.name, "domain": domain} for domain, path in review_files(settings)]
    account = {
        "reviews": sorted(reviews, key=lambda one: (one["file"], one["domain"] or "")),
        "meta": sorted(path.name for path in settings.meta),
        "settings": settings_without(settings, "reviews", "domains", "meta", "out"),
        "time_unit": "seconds" if log.ticks == 1 else "milliseconds",
        "rows_left_out": log.left_out,
        "rules": pool.left.json(),
        "groups": [one.counts() for one in written],
    }
    write_json(settings.out / RECORD, account, option=OUT)
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
    """The groups of a level in a folder: items, each with its drawn users."""

    folder: str
    level: Level
    test: list[tuple[str, list[GroupUser]]]
    held_out: list[tuple[str, list[GroupUser]]]

    def counts(self) -> dict[str, str | int]:
        """The number of groups in each split, with folder and level."""
        split = {"test": len(self.test), "held_out": len(self.held_out)}
        return {"folder": self.folder, "level": self.level, **split}


def draw(pool: Pool, log: Log, settings: Settings) -> dict[str, list[Drawn]]:
    """The groups of each level in the folder of all items and in one per domain.

    Test items of one folder are held out of all others. Each level draws its own users.
    """

    def groups(own: Iterable[Candidate], level: Level) -> list[tuple[str, list[GroupUser]]]:
        found = []
        for one in own:
            place = partial(stable_int, "level", settings.seed, level, one.item)
            users = sorted(one.users, key=lambda user, place=place: place(user.user_id))
            if len(users) >= MEMBERS[level]:
                found.append((one.item, users[: MEMBERS[level]]))
        return found

    folders = {ALL: pool.candidates}
    for number, domain in enumerate(log.domains):
        folders[domain] = [one for one in pool.candidates if one.domain == number]
    tests = {}
    for name, own in folders.items():
        most = settings.test_items if name == ALL else settings.domain_items
        items = sorted((one.item for one in own), key=partial(stable_int, "test", settings.seed))
        tests[name] = set(items[:most])
    tested = set[str]().union(*tests.values())
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


def behaviours(active: int, log: Log, settings: Settings) -> list[dict[str, Any]]:
    """A random choice of the ratings with a long enough history, each at most once, in order."""
    rng = Random(stable_int("behaviours", settings.seed))
    wanted = min(settings.behaviours, active)
    if wanted * 2 > active:
        places = {
            place for _, place in sorted((rng.random(), place) for place in range(active))[:wanted]
        }
    else:
        places = set()
        while len(places) < wanted:
            places.add(int(rng.random() * active))
    drawn = log.database.sql(
        f"""
        WITH placed AS (
            SELECT *, row_number() OVER (ORDER BY user_at, time, item_at) - 1 AS place FROM active
        )
        SELECT users.name AS user_id, items.name AS parent_asin, rating / {UNIT} AS rating,
            time AS timestamp, earlier AS history_len
        FROM placed JOIN users USING (user_at) JOIN items USING (item_at)
        WHERE place IN (SELECT unnest($places::BIGINT[])) ORDER BY place
        """,
        {"places": sorted(places)},
    )
    return [dict(zip(drawn.columns, row, strict=True)) for row in drawn.fetchall()]


def _write_folder(place: Path, every: list[Drawn], users: set[str], log: Log) -> None:
    """Write the groups of a folder with the histories of their users and some others."""
    for drawn in every:
        for held_out, groups in ((False, drawn.test), (True, drawn.held_out)):
            users.update(user.user_id for _, group in groups for user in group)
            if groups:
                write_object(
                    place / groups_file(drawn.level, held_out=held_out),
                    ((item, [group]) for item, group in groups),
                    option=OUT,
                )
    write_object(place / ALWAYS["histories"], _histories(sorted(users), log), option=OUT)
    rated = f"SELECT items.name FROM {PAST} WHERE users.name IN (SELECT unnest($users::VARCHAR[]))"
    write_object(
        place / ALWAYS["items"], log.described(rated, {"users": sorted(users)}), option=OUT
    )


def _histories(users: list[str], log: Log) -> Iterator[tuple[str, msgspec.Raw]]:
    """The ratings of each of some users, oldest first; ratings at one time by the item's name."""
    for start in range(0, len(users), BATCH_USERS):
        found = log.database.sql(
            f"""
            SELECT users.name, to_json(list(
                {{parent_asin: items.name, rating: rating / {UNIT}, timestamp: time}}
                ORDER BY time, item_at
            ))
            FROM {PAST} WHERE users.name IN (SELECT unnest($users::VARCHAR[]))
            GROUP BY users.name ORDER BY users.name
            """,
            {"users": users[start : start + BATCH_USERS]},
        )
        for user, history in found.fetchall():
            yield user, msgspec.Raw(history.encode())


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


def groups_file(level: str, *, held_out: bool) -> str:
    """The name of the file with the groups of a level."""
    return PUBLISHED["held_out" if held_out else "test"].format(level=level)


def folder_of(root: Path, name: str) -> Path:
    """The folder for the files of a domain, or of `all` domains."""
    return root / name / f"{name}-processed"
