"""The differences between runs that were not tested, and what would make them testable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from harness.contracts.report import Sheet
from harness.reporting.tables import metric_name
from harness.scoring.comparison_document import Compared
from harness.scoring.finished_task import FinishedTask
from harness.scoring.summary import MetricResult
from harness.scoring.unlike_runs import unlike
from harness.tasks.repeats import task_and_repeat

TITLE = "Not tested"
ABOUT = (
    "These runs differ in more than their candidate, so that a difference of theirs may come from "
    "something else: it has no interval and no p. The values are those of each run alone."
)

ALONE = "`harness compare` tests these two without the others"


class Untested(NamedTuple):
    """A run that was not compared with another one of a task, why, and what both must be given.

    `best` is the other one: the best of those that were compared, or a run that was not either.
    """

    task: str
    metric: str
    run: str
    result: MetricResult | None
    best: str
    best_result: MetricResult | None
    because: tuple[str, ...]
    needed: tuple[str, ...]

    @property
    def difference(self) -> float | None:
        """The value of the run minus that of the other one."""
        first = self.result.value if self.result else None
        second = self.best_result.value if self.best_result else None
        return None if first is None or second is None else first - second


def untested_of(
    tasks: Sequence[FinishedTask], found: Compared, against: str | None
) -> Iterator[Untested]:
    """The runs of a task that stand apart from those that were compared, each against the best of
    those, which is `against`, and against each other."""
    known = {task.run: task for task in tasks}
    best = known[against or found.comparison.runs[0].run]
    metric = found.comparison.main[0]
    pairs = [(refused, best) for refused in found.comparison.refused]
    apart = [each for each in found.comparison.refused if unlike(known[each.run], best)]
    pairs += [(second, known[first.run]) for first, second in combinations(apart, 2)]
    for refused, other in pairs:
        task = known[refused.run]
        why = unlike(task, other)
        alone = (ALONE,) if other is not best else refused.because
        yield Untested(
            task=found.comparison.task,
            metric=metric,
            run=task.label,
            result=task.summary.metrics.get(metric),
            best=other.label,
            best_result=other.summary.metrics.get(metric),
            because=why.because if why else alone,
            needed=why.needed if why else (),
        )


def untested_sheet(untested: Sequence[Untested]) -> Sheet:
    """A row for each of them, the largest difference of a metric first."""
    rows = sorted(untested, key=lambda one: (one.metric, -abs(one.difference or 0.0)))
    return Sheet(
        title=TITLE,
        columns=("difference", "task", "metric", "value", "first", "second", "because"),
        rows=tuple(
            (
                f"{one.run} − {one.best}", one.task, _name(one), one.difference,
                one.result.value if one.result else None,
                one.best_result.value if one.best_result else None, "; ".join(one.because),
            )
            for one in rows
        ),
        notes=(ABOUT, *(f"{way}: {', '.join(of)}." for way, of in ways_to_test(untested).items())),
        digits=3,
    )  # fmt: skip


def ways_to_test(untested: Sequence[Untested]) -> Mapping[str, list[str]]:
    """What would make the runs comparable, with the tasks that it is about."""
    found: dict[str, dict[str, None]] = {}
    for one in untested:
        if one.needed:
            way = f"To test this, give all runs {' and '.join(one.needed)}"
            found.setdefault(way, {})[one.task] = None
    return {way: list(of) for way, of in found.items()}


def why_untested(untested: Sequence[Untested]) -> dict[str, str]:
    """By task which of its runs were not tested, and what would make them testable or why not."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for one in untested:
        way = f"to test it, give all runs {' and '.join(one.needed)}"
        why = way if one.needed else "; ".join(one.because)
        of_task = found.setdefault(task_and_repeat(one.task)[0], {})
        of_task.setdefault(f"against {one.best}: {why}", {})[one.run] = None
    return {
        task: " ".join(f"Not tested: {', '.join(runs)} {why}." for why, runs in whys.items())
        for task, whys in found.items()
    }


def _name(one: Untested) -> str:
    result = one.result or one.best_result
    return metric_name(one.metric, result) if result else one.metric
