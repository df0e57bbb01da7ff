"""ptc by the number of users in a group, as Figure 7 has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec

from harness.results.report import Axis, Figure, Line, Report, Sheet
from harness_perrecbench.analyses.cells import WAYS, Cell
from harness_perrecbench.analyses.rows import Row, cells_in, rows_of
from harness_perrecbench.published import published, rows
from harness_perrecbench.records import MEMBERS

if TYPE_CHECKING:
    from harness import KeptTask

Values: TypeAlias = Mapping[Cell, float | None]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What may be asked of the analysis."""

    published: Annotated[
        bool, msgspec.Meta(description="show the numbers of the paper's text below")
    ] = False


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """A curve for each way of asking, a figure a model, and one of their mean before."""
    found = rows_of(tasks, ("ptc",))
    series = {row.name: values_of(row) for row in found}
    if mean := mean_of(found):
        series = {mean[0]: mean[1], **series}
    sheets = [table(series)]
    if options.published:
        sheets.append(published(rows.Number).sheet(digits=3))
    return Report(
        sheets=tuple(sheets),
        figures=tuple(figure(name, values) for name, values in series.items()),
    )


def values_of(row: Row) -> Values:
    """What each cell shows."""
    return {cell: column.counted for cell, column in row.of("ptc").items()}


def mean_of(found: Sequence[Row]) -> tuple[str, Values] | None:
    """The mean over the rows that show every cell, by its name; None of fewer than two."""
    cells = cells_in(found, "ptc")
    whole = [
        [value for value in values if value is not None]
        for row in found
        for known in [values_of(row)]
        for values in [[known.get(cell) for cell in cells]]
        if None not in values
    ]
    if len(whole) < 2:
        return None
    means = [fsum(values) / len(whole) for values in zip(*whole, strict=True)]
    return f"mean of {len(whole)}", dict(zip(cells, means, strict=True))


def table(series: Mapping[str, Values]) -> Sheet:
    """A row for each model and way, a column a size."""
    return Sheet(
        title="ptc by users in a group, groups that cannot be read counted 0",
        columns=("model", "asked", *(f"{users} users" for users in MEMBERS.values())),
        rows=tuple(
            (name, ask, *(values.get((level, ask)) for level in MEMBERS))
            for name, values in series.items()
            for ask in WAYS
            if any((level, ask) in values for level in MEMBERS)
        ),
        notes=("a mean is over the models that show every cell",),
        digits=2,
    )


def figure(name: str, values: Values) -> Figure:
    """A curve a way of asking."""
    return Figure(
        title=f"{name}: ptc by users in a group",
        x=Axis(label="users in a group", low=1.8, high=4.2),
        y=Axis(label="ptc"),
        marks=tuple(curves(values)),
    )


def curves(values: Values) -> Iterator[Line]:
    """The sizes at which a way of asking has a value."""
    for ask in WAYS:
        known = [
            (float(users), value)
            for level, users in MEMBERS.items()
            if (value := values.get((level, ask))) is not None
        ]
        if known:
            x, y = zip(*known, strict=True)
            yield Line(label=ask, x=x, y=y)
