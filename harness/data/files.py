"""The files of a folder that hold the tables of a task."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from harness.base.errors import DataError
from harness.data.read import FORMATS
from harness.data.records import PACKINGS
from harness.data.wording import join_names, nearest

if TYPE_CHECKING:
    from harness.contracts.task import TableSpec

SUFFIXES = ("", *PACKINGS)
ENTRIES = (".json",)
"""The endings of files that may be one JSON object."""

GLOB = frozenset("*?[")

MOST_FOLDERS = 1_000
"""How many folders in a folder are searched for tables."""


def find_tables(
    place: Path, tables: Mapping[str, TableSpec], *, task: str
) -> dict[str, tuple[Path, ...]]:
    """The files of each table in a folder; or, for a task with one table, the given file.

    A table that is not required and has no file in the folder is left out.
    """
    if place.is_dir():
        found = {name: files_of(place, name, table, task=task) for name, table in tables.items()}
        return {name: paths for name, paths in found.items() if paths}
    if not place.exists():
        parent = place.parent
        around = sorted(path.name for path in parent.iterdir()) if parent.is_dir() else []
        near = nearest(place.name, around)
        raise DataError(
            "the file or folder of --data does not exist",
            where=str(place),
            found=None if parent.is_dir() else f"'{parent}' does not exist either",
            expected="an existing file or folder",
            hint=f"'{parent / near}' is the nearest name" if near else None,
        )
    if not place.is_file():
        raise DataError(
            "not a regular file; a run reads its data more than once",
            where=str(place),
            expected="a file or folder on disk",
        )
    if len(tables) > 1:
        raise DataError(
            f"one file was given, but task '{task}' has {len(tables)} tables",
            where=str(place),
            expected="a folder with one of these files for each table:"
            + "".join(
                f"\n      {name}: {join_names(patterns(name, t))}" for name, t in tables.items()
            ),
            hint="give the folder with --data DIR",
        )
    return dict.fromkeys(tables, (place,))


def holder_of(place: Path, tables: Mapping[str, TableSpec], *, task: str) -> Path | None:
    """The place that holds tables of a task: the given one, or the only folder in it that does.

    None if there is no such place. A place that does not exist is returned as it is. A folder in it
    must have files by their names: what a glob finds there may belong to something else.
    """
    if place.is_file():
        return place if len(tables) == 1 else None
    if not place.is_dir() or not tables:
        return place
    if any(_matches(place, name, table, task=task) for name, table in tables.items()):
        return place
    by_name = _inside(place, _without_globs(tables), task=task)
    inside = [folder for folder in by_name if _holds(folder, tables, task=task)]
    return inside[0] if len(inside) == 1 else None


def no_table(place: Path, tables: Mapping[str, TableSpec], *, task: str) -> DataError:
    """The error for a place that holds no table of a task, with what was looked for.

    It has a hint if a file with a similar name, or a folder above or below, may be meant.
    """
    folder = place if place.is_dir() else None
    wanted = [pattern for name, table in tables.items() for pattern in patterns(name, table)]
    return DataError(
        f"--data holds no table of task '{task}'",
        where=str(place),
        found=_content(folder) if folder else "one file, for a task with several tables",
        expected="a folder with such files:"
        + "".join(f"\n      {name}: {join_names(patterns(name, t))}" for name, t in tables.items()),
        hint=_nearest_file(folder, tuple(wanted))
        or _other_level(folder, _without_globs(tables), task=task)
        if folder
        else None,
    )


def files_of(folder: Path, name: str, table: TableSpec, *, task: str) -> tuple[Path, ...]:
    """The files that the first matching pattern of a table finds, in the order of their names.

    A pattern also finds packed files, with .gz or .zst at the end, if there is no plain one. It is
    an error if a required table has no file.
    """
    found = _matches(folder, name, table, task=task)
    if found or not table.required:
        return found
    raise DataError(
        f"no file for table '{name}' of task '{task}'",
        where=str(folder),
        found=_content(folder),
        expected=f"{join_names(patterns(name, table))}; "
        f"each may be packed ({' or '.join(PACKINGS)})",
        hint=_nearest_file(folder, patterns(name, table))
        or _other_level(folder, {name: table}, task=task),
    )


def _matches(folder: Path, name: str, table: TableSpec, *, task: str) -> tuple[Path, ...]:
    for pattern in patterns(name, table):
        if PurePosixPath(pattern).is_absolute() or ".." in PurePosixPath(pattern).parts:
            raise DataError(
                f"table '{name}' of task '{task}' looks for files outside its folder",
                found=f"'{pattern}'",
                expected="a name or glob inside the folder",
            )
        for suffix in SUFFIXES:
            paths = folder.glob(pattern + suffix)
            # Hidden files are those of an editor or a file manager.
            found = [
                path
                for path in sorted(paths, key=lambda path: path.relative_to(folder).as_posix())
                if path.is_file() and "/." not in f"/{path.relative_to(folder).as_posix()}"
            ]
            if found:
                return tuple(found)
    return ()


def _without_globs(tables: Mapping[str, TableSpec]) -> dict[str, TableSpec]:
    """The tables that have names of files, with these names only."""
    found = {}
    for name, table in tables.items():
        files = tuple(one for one in patterns(name, table) if not GLOB & set(one))
        if files:
            found[name] = msgspec.structs.replace(table, files=files)
    return found


def _holds(folder: Path, tables: Mapping[str, TableSpec], *, task: str) -> bool:
    """Whether a folder has a table of the task, and every required one."""
    found = {name: _matches(folder, name, table, task=task) for name, table in tables.items()}
    return any(found.values()) and all(
        found[name] or not table.required for name, table in tables.items()
    )


def _inside(folder: Path, tables: Mapping[str, TableSpec], *, task: str) -> list[Path]:
    there = (one for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))
    return sorted(
        one for one in itertools.islice(there, MOST_FOLDERS) if _holds(one, tables, task=task)
    )


def _other_level(folder: Path, tables: Mapping[str, TableSpec], *, task: str) -> str | None:
    """A hint with the folder above, or those below, that hold the tables."""
    below = _inside(folder, tables, task=task)
    if below:
        which = "that folder" if len(below) == 1 else "one of them"
        return f"such files are in {join_names(map(str, below))}: give {which}"
    above = folder.parent if folder.name not in ("", "..") else folder.resolve().parent
    if _holds(above, tables, task=task):
        return f"such files are in the folder above, {above}: give that folder"
    return None


def patterns(name: str, table: TableSpec) -> tuple[str, ...]:
    """The names and globs of a table's files: its own, or its name in any format."""
    one_object = table.entries is not None or table.rows_at is not None
    return table.files or tuple(name + suffix for suffix in (ENTRIES if one_object else FORMATS))


def _content(folder: Path) -> str:
    names = sorted(
        path.name + ("/" if path.is_dir() else "")
        for path in folder.iterdir()
        if not path.name.startswith(".")
    )
    return f"a folder with {join_names(names)}" if names else "an empty folder"


def _nearest_file(folder: Path, wanted: tuple[str, ...]) -> str | None:
    """A hint with the nearest name; names are compared without extensions, which are alike."""
    stems = {path.name.partition(".")[0]: path.name for path in folder.iterdir() if path.is_file()}
    wanted_stems = [PurePosixPath(one).name.partition(".")[0] for one in wanted]
    near = next((found for one in wanted_stems if (found := nearest(one, stems))), None)
    return f"'{stems[near]}' is the nearest name" if near else None
