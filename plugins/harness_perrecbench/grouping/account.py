"""What was done to build groups: for people as tables, for programs as a JSON value."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from harness.results.report import Cell, Sheet
from harness_perrecbench.grouping.pool import removals
from harness_perrecbench.grouping.settings import review_files
from harness_perrecbench.grouping.writing import RECORD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_perrecbench.grouping.choosing import Drawn
    from harness_perrecbench.grouping.pool import Left, Pool
    from harness_perrecbench.grouping.reading import Log
    from harness_perrecbench.grouping.settings import Settings
    from harness_perrecbench.records import Level


@dataclass(frozen=True, kw_only=True)
class Written:
    """How many groups of a level a folder holds."""

    folder: str
    level: Level
    test: int
    held_out: int

    @classmethod
    def of(cls, folder: str, drawn: Drawn) -> Written:
        """The same of groups that were drawn."""
        return cls(
            folder=folder, level=drawn.level, test=len(drawn.test), held_out=len(drawn.held_out)
        )


def rules(left: Sequence[Left]) -> Sheet:
    """How much each rule left, and how many items it removed."""
    rows: list[tuple[Cell, ...]] = [
        (one.rule, one.ratings, one.users, one.items, removed)
        for one, removed in zip(left, removals(left), strict=True)
    ]
    return Sheet(
        title="What each rule leaves",
        columns=("ratings …", "ratings", "users", "items", "items removed"),
        rows=tuple(rows),
        notes=("an item that is left at the end has one group a level",),
    )


def written_groups(written: Sequence[Written]) -> Sheet:
    """The groups of each folder and level."""
    return Sheet(
        title="Groups written",
        columns=("folder", "level", "to test", "held out"),
        rows=tuple((one.folder, one.level, one.test, one.held_out) for one in written),
    )


def notes(log: Log, written: Sequence[Written], settings: Settings) -> tuple[str, ...]:
    """What a reader must know before the numbers."""
    said = [f"written: {settings.out}, with an account in {RECORD}"]
    if settings.strict:
        said.append("averages and relative ratings: of what a user rated before")
    else:
        said.append(
            "averages and relative ratings: of whole histories, the rating in question included"
        )
    if log.left_out:
        said.append(
            f"{log.left_out} rows without an id, a time or a rating from 1 to 5 were left out"
        )
    for one in written:
        name = f"{one.level} in {one.folder}"
        if not one.test and not one.held_out:
            said.append(f"{name}: no item has users enough, so that its files are not there")
        elif not one.held_out:
            said.append(
                f"{name}: every item is tested, so that no file of held-out groups is there"
            )
    return tuple(said)


def account(log: Log, pool: Pool, written: Sequence[Written], settings: Settings) -> dict[str, Any]:
    """The same and more as a JSON value; of files it has the names, not where they lie."""
    kept = msgspec.structs.asdict(settings)
    reviews = [{"file": path.name, "domain": domain} for domain, path in review_files(settings)]
    return {
        "reviews": sorted(reviews, key=lambda one: (one["file"], one["domain"] or "")),
        "meta": sorted(path.name for path in settings.meta),
        "settings": {
            name: value for name, value in kept.items() if name not in ("reviews", "meta", "out")
        },
        "time_unit": "seconds" if log.ticks == 1 else "milliseconds",
        "rows_left_out": log.left_out,
        "rules": [asdict(one) for one in pool.left],
        "groups": [asdict(one) for one in written],
    }
