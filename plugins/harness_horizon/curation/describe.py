"""Describes histories: the means and figures of the paper's appendix B, and Table 7's row."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import msgspec
from msgspec import Meta

from harness.contracts.published import PublishedTables
from harness.contracts.report import Axis, Figure, Line, Report, Sheet
from harness_horizon.curation.engine import Engine, engine, parquet
from harness_horizon.curation.ledger import complete_manifest
from harness_horizon.curation.settings import TAU, memory_bytes
from harness_horizon.curation.stages import HISTORIES, ITEMS, USERS

TABLES = PublishedTables("harness_horizon")
MILLION = 1e6

SHARES = (0.5, 0.9, 0.99, 0.999)
"""The shares of users or items whose numbers the tables give."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `harness data horizon-describe`."""

    data: Annotated[Path, Meta(description="the folder that `harness data horizon` wrote")]
    memory: Annotated[str, Meta(description="what the whole process may hold in memory")] = "8GB"


def run(settings: Settings) -> Report:
    """The histories of a complete build in tables and figures."""
    folder = settings.data
    memory = memory_bytes(settings.memory)
    manifest = complete_manifest(folder)
    with TemporaryDirectory() as scratch, engine(Path(scratch), memory) as database:
        database.run(
            "CREATE TEMP TABLE frequencies AS SELECT item, count(*) AS n FROM (SELECT "
            f"unnest(items) AS item FROM {parquet(folder / HISTORIES / '*.parquet')}) "
            "GROUP BY item"
        )
        users = parquet(folder / USERS)
        lengths = database.rows(f"SELECT interactions, count(*) FROM {users} GROUP BY 1 ORDER BY 1")
        items = database.rows("SELECT n, count(*) FROM frequencies GROUP BY 1 ORDER BY 1")
        years = database.rows(
            f"""
            SELECT year, count(*), count(DISTINCT user_id) FROM (
                SELECT user_id, year(make_timestamp(unnest(times) * 1000)) AS year
                FROM {parquet(folder / HISTORIES / "*.parquet")}
            ) GROUP BY year ORDER BY year
            """
        )
        sheets = (
            _table7(database, users),
            _means(database, users),
            _quantiles(lengths, items),
            Sheet(
                title="Interactions a year",
                columns=("year", "interactions", "users"),
                rows=tuple((str(year), *counts) for year, *counts in years),
            ),
            _domains(database, folder),
        )
    return Report(
        sheets=sheets,
        figures=(
            _figure("Lengths of histories", "interactions", "users a length", lengths, log=True),
            _figure("Interactions a year", "year", "interactions", [(y, n) for y, n, _ in years]),
            _figure("Items by frequency", "interactions", "items a number", items, log=True),
        ),
        notes=(f"split {manifest.digest[:12]}",),
    )


def _table7(database: Engine, users: str) -> Sheet:
    """Table 7's row of HORIZON beside that of these data."""
    [(count, interactions, items)] = database.rows(
        f"SELECT count(*), sum(interactions)::BIGINT, (SELECT count(*) FROM frequencies) "
        f"FROM {users}"
    )
    published = TABLES.read("table7")
    printed = {row["attribute"]: row["HORIZON"] for row in published.dicts()}
    ours = {
        "users": count / MILLION,
        "mean length of a history": interactions / count,
        "items": items / MILLION,
        "interactions": interactions / MILLION,
    }
    return Sheet(
        title="Size, as in Table 7",
        columns=("attribute", "these data", "the paper"),
        rows=tuple((name, value, printed[name]) for name, value in ours.items()),
        notes=(f"{published.units}", *published.notes[:2]),
        digits=3,
    )


def _means(database: Engine, users: str) -> Sheet:
    """The mean number of interactions before and after the cutoff."""
    found = database.rows(
        f"""
        SELECT avg(before), avg(before) FILTER (before > 0),
            avg(interactions - before), avg(interactions - before) FILTER (interactions > before)
        FROM {users}
        """
    )[0]
    published = TABLES.read("means")
    printed = published.dicts()
    rows = [
        (row["what"], found[place * 2], found[place * 2 + 1], row["value"])
        for place, row in enumerate(printed)
    ]
    return Sheet(
        title="Interactions of a user, as in appendix B",
        columns=("", "mean over all users", "over users with any", "the paper"),
        rows=tuple(rows),
        notes=published.notes,
        digits=2,
    )


def _quantiles(lengths: list[tuple[int, int]], items: list[tuple[int, int]]) -> Sheet:
    """What half and more of the users and items have at most."""
    names = tuple(f"{share:.1%} have at most".replace(".0%", "%") for share in SHARES)
    return Sheet(
        title="Long tails",
        columns=("", *names, "the most"),
        rows=(
            ("interactions of a user", *_at_most(lengths)),
            ("interactions of an item", *_at_most(items)),
        ),
    )


def _at_most(counts: list[tuple[int, int]]) -> list[int]:
    values, below = [value for value, _ in counts], list(accumulate(many for _, many in counts))
    return [*(values[bisect_left(below, share * below[-1])] for share in SHARES), values[-1]]


def _domains(database: Engine, folder: Path) -> Sheet:
    """Each category with its items and their interactions before and after the cutoff."""
    rows = database.rows(
        f"""
        SELECT category, count(DISTINCT item), count(*) FILTER (time < {TAU}),
            count(*) FILTER (time >= {TAU})
        FROM (
            SELECT unnest(items) AS item, unnest(times) AS time
            FROM {parquet(folder / HISTORIES / "*.parquet")}
        ) JOIN {parquet(folder / ITEMS)} USING (item)
        GROUP BY category ORDER BY category
        """
    )
    return Sheet(
        title="Categories",
        columns=("category", "items", "interactions before 2020", "from 2020"),
        rows=tuple(rows),
        notes=("the category of an item is that of the first file of metadata with its title",),
    )


def _figure(
    title: str, x: str, y: str, points: list[tuple[int, int]], *, log: bool = False
) -> Figure:
    """A line through points; with `log`, through the means of bins, each twice as wide as before.

    Most long histories have a length of their own: a point for each would show nothing.
    """
    at, n = zip(*points, strict=True)
    if log:
        bins = sorted({one.bit_length() for one in at})
        sums = [sum(k for one, k in points if one.bit_length() == each) for each in bins]
        n = tuple(many / 2 ** (each - 1) for each, many in zip(bins, sums, strict=True))
        at = tuple((3 * 2 ** (each - 1) - 1) / 2 for each in bins)
    line = Line(label="these data", x=tuple(map(float, at)), y=tuple(map(float, n)))
    return Figure(title=title, x=Axis(label=x, log=log), y=Axis(label=y, log=log), marks=(line,))
