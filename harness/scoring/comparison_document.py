"""What a comparison of runs holds: the document of `harness compare --json`, and its tasks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from harness.scoring.comparable import Refused
from harness.scoring.finished_task import FinishedTask
from harness.scoring.group_means import MeanOverTasks
from harness.scoring.paired_differences import ChangedUnits, ComparedSlice, Difference
from harness.scoring.summary import MetricResult

FORMAT = 1

Units = Mapping[str, tuple[str, float]]
"""By the id of a unit its user and its value."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CommonUnits(FinishedTask):
    """A compared task of a run, of which by metric the units count that all runs share."""

    common: Mapping[str, Units]

    def units(self, metric: str) -> Units:
        """By the id of each common unit of the metric its user and its number."""
        return self.common[metric]


class MeanDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of two runs in a mean over these tasks, on the units that all runs share.

    The interval draws the same users in all tasks and both runs; `n` of the difference counts the
    units of all tasks. `deviations` are, over repeats, the standard deviation of each run.
    """

    name: str
    over: Literal["tasks", "repeats"]
    tasks: tuple[str, ...]
    higher_is_better: bool
    difference: Difference
    deviations: dict[str, float] | msgspec.UnsetType = msgspec.UNSET


class ComparedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a comparison.

    `metrics` are over all units of the run, `common` over the units that every run with a value of
    the metric has scored. `counts` are the counts that the oracle changed. `marks` are the
    differences from the other runs that --force overrode.
    """

    run: str
    path: str
    label: str
    model: str
    marks: tuple[str, ...]
    units: int
    counts: dict[str, int]
    metrics: dict[str, MetricResult]
    common: dict[str, MetricResult]


class OracleUse(msgspec.Struct, frozen=True, kw_only=True):
    """The sources of the oracle, the metrics that depend on it, and a warning if it is too small.

    `models` counts the different candidates of its runs.
    """

    runs: int
    models: int
    file: str | None
    metrics: tuple[str, ...]
    warning: str | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of runs of one task, which leaves the runs' own summaries as they are.

    If the benchmark has an oracle, the runs are scored against their common one. `doubts` are
    signs in the scores that the runs should not be compared, and differences of their servers.
    `main` names the metrics that a short table shows, the main one first. `slices` are given if
    runs are compared by a slice of the data, `changed` are the units behind each difference. If
    the `runs` are tasks of one run, `within` is that run.
    """

    task: str
    version: int
    benchmark: str
    roles: dict[str, str]
    data: dict[str, Any]
    not_comparable_because: tuple[str, ...]
    chosen: str
    main: tuple[str, ...] = ()
    runs: tuple[ComparedRun, ...]
    refused: tuple[Refused, ...]
    oracle: OracleUse | None
    differences: tuple[Difference, ...]
    doubts: tuple[str, ...] = ()
    slices: tuple[ComparedSlice, ...] | msgspec.UnsetType = msgspec.UNSET
    changed: tuple[ChangedUnits, ...] | msgspec.UnsetType = msgspec.UNSET
    within: str | msgspec.UnsetType = msgspec.UNSET


class DecidedGate(msgspec.Struct, frozen=True, kw_only=True):
    """A gate on the difference `first` − `second`, of which the second is the base.

    It `holds` if the interval lies wholly above the bound, or below it if not `above`; None if this
    cannot be decided, for the reason `undecided`. `least_seen` is the smallest difference that
    these people can show. `labels` are by run those of the two.
    """

    gate: str
    task: str
    metric: str
    above: bool
    bound: float
    first: str | None
    second: str | None
    labels: dict[str, str] = {}
    value: float | None = None
    interval: tuple[float, float] | None = None
    confidence: float | None = None
    users: int = 0
    holds: bool | None
    undecided: str | None = None
    least_seen: float | None = None


class ComparisonDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Comparisons, and by run its means over groups and repeats, on common units.

    `mean_differences` are the differences of these means, `gates` the decided gates.
    """

    format: int = FORMAT
    comparisons: tuple[Comparison, ...]
    means: dict[str, tuple[MeanOverTasks, ...]] = {}
    mean_differences: tuple[MeanDifference, ...] | msgspec.UnsetType = msgspec.UNSET
    gates: tuple[DecidedGate, ...] | msgspec.UnsetType = msgspec.UNSET


class Compared(NamedTuple):
    """A comparison, the oracle of its runs and a file, and each run's task on common units."""

    comparison: Comparison
    oracle: Any
    tasks: tuple[CommonUnits, ...]
