"""Which published rows a row of runs may stand beside, and why others may not."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum
from typing import TYPE_CHECKING

from harness_perrecbench.analyses.cells import CELLS
from harness_perrecbench.published import published, rows

if TYPE_CHECKING:
    from harness_perrecbench.analyses.rows import Row

GROUPS = 200
"""How many groups each cell of Table 1 is over."""

COLUMN = "ptc_published"
"""The column of scores that is defined as Table 1 is."""


def against(row: Row) -> tuple[str, ...]:
    """What speaks against putting a row beside those of Table 1; nothing where it may stand."""
    columns = row.of(COLUMN)
    told = [f"asked otherwise: {row.setting}"] if row.setting else []
    if len(row.tasks) < len(CELLS):
        told.append(f"{len(row.tasks)} of the nine tasks")
    for task in row.tasks.values():
        if not task.summary.comparable:
            told += task.summary.not_comparable_because or ("stamped as not comparable",)
    sizes = sorted({len(columns[cell].values) if cell in columns else 0 for cell in row.tasks})
    if sizes != [GROUPS]:
        told.append(f"{_span(sizes)} groups with a label in a cell, not {GROUPS}")
    if any(column.counted is None for column in columns.values()):
        told.append("a cell is not shown")
    return tuple(dict.fromkeys(told))


def next_to(average: float) -> tuple[rows.Result, ...]:
    """The rows of Table 1 that are next above and next below by average, the upper one first.

    Of rows with the same printed average the nearest is the one whose cells have the nearest mean.
    """
    every = published(rows.Result).rows
    above = [row for row in every if row.average is not None and row.average >= average]
    below = [row for row in every if row.average is not None and row.average < average]
    return (*sorted(above, key=_place)[:1], *sorted(below, key=_place)[-1:])


def _place(row: rows.Result) -> tuple[float, float]:
    return row.average or 0.0, fsum(value or 0.0 for value in row.cells.values())


def _span(sizes: Iterable[int]) -> str:
    low, *others = sizes
    return f"{low} to {others[-1]}" if others else f"{low}"
