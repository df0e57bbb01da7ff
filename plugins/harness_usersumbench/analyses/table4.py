"""Table 4: quality, instruction following and information density of the methods, and their cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING

from harness.contracts.report import Report, Sheet
from harness.scoring.paired_differences import differences_of
from harness_usersumbench.analyses.accuracy import both, percent
from harness_usersumbench.analyses.examples import FINAL
from harness_usersumbench.analyses.results import (
    METHODS,
    REFERENCE,
    SETTING,
    TITLES,
    Compared,
    compared,
    over_runs,
)
from harness_usersumbench.paper import DATASETS, TABLES, examples
from harness_usersumbench.records import TASKS, Method

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

HEADS = {"qm": "QM", "ifm": "IFM", "idm": "IDM ×0.1%"}
MAKING = ("summarise", "segment", "combine")
"""The stages that make summaries."""

BASELINES = ("popular", "random")
"""The baselines of QM."""

PAPER: dict[str, Method] = {
    "single-step": "single_step",
    "hierarchy-critique": "hierarchy_critique",
}
"""The columns of the published Table 4, and their methods."""

LIMIT_UNKNOWN = "limit unknown"

MAIN_NOTES = (
    "±: standard deviation (n - 1) over the runs of the predictor, not over users; IFM has none, "
    "since summaries do not change between runs; increment: in per cent of single_step",
)
COST_NOTES = (
    "t1 to t4: right answers in %, with unread ones as wrong; calls and tokens: of the stages that "
    "make summaries, also of answers from the store; good: the sum of Q_s, as the mean over runs",
)
DIFFERENCE_NOTES = (
    "over the users that both have; low and high: paired bootstrap over users, of each user's mean "
    "over runs",
)
PUBLISHED_NOTES = (
    f"{LIMIT_UNKNOWN}: the paper does not print the limit of words in its prompts, so there is no "
    "difference in IFM and IDM",
    "ours, not the paper's: the prompts of the four questions and of entities, the choice of wrong "
    "categories, and the categories in the lines of activities",
)


def main(tasks: Sequence[FinishedTask], options: object) -> Report:
    """The report of `usersum`: for each model and source of data, and for models together."""
    found = compared(tasks)
    made = [
        sheet
        for one in found
        for sheet in (main_sheet(one), cost_sheet(one), method_differences(one), published(one))
        if sheet is not None
    ]
    return Report(sheets=(*made, *model_differences(found)))


def main_sheet(one: Compared) -> Sheet:
    """The three metrics of each method, with their spread over runs and their increment."""
    values = {method: table_values(task) for method, task in one.tasks.items()}
    rows: list[tuple[Cell, ...]] = []
    for method, of_method in values.items():
        cells: list[Cell] = []
        for name, (value, spread) in of_method.items():
            base = values[REFERENCE][name][0] if REFERENCE in values else None
            more = increment(value, base) if method != REFERENCE else None
            cells += [value, more] if name == "ifm" else [value, spread, more]
        rows.append((method, one.tasks[method].summary.metrics["qm"].n, *cells))
    known = next(iter(one.tasks.values())).summary.metrics
    rows += [
        (f"{name}, no model", known[name].n, known[name].value, *(None for _ in range(7)))
        for name in BASELINES
        if name in known
    ]
    return Sheet(
        title=f"Table 4: {one.name}",
        columns=("method", "users", "QM", "±", "increment %", "IFM", "increment %",
                 "IDM ×0.1%", "±", "increment %"),
        rows=tuple(rows),
        notes=(*MAIN_NOTES, roles_note(one), *missing_notes(one)),
        digits=(0, 0, 3, 3, 2, 3, 2, 3, 3, 2),
    )  # fmt: skip


def table_values(task: FinishedTask) -> dict[str, tuple[float | None, float | None]]:
    """Each metric of Table 4 with its standard deviation over runs."""
    runs, ifm = over_runs(task), task.summary.metrics.get("ifm")
    return {
        "qm": (runs["qm"].mean, runs["qm"].sd),
        "ifm": (ifm.value if ifm else None, None),
        "idm": (runs["idm"].mean, runs["idm"].sd),
    }


def increment(value: float | None, base: float | None) -> float | None:
    """The difference from a base in per cent of it."""
    return 100 * (value - base) / base if value is not None and base else None


def roles_note(one: Compared) -> str:
    """The model of each role; in the paper's Table 4 one model plays all."""
    roles: dict[str, dict[str, None]] = {}
    for task in one.tasks.values():
        for role, model in task.summary.roles.items():
            roles.setdefault(role, {})[model] = None
    candidate = roles.get("candidate")
    same = [role for role, models in roles.items() if models == candidate and role != "candidate"]
    said = [f"{role}: {', '.join(models)}" for role, models in roles.items() if role not in same]
    return "; ".join(
        [*said, f"{' and '.join(same)}: the candidate, as in the paper"][: len(said) + bool(same)]
    )


def missing_notes(one: Compared) -> Iterator[str]:
    """For each method the users without QM by cause, if there are any."""
    for method, task in one.tasks.items():
        if causes := task.summary.metrics["qm"].missing:
            counted = ", ".join(
                f"{cause} {many:,}" for cause, many in Counter(causes).most_common()
            )
            yield f"{method}: users without QM: {sum(causes.values()):,} ({counted})"


