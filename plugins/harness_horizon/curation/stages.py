"""The stages from raw files to histories: each part is done once, alone, and recorded.

work/meta/<category>.parquet      item, title or null, main category, cause
work/reviews/<category>.parquet   user, item, time, cause; a row's place is its number
work/used/<category>.parquet      the items of these
items.parquet                     the items with a title that are in histories, numbered
work/split/<category>/part=<n>/   user, item's number, time, row
histories/part-<n>.parquet        a row for each user: items and times, oldest first
work/users/part-<n>.parquet       a row for each user: counts by date
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.analysis.analysis import Progress
from harness.base.errors import DataError
from harness_horizon.curation.engine import FAST, SMALL_ROW_GROUPS, Engine, parquet, text
from harness_horizon.curation.ledger import Ledger
from harness_horizon.curation.settings import AFTER_2020, TAU, VALIDATION_YEAR, Settings
from harness_horizon.curation.sources import (
    Found,
    checked_counts,
    meta_query,
    reviews_query,
)

ROWS_A_PART = 4_000_000
MOST_PARTS = 128

ITEMS, USERS, HISTORIES = "items.parquet", "users.parquet", "histories"
WORK = "work"


@dataclass(frozen=True, kw_only=True)
class Job:
    """What every stage needs."""

    engine: Engine
    ledger: Ledger
    settings: Settings
    found: Found
    progress: Progress

    @property
    def out(self) -> Path:
        """The folder of all files."""
        return self.ledger.folder

    def work(self, stage: str, name: str) -> Path:
        """A file that only later stages read."""
        return self.out / WORK / stage / name


def to_do(job: Job, stage: str, names: list[str]) -> Iterator[str]:
    """The parts of a stage that are not finished."""
    for done, name in enumerate(names):
        job.progress(stage, done, len(names))
        if not job.ledger.has(f"{stage}/{name}"):
            yield name
    job.progress(stage, len(names), len(names))


def make_histories(job: Job) -> None:
    """Everything up to the histories, and the users with their counts by date."""
    meta, reviews = job.found["meta"], list(job.found["reviews"])
    for category in to_do(job, "meta", list(meta)):
        _read_meta(job, category)
    for category in to_do(job, "reviews", reviews):
        _read_reviews(job, category)
    if not job.ledger.has("items"):
        _number_items(job)
    job.ledger.forget_files("meta", job.out / WORK / "meta")
    for category in to_do(job, "split", reviews):
        _split(job, category, reviews.index(category))
    job.ledger.forget_files("reviews", job.out / WORK / "reviews")
    job.ledger.forget_files("reviews", job.out / WORK / "used")
    for part in to_do(job, HISTORIES, [f"{one:03}" for one in range(partitions(job))]):
        _order(job, part)
    job.ledger.forget_files("split", job.out / WORK / "split")


def partitions(job: Job) -> int:
    """The number of parts of users."""
    if job.settings.partitions is not None:
        return job.settings.partitions
    return min(1 + job.ledger.sums("reviews")["read"] // ROWS_A_PART, MOST_PARTS)


def _read_meta(job: Job, category: str) -> None:
    raw, file = job.found["meta"][category], job.work("meta", f"{category}.parquet")
    job.engine.write(meta_query(job.engine, raw), file, FAST)
    counts = checked_counts(job.engine, file, raw)
    counts |= job.engine.one(
        f"SELECT count(*) FILTER (cause IS NULL AND title IS NULL) AS untitled FROM {parquet(file)}"
    )
    job.ledger.finish(f"meta/{category}", [file], counts)


def _read_reviews(job: Job, category: str) -> None:
    raw = job.found["reviews"][category]
    file, used = (job.work(one, f"{category}.parquet") for one in ("reviews", "used"))
    job.engine.write(reviews_query(job.engine, raw), file, FAST)
    counts = checked_counts(job.engine, file, raw)
    items = f"SELECT DISTINCT parent_asin FROM {parquet(file)} WHERE cause IS NULL"
    job.engine.write(items, used, FAST)
    job.ledger.finish(f"reviews/{category}", [file, used], counts)


def _number_items(job: Job) -> None:
    """Of an item in several files of metadata, the first title by the category's name counts."""
    categories = list(job.found["meta"])
    files = [job.work("meta", f"{one}.parquet") for one in categories]
    used = [job.work("used", f"{one}.parquet") for one in job.found["reviews"]]
    titled = " UNION ALL ".join(
        f"SELECT parent_asin, title, main_category, {place} AS place, file_row_number AS row "
        f"FROM {parquet(file, numbered=True)} "
        "WHERE cause IS NULL AND title IS NOT NULL"
        for place, file in enumerate(files)
    )
    wanted = (
        f"FROM ({titled}) AS titled SEMI JOIN (SELECT DISTINCT parent_asin FROM "
        f"{parquet(*used)}) AS used USING (parent_asin)"
    )
    names = f"[{', '.join(map(text, categories))}]"
    first = (
        f"SELECT * {wanted} QUALIFY row_number() OVER (PARTITION BY parent_asin "
        "ORDER BY place, row) = 1 ORDER BY parent_asin"
    )
    file = job.out / ITEMS
    job.engine.write(
        "SELECT (row_number() OVER () - 1)::INTEGER AS item, parent_asin, title, "
        f"{names}[place + 1] AS category, main_category FROM ({first})",
        file,
    )
    counts = job.engine.one(
        f"SELECT count(*) AS items, count(*) FILTER (low < high) AS in_several_files FROM "
        f"(SELECT min(place) AS low, max(place) AS high {wanted} GROUP BY parent_asin)"
    )
    if counts["items"] < job.settings.least_items:
        raise DataError(
            "there are too few items to rank",
            where=", ".join(map(str, job.settings.meta)),
            found=f"{counts['items']:,} items with a title that somebody reviewed",
            expected=f"at least {job.settings.least_items:,} (--least_items)",
        )
    job.ledger.finish("items", [file], counts)


