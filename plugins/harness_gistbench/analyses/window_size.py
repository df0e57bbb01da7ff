"""The scores of one model by the number of engagements in a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec

from harness.analysis.percentages import mean, percent
from harness.analysis.task_setting import check_several
from harness.contracts.report import Axis, Figure, Report, Sheet
from harness_gistbench.analyses.compared_runs import (
    TITLES,
    Run,
    curves,
    grouped,
    people,
    published,
    rescored,
    results,
    runs_of,
    withheld,
)

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.scoring.summary import MetricResult


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


def run(tasks: Sequence[FinishedTask], options: WindowOptions) -> Report:
    """A table and a figure for each model and dataset, a column a window size."""
    runs = runs_of(tasks)
    if not options.published:
        check_several({run.options.window for run in runs}, "window size")
    by_size = sorted(runs, key=lambda run: run.options.window)
    sheets: list[Sheet] = []
    figures: list[Figure] = []
    for group in grouped(by_size, lambda run: f"{run.dataset} {run.candidate}").values():
        title = f"{group[0].dataset}: {group[0].task.summary.model} by window size"
        found = [results(run, scores) for run, scores in rescored(group)]
        sheets.append(table(title, group, found))
        figures.append(figure(title, group, found))
    sheets += published(options, "window_size")
    return Report(sheets=(*sheets, people(runs)), figures=tuple(figures), notes=(OWN_ORACLE,))


def differing(runs: Sequence[Run]) -> list[str]:
    """A line for each run that differs from the first in more than its window."""
    from harness.comparison.matching import settings_of
    from harness.scoring.settings_differences import describe_differences, differences

    first, *others = runs
    lines = []
    for one in others:
        found = differences(settings_of(one.task), settings_of(first.task))
        found.pop("options.window", None)
        if found:
            also = "; ".join(describe_differences(found))
            lines.append(f"{one.task.run} differs from {first.task.run} also in: {also}")
    return lines


def table(title: str, runs: Sequence[Run], found: Sequence[Mapping[str, MetricResult]]) -> Sheet:
    """A row a score, a column a run; runs of the same window have their names."""
    windows = [run.options.window for run in runs]
    names = [
        f"{window}" if windows.count(window) == 1 else f"{window} ({run.task.run})"
        for window, run in zip(windows, runs, strict=True)
    ]
    interests = (mean(len(profile.interests) for _, profile in run.profiles()) for run in runs)
    hidden = [line for pair in zip(runs, found, strict=True) for line in withheld(*pair)]
    return Sheet(
        title=title,
        columns=("engagements a prompt", *names),
        rows=(
            *((f"{TITLES[name]} %", *(percent(of[name].value) for of in found)) for name in SHOWN),
            ("interests a user", *interests),
            ("users with IG", *(of["ig_f1"].n for of in found)),
            ("users with IS", *(of["is"].n for of in found)),
        ),
        notes=(*NOTES, *differing(runs), *hidden),
    )


def figure(title: str, runs: Sequence[Run], found: Sequence[Mapping[str, MetricResult]]) -> Figure:
    """A curve a score; sizes where it is not shown are left out."""
    pairs = list(zip(runs, found, strict=True))
    return Figure(
        title=title,
        x=Axis(label="engagements a prompt"),
        y=Axis(label="median, %", low=0.0, high=100.0),
        marks=curves(
            {
                TITLES[name]: [(run.options.window, percent(of[name].value)) for run, of in pairs]
                for name in SHOWN
            }
        ),
        note=OWN_ORACLE,
    )
