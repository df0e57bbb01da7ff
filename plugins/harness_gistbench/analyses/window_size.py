"""The scores of one model by the number of engagements in a prompt."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec

from harness.results.report import Axis, Figure, Line, Report, Sheet
from harness_gistbench.analyses.compared_runs import (
    TITLES,
    Run,
    mean,
    people,
    percent,
    published,
    rescored,
    results,
    runs_of,
    withheld,
)

if TYPE_CHECKING:
    from harness import KeptTask
    from harness.results.report import Cell
    from harness.results.summary import MetricResult


class WindowOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the paper's table is shown."""

    published: Annotated[bool, msgspec.Meta(description="show the paper's numbers below")] = False


SHOWN = ("ig_p", "ig_r", "ig_f1", "is")
OWN_ORACLE = (
    "each table has an oracle of its own: what its model verified at any of its window sizes. Its "
    "IG R and IG F1 cannot be held against those measured among several models"
)
NOTES = (
    "medians over users in %, the interests a mean; the whole history is read at every size, in "
    "more or fewer prompts",
)


@dataclass(frozen=True, kw_only=True)
class Column:
    """One run of a table."""

    run: Run
    title: str
    scores: Mapping[str, MetricResult]
    interests: float | None


def run(tasks: Sequence[KeptTask], options: WindowOptions) -> Report:
    """A table and a figure for each model and dataset, a column a window size."""
    runs = runs_of(tasks)
    sheets: list[Sheet] = []
    figures: list[Figure] = []
    for (dataset, model), group in by_dataset_and_model(runs).items():
        title = f"{dataset}: {model} by window size"
        columns = columns_of(group)
        hidden = [line for column in columns for line in withheld(column.run, column.scores)]
        sheets.append(table(title, columns, (*NOTES, *differing(group), *hidden)))
        figures.append(figure(title, columns))
    sheets += published(options, "window_size")
    return Report(sheets=(*sheets, people(runs)), figures=tuple(figures), notes=(OWN_ORACLE,))


def by_dataset_and_model(runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """The runs of each model on each dataset, from the smallest window to the largest."""
    groups = defaultdict(list)
    for one in sorted(runs, key=lambda one: one.options.window):
        groups[one.dataset, one.task.summary.model].append(one)
    return groups


def differing(runs: Sequence[Run]) -> list[str]:
    """A line for each run that differs from the first in more than its window."""
    from harness.results.comparable import settings_of
    from harness.results.unlike import told, unlike

    first, *others = runs
    lines = []
    for one in others:
        found = unlike(settings_of(one.task), settings_of(first.task))
        found.pop("options.window", None)
        if found:
            also = "; ".join(told(found))
            lines.append(f"{one.task.run} differs from {first.task.run} also in: {also}")
    return lines


def columns_of(runs: Sequence[Run]) -> list[Column]:
    """The columns of a table; runs of the same window are told apart by their names."""
    times = Counter(one.options.window for one in runs)
    return [
        Column(
            title=f"{window}" if times[window] == 1 else f"{window} ({one.task.run})",
            run=one,
            scores=results(one, scores),
            interests=mean(len(profile.interests) for _, profile in one.profiles()),
        )
        for one, scores in rescored(runs)
        for window in [one.options.window]
    ]


def table(title: str, columns: Sequence[Column], notes: Sequence[str]) -> Sheet:
    """A row a score, a column a window size."""

    def of(name: str) -> tuple[Cell, ...]:
        return tuple(percent(column.scores[name].value) for column in columns)

    return Sheet(
        title=title,
        columns=("engagements a prompt", *(column.title for column in columns)),
        rows=(
            *((f"{TITLES[name]} %", *of(name)) for name in SHOWN),
            ("interests a user", *(column.interests for column in columns)),
            ("users with IG", *(column.scores["ig_f1"].n for column in columns)),
            ("users with IS", *(column.scores["is"].n for column in columns)),
        ),
        notes=tuple(notes),
    )


def figure(title: str, columns: Sequence[Column]) -> Figure:
    """A curve a score; sizes where it is not shown are left out."""
    curves = {
        name: [
            (float(column.run.options.window), 100 * value)
            for column in columns
            for value in [column.scores[name].value]
            if value is not None
        ]
        for name in SHOWN
    }
    return Figure(
        title=title,
        x=Axis(label="engagements a prompt"),
        y=Axis(label="median, %", low=0.0, high=100.0),
        marks=tuple(
            Line(label=TITLES[name], x=tuple(x for x, _ in points), y=tuple(y for _, y in points))
            for name, points in curves.items()
            if points
        ),
        note=OWN_ORACLE,
    )
