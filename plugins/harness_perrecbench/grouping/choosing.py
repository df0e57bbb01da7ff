"""Which items are tested and which held out, and which of their users each level asks about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from harness.hashing import stable_int
from harness_perrecbench.grouping.settings import ALL
from harness_perrecbench.records import MEMBERS, Level

if TYPE_CHECKING:
    import numpy as np

    from harness_perrecbench.grouping.histories import Histories
    from harness_perrecbench.grouping.pool import Candidate
    from harness_perrecbench.grouping.reading import Log
    from harness_perrecbench.grouping.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Folder:
    """The items of one folder, those to test and those held out, each in the order of names."""

    name: str
    test: list[Candidate]
    held_out: list[Candidate]


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The groups of a level in a folder: names of items with the ratings of the users drawn."""

    level: Level
    test: list[tuple[str, list[int]]]
    held_out: list[tuple[str, list[int]]]


def folders(candidates: list[Candidate], log: Log, settings: Settings) -> list[Folder]:
    """The folder of all items and one of each domain; what one tests, none holds out."""
    drawn = sorted(
        candidates, key=lambda one: stable_int("test", settings.seed, log.items[one.item])
    )
    tested = {ALL: drawn[: settings.test_items]}
    of_domain: dict[str, list[Candidate]] = {}
    for place, domain in enumerate(log.domains):
        of_domain[domain] = [one for one in drawn if log.domain_of[one.item] == place]
        tested[domain] = of_domain[domain][: settings.domain_items]
    tested_items = {one.item for test in tested.values() for one in test}
    return [
        Folder(
            name=name,
            test=_by_name(test),
            held_out=_by_name(
                one for one in of_domain.get(name, drawn) if one.item not in tested_items
            ),
        )
        for name, test in tested.items()
    ]


def draw(folder: Folder, log: Log, past: Histories, settings: Settings) -> list[Drawn]:
    """The groups of each level, which draws its users by itself."""

    def groups(candidates: list[Candidate], level: Level) -> list[tuple[str, list[int]]]:
        return [
            (log.items[one.item], _of_level(one, level, log, past, settings))
            for one in candidates
            if len(one.rows) >= MEMBERS[level]
        ]

    return [
        Drawn(level=level, test=groups(folder.test, level), held_out=groups(folder.held_out, level))
        for level in MEMBERS
    ]


def _of_level(
    candidate: Candidate, level: Level, log: Log, past: Histories, settings: Settings
) -> list[int]:
    """The ratings that a level draws of an item, in random order."""
    item = log.items[candidate.item]

    def place(row: int) -> int:
        return stable_int("level", settings.seed, level, item, log.users[past.user[row]])

    return sorted(candidate.rows, key=place)[: MEMBERS[level]]


def behaviours(active: np.ndarray, settings: Settings) -> list[int]:
    """So many of the ratings with enough of a history before them, each at most once, in order."""
    rng = Random(stable_int("behaviours", settings.seed))
    wanted = min(settings.behaviours, len(active))
    if wanted * 2 > len(active):
        ranked = sorted((rng.random(), row) for row in active.tolist())
        return sorted(row for _, row in ranked[:wanted])
    places: set[int] = set()
    while len(places) < wanted:
        places.add(int(rng.random() * len(active)))
    return [int(active[place]) for place in sorted(places)]


def _by_name(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Items are numbered in the order of their names."""
    return sorted(candidates, key=lambda one: one.item)
