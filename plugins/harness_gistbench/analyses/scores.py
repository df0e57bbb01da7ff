"""The scores of models on datasets and of single users: tables, bubbles, intervals, dots, boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from harness.analysis.percentages import mean, percent, share
from harness.contracts.report import Axis, Boxes, Figure, Line, Points, Report, Rule, Sheet, Spans
from harness_gistbench.analyses.compared_runs import (
    TITLES,
    ComparisonOptions,
    TableOptions,
    compare,
    results,
    withheld,
)
from harness_gistbench.paper import SCORES, TABLES

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell
    from harness.scoring.summary import MetricResult

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
STEPS = 40
DIAGONAL = Line(label="precision = recall", x=(0.0, 1.0), y=(0.0, 1.0), dashed=True)
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


class ForestOptions(ComparisonOptions, frozen=True, kw_only=True):
    """Which score is shown, and which statistic of it."""

    score: Annotated[
        Literal["ig_f1", "is", "ig_p", "ig_r"], msgspec.Meta(description="which score")
    ] = "ig_f1"
    statistic: Annotated[
        Literal["mean", "median"], msgspec.Meta(description="of the users' scores")
    ] = "mean"


def scores(tasks: Sequence[FinishedTask], options: TableOptions) -> Report:
    """IG F1 with IS and IG P with IG R, models by datasets: Tables 3 and 4."""
    compared = compare(tasks, options)
    cells: dict[tuple[str, str], dict[str, float | None]] = {}
    hidden: list[str] = []
    for dataset, run, users in compared.rescored():
        found = results(run, users)
        hidden += withheld(run, found)
        cells[run.model, dataset] = {name: percent(result.value) for name, result in found.items()}
    sheets = [
        crossed("Groundedness and specificity, medians in %", cells, SCORES["scores"], hidden),
        crossed("Precision and recall, medians in %", cells, SCORES["precision_recall"]),
    ]
    for name in SCORES if options.published else ():
        table = TABLES.read(name)
        cells = {(row["model"], row["dataset"].replace("_", " ")): row for row in table.dicts()}
        sheets.append(crossed(table.heading, cells, SCORES[name], table.notes))
    return compared.report(sheets)


def crossed(
    title: str,
    cells: Mapping[tuple[str, str], Mapping[str, float | None]],
    scores: Sequence[str],
    notes: Sequence[str] = (),
) -> Sheet:
    """Models by datasets, a column for each of the scores; None where there is no such run."""
    models = dict.fromkeys(model for model, _ in cells)
    datasets = dict.fromkeys(dataset for _, dataset in cells)
    columns = [(dataset, name) for dataset in datasets for name in scores]
    return Sheet(
        title=title,
        columns=("model", *(f"{dataset} {TITLES[name]}" for dataset, name in columns)),
        rows=tuple(
            (model, *(cells.get((model, dataset), {}).get(name) for dataset, name in columns))
            for model in models
        ),
        notes=tuple(notes),
    )


def precision_recall(tasks: Sequence[FinishedTask], options: ComparisonOptions) -> Report:
    """Medians of precision and recall, a bubble a model and a figure a dataset."""
    compared = compare(tasks, options)
    rows: list[tuple[Cell, ...]] = []
    hidden: list[str] = []
    bubbles: dict[str, list[Points]] = {dataset: [] for dataset in compared.by_dataset()}
    for dataset, run, users in compared.rescored():
        found = results(run, users)
        categories = mean(
            len({interest.category for interest in profile.interests} - {None})
            for _, profile in run.profiles()
        )
        medians = (percent(found[name].value) for name in ("ig_p", "ig_r", "ig_f1"))
        rows.append((dataset, run.model, *medians, categories, found["ig_f1"].n))
        hidden += withheld(run, found)
        precision, recall = found["ig_p"].value, found["ig_r"].value
        if precision is not None and recall is not None and categories is not None:
            size = (categories,)
            bubble = Points(
                label=run.model, x=(recall,), y=(precision,), sizes=size, names=(run.model,)
            )
            bubbles[dataset].append(bubble)
    sheet = Sheet(
        title="Precision and recall, medians in %",
        columns=("dataset", "model", "IG P", "IG R", "IG F1", "categories a user", "users"),
        rows=tuple(rows),
        notes=(
            "categories a user: the mean over users with a readable answer, verified or not",
            *hidden,
        ),
    )
    figures = [
        Figure(
            title=f"{dataset}: precision and recall of models",
            x=Axis(label="IG R (median)", low=0.0, high=1.0),
            y=Axis(label="IG P (median)", low=0.0, high=1.0),
            marks=(*(equal_f1(level) for level in LEVELS), *of_dataset),
            note="the area of a bubble: the mean number of categories a user, as in the table",
        )
        for dataset, of_dataset in bubbles.items()
    ]
    return compared.report([sheet], figures)


def equal_f1(level: float) -> Line:
    """All pairs of recall and precision with that harmonic mean, where both are at most 1.

    They are a hyperbola, (2 · recall - F1) · (2 · precision - F1) = F1², and as near each other
    where it is steep as where it is flat.
    """
    factors = [((2 - level) / level) ** (2 * step / STEPS - 1) for step in range(STEPS + 1)]
    recalls = tuple(min(level * (1 + factor) / 2, 1.0) for factor in factors)
    return Line(label=f"F1 {level}", x=recalls, y=recalls[::-1], dashed=True)


def forest(tasks: Sequence[FinishedTask], options: ForestOptions) -> Report:
    """The models from best to worst with bootstrap intervals over users, a figure a dataset."""
    compared = compare(tasks, options)
    title = f"{TITLES[options.score]} ({options.statistic})"
    spans: dict[str, list[tuple[str, MetricResult]]] = {name: [] for name in compared.by_dataset()}
    hidden: list[str] = []
    for dataset, run, users in compared.rescored():
        draws = run.task.task.interval.draws
        found = results(run, users, statistic=options.statistic, draws=draws)
        result = found[options.score]
        spans[dataset].append((run.model, result))
        hidden += withheld(run, {options.score: result})
        if result.no_interval is not None and result.value is not None:
            hidden.append(f"{run.model} on {dataset}: no interval, for {result.no_interval}")
    for of_dataset in spans.values():
        of_dataset.sort(
            key=lambda span: -1.0 if span[1].value is None else span[1].value, reverse=True
        )
    sheet = Sheet(
        title=f"{title}, in %",
        columns=("dataset", "model", options.statistic, "low", "high", "users"),
        rows=tuple(
            (dataset, model, *map(percent, (one.value, *(one.interval or (None, None)))), one.n)
            for dataset, of_dataset in spans.items()
            for model, one in of_dataset
        ),
        notes=(
            "low and high: bootstrap over users, of each model alone; the paired "
            "tests of `harness compare` show whether two models differ",
            *hidden,
        ),
    )
    figures = [forest_figure(dataset, title, of_one) for dataset, of_one in spans.items()]
    return compared.report([sheet], figures)


def forest_figure(dataset: str, title: str, spans: Sequence[tuple[str, MetricResult]]) -> Figure:
    """The values of the models with their intervals."""
    intervals = [result.interval or (None, None) for _, result in spans]
    return Figure(
        title=f"{dataset}: {title}",
        x=Axis(label=title),
        y=Axis(label=""),
        marks=(
            Spans(
                label=title,
                names=tuple(model for model, _ in spans),
                low=tuple(low for low, _ in intervals),
                value=tuple(result.value for _, result in spans),
                high=tuple(high for _, high in intervals),
            ),
        ),
    )


def by_user(tasks: Sequence[FinishedTask], options: ComparisonOptions) -> Report:
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
