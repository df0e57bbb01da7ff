"""The options of `harness data perrec-groups`, and its review log as arrays.

Each id is stored once, and a rating takes some 18 bytes. Users and items are numbered in the order
of their names, so that nothing depends on the order of rows and files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harness.analysis.user_tables import table as read_table
from harness.base.errors import DataError, UsageError
from harness.contracts.task import Column

if TYPE_CHECKING:
    import numpy as np

    from harness.data.batches import Batch
    from harness.data.table import Table

ALL = "all"
"""The folder of the groups of all domains."""

_DOMAIN = re.compile(r"([a-z0-9][a-z0-9_-]*)=(.+)", re.IGNORECASE | re.DOTALL)

Least = Annotated[int, Meta(ge=2)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The log, the folder of the groups, and the rules for them."""

    reviews: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="a file of reviews (parent_asin, user_id, rating, timestamp), or "
            "DOMAIN=FILE to write the domain's own groups too: JSONL, JSON, CSV, TSV or Parquet",
        ),
    ]
    domains: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[A-Za-z0-9][\w-]*=.")], ...],
        Meta(description="DOMAIN=NAME for a file of reviews of that name, with any ending"),
    ] = ()
    meta: Annotated[
        tuple[Path, ...],
        Meta(min_length=1, description="a file of items (parent_asin, title, author)"),
    ]
    out: Annotated[Path, Meta(description="the folder that the groups are written to")]
    window_days: Annotated[
        float, Meta(ge=0, description="the length of a window, including both ends")
    ] = 30.0
    min_history: Annotated[
        int, Meta(ge=0, description="a user has more ratings than this before the purchase")
    ] = 20
    min_difference: Annotated[
        float, Meta(ge=0, description="relative ratings in a group differ by more than this")
    ] = 0.6
    members: Annotated[Least, Meta(description="the largest number of users of an item")] = 5
    least_members: Annotated[
        Least,
        Meta(
            description="items with fewer users are left out; below 4, levels have different items"
        ),
    ] = 4
    test_items: Annotated[int, Meta(ge=1, description="test items; the others are held out")] = 200
    domain_items: Annotated[int, Meta(ge=1, description="test items of each domain")] = 50
    behaviours: Annotated[
        int, Meta(ge=0, description="behaviours drawn for tasks with ask: rating")
    ] = 1000
    strict: Annotated[
        bool, Meta(description="take averages over earlier ratings, not over whole histories")
    ] = False
    bad_rows: Annotated[
        Literal["refused", "left_out"],
        Meta(description="the treatment of ratings outside 1 to 5, and rows without id or time"),
    ] = "refused"
    seed: Annotated[int, Meta(description="another seed draws other items and users")] = 0

    def __post_init__(self) -> None:
        if self.least_members > self.members:
            raise ValueError(
                f"least_members={self.least_members} is more than members={self.members}"
            )


def review_files(settings: Settings) -> Iterator[tuple[str | None, Path]]:
    """Each file of reviews with its domain, None without one."""
    by_name = {name: domain for domain, _, name in (one.partition("=") for one in settings.domains)}
    for given in settings.reviews:
        named = _DOMAIN.fullmatch(given)
        domain = named[1] if named else by_name.get(Path(given).name.partition(".")[0])
        if domain == ALL:
            raise UsageError(
                f"the name {ALL!r} is reserved for the folder of all domains",
                where="--reviews",
                found=given,
                expected="DOMAIN=FILE with the domain's own name",
                hint=f"if this is a file's name, give it as ./{given}",
            )
        yield domain, Path(named[2] if named else given).expanduser()


UNIT = 1000
"""Ratings are stored in thousandths, so that sums are exact in any order."""

MILLISECONDS_A_SECOND = 1000
LARGEST_SECONDS = 1e11
"""Larger times are milliseconds since 1970."""

ITEM_COLUMNS = {
    "parent_asin": Column(type="string"),
    "title": Column(type="string", required=False),
    "author": Column(type="any", required=False),
}


@dataclass(frozen=True, kw_only=True)
class Log:
    """All ratings of a log; each has one place in all arrays.

    `user` and `item` are places in the sorted `users` and `items`. `domain_of` is the place of each
    item's domain, or the number of domains if it has none. `left_out` counts bad rows.
    """

    users: tuple[str, ...]
    items: tuple[str, ...]
    user: np.ndarray
    item: np.ndarray
    rating: np.ndarray
    time: np.ndarray
    domains: tuple[str, ...]
    domain_of: np.ndarray
    left_out: int

    @property
    def ticks(self) -> int:
        """The units of `time` per second."""
        import numpy as np

        return MILLISECONDS_A_SECOND if np.abs(self.time).max() > LARGEST_SECONDS else 1


