"""The files of a folder that hold the tables of a task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from harness.base.errors import DataError
from harness.data.source import FORMATS, PACKINGS
from harness.data.wording import join_names, nearest

if TYPE_CHECKING:
    from harness.contracts.task import TableSpec

SUFFIXES = ("", *PACKINGS)
ENTRIES = (".json",)
"""The endings of files that may be one JSON object."""


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
        raise _absent(place)
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


def files_of(folder: Path, name: str, table: TableSpec, *, task: str) -> tuple[Path, ...]:
    """The files that the first matching pattern of a table finds, in the order of their names.

    A pattern also finds packed files, with .gz or .zst at the end, if there is no plain one. It is
    an error if a required table has no file.
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
        expected=f"{join_names(patterns(name, table))}; "
        f"each may be packed ({' or '.join(PACKINGS)})",
        hint=_nearest_file(folder, patterns(name, table)),
    )


def check_inside(folder: Path, tables: Mapping[str, tuple[Path, ...]]) -> None:
    """Raise DataError for a file that is a link to a place outside the folder."""
    home = folder.resolve()
    for path in (path for paths in tables.values() for path in paths):
        if not path.resolve().is_relative_to(home):
            raise DataError(
                "a file of the task's data is a link to a place outside its folder",
                where=str(path),
                found=str(path.resolve()),
                expected=f"a file in {folder}",
                hint="copy it there, or name the folder on the command line with --data DIR",
            )


def patterns(name: str, table: TableSpec) -> tuple[str, ...]:
    """The names and globs of a table's files: its own, or its name in any format."""
    return table.files or tuple(name + suffix for suffix in (ENTRIES if table.entries else FORMATS))


def _counts(path: Path, folder: Path) -> bool:
    """Whether a match is data, and not a hidden file of an editor or file manager."""
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return not hidden and path.is_file()


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


def _absent(place: Path) -> DataError:
    parent = place.parent
    around = sorted(path.name for path in parent.iterdir()) if parent.is_dir() else []
    near = nearest(place.name, around)
    return DataError(
        "the file or folder of --data does not exist",
        where=str(place),
        found=None if parent.is_dir() else f"'{parent}' does not exist either",
        expected="an existing file or folder",
        hint=f"'{parent / near}' is the nearest name" if near else None,
    )
