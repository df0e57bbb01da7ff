"""Precision against recall of every user, with each model's medians."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.results.report import Axis, Cell, Figure, Line, Points, Report, Sheet
from harness_gistbench.analyses.comparing import (
    ComparisonOptions,
    by_dataset,
    comparable,
    oracle_notes,
    people,
    percent,
    rescored,
    share,
)

if TYPE_CHECKING:
    from harness import KeptTask

Options = ComparisonOptions

COLUMNS = ("dataset", "model", "users", "IG P", "IG R", "P above R %", "P below 50 %")
DIAGONAL = Line(label="precision = recall", x=(0.0, 1.0), y=(0.0, 1.0), dashed=True)


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """A dot a user and a diamond a model, a figure a dataset."""
    runs, notes = comparable(tasks, options)
    rows, figures = [], []
    for dataset, together in by_dataset(runs).items():
        dots, diamonds = [], []
        for one, scores in rescored(together):
            pairs = [
                (score.values["ig_r"], score.values["ig_p"])
                for score in scores
                if {"ig_r", "ig_p"} <= score.values.keys()
            ]
            rows.append((dataset, one.model, *row(pairs)))
            if pairs:
                dots.append(dots_of(one.model, pairs))
                diamonds.append(diamond_of(one.model, pairs))
        figures.append(
            Figure(
                title=f"{dataset}: precision and recall of users",
                x=Axis(label="IG R", low=0.0, high=1.0),
                y=Axis(label="IG P", low=0.0, high=1.0),
                marks=(DIAGONAL, *dots, *diamonds),
            )
        )
    sheet = Sheet(
        title="Precision and recall by user",
        columns=COLUMNS,
        rows=tuple(rows),
        notes=("IG P and IG R are medians in %; the shares are of the users with both",),
    )
    return Report(
        sheets=(sheet, people(runs)), figures=tuple(figures), notes=(*oracle_notes(runs), *notes)
    )


def row(pairs: Sequence[tuple[float, float]]) -> tuple[Cell, ...]:
    """The cells of one run's recalls and precisions."""
    count = len(pairs)
    recall, precision = medians(pairs) if pairs else (None, None)
    return (
        count,
        percent(precision),
        percent(recall),
        share(sum(precision > recall for recall, precision in pairs), count),
        share(sum(precision < 0.5 for _, precision in pairs), count),
    )


def medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The median of the first and of the second of each pair."""
    from statistics import median

    return median(first for first, _ in pairs), median(second for _, second in pairs)


def dots_of(model: str, pairs: Sequence[tuple[float, float]]) -> Points:
    """A faint dot for each user."""
    x, y = zip(*pairs, strict=True)
    return Points(label=model, x=x, y=y, faint=True)


def diamond_of(model: str, pairs: Sequence[tuple[float, float]]) -> Points:
    """The medians of all users, in the colour of their dots."""
    recall, precision = medians(pairs)
    return Points(label=model, x=(recall,), y=(precision,), shape="diamond")
