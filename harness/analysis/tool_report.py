"""The rules of a data tool with what each one left, as a table for people and as JSON.

report = ToolReport(
    rules="users …",
    dropped="users",
    steps=(
        Step("in the file", {"users": 900, "ratings": 50_000}),
        Step("with 20 ratings or more", {"users": 640, "ratings": 47_500}),
    ),
)
Report(sheets=(report.sheet("What each rule leaves"),))
write_json(out / "users.json", {"rules": report.json()}, option="--out")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import UsageError
from harness.contracts.report import Cell, Sheet
from harness.runs.atomic_files import atomic_write, make_folder


@dataclass(frozen=True)
class Step:
    """A rule with the count of each kind that it left; every step counts the same kinds."""

    rule: str
    left: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class ToolReport:
    """The rules that a tool applied, in their order.

    `rules` is the header of their column; `dropped` is the kind whose losses get a column.
    """

    rules: str
    dropped: str
    steps: Sequence[Step]

    def losses(self) -> list[int | None]:
        """How many of the kind `dropped` each rule removed; None for the first rule."""
        left = [step.left[self.dropped] for step in self.steps]
        return [None, *(before - after for before, after in pairwise(left))] if left else []

    def sheet(self, title: str, *, notes: Iterable[str] = ()) -> Sheet:
        """A row for each rule: what it left of each kind, and what it removed."""
        rows: list[tuple[Cell, ...]] = [
            (step.rule, *step.left.values(), lost)
            for step, lost in zip(self.steps, self.losses(), strict=True)
        ]
        return Sheet(
            title=title,
            columns=(self.rules, *self._kinds(), f"{self.dropped} removed"),
            rows=tuple(rows),
            notes=tuple(notes),
        )

    def lines(self) -> list[str]:
        """The same as aligned lines for an error, the rules last."""
        rows = [(*self._kinds(), f"{self.dropped} removed", self.rules)]
        for step, lost in zip(self.steps, self.losses(), strict=True):
            counts = (*step.left.values(), lost)
            rows.append((*("" if one is None else f"{one:,}" for one in counts), step.rule))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            "  ".join(
                (*(cell.rjust(width) for cell, width in zip(cells, widths, strict=False)), rule)
            )
            for *cells, rule in rows
        ]

    def json(self) -> list[dict[str, str | int]]:
        """The same for a file: an object for each rule."""
        return [{"rule": step.rule, **step.left} for step in self.steps]

    def _kinds(self) -> tuple[str, ...]:
        return tuple(self.steps[0].left) if self.steps else ()


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
