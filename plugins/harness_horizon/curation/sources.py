"""The raw files by category, and queries that read them as text.

A value stays text until it is cast by hand: readers that know types round a rating without a word.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import msgspec

from harness.base.errors import DataError
from harness.data.database import SPACES
from harness.data.records import check_start, unpacked
from harness_horizon.curation.engine import Engine, location, parquet, text

Kind = Literal["reviews", "meta"]

Found = dict[Kind, dict[str, Path]]
"""The raw files of each kind by category, in the order of these."""

PREFIX = "meta_"
"""How the names of files of metadata begin."""

FORMATS = {".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet"}
PACKED = ".gz"

COLUMNS: dict[Kind, tuple[str, ...]] = {
    "reviews": ("user_id", "parent_asin", "timestamp"),
    "meta": ("parent_asin", "title", "main_category"),
}

NEEDED = {"reviews": COLUMNS["reviews"], "meta": ("parent_asin", "title")}
"""The columns without which a table cannot be used."""

MOST_BAD = 0.01
"""The share of rows that may be dropped for what they hold."""

SECONDS = (631_152_000, 4_102_444_800)
"""1990 to 2100; times are in milliseconds, of the same years."""

_CHUNK = 1 << 20


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A raw file: its kind and category, its size, time of change, and digest."""

    kind: Kind
    category: str
    file: str
    size: int
    time: int
    digest: str


def find(reviews: Sequence[Path], meta: Sequence[Path]) -> Found:
    """All raw files; DataError if there are none, or if a category has no metadata."""
    given: dict[Kind, Sequence[Path]] = {"meta": meta, "reviews": reviews}
    found = {kind: _by_category(folders, kind) for kind, folders in given.items()}
    categories = found["reviews"]
    without = [one for one in categories if one not in found["meta"]]
    if without:
        raise DataError(
            f"{len(without)} of {len(categories)} categories have no metadata",
            where="--meta",
            found=", ".join(without),
            expected=f"a file such as {PREFIX}{without[0]}.jsonl.gz for each",
            hint="fetch these files, or take the reviews of these categories away",
        )
    return found


def _by_category(folders: Sequence[Path], kind: Kind) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    for path in _files(folders, kind, f"--{kind}"):
        name = _plain_name(path).stem
        category = name.removeprefix(PREFIX) if kind == "meta" else name
        if category in paths:
            raise DataError(
                f"the category {category} has two files",
                where=f"--{kind}",
                found=f"{paths[category].name}, {path.name}",
                expected="one file for each category",
            )
        paths[category] = path
    return dict(sorted(paths.items()))


def _files(given: Sequence[Path], kind: Kind, option: str) -> list[Path]:
    found = []
    for path in given:
        if not path.exists():
            raise DataError("the folder does not exist", where=option, found=str(path))
        inside = sorted(path.iterdir()) if path.is_dir() else [path]
        known = [one for one in inside if one.is_file() and _format(one)]
        named = [one for one in known if one.name.startswith(PREFIX)]
        others = [one for one in known if not one.name.startswith(PREFIX)]
        found += others if kind == "reviews" else named or others
    if not found:
        endings = ", ".join((*FORMATS, *(ending + PACKED for ending in list(FORMATS)[:2])))
        raise DataError(
            f"there are no files of {kind}",
            where=option,
            found=", ".join(map(str, given)),
            expected=f"files that end in {endings}",
        )
    return found


