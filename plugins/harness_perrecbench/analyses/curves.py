"""ptc by the number of users in a group, as in Figure 7, and by model size, as in Figure 8."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import msgspec

from harness.analysis.result_grid import row_name
from harness.analysis.user_tables import names_of, read_figures, read_models
from harness.base.errors import UsageError
from harness.contracts.report import Axis, Figure, Line, Points, Report, Sheet
from harness_perrecbench.analyses.grid import GRID, Row, by_model, data_of, published_table, rows_of
from harness_perrecbench.paper import COLUMN, OURS, TABLES, TAU_NOTES, WAYS, Cell
from harness_perrecbench.records import MEMBERS

if TYPE_CHECKING:
    from harness import FinishedTask

Values: TypeAlias = Mapping[Cell, float | None]


class SizeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `perrec-sizes`."""

    published: Annotated[
        bool, msgspec.Meta(description="show the numbers of the paper's text below")
    ] = False


def by_size(tasks: Sequence[FinishedTask], options: SizeOptions) -> Report:
    """The report of `perrec-sizes`: a figure per mean and per model, a curve per way of asking."""
    found = rows_of(tasks, (OURS, COLUMN))
    series = {
        tau: [*means_of(found, tau), *((row.name, values_of(row, tau)) for row in found)]
        for tau in (OURS, COLUMN)
    }
    sheets = [
        Sheet(
            title=f"{tau} by users in a group, unreadable groups counted 0",
            columns=("model", "asked", *(f"{users} users" for users in MEMBERS.values())),
            rows=tuple(
                (name, ask, *(values.get((level, ask)) for level in MEMBERS))
                for name, values in each
                for ask in WAYS
                if any((level, ask) in values for level in MEMBERS)
            ),
            notes=(
                "means are over the models in the same setting with every cell; each model counts "
                "once, with the mean of its runs",
            ),
            digits=2,
        )
        for tau, each in series.items()
    ]
    if options.published:
        sheets.append(TABLES.read("numbers").sheet(digits=3))
    return Report(
        sheets=tuple(sheets),
        figures=tuple(size_figure(name, values) for name, values in series[OURS]),
        notes=TAU_NOTES,
    )


def values_of(row: Row, tau: str) -> Values:
    return {cell: column.counted for cell, column in row.of(tau).items()}


def means_of(found: Sequence[Row], tau: str) -> Iterator[tuple[str, Values]]:
    """The named mean over models, for each setting and data with several models."""
    alike: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in found:
        alike[row.setting, *data_of(row.first)].append(row)
    for (setting, *_), several in alike.items():
        cells = GRID.filled(several, tau)
        models = [
            mean
            for of in by_model(several).values()
            if (mean := mean_of([values_of(row, tau) for row in of], cells))
        ]
        if len(models) > 1:
            yield row_name(f"mean of {len(models)} models", "", setting), mean_of(models, cells)


def mean_of(every: Sequence[Values], cells: Sequence[Cell]) -> Values:
    """The mean of the values with every cell; empty if none has."""
    known = [[values.get(cell) for cell in cells] for values in every]
    whole = [[value for value in values if value is not None] for values in known]
    whole = [values for values in whole if len(values) == len(cells)]
    means = [fsum(values) / len(whole) for values in zip(*whole, strict=True)]
    return dict(zip(cells, means, strict=True)) if whole else {}


def size_figure(name: str, values: Values) -> Figure:
    """A figure with a curve per way of asking, over the sizes with a value."""
    curves = []
    for ask in WAYS:
        known = {
            float(users): value
            for level, users in MEMBERS.items()
            if (value := values.get((level, ask))) is not None
        }
        if known:
            curves.append(Line(label=ask, x=tuple(known), y=tuple(known.values())))
    sizes = tuple(map(float, MEMBERS.values()))
    return Figure(
        title=f"{name}: ptc by users in a group",
        x=Axis(label="users in a group", low=1.8, high=4.2, ticks=sizes),
        y=Axis(label="ptc"),
        marks=tuple(curves),
    )


class ScaleOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `perrec-scale`."""

    figures: Annotated[
        str, msgspec.Meta(description="table with a row per model; a column family adds lines")
    ]
    column: Annotated[str, msgspec.Meta(description="the column with billions of parameters")] = (
        "parameters"
    )
    model: Annotated[str, msgspec.Meta(description="the column with the model's name")] = "model"
    published: Annotated[bool, msgspec.Meta(description="show the paper's Table 1 below")] = False


class Sized(NamedTuple):
    """One row's averages, and its model's size and family if the table has them."""

    name: str
    family: str | None
    size: float | None
    average: float | None
    published: float | None
    setting: str


def by_scale(tasks: Sequence[FinishedTask], options: ScaleOptions) -> Report:
    """The report of `perrec-scale`: a dot per model and a line per family, on a log axis."""
    from harness.contracts.task import Column

    found = rows_of(tasks, (OURS, COLUMN))
    cells = GRID.filled(found, OURS)
    sizes = read_figures(options.figures, model=options.model, column=options.column)
    for model, size in sizes.items():
        if size <= 0:  # the axis is logarithmic
            raise UsageError(
                "the size of a model cannot be used",
                where=f"{options.figures}, column {options.column!r}",
                found=f"{model}: {size:g}",
                expected="a number above 0",
            )
    about = {"family": Column(required=False)}
    rows = read_models(options.figures, about, model=options.model)
    families = {name: row["family"] for name, row in rows.items() if row["family"]}
    models: list[Sized] = []
    notes = [f"the average is over {len(cells)} cells"]
    for row in found:
        line = GRID.line(row, OURS, cells)
        names = [*names_of(row.model, row.first.manifest.model)]
        one = Sized(
            name=row.name,
            family=next((families[name] for name in names if name in families), None),
            size=next((sizes[name] for name in names if name in sizes), None),
            average=line.average.value,
            published=GRID.line(row, COLUMN, cells).average.value,
            setting=row.setting,
        )
        models.append(one)
        if one.average is None:
            notes += GRID.remarks(row, OURS, line)
    if all(one.size is None for one in models):
        raise UsageError(
            "no model of the runs has a size",
            where=options.figures,
            found=", ".join(sizes),
            expected=", ".join(one.name for one in models),
            hint="use the runs' names of models in the table",
        )
    ordered = sorted(models, key=lambda one: (one.family or "", one.size or 0.0))
    sheet = Sheet(
        title=f"ptc by {options.column}, unreadable groups counted 0",
        columns=("model", "family", options.column, "average", COLUMN),
        rows=tuple(one[:-1] for one in ordered),
        notes=tuple(notes),
        digits=(2, 2, 1, 2, 2),
    )
    published = (published_table("main", "model", "kind"),) if options.published else ()
    return Report(
        sheets=(sheet, *published),
        figures=tuple(scale_figures(models, options.column)),
        notes=TAU_NOTES,
    )


def scale_figures(models: Sequence[Sized], column: str) -> Iterator[Figure]:
    """One figure with the models that have a size and an average; none without any."""
    known: dict[tuple[str | None, str], list[tuple[float, float, str]]] = defaultdict(list)
    for one in models:
        if one.size is not None and one.average is not None:
            known[one.family, one.setting].append((one.size, one.average, one.name))
    marks: list[Line | Points] = []
    for (family, setting), dots in known.items():
        label = ", ".join(filter(None, (family or "no family", setting)))
        x, y, names = zip(*sorted(dots), strict=True)
        if family:
            marks.append(Line(label=label, x=x, y=y))
        marks.append(Points(label=label, x=x, y=y, names=names))
    if marks:
        yield Figure(
            title=f"ptc by {column}",
            x=Axis(label=column, log=True),
            y=Axis(label="average ptc"),
            marks=tuple(marks),
        )