def _split(job: Job, category: str, place: int) -> None:
    """The rows of a category by the part of their user; an item without a title is null."""
    file, used = (job.work(one, f"{category}.parquet") for one in ("reviews", "used"))
    own = (
        f"SELECT item, parent_asin FROM {parquet(job.out / ITEMS)} AS items "
        f"SEMI JOIN {parquet(used)} AS used USING (parent_asin)"
    )
    parts = partitions(job)
    # `hash` may change with a new DuckDB, and md5 takes a third of the time of this query.
    part = f"('0x' || substr(md5(user_id), 1, 8))::BIGINT % {parts}" if parts > 1 else "0"
    query = (
        f"SELECT user_id, own.item, time, file_row_number AS row, {place}::UTINYINT AS place, "
        f"{part} AS part "
        f"FROM {parquet(file, numbered=True)} AS reviews "
        f"LEFT JOIN ({own}) AS own USING (parent_asin) WHERE cause IS NULL"
    )
    folder = job.work("split", category)
    by_part = f"{FAST}, PARTITION_BY (part), ROW_GROUP_SIZE {SMALL_ROW_GROUPS}"
    job.engine.write(query, folder, by_part)
    job.ledger.finish(f"split/{category}", [folder], {})


def _order(job: Job, part: str) -> None:
    """The histories of the users of a part, ordered by time, category and row.

    Of the reviews of a user and an item, the earliest of each category counts, and of these only
    one at the same moment.
    """
    engine = job.engine
    pieces = sorted(job.work("split", "").glob(f"*/part={int(part)}/*"))
    some = job.work("split", "").glob("*/*/*.parquet")
    given = parquet(*pieces) if pieces else f"(FROM {parquet(next(some))} LIMIT 0)"
    engine.run(
        f"""
        CREATE OR REPLACE TEMP TABLE kept AS
        SELECT user_id, min(review) AS review, count(*) AS categories, sum(rows)::BIGINT AS rows
        FROM (
            SELECT user_id, item, min({_REVIEW}) AS review, count(*) AS rows
            FROM {given} WHERE item IS NOT NULL GROUP BY user_id, item, place
        ) GROUP BY user_id, item, {_TIME}
        """
    )
    file = job.out / HISTORIES / f"part-{part}.parquet"
    engine.write(
        f"""
        SELECT user_id, list_transform(own, lambda review: {_ITEM}) AS items,
            list_transform(own, lambda review: {_TIME}) AS times
        FROM (SELECT user_id, list_sort(list(review)) AS own FROM kept GROUP BY user_id)
        ORDER BY user_id
        """,
        file,
    )
    users = job.work("users", f"part-{part}.parquet")
    dates = {"before": TAU, "before_2019": VALIDATION_YEAR, "before_2021": AFTER_2020}
    counted = ", ".join(
        f"len(list_filter(times, lambda time: time < {moment}))::INTEGER AS {name}"
        for name, moment in dates.items()
    )
    interactions = f"user_id, len(times)::INTEGER AS interactions, {counted}"
    engine.write(f"SELECT {interactions} FROM {parquet(file)}", users, FAST)
    users_file = parquet(users)
    counts = engine.one(
        f"""
        SELECT (SELECT coalesce(sum(rows), 0)::BIGINT FROM kept) AS titled,
            (SELECT count(*) FROM {given} WHERE item IS NULL) AS untitled,
            (SELECT coalesce(sum(categories), 0)::BIGINT FROM kept) AS first_of_category,
            (SELECT count(*) FROM kept) AS interactions,
            (SELECT count(*) FROM {users_file}) AS users,
            (SELECT count(*) FROM (SELECT DISTINCT user_id FROM {given} WHERE item IS NULL)
                ANTI JOIN {users_file} AS users USING (user_id)) AS users_left_without
        """
    )
    engine.run("DROP TABLE kept")
    job.ledger.finish(f"{HISTORIES}/{part}", [file, users], counts)


_REVIEW = "(time::HUGEINT << 80) + (place::HUGEINT << 72) + (row::HUGEINT << 32) + item"
"""A review as one number, which sorts by time, category (8 bits) and row (40); the item is last."""

_TIME, _ITEM = "(review >> 80)::BIGINT", f"(review & {2**32 - 1})::INTEGER"
