"""Tables 1 to 4 of stored runs, and what is lost from setting 1a to the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any

from harness.analysis.percentages import percent
from harness.base.hashing import stable_int
from harness.contracts.report import Report, Sheet
from harness.reporting.text import reasons as counted
from harness_horizon.next_item.cases import MEANING, SETTINGS, Setting
from harness_horizon.next_item.scores import COMPARABLE_IF, KNOWN, PUBLISHED, TABLES, UNTRAINED
from harness_horizon.ranking import CUTS, NAMES

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

COLUMNS = tuple(f"{name}_{cut}" for name in NAMES for cut in CUTS)
SHORT = {"ndcg": "N", "mrr": "M", "recall": "R"}
HEADS = tuple(f"{SHORT[name]}@{cut}" for name in NAMES for cut in CUTS)
DROPS = ("ndcg_10", "recall_10")
REFERENCE: Setting = "1a"
PAPERS_USERS = 25_000

TABLE: dict[Setting, str] = {"1a": "Table 1", "1b": "Table 2", "1c": "Table 3", "1d": "Table 4"}

NOTE = (
    "in per cent, of all items ranked; all: a target that nobody bought in training is a miss; "
    "trained: without these targets; by user: the mean over users of each user's mean"
)
SAMPLED_NOTE = (
    "targets are ranked among random items, so that cuts above 20 say nothing, and no value can be "
    "compared with the paper's"
)
DROP_NOTE = (
    "in percentage points; low and high: bootstrap over users; the users of 1c are among those of "
    "1a, and drawn together with them; the users of 1b and 1d are others"
)


@dataclass(frozen=True)
class Result:
    """A model's scores in one setting."""

    task: FinishedTask

    @cached_property
    def units(self) -> dict[str, Mapping[str, tuple[str, float]]]:
        """The values of each column by case, with the user."""
        return {
            f"{column}{end}": self.task.units(f"{column}{end}")
            for column in COLUMNS
            for end in ("", f"_{KNOWN}")
        }

    def mean(self, column: str, among: Collection[str] | None = None) -> float | None:
        """The mean over cases, or over those of some users."""
        every = self.units[column].values()
        values = [value for user, value in every if among is None or user in among]
        return fmean(values) if values else None

    def mean_by_user(self, column: str) -> float | None:
        """The mean over users of their means over cases."""
        users = defaultdict[str, list[float]](list)
        for user, value in self.units[column].values():
            users[user].append(value)
        return fmean(map(fmean, users.values())) if users else None

    def users(self, column: str = "ndcg_10") -> set[str]:
        """The users with a case that counts."""
        return {user for user, _ in self.units[column].values()}


def main(tasks: Sequence[FinishedTask], options: object) -> Report:
    """The report of `horizon-next-item`: a table for each setting, the drops, and shared users."""
    results: dict[Setting, dict[str, Result]] = {setting: {} for setting in SETTINGS}
    for task in tasks:
        results[task.options.setting][_name(task, tasks)] = Result(task)
    sheets = [_table(setting, found) for setting, found in results.items() if found]
    drops = list(_drops(results))
    if drops:
        sheets.append(
            Sheet(
                title="Drops from setting 1a",
                columns=("model", "to", "metric", "in 1a", "there", "drop", "low", "high"),
                rows=tuple(drops),
                notes=(DROP_NOTE,),
                digits=2,
            )
        )
    sheets += _shared(results)
    return Report(sheets=tuple(sheets))


def _name(task: FinishedTask, tasks: Sequence[FinishedTask]) -> str:
    """The model's label, with what the task changes if the same run has the setting twice."""
    same = [
        one for one in tasks
        if (one.label, one.options.setting) == (task.label, task.options.setting)
    ]  # fmt: skip
    return task.label if len(same) == 1 else f"{task.label} {task.task.name}"


