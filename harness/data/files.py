"""Which files of a folder hold the tables of a task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from harness.base.errors import DataError
from harness.data.source import FORMATS, PACKINGS
from harness.data.wording import listed, nearest

if TYPE_CHECKING:
    from harness.contracts.task import TableSpec

SUFFIXES = ("", *PACKINGS)
ENTRIES = (".json",)
"""The endings of files that may be one JSON object."""


def find_tables(
    place: Path, tables: Mapping[str, TableSpec], *, task: str
) -> dict[str, tuple[Path, ...]]:
    """The files of each table in a folder; or, for a task with one table, the one file given.

    A table that is not required and has no file in the folder is left out.
    """
    if place.is_dir():
        found = {name: files_of(place, name, table, task=task) for name, table in tables.items()}
        return {name: paths for name, paths in found.items() if paths}
    if not place.exists():
        raise _absent(place)
    if not place.is_file():
        raise DataError(
            "this is no ordinary file, and a run reads its data more than once",
            where=str(place),
            expected="a file or folder on disk",
        )
    if len(tables) > 1:
        raise DataError(
            f"one file was given, and task '{task}' has {len(tables)} tables",
            where=str(place),
            expected="a folder that holds, for each table, one of its files:"
            + "".join(f"\n      {name}: {listed(patterns(name, t))}" for name, t in tables.items()),
            hint="give the folder with --data DIR",
        )
    return dict.fromkeys(tables, (place,))


def files_of(folder: Path, name: str, table: TableSpec, *, task: str) -> tuple[Path, ...]:
    """The files that the first fitting pattern of a table finds, in the order of their names.

    A pattern also finds packed files, whose names go on with .gz or .zst, where no plain one is.
    None is an error, but where the table is not required.
    """
    for pattern in patterns(name, table):
        if PurePosixPath(pattern).is_absolute() or ".." in PurePosixPath(pattern).parts:
            raise DataError(
                f"table '{name}' of task '{task}' looks for files outside its folder",
                found=f"'{pattern}'",
                expected="a name or glob inside the folder",
            )
        for suffix in SUFFIXES:
            found = sorted(
                (path for path in folder.glob(pattern + suffix) if _counts(path, folder)),
                key=lambda path: path.relative_to(folder).as_posix(),
            )
            if found:
                return tuple(found)
    if not table.required:
        return ()
    raise DataError(
        f"no file for table '{name}' of task '{task}'",
        where=str(folder),
        found=_content(folder),
        expected=f"{listed(patterns(name, table))}; each may be packed ({' or '.join(PACKINGS)})",
        hint=_nearest_file(folder, patterns(name, table)),
    )


def patterns(name: str, table: TableSpec) -> tuple[str, ...]:
    """The names and globs under which a table is looked for: its own, or its name in any format."""
    return table.files or tuple(name + suffix for suffix in (ENTRIES if table.entries else FORMATS))


def _counts(path: Path, folder: Path) -> bool:
    """Whether a match is data: not what editors and file managers hide beside it."""
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return not hidden and path.is_file()


def _content(folder: Path) -> str:
    names = sorted(
        path.name + ("/" if path.is_dir() else "")
        for path in folder.iterdir()
        if not path.name.startswith(".")
    )
    return f"a folder that holds {listed(names)}" if names else "an empty folder"


def _nearest_file(folder: Path, wanted: tuple[str, ...]) -> str | None:
    """Names are held against each other without their endings, which are few and alike."""
    stems = {path.name.partition(".")[0]: path.name for path in folder.iterdir() if path.is_file()}
    wanted_stems = [PurePosixPath(one).name.partition(".")[0] for one in wanted]
    near = next((found for one in wanted_stems if (found := nearest(one, stems))), None)
    return f"'{stems[near]}' is the nearest name" if near else None


def _absent(place: Path) -> DataError:
    parent = place.parent
    around = sorted(path.name for path in parent.iterdir()) if parent.is_dir() else []
    near = nearest(place.name, around)
    return DataError(
        "there is no such file or folder",
        where=str(place),
        found=None if parent.is_dir() else f"'{parent}' does not exist either",
        expected="the file or folder that --data names",
        hint=f"'{parent / near}' is the nearest name" if near else None,
    )