def _plain_name(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() == PACKED else path


def _format(path: Path) -> str | None:
    found = FORMATS.get(_plain_name(path).suffix.lower())
    packed_parquet = found == "parquet" and path.suffix == PACKED
    return None if path.name.startswith(".") or packed_parquet else found


def with_digests(found: Found, before: Sequence[Source], workers: int) -> tuple[Source, ...]:
    """The files with their digests; DataError if a packed file is cut off.

    A file of the same size and time as one of `before` is taken to be the same.
    """
    known = {(one.kind, one.file, one.size, one.time): one for one in before}

    def examined(kind: Kind, category: str, path: Path) -> Source:
        state = path.stat()
        same = known.get((kind, path.name, state.st_size, state.st_mtime_ns))
        return same or Source(
            kind=kind,
            category=category,
            file=path.name,
            size=state.st_size,
            time=state.st_mtime_ns,
            digest=_digest(path),
        )

    every = [(kind, *one) for kind, paths in found.items() for one in paths.items()]
    with ThreadPoolExecutor(workers) as pool:
        return tuple(pool.map(examined, *zip(*every, strict=True)))


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(path: Path) -> str:
    digest = sha256_of(path)
    if path.suffix.lower() == PACKED:  # DuckDB reads what is there of a file that is cut off
        with unpacked(path) as stream:
            while stream.read(_CHUNK):
                pass
    elif _format(path) != "parquet":
        with path.open("rb") as file:
            check_start(path, file.read(8))
    return digest


def raw_rows(engine: Engine, path: Path, kind: Kind) -> str:
    """The query for the columns of a raw file as text, in the order of its rows.

    A line that is no JSON object is a row of nulls.
    """
    columns, form = COLUMNS[kind], _format(path)
    packing = "gzip" if path.suffix.lower() == PACKED else "none"
    given = f"{location(path)}, hive_partitioning=false, compression='{packing}'"
    if form == "jsonl":
        listed = ", ".join(f"{one}: 'VARCHAR'" for one in columns)
        return (
            f"SELECT {', '.join(columns)} FROM read_json({given}, "
            f"format='newline_delimited', columns={{{listed}}}, ignore_errors=true)"
        )
    if form == "csv":
        with unpacked(path) as stream:
            line = stream.readline().decode("utf-8-sig", "replace")
        header = next(csv.reader([line]), [])
        listed = ", ".join(f"{text(one)}: 'VARCHAR'" for one in header)
        read = (
            f"read_csv({given}, auto_detect=false, header=true, delim=',', quote='\"', "
            f"escape='\"', columns={{{listed}}}, null_padding=true, strict_mode=false)"
        )
    else:
        read = parquet(path)
        header = [name for name, *_ in engine.rows(f"DESCRIBE SELECT * FROM {read}")]
    absent = [one for one in NEEDED[kind] if one not in header]
    if absent:
        raise DataError(
            f"the file has no column {', '.join(absent)}",
            where=str(path),
            found=", ".join(header),
            expected=", ".join(columns),
        )
    chosen = (f"{one}::VARCHAR AS {one}" if one in header else f"NULL AS {one}" for one in columns)
    return f"SELECT {', '.join(chosen)} FROM {read}"


# Nearly all cells begin like this, and trimming takes five times as long.
_BLANK = "CASE WHEN {0} BETWEEN '!' AND '~' THEN false ELSE coalesce(trim({0}), '') = '' END"

_REVIEW_CAUSES = {
    "no JSON object, or none of its keys": "user_id IS NULL AND parent_asin IS NULL "
    "AND timestamp IS NULL",
    "no user": _BLANK.format("user_id"),
    "no item": _BLANK.format("parent_asin"),
    "no time": _BLANK.format("timestamp"),
    "a time that is no whole number": "time IS NULL",
    "a time in seconds": f"time BETWEEN {SECONDS[0]} AND {SECONDS[1]}",
    "a time before 1990 or after 2100": f"time NOT BETWEEN {SECONDS[0]}000 AND {SECONDS[1]}000",
}

_META_CAUSES = {
    "no JSON object, or none of its keys": "parent_asin IS NULL AND title IS NULL "
    "AND main_category IS NULL",
    "no item": _BLANK.format("parent_asin"),
}


def reviews_query(engine: Engine, path: Path) -> str:
    """The rows of a file of reviews: user, item, time, and the cause of a row that is dropped."""
    # A cast alone would round 1.5 and take 1e12.
    whole = "regexp_full_match(timestamp, '[0-9]{1,18}')"
    time = f"CASE WHEN {whole} THEN TRY_CAST(timestamp AS BIGINT) END"
    return (
        f"SELECT user_id, parent_asin, time, {_cause(_REVIEW_CAUSES)} AS cause FROM "
        f"(SELECT *, {time} AS time FROM ({raw_rows(engine, path, 'reviews')}))"
    )


def meta_query(engine: Engine, path: Path) -> str:
    """The rows of a file of metadata: item, title or null, main category, and a cause."""
    # Most titles are plain; replacing takes three times as long as finding that out.
    title = (
        "trim(CASE WHEN regexp_matches(title, ' {2}|[^ -~]') "
        f"THEN regexp_replace(title, '{SPACES}+', ' ', 'g') ELSE title END)"
    )
    return (
        "SELECT parent_asin, CASE WHEN title NOT IN ('', 'None') THEN title END AS title, "
        "main_category, cause FROM (SELECT parent_asin, "
        f"{title} AS title, main_category, {_cause(_META_CAUSES)} AS cause "
        f"FROM ({raw_rows(engine, path, 'meta')}))"
    )


def _cause(causes: dict[str, str]) -> str:
    cases = (f"WHEN {condition} THEN {text(cause)}" for cause, condition in causes.items())
    return f"CASE {' '.join(cases)} END"


def checked_counts(engine: Engine, file: Path, raw: Path) -> dict[str, int]:
    """The rows that were read and those dropped by cause; DataError if they are too many."""
    found = dict(
        engine.rows(f"SELECT cause, count(*) FROM {parquet(file)} GROUP BY cause ORDER BY cause")
    )
    read = sum(found.values())
    dropped = {cause: count for cause, count in found.items() if cause}
    bad = sum(dropped.values())
    if not read:
        raise DataError("the file has no rows", where=raw.name, expected="at least one row")
    if bad > MOST_BAD * read:
        raise DataError(
            "too many rows cannot be used",
            where=raw.name,
            found="\n      ".join(
                (f"{bad:,} of {read:,} rows:", *(f"{n:,} with {one}" for one, n in dropped.items()))
            ),
            expected=f"at most {MOST_BAD:.0%}; times in milliseconds since 1970",
        )
    return {"read": read, **dropped}


def disk_needed(found: Found) -> tuple[int, int]:
    """About how many bytes the work takes on the disk, at most, and how many it leaves there."""
    rows = sum(_unpacked_size(one) / _ROW_BYTES[_format(one)] for one in found["reviews"].values())
    titles = sum(map(_unpacked_size, found["meta"].values()))
    return round(rows * 90 + titles * 0.2), round(rows * 15 + titles * 0.1)


def _unpacked_size(path: Path) -> int:
    return path.stat().st_size * (5 if path.suffix.lower() == PACKED else 1)


_ROW_BYTES = {"jsonl": 300, "csv": 55, "parquet": 25, None: 55}
"""About how many bytes a review takes in a file of each format."""
