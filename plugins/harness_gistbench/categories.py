"""The categories that interests are mapped to: the bundled ones, those of a file, or as listed."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from harness import DataError
from harness.base.hashing import digest
from harness_gistbench.interests import folded
from harness_gistbench.records import Category, Options

BUNDLED = Path(__file__).parent / "categories.csv"
COLUMNS = ["category_id", "category_name"]


def categories(taxonomy: str | tuple[str, ...] | None) -> tuple[Category, ...]:
    """The categories of a file, of the bundled one where none is named, or listed; in order."""
    if isinstance(taxonomy, tuple):
        return listed(taxonomy)
    file = BUNDLED if taxonomy is None else Path(taxonomy).expanduser()
    rows = csv.reader(io.StringIO(text_of(file), newline=""), strict=True)
    try:
        header = next(rows, [])
        if header != COLUMNS:
            raise problem(f"{file}:1", ",".join(header), f"the header {','.join(COLUMNS)}")
        found = tuple(category(row, f"{file}:{rows.line_num}") for row in rows if row)
    except csv.Error as error:
        raise problem(f"{file}:{rows.line_num}", str(error), "a CSV file") from error
    check_unique([str(one.id) for one in found], "category_id", str(file))
    check_unique([folded(one.name) for one in found], "category_name", str(file))
    if not found:
        raise problem(f"{file}:1", "no category", "at least one")
    return found


def listed(names: tuple[str, ...]) -> tuple[Category, ...]:
    """Categories of these names, numbered from 1 on."""
    where = "the option `taxonomy`"
    if not names or not all(name.strip() for name in names):
        found = "a name that is blank" if names else "no category"
        raise problem(where, found, "a list of names")
    check_unique([folded(name) for name in names], "category_name", where)
    return tuple(Category(number, name.strip()) for number, name in enumerate(names, start=1))


def describe_taxonomy(taxonomy: str | tuple[str, ...] | None) -> str:
    """What a message calls the taxonomy that the options name."""
    if isinstance(taxonomy, tuple):
        return f"{len(taxonomy)} listed names"
    return taxonomy or "the bundled one"


def taxonomy_digest(taxonomy: tuple[Category, ...]) -> str:
    """A key that stands for ids, names and their order."""
    return digest([[one.id, one.name] for one in taxonomy])


def contents(options: Options) -> dict[str, str]:
    """What must be the same for the numbers of categories to mean the same."""
    return {"taxonomy": taxonomy_digest(categories(options.taxonomy))}


def text_of(file: Path) -> str:
    """The text of a taxonomy file."""
    try:
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(
            "the taxonomy cannot be read",
            where=str(file),
            found=error.strerror or str(error),
            expected=f"a CSV file with the columns {','.join(COLUMNS)}",
            hint="the option `taxonomy` names it, as seen from the working folder; "
            "a task for other people lists the names themselves",
        ) from error
    except UnicodeDecodeError as error:
        raise DataError("the taxonomy is no UTF-8 text", where=str(file), found=str(error)) from (
            error
        )


def category(row: list[str], where: str) -> Category:
    """The category in a row."""
    if len(row) != 2 or not row[1].strip():
        raise problem(where, ",".join(row), "an id and a name")
    if not row[0].isascii() or not row[0].isdecimal() or len(row[0]) > 9 or int(row[0]) < 1:
        raise problem(where, row[0], "a category_id that is a whole number from 1 on")
    return Category(int(row[0]), row[1].strip())


def check_unique(values: list[str], column: str, where: str) -> None:
    """Raise DataError where a value stands twice."""
    repeated = [value for place, value in enumerate(values) if value in values[:place]]
    if repeated:
        raise DataError(
            f"two categories of the taxonomy share a {column}",
            where=where,
            found=repeated[0],
            expected="each id and each name once",
        )


def problem(where: str, found: str, expected: str) -> DataError:
    """The error for what is no category."""
    return DataError("the taxonomy cannot be used", where=where, found=found, expected=expected)
