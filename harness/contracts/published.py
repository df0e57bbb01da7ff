"""Tables and results of papers as data, which plugins ship with their benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from harness.contracts.report import Cell, Sheet


class PublishedResult(msgspec.Struct, frozen=True, kw_only=True):
    """One value that a paper reports: a model's result in one metric of one task.

    `task` is a task of the benchmark, or a group if the value is its average. `model` is the
    paper's name of the model. `low` and `high` bound the printed interval and `n` counts the units,
    if the paper gives them. `source` is the table; `comparable_if` is how a run must be made to be
    comparable.

        PublishedResult(task="quiz", metric="accuracy", model="GPT-4o", value=0.81, n=200,
                        source="Table 1", comparable_if="all 200 questions, asked once")
    """

    task: str
    metric: str
    model: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    source: str
    comparable_if: str = ""


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """One table: its place in the paper, the unit of its numbers, and its rows.

    Numbers that the paper does not give are null; `notes` are remarks for the reader.
    """

    source: str
    title: str
    units: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def dicts(self) -> list[dict[str, Any]]:
        """Each row as a dictionary by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    @property
    def heading(self) -> str:
        """The title of the table in reports."""
        return f"Published, {self.source}: {self.title} ({self.units})"

    def sheet(self, *, digits: int = 1) -> Sheet:
        """The table as a report shows it."""
        return Sheet(
            title=self.heading,
            columns=self.columns,
            rows=self.rows,
            notes=self.notes,
            digits=digits,
        )


@dataclass(frozen=True)
class PublishedTables:
    """The tables in the JSON files of a package, each found by the name of its file.

    TABLES = PublishedTables("harness_mine.published")
    TABLES.read("scores").dicts()[0]["model"]
    """

    package: str

    def names(self) -> tuple[str, ...]:
        """The names of all tables, in alphabetical order."""
        files = (
            file.name for file in resources.files(self.package).joinpath("published").iterdir()
        )
        return tuple(sorted(name[:-5] for name in files if name.endswith(".json")))

    def read(self, name: str) -> Published:
        """The table in the file `<name>.json`."""
        return _read(self.package, name)


@cache
def _read(package: str, name: str) -> Published:
    data = resources.files(package).joinpath("published", f"{name}.json").read_bytes()
    return msgspec.json.decode(data, type=Published)
