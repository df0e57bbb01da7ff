"""Sheets in the layout of Table 1: a row a model, the nine cells, their average."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.reporting.text import reasons
from harness.results.report import Sheet
from harness_perrecbench.analyses.averages import Average, average_of
from harness_perrecbench.analyses.cells import CELLS, MOST_UNREADABLE, WAYS, Cell

if TYPE_CHECKING:
    from harness.results.published import Published
    from harness.results.report import Cell as Shown
    from harness_perrecbench.analyses.rows import Row
    from harness_perrecbench.published import rows

NARROW = "point, pair, list: asked pointwise, pairwise, listwise"


@dataclass(frozen=True, kw_only=True)
class Line:
    """A row of a sheet: what names it, a value a cell, and the average."""

    names: tuple[str, ...]
    cells: Mapping[Cell, float | int | None]
    average: Average = field(default_factory=Average)


def table(
    title: str,
    lines: Sequence[Line],
    cells: Collection[Cell] = CELLS,
    *,
    first: tuple[str, ...] = ("model",),
    notes: Iterable[str] = (),
) -> Sheet:
    """The lines with the cells in Table 1's order; averages and bounds where any line has one."""
    averages = any(line.average.value is not None for line in lines)
    bounds = any(line.average.low is not None for line in lines)
    average = "avg." if len(cells) == len(CELLS) else f"avg. of {len(cells)}"

    def row(line: Line) -> tuple[Shown, ...]:
        known = line.average
        return (
            *line.names,
            *(line.cells.get(cell) for cell in cells),
            *((known.value,) if averages else ()),
            *((known.low, known.high) if bounds else ()),
        )

    return Sheet(
        title=title,
        columns=(
            *first,
            *(f"{level} {WAYS[ask]}" for level, ask in cells),
            *((average,) if averages else ()),
            *(("low", "high") if bounds else ()),
        ),
        rows=tuple(map(row, lines)),
        notes=tuple(notes),
        digits=2,
    )


def line_of(row: Row, name: str, cells: Collection[Cell], *, called: str = "") -> Line:
    """One column of a row's scores, unreadable groups counted 0, with its average."""
    columns = row.of(name)
    return Line(
        names=(called or row.name,),
        cells={cell: column.counted for cell, column in columns.items()},
        average=average_of(columns, cells, task=row.first, name=name),
    )


def remarks(row: Row, name: str, line: Line) -> list[str]:
    """What a reader must know of a line: cells that are not shown, an average that is not there."""
    told = [
        f"{line.names[0]}, {' '.join(cell)}: {column.unreadable} of {len(column.values)} groups "
        f"could not be read ({reasons(column.causes)}), over {MOST_UNREADABLE:.0%}"
        for cell, column in row.of(name).items()
        if column.hidden
    ]
    return [*told, f"{line.names[0]}: {line.average.why}"] if line.average.why else told


def published_table(table_of: Published[rows.Cells], *, first: tuple[str, ...]) -> Sheet:
    """A published table of nine cells; `first` are the columns that name its rows."""
    lines = [published_line(row, *(getattr(row, name) for name in first)) for row in table_of.rows]
    title = f"Published, {table_of.source}: {table_of.title} ({table_of.units})"
    return table(title, lines, first=first, notes=table_of.notes)


def published_line(row: rows.Cells, *names: str) -> Line:
    """A published row as a line of those names."""
    return Line(names=names, cells=row.cells, average=Average(value=row.average))