def read(settings: Settings) -> Log:
    """All ratings of the log; DataError with file and line for a bad row."""
    import numpy as np

    users: dict[str, int] = {}
    items: dict[str, int] = {}
    files = list(review_files(settings))
    domains = tuple(sorted({domain for domain, _ in files if domain}))
    parts: list[tuple[np.ndarray, ...]] = []
    seen_in: list[tuple[int, np.ndarray]] = []
    read_rows = 0
    for domain, path in files:
        table = _table(path, _columns(required=settings.bad_rows == "refused"))
        first = len(parts)
        for batch in table.batches():
            read_rows += len(batch)
            parts.append(_numbered(_usable(table, batch, settings), users, items))
        if domain:
            own = [part[1] for part in parts[first:]]
            seen_in.append((domains.index(domain), np.unique(np.concatenate(own))))
    user, item, rating, time = (np.concatenate(part) for part in zip(*parts, strict=True))
    del parts
    if not len(user):
        raise DataError(
            "the files of reviews contain no usable rating",
            where=", ".join(str(path) for _, path in files),
            found=f"{read_rows} rows without an id, a time or a rating from 1 to 5",
            expected="rows with user_id, parent_asin, a timestamp and a rating from 1 to 5",
        )
    user_names, new_user = _by_name(users)
    item_names, new_item = _by_name(items)
    domain_of = np.full(len(items), len(domains), dtype=np.int16)
    for place, found in seen_in:
        there = new_item[found]
        domain_of[there] = np.minimum(domain_of[there], place)
    return Log(
        users=user_names,
        items=item_names,
        user=new_user[user],
        item=new_item[item],
        rating=rating,
        time=time,
        domains=domains,
        domain_of=domain_of,
        left_out=read_rows - len(user),
    )


def titled(paths: Iterable[Path]) -> set[str]:
    """The ids of items with a title."""
    found: set[str] = set()
    for names, titles, _ in _items(paths):
        found.update(name for name, title in zip(names, titles, strict=True) if _is_text(title))
    return found


def described(paths: Iterable[Path], wanted: Collection[str]) -> dict[str, dict[str, Any]]:
    """Title and author of each wanted item, in the format of the published file.

    Of several descriptions of an item, the alphabetically first counts.
    """
    found: dict[str, tuple[str, str]] = {}
    for columns in _items(paths):
        for name, title, author in zip(*columns, strict=True):
            if name in wanted and _is_text(title):
                about = (title, _author(author))
                found[name] = min(about, found.get(name, about))
    return {
        name: {"title": title, "author": {"name": author}} if author else {"title": title}
        for name, (title, author) in sorted(found.items())
    }


def _items(paths: Iterable[Path]) -> Iterator[tuple[list[Any], list[Any], list[Any]]]:
    for path in paths:
        for batch in _table(path, ITEM_COLUMNS).batches():
            yield batch.columns["parent_asin"], batch.columns["title"], batch.columns["author"]


def _table(path: Path, columns: Mapping[str, Column]) -> Table:
    if not path.is_file():
        raise DataError(
            "the file does not exist", where=str(path), expected="the path of an existing file"
        )
    return read_table(str(path), path.name, columns)


def _columns(*, required: bool) -> dict[str, Column]:
    name = Column(type="string", required=required)
    return {
        "user_id": name,
        "parent_asin": name,
        "rating": Column(type="number", required=required),
        "timestamp": Column(type="integer", required=required),
    }


def _usable(table: Table, batch: Batch, settings: Settings) -> list[list[Any]]:
    """The columns of a batch without bad rows; DataError if bad rows are refused."""
    import numpy as np

    columns = [batch.columns[name] for name in _columns(required=True)]
    users, items, ratings, times = columns
    points = np.array(ratings, dtype=np.float64) * UNIT
    fit = (points >= UNIT) & (points <= 5 * UNIT) & (np.abs(points - np.rint(points)) < 1e-6)
    if all(users) and all(items) and None not in times and fit.all():
        return columns
    tests = (
        ("user_id", [bool(one) for one in users], "an id"),
        ("parent_asin", [bool(one) for one in items], "an id"),
        ("rating", fit.tolist(), "a number from 1 to 5, with at most three decimals"),
        ("timestamp", [one is not None for one in times], "a time"),
    )
    if settings.bad_rows == "refused":
        row, name, expected = min(
            (fits.index(False), name, expected) for name, fits, expected in tests if not all(fits)
        )
        raise table.bad(batch.first + row, name, batch.columns[name][row], expected)
    kept = [all(fits) for fits in zip(*(fits for _, fits, _ in tests), strict=True)]
    return [[one for one, keep in zip(column, kept, strict=True) if keep] for column in columns]


def _numbered(
    columns: list[list[Any]], users: dict[str, int], items: dict[str, int]
) -> tuple[np.ndarray, ...]:
    """The rows of a batch as arrays; new ids get the next numbers."""
    import numpy as np

    names, things, ratings, times = columns
    return (
        np.array([users.setdefault(name, len(users)) for name in names], dtype=np.int32),
        np.array([items.setdefault(thing, len(items)) for thing in things], dtype=np.int32),
        np.rint(np.array(ratings, dtype=np.float64) * UNIT).astype(np.int16),
        np.array(times, dtype=np.int64),
    )


def _by_name(known: Mapping[str, int]) -> tuple[tuple[str, ...], np.ndarray]:
    """The sorted names, and for each number its name's place among them."""
    import numpy as np

    names = tuple(sorted(known))
    places = np.empty(len(names), dtype=np.int32)
    places[[known[name] for name in names]] = np.arange(len(names), dtype=np.int32)
    return names, places


def _is_text(title: str | None) -> bool:
    return bool(title and title.strip())


def _author(value: Any) -> str:
    """The name of an author; empty without one."""
    name = value.get("name") if isinstance(value, dict) else value
    return name.strip() if isinstance(name, str) else ""
