"""How IG F1 is spread over the users of each model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.results.report import Axis, Boxes, Cell, Figure, Report, Rule, Sheet
from harness_gistbench.analyses.comparing import (
    ComparisonOptions,
    by_dataset,
    comparable,
    oracle_notes,
    people,
    rescored,
    share,
)

if TYPE_CHECKING:
    from harness import KeptTask

Options = ComparisonOptions

COLUMNS = ("dataset", "model", "users", "least", "25 %", "median", "75 %", "most", "at 0 %")
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """A box a model over its users, and a line at the median of all of them; a figure a dataset."""
    runs, notes = comparable(tasks, options)
    rows, figures = [], []
    for dataset, together in by_dataset(runs).items():
        values = {
            one.model: tuple(score.values["ig_f1"] for score in scores if "ig_f1" in score.values)
            for one, scores in rescored(together)
        }
        everybody = [value for of_model in values.values() for value in of_model]
        rows += [(dataset, model, *row(of_model)) for model, of_model in values.items()]
        rows.append((dataset, "all", *row(everybody)))
        if everybody:
            figures.append(figure(dataset, values, everybody))
    sheet = Sheet(
        title="IG F1 over users, in %",
        columns=COLUMNS,
        rows=tuple(rows),
        notes=("at 0 %: the share of the users whose IG F1 is 0",),
    )
    return Report(
        sheets=(sheet, people(runs)), figures=tuple(figures), notes=(*oracle_notes(runs), *notes)
    )


def row(values: Sequence[float]) -> tuple[Cell, ...]:
    """How many values there are, their quarters, and how many of them are 0."""
    if not values:
        return (0, *(None for _ in QUARTERS), None)
    zeros = sum(value == 0 for value in values)
    return (len(values), *(100 * value for value in quantiles(values)), share(zeros, len(values)))


def quantiles(values: Sequence[float]) -> tuple[float, ...]:
    """Least, quartiles and most, between neighbours in proportion."""
    import numpy as np

    return tuple(float(value) for value in np.quantile(values, QUARTERS))


def figure(
    dataset: str, values: dict[str, tuple[float, ...]], everybody: Sequence[float]
) -> Figure:
    """The boxes of the models that have values, over the line of all."""
    drawn = {model: of_model for model, of_model in values.items() if of_model}
    middle = quantiles(everybody)[2]
    return Figure(
        title=f"{dataset}: IG F1 of users",
        x=Axis(label=""),
        y=Axis(label="IG F1", low=0.0, high=1.0),
        marks=(
            Boxes(label="IG F1", names=tuple(drawn), values=tuple(drawn.values())),
            Rule(label="median of all", at=middle),
        ),
    )
