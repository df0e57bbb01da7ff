"""The scores of single users: precision against recall, and how IG F1 is spread."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from harness.contracts.report import Axis, Boxes, Figure, Line, Points, Report, Rule, Sheet
from harness_gistbench.analyses.compared_runs import ComparisonOptions, compare, percent, share

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

DIAGONAL = Line(label="precision = recall", x=(0.0, 1.0), y=(0.0, 1.0), dashed=True)
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


def precision_recall(tasks: Sequence[FinishedTask], options: ComparisonOptions) -> Report:
    """Precision against recall: a dot a user, a diamond a model's medians, a figure a dataset."""
    compared = compare(tasks, options)
    rows: list[tuple[Cell, ...]] = []
    dots: dict[str, list[Points]] = {dataset: [] for dataset in compared.by_dataset()}
    diamonds: dict[str, list[Points]] = {dataset: [] for dataset in dots}
    for dataset, run, users in compared.rescored():
        pairs = [
            (score.values["ig_r"], score.values["ig_p"])
            for score in users
            if {"ig_r", "ig_p"} <= score.values.keys()
        ]
        rows.append((dataset, run.model, *pair_cells(pairs)))
        if pairs:
            x, y = zip(*pairs, strict=True)
            dots[dataset].append(Points(label=run.model, x=x, y=y, faint=True))
            diamond = Points(label=run.model, x=(median(x),), y=(median(y),), shape="diamond")
            diamonds[dataset].append(diamond)
    sheet = Sheet(
        title="Precision and recall by user",
        columns=("dataset", "model", "users", "IG P", "IG R", "P above R %", "P below 50 %"),
        rows=tuple(rows),
        notes=("IG P and IG R are medians in %; the shares are of the users with both",),
    )
    figures = [
        Figure(
            title=f"{dataset}: precision and recall of users",
            x=Axis(label="IG R", low=0.0, high=1.0),
            y=Axis(label="IG P", low=0.0, high=1.0),
            marks=(DIAGONAL, *dots[dataset], *diamonds[dataset]),
        )
        for dataset in dots
    ]
    return compared.report([sheet], figures)


def pair_cells(pairs: Sequence[tuple[float, float]]) -> tuple[Cell, ...]:
    """The cells of one run's recalls and precisions."""
    count = len(pairs)
    return (
        count,
        percent(median(precision for _, precision in pairs)) if pairs else None,
        percent(median(recall for recall, _ in pairs)) if pairs else None,
        share(sum(precision > recall for recall, precision in pairs), count),
        share(sum(precision < 0.5 for _, precision in pairs), count),
    )


def boxes(tasks: Sequence[FinishedTask], options: ComparisonOptions) -> Report:
    """IG F1: a box a model over its users, and a line at the median of all; a figure a dataset."""
    compared = compare(tasks, options)
    values: dict[str, dict[str, tuple[float, ...]]] = {}
    for dataset, run, users in compared.rescored():
        found = (score.values.get("ig_f1") for score in users)
        values.setdefault(dataset, {})[run.model] = tuple(one for one in found if one is not None)
    rows: list[tuple[Cell, ...]] = []
    figures = []
    for dataset, models in values.items():
        everybody = [value for of_model in models.values() for value in of_model]
        rows += [(dataset, model, *quarter_cells(of_model)) for model, of_model in models.items()]
        rows.append((dataset, "all", *quarter_cells(everybody)))
        if everybody:
            figures.append(box_figure(dataset, models, median=quantiles(everybody)[2]))
    sheet = Sheet(
        title="IG F1 over users, in %",
        columns=("dataset", "model", "users", "least", "25 %", "median", "75 %", "most", "at 0 %"),
        rows=tuple(rows),
        notes=("at 0 %: the share of the users whose IG F1 is 0",),
    )
    return compared.report([sheet], figures)


def quarter_cells(values: Sequence[float]) -> tuple[Cell, ...]:
    """How many values there are, their quarters, and how many of them are 0."""
    if not values:
        return (0, *(None for _ in QUARTERS), None)
    zeros = sum(value == 0 for value in values)
    return (len(values), *(100 * value for value in quantiles(values)), share(zeros, len(values)))


def quantiles(values: Sequence[float]) -> tuple[float, ...]:
    """Least, quartiles and most, between neighbours in proportion."""
    import numpy as np

    return tuple(float(value) for value in np.quantile(values, QUARTERS))


def box_figure(dataset: str, models: dict[str, tuple[float, ...]], *, median: float) -> Figure:
    """The boxes of the models that have values, over the median of all."""
    drawn = {model: values for model, values in models.items() if values}
    return Figure(
        title=f"{dataset}: IG F1 of users",
        x=Axis(label=""),
        y=Axis(label="IG F1", low=0.0, high=1.0),
        marks=(
            Boxes(label="IG F1", names=tuple(drawn), values=tuple(drawn.values())),
            Rule(label="median of all", at=median),
        ),
    )
