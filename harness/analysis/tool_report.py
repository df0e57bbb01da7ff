"""What data tools write beside their tables, and where they may write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import UsageError
from harness.runs.atomic_files import atomic_write, make_folder


def settings_without(settings: msgspec.Struct, *names: str) -> dict[str, Any]:
    """The settings of a tool by name, without the given ones, which name files of this machine.

    settings_without(settings, "log", "out")
    """
    return {
        name: one for name, one in msgspec.structs.asdict(settings).items() if name not in names
    }


def write_json(file: Path, value: Any, *, option: str) -> None:
    """Write a value as indented JSON; `option` is the option that chose the folder."""
    make_folder(file.parent, option=option)
    formatted = msgspec.json.format(msgspec.json.encode(value), indent=2)
    atomic_write(file, formatted + b"\n", option=option)


def check_empty(folder: Path, what: str, *, option: str) -> None:
    """Raise UsageError unless the folder is empty or does not exist; `what` names it."""
    there = [folder.name] if folder.exists() and not folder.is_dir() else []
    if folder.is_dir():
        there = sorted(path.name for path in folder.iterdir())
    if there:
        raise UsageError(
            f"{what} is not empty",
            where=str(folder),
            found=", ".join(there[:5]),
            expected=f"{option}: an empty folder, or one that does not exist yet",
        )
