"""Results of a task over scores that were changed, or by other metrics than its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from harness.contracts.benchmark import Metric
    from harness.contracts.records import Score
    from harness.scoring.finished_task import FinishedTask
    from harness.scoring.summary import MetricResult


def results_of(
    task: FinishedTask,
    scores: Iterable[Score[Any]],
    metrics: Mapping[str, Metric],
    *,
    prefix: str = "",
    draws: int = 0,
) -> dict[str, MetricResult]:
    """The metrics over these scores; none has a value if the task says that too few units have it.

    There are intervals if `draws` are requested. They are drawn by the metric's name with the
    prefix: those of a metric of the task are its own.
    """
    from harness.scoring.aggregate import Columns, sound

    filled = Columns({f"{prefix}{name}": metric for name, metric in metrics.items()})
    for score in scores:
        filled.add(sound(score))
    found = filled.results(
        interval=msgspec.structs.replace(task.task.interval, draws=draws),
        seed=task.manifest.seed,
        task=task.task.name,
        least_scored=task.task.least_scored,
    )
    return dict(zip(metrics, found.values(), strict=True))
