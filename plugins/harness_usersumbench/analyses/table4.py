"""Table 4: quality, instruction following and density of each method, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, Any

from harness.comparison.differences import differences_of
from harness.contracts.report import Report, Sheet
from harness.reporting.text import reasons as counted
from harness_usersumbench.analyses.examples import FINAL
from harness_usersumbench.analyses.results import (
    HEADS,
    METHODS,
    SETTING,
    Row,
    Values,
    answered,
    by_data,
    percent,
    table_values,
)
from harness_usersumbench.paper import TABLES, examples
from harness_usersumbench.records import TASKS, Method

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

BASELINES = ("popular", "random")
"""The baselines of QM."""

REFERENCE: Method = "single_step"
PAPER: dict[str, Method] = {"single-step": REFERENCE, "hierarchy-critique": "hierarchy_critique"}
"""The columns of the published Table 4, and their methods."""

PLAYED = ("verifier", "predictor")
"""The roles that the candidate plays in the paper."""

MAKING = ("summarise", "segment", "combine")
"""The stages that make summaries."""

LIMIT_UNKNOWN = "limit unknown"

MAIN_NOTE = (
    "±: standard deviation (n - 1) over the runs of the predictor, not over users; runs differ in "
    "the order of options alone, unless the predictor has a temperature above 0, and so a seed; "
    f"increment: in per cent of {REFERENCE}, over the users in common, who have all values of both"
)
UNREAD_NOTE = "unread %: the verifier's checks of summaries that could not be read in full"
COST_NOTE = (
    "t1 to t4: right answers in %, with unread ones as wrong, over the users who were asked; calls "
    "and tokens: of the stages that make summaries, also of answers from the store; good: the sum "
    "of Q_s, as the mean over runs"
)
DIFFERENCE_NOTE = (
    "over the users that both have; low and high: paired bootstrap over users, of each user's mean "
    "over runs"
)
PUBLISHED_NOTES = (
    f"{LIMIT_UNKNOWN}: the paper does not print the limit of words in its prompts, so there is no "
    "difference in IFM and IDM",
    "ours, not the paper's: the prompts of the four questions and of entities, the choice of wrong "
    "categories, and the categories in the lines of activities",
)


def main(tasks: Sequence[FinishedTask], options: object) -> Report:
    """The report of `usersum`: sheets for each model on each data set, and for models together."""
    sheets: list[Sheet] = []
    for data, rows in by_data(tasks).items():
        for row in rows:
            title = f"{data}, {row.name}"
            values = {method: table_values(task) for method, task in row.tasks.items()}
            sheets += [main_sheet(row, title, values), cost_sheet(row, title)]
            sheets += differences(f"Methods on the same users: {title}", {"": row.tasks})
            sheets += published(row, title, values, data=data)
        by_method = {
            method: {row.name: row.tasks[method] for row in rows if method in row.tasks}
            for method in METHODS
        }
        sheets += differences(f"Models on the same users: {data}", by_method)
    return Report(sheets=tuple(sheets))


def main_sheet(row: Row, title: str, values: Mapping[Method, Values]) -> Sheet:
    """The three metrics of each method, with their spread over runs and their increment."""
    lines: list[tuple[Cell, ...]] = []
    remarks = [MAIN_NOTE]
    for method, of_method in values.items():
        task = row.tasks[method]
        known = REFERENCE in row.tasks and method != REFERENCE
        more, common = increments(task, row.tasks[REFERENCE]) if known else ({}, None)
        cells: list[Cell] = []
        for name, (value, spread) in of_method.items():
            cells += [value, *([] if name == "ifm" else [spread]), more.get(name)]
        checks = task.summary.stages.get("verify")
        unread = 100 * (1 - checks.done / checks.items) if checks and checks.items else None
        lines.append((method, task.summary.metrics["qm"].n, *cells, common, unread))
        remarks += [UNREAD_NOTE] if unread is not None else []
    metrics = row.first.summary.metrics
    lines += [
        (f"{name}, no model", metrics[name].n, metrics[name].value, *(None for _ in range(9)))
        for name in BASELINES
        if name in metrics
    ]
    remarks.append(roles_note(row))
    for method, task in row.tasks.items():
        remarks += [f"{method}: {note}" for note in task.summary.notes or ()]
        if missing := task.summary.metrics["qm"].missing:
            remarks.append(f"{method}: users without QM: {counted(missing)}")
    return Sheet(
        title=f"Table 4: {title}",
        columns=("method", "users", "QM", "±", "increment %", "IFM", "increment %", "IDM ×0.1%",
                 "±", "increment %", "in common", "unread %"),
        rows=tuple(lines),
        notes=tuple(remarks),
        digits=(0, 0, 3, 3, 2, 3, 2, 3, 3, 2, 0, 1),
    )  # fmt: skip


def increments(task: FinishedTask, base: FinishedTask) -> tuple[dict[str, float | None], int]:
    """The increments over another task, and the number of users who have all values of both."""
    both = [{name: found for name in HEADS if (found := one.units(name))} for one in (task, base)]
    names = [name for name in HEADS if all(name in values for values in both)]
    having = [values[name].keys() for values in both for name in names]
    users = set(having[0]).intersection(*having) if having else set()
    means = {
        name: [fmean(values[name][user][1] for user in sorted(users)) for values in both]
        for name in names
        if users
    }
    return {name: increment(*pair) for name, pair in means.items()}, len(users)


def increment(value: float | None, base: float | None) -> float | None:
    """The difference from a base in per cent of it."""
    return 100 * (value - base) / base if value is not None and base else None


def roles_note(row: Row) -> str:
    """The model of each role; in the published Table 4 one model plays all."""
    roles: dict[str, dict[str, None]] = {}
    for task in row.tasks.values():
        for role, model in task.summary.roles.items():
            roles.setdefault(role, {})[model] = None
    said = (f"{role} {' and '.join(models)}" for role, models in roles.items())
    return f"roles: {', '.join(said)}; in the paper one model plays all"


def cost_sheet(row: Row, title: str) -> Sheet:
    """The accuracy of the four questions, and what a good summary cost."""
    lines = []
    for method, task in row.tasks.items():
        found = answered(task)
        right = (one.right for one in found.values())
        unread = percent(task.summary.metrics["unreadable"].value)
        lines.append((method, found["t1"].users, *right, unread, *cost(task)))
    return Sheet(
        title=f"Questions and cost: {title}",
        columns=("method", "users", *TASKS, "unread %", "calls", "tokens", "good summaries",
                 "calls a good one", "tokens a good one"),
        rows=tuple(lines),
        notes=(COST_NOTE,),
    )  # fmt: skip


def cost(task: FinishedTask) -> tuple[Cell, ...]:
    """Calls, tokens and good summaries; nothing for a method without summaries of its own."""
    if task.options.method not in FINAL:
        return (None,) * 5
    stages = [task.summary.stages[name] for name in MAKING if name in task.summary.stages]
    uses = [use for stage in stages for use in stage.roles.values()]
    calls = sum(use.calls for use in uses)
    parts = [part for use in uses for part in (use.prompt_tokens, use.completion_tokens)]
    tokens = None if None in parts else sum(part or 0 for part in parts)
    good = fsum(value for _, value in task.units("qm").values())
    each = (spent / good if good and spent is not None else None for spent in (calls, tokens))
    return calls, tokens, good, *each


def differences(title: str, groups: Mapping[Any, Mapping[Any, FinishedTask]]) -> Iterator[Sheet]:
    """The paired differences within each group, of each task minus each later one.

    IFM and IDM are only of methods that summarise; without two tasks there is no sheet.
    """
    lines: list[tuple[Cell, ...]] = []
    for group, tasks in groups.items():
        for name, head in HEADS.items():
            having = {
                called: task
                for called, task in tasks.items()
                if name == "qm" or task.options.method in FINAL
            }
            if len(having) > 1:
                first = next(iter(having.values()))
                metric = first.benchmark.metrics[name]
                values = {called: task.units(name) for called, task in having.items()}
                lines += [
                    (f"{head} {group}".rstrip(), one.first, one.second, one.value,
                     *(one.interval or (None, None)), one.users)
                    for one in differences_of(first, name, metric, values, against=None)
                ]  # fmt: skip
    if lines:
        yield Sheet(
            title=title,
            columns=("metric", "of", "minus", "difference", "low", "high", "users"),
            rows=tuple(lines),
            notes=(DIFFERENCE_NOTE,),
            digits=3,
        )


def published(
    row: Row, title: str, values: Mapping[Method, Values], *, data: str
) -> Iterator[Sheet]:
    """The published Table 4 and these values, with a difference in QM if they are comparable."""
    lines: list[tuple[Cell, ...]] = []
    notes: dict[str, dict[str, None]] = {}
    for theirs in TABLES.read("methods").dicts():
        for column, method in PAPER.items():
            if theirs["dataset"] != data or method not in row.tasks:
                continue
            metric, task = theirs["metric"], row.tasks[method]
            ours, spread = values[method][metric]
            difference = None
            if reasons := against(task, data):
                notes.setdefault("; ".join(reasons), {})[method] = None
            elif metric == "qm" and ours is not None:
                difference = ours - theirs[column]
            known = (theirs[column], theirs[f"{column} sd"], difference)
            remark = "" if metric == "qm" else LIMIT_UNKNOWN
            lines.append((HEADS[metric], method, ours, spread, *known, remark))
    if lines:
        yield Sheet(
            title=f"Ours and the published Table 4: {title}",
            columns=("metric", "method", "ours", "±", "published", "±", "difference", "remark"),
            rows=tuple(lines),
            notes=(
                *(f"{', '.join(of)}: not comparable: {why}" for why, of in notes.items()),
                *PUBLISHED_NOTES,
            ),
            digits=3,
        )


def against(task: FinishedTask, data: str) -> tuple[str, ...]:
    """The reasons why a task is not comparable with the published Table 4; empty if it is."""
    reasons = list(task.summary.not_comparable_because)
    if not task.summary.comparable and not reasons:
        reasons.append("marked as not comparable")
    units, expected = task.summary.units, examples()[data]
    if units != expected:
        reasons.append(f"{units:,} users, not {expected:,}")
    roles = task.summary.roles
    reasons += [
        f"the {role} is another model: {roles[role]}"
        for role in PLAYED
        if role in roles and roles[role] != roles.get("candidate", roles["predictor"])
    ]
    if changed := SETTING.describe(task):
        reasons.append(f"different settings: {changed}")
    return tuple(dict.fromkeys(reasons))
