"""The tasks of stored runs as models, data and methods, and their results in each run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, TypeAlias

from harness.analysis.result_grid import GridRow, ResultGrid
from harness.analysis.task_setting import TaskSetting
from harness_usersumbench.metrics import quality, run_values
from harness_usersumbench.paper import DATASETS
from harness_usersumbench.records import Method

if TYPE_CHECKING:
    from harness import FinishedTask

Cell: TypeAlias = tuple[str, Method]
"""A source of data, and a method."""

METHODS: tuple[Method, ...] = ("other", "none", "raw_timeline", "single_step", "hierarchy_critique")
"""The methods in the order of tables."""

REFERENCE: Method = "single_step"
"""The method that others are compared with."""

TITLES = {source: title for title, source in DATASETS.items()}
"""The paper's name of each source of data."""

SETTING = TaskSetting(passed_over={"source", "method", "query", "thing", "category", "verb"})

GRID = ResultGrid[Cell](
    name="usersum",
    headings={(source, method): method for source in TITLES for method in METHODS},
    cell=lambda task: (task.options.source, task.options.method),
    setting=SETTING.describe,
    roles=("predictor",),
    units="users",
)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One model on one source of data: the task of each method, in the order of tables."""

    model: str
    source: str
    tasks: dict[Method, FinishedTask]

    @property
    def name(self) -> str:
        """The data and the model, as titles name them."""
        return f"{TITLES[self.source]}, {self.model}"


@dataclass(frozen=True)
class OverRuns:
    """A number in each run: its mean, and the standard deviation (n - 1) over runs.

    There is no mean without a value, and no standard deviation of one run.
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float | None:
        """The mean over runs."""
        return fmean(self.values) if self.values else None

    @property
    def sd(self) -> float | None:
        """The standard deviation over runs."""
        return stdev(self.values) if len(self.values) > 1 else None


def compared(tasks: Iterable[FinishedTask]) -> list[Compared]:
    """The tasks by model, setting and data."""
    rows: list[GridRow[Cell]] = GRID.rows(tasks, ())
    return [
        Compared(
            model=row.name,
            source=source,
            tasks={method: task for (of, method), task in row.tasks.items() if of == source},
        )
        for row in rows
        for source in dict.fromkeys(of for of, _ in row.tasks)
    ]


def over_runs(task: FinishedTask) -> dict[str, OverRuns]:
    """QM and IDM in each run of the predictor."""
    results = (score.details for score in task.scores() if score.details is not None)
    runs = run_values(results, task.options.threshold)
    return {
        "qm": OverRuns(tuple(one.qm for one in runs if one.qm is not None)),
        "idm": OverRuns(tuple(one.idm for one in runs if one.idm is not None)),
    }


def qualities(task: FinishedTask, *, run: int) -> dict[str, bool]:
    """Q_s of each user who has it in one run of the predictor, counted from 1."""
    return {
        score.user: bool(good)
        for score in task.scores()
        if score.details is not None and len(score.details.right) >= run
        if (good := quality(score.details.right[run - 1], task.options.threshold)) is not None
    }
