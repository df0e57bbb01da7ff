"""ptc by the number of users in a group, as Figure 7 has it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec

from harness.results.report import Axis, Figure, Line, Report, Sheet
from harness_perrecbench.analyses.cells import WAYS, Cell
from harness_perrecbench.analyses.rows import (
    Row,
    by_model,
    called,
    cells_in,
    data_of,
    rows_of,
)
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
    """A curve for each way of asking, a figure a model, and before these one for each mean."""
    found = rows_of(tasks, ("ptc",))
    series = [*means_of(found), *((row.name, values_of(row)) for row in found)]
    sheets = [table(series)]
    if options.published:
        sheets.append(published(rows.Number).sheet(digits=3))
    return Report(
        sheets=tuple(sheets),
        figures=tuple(figure(name, values) for name, values in series),
    )


def values_of(row: Row) -> Values:
    """What each cell shows."""
    return {cell: column.counted for cell, column in row.of("ptc").items()}


def means_of(found: Sequence[Row]) -> Iterator[tuple[str, Values]]:
    """The mean of models for each setting and data that several models were asked in, named."""
    alike: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in found:
        alike[row.setting, *data_of(row.first)].append(row)
    for (setting, *_), several in alike.items():
        cells = cells_in(several, "ptc")
        models = [
            mean
            for of in by_model(several).values()
            if (mean := mean_of([values_of(row) for row in of], cells))
        ]
        if len(models) > 1:
            yield called(f"mean of {len(models)} models", "", setting), mean_of(models, cells)


def mean_of(every: Sequence[Values], cells: Sequence[Cell]) -> Values:
    """The mean of those that show every cell; empty where none does."""
    known = [[values.get(cell) for cell in cells] for values in every]
    whole = [[value for value in values if value is not None] for values in known]
    whole = [values for values in whole if len(values) == len(cells)]
    means = [fsum(values) / len(whole) for values in zip(*whole, strict=True)]
    return dict(zip(cells, means, strict=True)) if whole else {}


def table(series: Sequence[tuple[str, Values]]) -> Sheet:
    """A row for each model and way, a column a size."""
    return Sheet(
        title="ptc by users in a group, groups that cannot be read counted 0",
        columns=("model", "asked", *(f"{users} users" for users in MEMBERS.values())),
        rows=tuple(
            (name, ask, *(values.get((level, ask)) for level in MEMBERS))
            for name, values in series
            for ask in WAYS
            if any((level, ask) in values for level in MEMBERS)
        ),
        notes=(
            "a mean is over models that were asked in the same way and show every cell; each "
            "counts once, with the mean of its runs",
        ),
        digits=2,
    )


def figure(name: str, values: Values) -> Figure:
    """A curve a way of asking."""
    return Figure(
        title=f"{name}: ptc by users in a group",
        x=Axis(
            label="users in a group",
            low=1.8,
            high=4.2,
            ticks=tuple(map(float, MEMBERS.values())),
        ),
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
