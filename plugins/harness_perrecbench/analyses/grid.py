"""The grid of Table 1: a row per model and setting, a cell per level and way of asking."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from harness.analysis.result_grid import (
    Average,
    GridRow,
    Line,
    ResultGrid,
    neighbours,
    published_lines,
)
from harness.analysis.task_setting import TaskSetting
from harness.base.errors import UsageError
from harness_perrecbench import paper

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Sheet

Row = GridRow[paper.Cell]

NARROW = "point, pair, list: asked pointwise, pairwise, listwise"

SETTING = TaskSetting(
    passed_over={"level", "ask", "behaviours"},
    sampling={"temperature": 0.1, "max_tokens": 800},
    words={
        ("profile", "none"): "without profile",
        ("profile", "no_text"): "without profile text",
        ("split", "held_out"): "held-out groups",
        ("thought", True): "chain of thought",
    },
    counted={"shots", "samples"},
)
"""Describes differences to the nine tasks; comparisons have their own, shorter token limit."""

setting_of = SETTING.describe


def cell_of(task: FinishedTask) -> paper.Cell:
    return task.options.level, task.options.ask


def data_of(task: FinishedTask) -> tuple[Any, ...]:
    """A key of the data that all levels share, with the limit."""
    data = task.entry.data
    tables = data.get("tables", {})
    of_all_levels = (tables.get(name, {}).get("fingerprint") for name in ("histories", "items"))
    return data.get("origin"), *of_all_levels, task.manifest.limit


GRID = ResultGrid[paper.Cell](
    name="perrec",
    headings={(level, ask): f"{level} {paper.WAYS[ask]}" for level, ask in paper.CELLS},
    cell=cell_of,
    setting=setting_of,
    alike=data_of,
    label=" ".join,
    units="groups",
    empty="no group has a label",
)


def no_task(tasks: Iterable[FinishedTask], problem: str, *, expected: str) -> UsageError:
    """The error for an analysis that can use none of the tasks."""
    names = dict.fromkeys(task.task.name for task in tasks)
    return UsageError(problem, found=", ".join(names), expected=expected)


def ranked(tasks: Iterable[FinishedTask]) -> list[FinishedTask]:
    """The tasks that ask for rankings of groups; UsageError if there is none."""
    every = list(tasks)
    found = [task for task in every if cell_of(task) in paper.CELLS]
    if not found:
        raise no_task(
            every,
            "no task asks for rankings of groups",
            expected="a task with ask: pointwise, pairwise or listwise",
        )
    return found


def rows_of(tasks: Iterable[FinishedTask], names: Collection[str]) -> list[Row]:
    """The tasks that ask for rankings as rows of the grid, with the named columns."""
    return GRID.rows(ranked(tasks), names)


def by_model(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each model, in their order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.model, []).append(row)
    return found


def published_table(name: str, *first: str) -> Sheet:
    """A published table of nine cells; `first` are the columns that name its rows."""
    table = paper.TABLES.read(name)
    lines = [
        Line(
            names=tuple(row[column] for column in first),
            cells={cell: row[" ".join(cell)] for cell in paper.CELLS},
            average=Average(value=row["average"]),
        )
        for row in table.dicts()
    ]
    return GRID.sheet(table.heading, lines, first=first, notes=table.notes)


def against(row: Row) -> tuple[str, ...]:
    """The reasons why a row is not comparable to Table 1; empty if it is."""
    columns = row.of(paper.COLUMN)
    setting = setting_of(row.first, but=("tail", "system"))
    reasons = [f"different settings: {setting}"] if setting else []
    if len(row.tasks) < len(paper.CELLS):
        reasons.append(f"{len(row.tasks)} of the nine tasks")
    for task in row.tasks.values():
        if not task.summary.comparable:
            reasons += task.summary.not_comparable_because or ("marked as not comparable",)
    sizes = {len(columns[cell].values) if cell in columns else 0 for cell in row.tasks}
    if sizes != {paper.GROUPS}:
        span = " to ".join(map(str, dict.fromkeys((min(sizes), max(sizes)))))
        reasons.append(f"{span} groups with a label in a cell, not {paper.GROUPS}")
    if any(column.counted is None for column in columns.values()):
        reasons.append("a cell is not shown")
    return tuple(dict.fromkeys(reasons))


def next_to(average: float, tail: str) -> dict[str, Line[paper.Cell]]:
    """The rows of Table 1 with the next higher and the next lower average, by model.

    Those of models whose list prompts had this tail come first, and then those of any model.
    """
    cells = {paper.task_of(cell): cell for cell in paper.CELLS}
    known = paper.tails()
    lines = dict(
        zip(known, published_lines(paper.results(), lambda one: cells.get(one.task)), strict=True)
    )
    alike = [line for model, line in lines.items() if known[model] == tail]
    near = (*neighbours(alike, average), *neighbours(lines.values(), average))
    return {model: line for one in near for model, line in lines.items() if line is one}


def remarks_on(found: Sequence[Row], name: str, lines: Sequence[Line[paper.Cell]]) -> list[str]:
    """The remarks on the lines of some rows."""
    pairs = zip(found, lines, strict=True)
    return [remark for row, line in pairs for remark in GRID.remarks(row, name, line)]
