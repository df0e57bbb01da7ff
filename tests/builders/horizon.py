"""Logs of reviews for HORIZON, and what its curation should make of them, in plain Python."""

import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from harness_horizon.curation import build
from harness_horizon.curation.settings import Settings

TAU = 1_577_836_800_000
YEAR_2019 = 1_546_300_800_000
YEAR_2021 = 1_609_459_200_000

Reviews = Mapping[str, Sequence[tuple[Any, Any, Any]]]
"""Category → its rows: user, item, time."""

Titles = Mapping[str, Mapping[str, Any]]
"""Category → its items with their titles."""


def write_log(folder: Path, reviews: Reviews, titles: Titles, *, packed: bool = False) -> None:
    """Writes a log in the official layout."""
    end = ".jsonl.gz" if packed else ".jsonl"
    for kind in ("reviews", "meta"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for name, rows in reviews.items():
        made = [
            {"user_id": user, "parent_asin": item, "rating": 4.0, "timestamp": time}
            for user, item, time in rows
        ]
        write_lines(folder / "reviews" / f"{name}{end}", made)
    for name, items in titles.items():
        made = [
            {"main_category": name, "title": title, "parent_asin": item}
            for item, title in items.items()
        ]
        write_lines(folder / "meta" / f"meta_{name}{end}", made)


def write_lines(file: Path, rows: Sequence[Any]) -> None:
    """Writes JSON lines; a text is a line as it is. The same rows are the same bytes."""
    lines = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    data = lines.encode()
    file.write_bytes(gzip.compress(data, mtime=0) if file.suffix == ".gz" else data)


def settings_of(folder: Path, **options: Any) -> Settings:
    """The settings of a build of the log in a folder; few items are enough."""
    given = {"reviews": (folder / "reviews",), "meta": (folder / "meta",), "out": folder / "out",
             "memory": "2GB", "least_items": 1}  # fmt: skip
    return Settings(**{**given, **options})


def built(folder: Path, **options: Any) -> Path:
    """The folder of a build of the log in a folder."""
    settings = settings_of(folder, **options)
    build.run(settings)
    return settings.out


def contents(out: Path) -> dict[str, bytes]:
    """All files of a folder with their bytes."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file()
    }


def rows_of(files: Path) -> list[dict[str, Any]]:
    """The rows of Parquet files, a pattern or one."""
    import pyarrow.parquet as pq

    return [
        row
        for file in sorted(files.parent.glob(files.name))
        for row in pq.ParquetFile(file).read().to_pylist()
    ]


def read_build(out: Path) -> dict[str, Any]:
    """A build with the items' own names: histories, roles, training data and cases."""
    items = {row["item"]: row for row in rows_of(out / "items.parquet")}

    def named(row: Mapping[str, Any]) -> list[tuple[str, int]]:
        return [
            (items[item]["parent_asin"], time)
            for item, time in zip(row["items"], row["times"], strict=True)
        ]

    cases = {
        file.removeprefix("cases-"): [
            (row["user_id"], named(row), row["first"], row["before"])
            for row in rows_of(out / f"{file}.parquet")
        ]
        for file in ("cases-1a", "cases-1b", "cases-1c", "cases-1d", "validation")
    }
    users = rows_of(out / "users.parquet")
    return {
        "users": users,
        "histories": {row["user_id"]: named(row) for row in rows_of(out / "histories/*.parquet")},
        "items": {row["parent_asin"]: (row["title"], row["category"]) for row in items.values()},
        **{
            role: {row["user_id"] for row in users if row[role]}
            for role in ("held_out", "validating", "trained", "tested")
        },
        "train": [(row["user_id"], named(row)) for row in rows_of(out / "train.parquet")],
        **cases,
    }


def expected(
    reviews: Reviews,
    titles: Titles,
    *,
    seed: int = 0,
    held_out: int = 1_000_000,
    trained: int = 100_000,
    tested: int = 25_000,
    validation: str = "last",
    published: bool = False,
    least_interactions: int | None = None,
) -> dict[str, Any]:
    """What a build should hold, computed with dictionaries and loops."""
    first_title: dict[str, tuple[str, str]] = {}
    for category in sorted(titles):
        for item, title in titles[category].items():
            cleaned = " ".join((title or "").split())
            if cleaned not in ("", "None"):
                first_title.setdefault(item, (cleaned, category))
    histories = _histories(reviews, first_title)
    before = {user: sum(t < TAU for _, t in rows) for user, rows in histories.items()}
    in_2019 = {user: sum(YEAR_2019 <= t < TAU for _, t in rows) for user, rows in histories.items()}
    active = {user for user, rows in histories.items() if rows[-1][1] >= TAU}
    by_year = published or validation == "2019"

    def drawn(of: set[str], most: int, salt: str) -> list[str]:
        def place(user: str) -> tuple[str, str]:
            return hashlib.md5(f"{seed}:{salt}{user}".encode()).hexdigest(), user

        return sorted(of, key=place)[:most]

    may_be = {
        user
        for user in active
        if not published or any(TAU <= t < YEAR_2021 for _, t in histories[user])
    }
    least = least_interactions or (5 if published else 1)
    many = {user for user, rows in histories.items() if len(rows) >= least}
    held = drawn(may_be, min(held_out, len(may_be) // 10), "")
    if published:
        years = {
            user: {2019 if YEAR_2019 <= t < TAU else 2020 if TAU <= t < YEAR_2021 else 0
                   for _, t in rows}
            for user, rows in histories.items()
        }  # fmt: skip

        late = {user for user in years if years[user] & {2019, 2020}}
        early = {user for user, rows in histories.items() if rows[0][1] < YEAR_2019}
        old = {user for user in late if before[user]}.difference(held)
        aside = drawn(old, min(held_out, len(old) // 10), "set_aside:")
        in_2020 = {user for user in early if 2020 in years[user]}.difference(held, aside)
        may_test = drawn(in_2020, held_out, "may_be_tested:")
        others = (early & late).difference(held, aside, may_test)
        may_validate = drawn(others, held_out, "may_validate:")
        others = many.difference(held, aside, may_test, may_validate)
        test = [user for user in may_test if user in many][:tested]
        validating = [user for user in may_validate if user in many][:tested]
        sample = [*test, *validating, *drawn(others, trained, "trained:")]
    else:
        validating = []
        trainable = {
            user
            for user in many.difference(held)
            if before[user] - (in_2019[user] if by_year else 0) >= 2
        }
        sample = drawn(trainable, trained, "trained:")
        test = [user for user in sample if before[user] >= 3 and user in active][:tested]
    train = []
    for user in sample:
        rows = histories[user]
        stop = before[user] - (in_2019[user] if by_year else 0)
        if user in test and before[user] >= 2:
            stop = min(stop, before[user] - (1 if by_year else 2))
        if stop:
            train.append((user, rows[:stop]))

    def one(user: str, first: int, end: int) -> tuple[str, list[tuple[str, int]], int, int]:
        return user, histories[user][:end], first, before[user]

    if published:
        check = []
        for user in [user for user in sample if user in test or user in validating]:
            old, end = before[user] - in_2019[user], before[user] - (user in test)
            if end > old:
                check.append(one(user, old, end))
    else:
        check = [
            one(u, before[u] - 2, before[u] - 1)
            for u in test
            if not by_year or histories[u][before[u] - 2][1] >= YEAR_2019
        ]
    used = {item for rows in histories.values() for item, _ in rows}
    return {
        "histories": histories,
        "items": {item: first_title[item] for item in used},
        "held_out": set(held),
        "validating": set(validating),
        "trained": set(sample),
        "tested": set(test),
        "train": train,
        "1a": [one(u, before[u] - 1, before[u]) for u in test if before[u] >= 2],
        "1b": [one(u, before[u] - 1, before[u]) for u in held if before[u] >= 2 and u in many],
        "1c": [one(u, before[u], len(histories[u])) for u in test],
        "1d": [
            one(u, max(before[u], 1), len(histories[u])) for u in held if len(histories[u]) >= 2
        ],
        "validation": check,
    }


def _histories(
    reviews: Reviews, titles: Mapping[str, tuple[str, str]]
) -> dict[str, list[tuple[str, int]]]:
    """User → items and times, by time, then category, then row; a repeated review is left out."""
    earliest: dict[tuple[str, str, str], tuple[int, int]] = {}
    for category, rows in reviews.items():
        for row, (user, item, time) in enumerate(rows):
            if item in titles:
                key = user, category, item
                earliest[key] = min(earliest.get(key, (time, row)), (time, row))
    once: dict[tuple[str, str, int], tuple[str, int]] = {}
    for (user, category, item), (time, row) in earliest.items():
        same = user, item, time
        once[same] = min(once.get(same, (category, row)), (category, row))
    of: dict[str, list[tuple[int, str, int, str]]] = defaultdict(list)
    for (user, item, time), (category, row) in once.items():
        of[user].append((time, category, row, item))
    return {user: [(item, time) for time, *_, item in sorted(rows)] for user, rows in of.items()}


def random_log(
    rng: Random, *, size: int = 1
) -> tuple[dict[str, list[Any]], dict[str, dict[str, Any]]]:
    """A small log in which ties, repetitions and items without a title are frequent.

    One of a larger size has as many people and reviews as several small ones.
    """
    categories = rng.sample(["Books", "Games", "Pets", "Toys"], rng.randint(1, 4))
    things = [f"i{number}" for number in range(rng.randint(3, 15))]
    people = [f"u{number}" for number in range(size * rng.randint(15, 40))]
    moments = [TAU - 1, TAU, YEAR_2019 - 1, YEAR_2019, YEAR_2021 - 1, YEAR_2021]
    moments += [rng.randrange(1_480_000_000_000, 1_680_000_000_000) for _ in range(12)]
    reviews = {
        one: [
            (rng.choice(people), rng.choice(things), rng.choice(moments))
            for _ in range(size * rng.randint(20, 120))
        ]
        for one in categories
    }
    no_titles = (None, "", " \n", "None")
    titles = {
        one: {
            thing: rng.choice(no_titles) if rng.random() < 0.15 else f" Thing {thing}\nof  {one} "
            for thing in things
            if rng.random() < 0.8
        }
        for one in categories
    }
    for one in categories:  # somebody is active after the cutoff, and no file is empty
        reviews[one] += [
            (user, "sure", TAU + number) for number, user in enumerate(people[: 12 * size])
        ]
        titles[one]["sure"] = "A thing for sure"
    return reviews, titles
