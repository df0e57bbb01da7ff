"""The average of the cells by the size of the model, as Figure 8 has it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec

from harness.errors import UsageError
from harness.results.beside import names_of, read_figures, read_models
from harness.results.report import Axis, Figure, Line, Points, Report, Sheet
from harness_perrecbench.analyses.layout import line_of, published_table, remarks
from harness_perrecbench.analyses.rows import Row, cells_in, rows_of
from harness_perrecbench.published import published, rows

if TYPE_CHECKING:
    from harness import KeptTask


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Where the sizes are."""

    figures: Annotated[
        str, msgspec.Meta(description="table with a row a model; with a column family, lines")
    ]
    column: Annotated[
        str, msgspec.Meta(description="the column that holds billions of parameters")
    ] = "parameters"
    model: Annotated[str, msgspec.Meta(description="the column that names the model")] = "model"
    published: Annotated[bool, msgspec.Meta(description="show the paper's Table 1 below")] = False


@dataclass(frozen=True, kw_only=True)
class Sized:
    """One row: its average, and its model's size and family where the table tells them."""

    name: str
    setting: str
    average: float | None
    size: float | None
    family: str | None


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """A dot a model, a line a family, the size on a logarithmic axis."""
    found = rows_of(tasks, ("ptc",))
    cells = cells_in(found, "ptc")
    sizes, families = read_sizes(options), read_families(options)
    lines = [line_of(row, "ptc", cells) for row in found]
    models = [
        Sized(
            name=row.name,
            setting=row.setting,
            average=line.average.value,
            size=next((sizes[name] for name in called(row) if name in sizes), None),
            family=next((families[name] for name in called(row) if name in families), None),
        )
        for row, line in zip(found, lines, strict=True)
    ]
    if all(one.size is None for one in models):
        raise UsageError(
            "no model of the runs has a size",
            where=options.figures,
            found=", ".join(sizes),
            expected=", ".join(one.name for one in models),
            hint="name the models as the runs do",
        )
    notes = [
        told
        for row, line in zip(found, lines, strict=True)
        if line.average.value is None
        for told in remarks(row, "ptc", line)
    ]
    sheets = [table(models, options.column, (f"the average is over {len(cells)} cells", *notes))]
    if options.published:
        sheets.append(published_table(published(rows.Result), first=("model", "kind")))
    return Report(sheets=tuple(sheets), figures=tuple(figures(models, options.column)))


def called(row: Row) -> Iterator[str]:
    """What the table may call a row's model."""
    return names_of(row.model, row.first.summary.model)


def read_sizes(options: Options) -> dict[str, float]:
    """The size of each model that has one; a size that is not above 0 has no place on the axis."""
    sizes = read_figures(options.figures, model=options.model, column=options.column)
    for model, size in sizes.items():
        if size <= 0:
            raise UsageError(
                "a model has no such size",
                where=f"{options.figures}, column {options.column!r}",
                found=f"{model}: {size:g}",
                expected="a number above 0",
            )
    return sizes


def read_families(options: Options) -> dict[str, str]:
    """The family of each model that has one."""
    from harness.tasks.task import Column

    columns = {"family": Column(required=False)}
    found = read_models(options.figures, columns, model=options.model)
    return {name: row["family"] for name, row in found.items() if row["family"]}


def table(models: Sequence[Sized], column: str, notes: Sequence[str]) -> Sheet:
    """Size and average of each model, by family and size."""
    ordered = sorted(models, key=lambda one: (one.family or "", one.size or 0.0))
    return Sheet(
        title=f"ptc by {column}, groups that cannot be read counted 0",
        columns=("model", "family", column, "average"),
        rows=tuple((one.name, one.family, one.size, one.average) for one in ordered),
        notes=tuple(notes),
        digits=(2, 2, 1, 2),
    )


def figures(models: Sequence[Sized], column: str) -> Iterator[Figure]:
    """One figure, of the models that have a size and an average; none without any."""
    known: dict[tuple[str | None, str], list[tuple[float, float, str]]] = defaultdict(list)
    for one in models:
        if one.size is not None and one.average is not None:
            known[one.family, one.setting].append((one.size, one.average, one.name))
    marks: list[Line | Points] = []
    for (family, setting), dots in known.items():
        label = ", ".join(filter(None, (family or "of no family", setting)))
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