def _table(setting: Setting, results: Mapping[str, Result]) -> Sheet:
    """The metrics of each model, and the published ones of that setting."""
    rows: list[tuple[Cell, ...]] = []
    notes = [NOTE]
    for name, result in results.items():
        units = result.units
        users, trained = result.users(), result.users(f"ndcg_10_{KNOWN}")
        every = tuple(percent(result.mean(column)) for column in COLUMNS)
        known = tuple(percent(result.mean(f"{column}_{KNOWN}")) for column in COLUMNS)
        by_user = tuple(percent(result.mean_by_user(column)) for column in COLUMNS)
        rows += [
            (name, "all", len(units["ndcg_10"]), len(users), *every),
            (name, "trained", len(units[f"ndcg_10_{KNOWN}"]), len(trained), *known),
            (name, "by user", len(units["ndcg_10"]), len(users), *by_user),
        ]
        metric = result.task.summary.metrics["ndcg_10"]
        if metric.missing:
            notes.append(f"{name}: cases without a value: {counted(metric.missing)}")
        left_out = result.task.summary.metrics.get(f"ndcg_10_{KNOWN}")
        if left_out is not None and (n := left_out.missing.get(UNTRAINED)):
            notes.append(f"{name}: targets without a training interaction: {n:,}")
        if result.task.options.negatives and SAMPLED_NOTE not in notes:
            notes.append(SAMPLED_NOTE)
    if setting in PUBLISHED:
        table = TABLES.read(PUBLISHED[setting])
        rows += [
            (
                f"paper: {row['model']}",
                "all",
                None,
                PAPERS_USERS,
                *(row.get(name) for name in COLUMNS),
            )
            for row in table.dicts()
        ]
        notes += (*table.notes, f"the paper's rows are of {COMPARABLE_IF}")
    return Sheet(
        title=f"{TABLE[setting]}: setting {setting}, {MEANING[setting]}",
        columns=("model", "targets", "cases", "users", *HEADS),
        rows=tuple(rows),
        notes=tuple(dict.fromkeys(notes)),
        digits=2,
    )


def _drops(results: Mapping[Setting, Mapping[str, Result]]) -> Iterator[tuple[Cell, ...]]:
    """What each model loses from 1a to each other setting, with its interval."""
    for name, first in results[REFERENCE].items():
        for setting in SETTINGS[1:]:
            other = results[setting].get(name)
            if other is None:
                continue
            for column in DROPS:
                here, there = first.mean(column), other.mean(column)
                if here is None or there is None:
                    continue
                low, high = _interval(first, other, column)
                ends = (percent(low), percent(high))
                yield (
                    name, setting, column, percent(here), percent(there), percent(here - there),
                    *ends,
                )  # fmt: skip


def _interval(first: Result, other: Result, column: str) -> tuple[float | None, float | None]:
    """The interval of the first mean minus the other, users drawn together."""
    import numpy as np

    from harness.scoring.stats.bootstrap import Interval, Part, interval_together

    interval = first.task.task.interval
    parts = []
    for result, weight in ((first, 1.0), (other, -1.0)):
        users, values = zip(*result.units[column].values(), strict=True)
        clusters = np.array([stable_int(user) for user in users], dtype=np.uint64)
        parts.append(
            Part(values=np.array(values), clusters=clusters, statistic="mean", weight=weight)
        )
    found: Any = interval_together(
        parts,
        seed=stable_int("drop", column, first.task.options.setting, other.task.options.setting),
        draws=interval.draws,
        confidence=interval.confidence,
        method=interval.method,
    )
    return (found.low, found.high) if isinstance(found, Interval) else (None, None)


def _shared(results: Mapping[Setting, Mapping[str, Result]]) -> Iterator[Sheet]:
    """The users held out who have cases before and from 2020, with both values."""
    rows: list[tuple[Cell, ...]] = []
    for name, before in results["1b"].items():
        after = results["1d"].get(name)
        if after is None:
            continue
        both = before.users() & after.users()
        means = (result.mean(column, both) for column in DROPS for result in (before, after))
        rows.append((name, len(both), *map(percent, means)))
    if rows:
        yield Sheet(
            title="Users with cases in 1b and in 1d",
            columns=("model", "users", "N@10 in 1b", "N@10 in 1d", "R@10 in 1b", "R@10 in 1d"),
            rows=tuple(rows),
            notes=("in per cent, the mean over the cases of these users",),
            digits=2,
        )