def cost_sheet(one: Compared) -> Sheet:
    """The accuracy of the four questions, and what a good summary cost."""
    return Sheet(
        title=f"Questions and cost: {one.name}",
        columns=("method", *TASKS, "unread %", "calls", "tokens", "good summaries",
                 "calls a good one", "tokens a good one"),
        rows=tuple((method, *_accuracy(task), *_cost(task)) for method, task in one.tasks.items()),
        notes=COST_NOTES,
    )  # fmt: skip


def method_differences(one: Compared) -> Sheet | None:
    """The paired differences of the methods: of QM for all, of IFM and IDM for summaries."""
    rows = [
        (HEADS[name], *cells)
        for name in HEADS
        for cells in _differences(
            {method: task for method, task in one.tasks.items() if _has(method, name)}, name
        )
    ]
    return _difference_sheet(f"Methods on the same users: {one.name}", "method", rows)


def model_differences(found: Sequence[Compared]) -> Iterator[Sheet]:
    """The paired differences of models that use one method on the same data."""
    for source, title in TITLES.items():
        of_source = [one for one in found if one.source == source]
        rows = [
            (f"{HEADS[name]}, {method}", *cells)
            for method in METHODS
            for name in HEADS
            if _has(method, name)
            for cells in _differences(
                {one.model: one.tasks[method] for one in of_source if method in one.tasks}, name
            )
        ]
        sheet = _difference_sheet(f"Models on the same users: {title}", "model", rows)
        if sheet is not None:
            yield sheet


def published(one: Compared) -> Sheet | None:
    """The paper's Table 4 beside these values, with a difference in QM if they are comparable."""
    rows: list[tuple[Cell, ...]] = []
    notes: dict[str, None] = {}
    for row in TABLES.read("methods").dicts():
        for column, method in PAPER.items():
            if DATASETS[row["dataset"]] != one.source or method not in one.tasks:
                continue
            task, metric = one.tasks[method], row["metric"]
            ours, spread = table_values(task)[metric]
            difference = None
            if reasons := against(task):
                notes[f"{method} is not comparable: {'; '.join(reasons)}"] = None
            elif metric == "qm" and ours is not None:
                difference = ours - row[column]
            remark = "" if metric == "qm" else LIMIT_UNKNOWN
            theirs = (row[column], row[f"{column} sd"])
            rows.append((HEADS[metric], method, ours, spread, *theirs, difference, remark))
    if not rows:
        return None
    return Sheet(
        title=f"Ours and the published Table 4: {one.name}",
        columns=("metric", "method", "ours", "±", "published", "±", "difference", "remark"),
        rows=tuple(rows),
        notes=(*notes, *PUBLISHED_NOTES),
        digits=3,
    )


def against(task: FinishedTask) -> tuple[str, ...]:
    """The reasons why a task is not comparable with the published Table 4; empty if it is."""
    reasons = list(task.summary.not_comparable_because)
    units, expected = task.summary.units, examples()[TITLES[task.options.source]]
    if units != expected:
        reasons.append(f"{units:,} users, not {expected:,}")
    if changed := SETTING.describe(task):
        reasons.append(f"different settings: {changed}")
    return tuple(dict.fromkeys(reasons))


def _has(method: str, metric: str) -> bool:
    return metric == "qm" or method in FINAL


def _accuracy(task: FinishedTask) -> tuple[Cell, ...]:
    metrics = task.summary.metrics
    return (
        *(percent(both(metrics[name])[0]) for name in TASKS),
        percent(metrics["unreadable"].value),
    )


def _cost(task: FinishedTask) -> tuple[Cell, ...]:
    """Calls, tokens and good summaries; nothing for a method without summaries of its own."""
    if task.options.method not in FINAL:
        return (None,) * 5
    uses = [
        use
        for stage in MAKING
        if stage in task.summary.stages
        for use in task.summary.stages[stage].roles.values()
    ]
    calls = sum(use.calls for use in uses)
    known = [
        use.prompt_tokens + use.completion_tokens
        for use in uses
        if use.prompt_tokens is not None and use.completion_tokens is not None
    ]
    tokens = sum(known) if len(known) == len(uses) else None
    good = fsum(value for _, value in task.units("qm").values())
    each = (None if not good or spent is None else spent / good for spent in (calls, tokens))
    return calls, tokens, good, *each


def _differences(tasks: Mapping[str, FinishedTask], name: str) -> Iterator[tuple[Cell, ...]]:
    """For each pair of tasks the later one minus the earlier one."""
    if len(tasks) < 2:
        return
    first = next(iter(tasks.values()))
    values = {called: task.units(name) for called, task in tasks.items()}
    metric = first.benchmark.metrics[name]
    for one in differences_of(first, name, metric, values, against=None):
        yield one.first, one.second, one.value, *(one.interval or (None, None)), one.users


def _difference_sheet(title: str, what: str, rows: Sequence[tuple[Cell, ...]]) -> Sheet | None:
    if not rows:
        return None
    return Sheet(
        title=title,
        columns=("metric", what, "minus", "difference", "low", "high", "users"),
        rows=tuple(rows),
        notes=DIFFERENCE_NOTES,
        digits=3,
    )
