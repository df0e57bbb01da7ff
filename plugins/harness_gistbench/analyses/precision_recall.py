"""Precision against recall: a bubble a model, as large as the categories that it names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.results.report import Axis, Figure, Line, Points, Report, Sheet
from harness_gistbench.analyses.comparing import (
    ComparisonOptions,
    Run,
    by_dataset,
    comparable,
    oracle_notes,
    people,
    percent,
    rescored,
    results,
    withheld,
)

if TYPE_CHECKING:
    from harness import KeptTask
    from harness.results.summary import MetricResult

Options = ComparisonOptions

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5)
STEPS = 40
COLUMNS = ("dataset", "model", "IG P", "IG R", "IG F1", "categories a user", "users")


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """Medians of precision and recall by model, a figure a dataset."""
    runs, notes = comparable(tasks, options)
    rows, figures = [], []
    hidden: list[str] = []
    for dataset, together in by_dataset(runs).items():
        bubbles: list[Points] = []
        for one, scores in rescored(together):
            found = results(one, scores)
            categories = mean_categories(one)
            medians = (percent(found[name].value) for name in ("ig_p", "ig_r", "ig_f1"))
            rows.append((dataset, one.model, *medians, categories, found["ig_f1"].n))
            hidden += withheld(one, found)
            bubbles += bubble(one.model, found, categories)
        figures.append(figure(dataset, bubbles))
    sheet = Sheet(
        title="Precision and recall, medians in %",
        columns=COLUMNS,
        rows=tuple(rows),
        notes=(
            "categories a user: the mean over users with a readable answer, verified or not",
            *hidden,
        ),
    )
    return Report(
        sheets=(sheet, people(runs)), figures=tuple(figures), notes=(*oracle_notes(runs), *notes)
    )


def mean_categories(run: Run) -> float | None:
    """How many categories of the taxonomy a user's interests are in, on average."""
    counts = [
        len({interest.category for interest in profile.interests} - {None})
        for _, profile in run.profiles()
    ]
    return sum(counts) / len(counts) if counts else None


def bubble(
    model: str, found: dict[str, MetricResult], categories: float | None
) -> tuple[Points, ...]:
    """The bubble of a model; none where its medians are not shown."""
    precision, recall = found["ig_p"].value, found["ig_r"].value
    if precision is None or recall is None or categories is None:
        return ()
    return (Points(label=model, x=(recall,), y=(precision,), sizes=(categories,), names=(model,)),)


def figure(dataset: str, bubbles: Sequence[Points]) -> Figure:
    """All bubbles of a dataset over lines of equal F1."""
    return Figure(
        title=f"{dataset}: precision and recall of models",
        x=Axis(label="IG R (median)", low=0.0, high=1.0),
        y=Axis(label="IG P (median)", low=0.0, high=1.0),
        marks=(*(equal_f1(level) for level in LEVELS), *bubbles),
    )


def equal_f1(level: float) -> Line:
    """All pairs of recall and precision with that harmonic mean, where both are at most 1.

    They are a hyperbola, (2 · recall - F1) · (2 · precision - F1) = F1², and as near each other
    where it is steep as where it is flat.
    """
    factors = [((2 - level) / level) ** (2 * step / STEPS - 1) for step in range(STEPS + 1)]
    recalls = tuple(min(level * (1 + factor) / 2, 1.0) for factor in factors)
    return Line(label=f"F1 {level}", x=recalls, y=recalls[::-1], dashed=True)
