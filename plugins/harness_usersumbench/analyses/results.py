"""The tasks of stored runs by data, model and method, and their values in each run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean, stdev
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from harness.analysis.result_grid import GridRow, ResultGrid
from harness.analysis.task_setting import TaskSetting
from harness_usersumbench.metrics import run_values
from harness_usersumbench.paper import DATASETS
from harness_usersumbench.records import TASKS, Method

if TYPE_CHECKING:
    from harness import FinishedTask

Row = GridRow[Method]
"""One model on one data set, with the task of each method."""

Values: TypeAlias = "Mapping[str, tuple[float | None, float | None]]"
"""Metrics, each with its standard deviation (n - 1) over runs."""

METHODS: tuple[Method, ...] = ("other", "none", "raw_timeline", "single_step", "hierarchy_critique")
"""The methods in the order of tables."""

HEADS = {"qm": "QM", "ifm": "IFM", "idm": "IDM ×0.1%"}
"""The metrics of Table 4 and Figure 5, and their names there."""

TITLES = {source: title for title, source in DATASETS.items()}
"""The paper's name of each source of data."""

SETTING = TaskSetting(
    passed_over={"source", "method", "query", "thing", "category", "verb", "autoeval"},
    sampling={"temperature": 0.7, "max_tokens": 2048},
)

GRID = ResultGrid[Method](
    name="usersum",
    headings={method: method for method in METHODS},
    cell=lambda task: task.options.method,
    setting=SETTING.describe,
    roles=("predictor",),
    units="users",
)


def by_data(tasks: Iterable[FinishedTask]) -> dict[str, list[Row]]:
    """The tasks as rows of models, by the paper's name of their data."""
    every = list(tasks)
    rows = {
        title: GRID.rows([task for task in every if task.options.source == source], ())
        for source, title in TITLES.items()
    }
    return {title: of_data for title, of_data in rows.items() if of_data}


def table_values(task: FinishedTask) -> Values:
    """The values of a task: QM, IFM and IDM with their deviations over the runs of the predictor.

    IFM has none: summaries do not change between runs.
    """
    results = (score.details for score in task.scores() if score.details is not None)
    runs = run_values(results, task.options.threshold)
    metrics = task.summary.metrics
    spread = {"qm": _spread(one.qm for one in runs), "idm": _spread(one.idm for one in runs)}
    return {
        name: (metrics[name].value if name in metrics else None, spread.get(name)) for name in HEADS
    }


class Answered(NamedTuple):
    """The users who were asked a question, and in per cent the right and the unread answers."""

    users: int
    right: float | None
    unread: float | None


def answered(task: FinishedTask) -> dict[str, Answered]:
    """How each question was answered, as the mean over users; who has no summary is not asked."""
    asked = [runs for score in task.scores() if score.details and (runs := score.details.right)]

    def share(place: int, answer: bool | None) -> float | None:
        found = [fmean(run[place] is answer for run in runs) for runs in asked]
        return 100 * fmean(found) if found else None

    return {
        name: Answered(len(asked), share(place, True), share(place, None))
        for place, name in enumerate(TASKS)
    }


def percent(value: float | None) -> float | None:
    """A share in per cent."""
    return None if value is None else 100 * value


def _spread(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return stdev(known) if len(known) > 1 else None
