"""Results of runs on a terminal: what fits a screen, or all tables.

Imports rich at the top: import this module where it is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.text import Text

from harness.calls.pricing import Cost, costs_by_model, together
from harness.comparison.matching import THE_CANDIDATE
from harness.contracts.stage import CANDIDATE
from harness.reporting.grid import (
    INDENT,
    Row,
    cut_end,
    digits_of,
    grid,
    indented,
    result_console,
    room_on,
    sheet_lines,
    show,
    wrapped,
)
from harness.reporting.run_lines import cost_notes, paid, saved, token_notes, tokens
from harness.reporting.text import NOTHING, ROUNDING, causes, clean_text, number, reasons, share
from harness.runs.manifest import Manifest
from harness.scoring.grouping import grouped
from harness.scoring.means import MeanOverTasks, tasks_of_group
from harness.scoring.run_costs import costs_of
from harness.scoring.score_run import unfinished_stages
from harness.scoring.summary import (
    MetricResult,
    RepeatedTask,
    RoleUse,
    StageSummary,
    TaskSummary,
    baselines_of,
    main_metrics,
    over_repeats,
)
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.comparison.document import Comparison, DecidedGate, Difference
    from harness.contracts.benchmark import Metric
    from harness.contracts.report import Report, Sheet

MISSING, WITHOUT = "missing ", "without missing"
"""What the columns for the value by the policy that a metric does not use begin with, and the one
of them for values without what is missing."""


def print_metrics(summaries: Sequence[TaskSummary], console: Console | None = None) -> None:
    """Print each task's metrics with what limits them, then means over repeats."""
    console = console or result_console()
    width = room_on(console)
    for summary in summaries:
        show(console, _results(summary, width))
    if repeated := over_repeats(summaries):
        show(console, [*_repeats(repeated, width), Text()])


def print_costs(
    tasks: Mapping[str, Mapping[str, StageSummary]], console: Console | None = None
) -> None:
    """Print what the stages of all tasks did and asked, and what that cost."""
    console = console or result_console()
    width = room_on(console)
    stages = [(f"{task}/{name}", one) for task, of in tasks.items() for name, one in of.items()]
    rows: list[Row] = [
        (
            clean_text(name), f"{stage.items:,}", f"{stage.done:,}",
            Text(causes(stage.failures), "yellow" if stage.failures else "dim"),
        )
        for name, stage in stages
    ]  # fmt: skip
    heads, numbers = ("stage", "items", "done", "missing"), (False, True, True, False)
    lines = grid(heads, rows, numbers=numbers, width=width)
    show(console, [*lines, Text()] if stages else [])
    asked = ((name, role, use) for name, stage in stages for role, use in stage.roles.items())
    if roles := [(clean_text(f"{name}, {role}"), use) for name, role, use in asked]:
        show(console, [*_role_grid(roles, width), *_role_notes(roles, width), Text()])
    show(console, _costs([stage for _, stage in stages], width))


def _costs(stages: Iterable[StageSummary], width: int | None) -> list[Text]:
    costs = costs_by_model(costs_of(stages))
    if not costs:
        return []
    (currency,) = {clean_text(cost.currency) for cost in costs.values()}
    heads = ("model", "calls", f"paid, {currency}", "reused", f"saved, {currency}")
    rows: list[Row] = [_cost_row(*one) for one in costs.items()]
    if len(costs) > 1:
        rows += [None, _cost_row("total", together("total", costs.values()))]
    lines = grid(heads, rows, numbers=4, width=width)
    for name, cost in costs.items():
        lines += indented(cost_notes(clean_text(name), cost), "yellow", width)
    return [*lines, Text()]


def _cost_row(name: str, cost: Cost) -> Row:
    money = Text(paid(cost), style="bold")
    return clean_text(name), f"{cost.asked:,}", money, f"{cost.reused:,}", saved(cost)


def _results(summary: TaskSummary, width: int | None) -> list[Text]:
    title = Text(clean_text(summary.task), style="bold")
    title.append(f"  version {summary.version}, {candidate_of(summary)}", style="dim")
    others = [
        f"{clean_text(role)}: {clean_text(model)}"
        for role, model in summary.roles.items()
        if role != CANDIDATE
    ]
    others.append(f"data: {clean_text(data_name(summary.data))}")
    notes = summary.data.get("notes", {})
    others += [f"  {clean_text(fact)}: {number:,}" for fact, number in notes.items()]
    lines = [title, *(Text(line, style="dim") for line in others)]
    if not summary.comparable:
        lines.append(Text("NOT COMPARABLE with published results", style="bold red"))
        lines += indented(map(clean_text, summary.not_comparable_because), "red", width)
    # Baselines without any unit say nothing.
    metrics = {
        name: each
        for name, each in summary.metrics.items()
        if each.n or each.missing or not each.baseline
    }
    lines += [Text(), *_metrics(metrics, width), *known_notes(metrics, width)]
    lines += open_notes(metrics, width)
    lines += indented(filter(None, [members_note([summary])]), "yellow", width)
    lines += indented(map(clean_text, summary.notes or ()), "yellow", width)
    longest = max(map(len, metrics), default=0)
    meanings = (
        f"{clean_text(name).ljust(longest)}  {clean_text(result.description)}"
        for name, result in metrics.items()
        if result.description
    )
    lines += [*indented(meanings, "dim", width), Text()]
    if summary.counts:
        counts = [(clean_text(name), f"{times:,}") for name, times in summary.counts.items()]
        lines += [*grid(("counted", "times"), counts, numbers=1, width=width), Text()]
    return lines


def candidate_of(summary: TaskSummary) -> str:
    """The candidate's label, and whether it thought if that is known."""
    thinks = True if thought_out(summary) else summary.thinks
    thinking = {True: ", with thinking", False: ", without thinking", None: ""}[thinks]
    return clean_text(summary.model) + thinking


def thought_out(summary: TaskSummary) -> int:
    """How many replies of the candidate spent their limit on thinking."""
    uses = (stage.roles.get(CANDIDATE) for stage in summary.stages.values())
    return sum(use.thought_out for use in uses if use is not None)


def members_note(summaries: Iterable[TaskSummary]) -> str:
    """Of which members of panels calls failed, asked again or not; empty if of none."""
    failed: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for summary in summaries:
        for stage in summary.stages.values():
            for name, use in stage.roles.items():
                if " " in name:  # see `player_name`
                    failed[name] += use.failed
                    calls[name] += use.calls
    found = [
        f"{clean_text(name)} {many:,} of {calls[name]:,}"
        for name, many in sorted(failed.items())
        if many
    ]
    return f"failed calls of panel members: {', '.join(found)}" if found else ""


def _metrics(metrics: Mapping[str, MetricResult], width: int | None) -> list[Text]:
    others = other_policies(metrics.values())
    heads = ("metric", f"value [{interval_header(metrics.values())}]", "n", "missing", *others)
    rows: dict[bool, list[Row]] = {False: [], True: []}
    for name, result in metrics.items():
        value = Text(value_of(result), "bold")
        row: Row = (metric_name(name, result), value, *result_cells(result, others))
        rows[bool(result.baseline)].append(row)
    if rows[True]:
        rows[True] = [None, [Text("without any model", "dim")], *rows[True]]
    return grid(heads, [*rows[False], *rows[True]], numbers=len(heads) - 1, width=width)


def other_policies(results: Iterable[MetricResult]) -> tuple[str, ...]:
    """The headers of the columns for the values by a policy that some metric does not use."""
    results = tuple(results)
    left_out = any(result.left_out is not None for result in results)
    missing = {
        result.counts_as or "worst"
        for result in results
        if missing_share(result) and result.left_out is None
    }
    counted = "counted" if len(missing) > 1 else f"as {next(iter(missing), 'worst')}"
    # If nothing is missing of any metric, one column shows that.
    wanted = ((f"{MISSING}{counted}", bool(missing) or not left_out), (WITHOUT, left_out))
    return tuple(header for header, shown in wanted if shown)


def result_cells(result: MetricResult, others: Sequence[str]) -> list[Text]:
    """The cells of a metric after its value: n, missing, and the values by either policy.

    `n` counts the units behind the value, including units that it counts as worst. `missing` is
    the number of missing units with the share that is missing of all that the metric is made of.
    """
    missing = missing_share(result)
    counts = result.left_out is not None
    counted = result.counted_as_worst if missing else None
    left_out = result.left_out if counts else result.value if missing else None
    return [
        Text(f"{result.units_behind:,}"),
        Text(missing_cell(result), style="yellow" if missing else "dim"),
        *(Text(number(left_out if other == WITHOUT else counted)) for other in others),
    ]


def missing_cell(result: MetricResult) -> str:
    """The number of missing units, and of missing parts of the others; `–` if nothing is missing.

    `8 (25%)`, `4 of 77 parts`, or `8, 4 of 77 parts`.
    """
    units = sum(result.missing.values())
    if result.missing_parts:
        missing, every = result.missing_parts
        return f"{units:,}, " * bool(units) + f"{missing:,} of {every:,} parts"
    return missing_units(units, missing_share(result))


def missing_units(units: int, missing: float) -> str:
    """The number of missing units with the share that is missing of all; `–` if nothing is."""
    if not missing:
        return NOTHING
    return f"{units:,} ({share(missing, 1)})" if units else f"{share(missing, 1)} of parts"


def missing_share(result: MetricResult) -> float:
    """The share that is missing of what a metric is made of, also in older summaries."""
    units = sum(result.missing.values())
    return result.missing_share or (units / (result.n + units) if units else 0.0)


def _role_grid(roles: Sequence[tuple[str, RoleUse]], width: int | None) -> list[Text]:
    heads = ["asked", "calls", "stored", "failed", "tokens in", "tokens out"]
    currencies = {clean_text(use.cost.currency) for _, use in roles if use.cost is not None}
    heads += [f"{what}, {currency}" for currency in currencies for what in ("paid", "saved")]
    rows: list[Row] = [
        (
            name, f"{use.calls:,}", share(use.from_store, use.calls),
            Text(f"{use.failed:,}", style="yellow" if use.failed else "dim"),
            tokens(use.prompt_tokens, use.untold), tokens(use.completion_tokens, use.untold),
            *((paid(use.cost), saved(use.cost)) if currencies else ()),
        )
        for name, use in roles
    ]  # fmt: skip
    return grid(heads, rows, numbers=len(heads) - 1, width=width)


def _repeats(tasks: Sequence[RepeatedTask], width: int | None) -> list[Text]:
    heads = ("over repeats", "metric", "mean", "deviation", "stderr", "repeats")
    rows: list[Row] = []
    for task in tasks:
        name = clean_text(task.task)
        for metric, spread in task.metrics.items():
            if spread.baseline:
                continue
            with_value = f"{spread.n} of {len(task.repeats)}" if spread.without else f"{spread.n}"
            values = map(number, (spread.mean, spread.sd, spread.stderr))
            rows.append((name, metric_name(metric, spread), *values, with_value))
            name = ""
    return grid(heads, rows, numbers=4, width=width)


def data_name(data: Mapping[str, Any]) -> str:
    """The name of the data: repository and revision, address, path, or bundled sample."""
    origin = str(data.get("origin", "unknown"))
    if origin == "hub":
        return f"{data.get('repo')} at {str(data.get('revision'))[:12]}"
    if origin in ("url", "drive"):
        return str(data.get("address"))
    if origin == "build":
        return f"built by harness data {data.get('tool')}"
    if origin == "local":
        published = data.get("in_place_of")
        return f"{data.get('path')}{f', in place of {published}' if published else ''}"
    return f"bundled {origin}" if origin == "sample" else origin


def known_notes(metrics: Mapping[str, MetricResult], width: int | None) -> list[Text]:
    """The benchmark's own notes on its metrics, which readers must know."""
    notes = grouped((clean_text(one.note), name) for name, one in metrics.items() if one.note)
    return indented(_by_metrics(notes), "yellow", width)


def open_notes(
    metrics: Mapping[str, MetricResult], width: int | None, whose: str = ""
) -> list[Text]:
    """The notes on missing units, values and intervals, with their causes."""
    notes: list[tuple[str, str]] = []
    units: list[tuple[str, str]] = []
    values: list[tuple[str, str]] = []
    for name, result in metrics.items():
        if result.value is not None and result.interval is None and result.no_interval:
            notes.append((f"no interval: {clean_text(result.no_interval)}", name))
        if result.users not in (0, result.n):
            notes.append((f"{result.n:,} samples of {result.users:,} users", name))
        counts = result.left_out is not None
        if missing := sum(result.missing.values()):
            note = "; each counts as the worst score" if counts else ""
            if counts and result.not_counted:
                note += f", except {result.not_counted:,} that are missing by other roles"
            units.append((f"{missing:,} missing ({reasons(result.missing)}){note}", name))
        if missing_share(result) * (result.n + missing) > missing + ROUNDING:
            note = "; it counts as the worst score" if counts else ""
            lost = share(missing_share(result), 1)
            units.append((f"{lost} is missing, with parts of units{note}", name))
        if result.value is None and result.undefined:
            values.append((f"no value: {clean_text(result.undefined)}", name))
    known = [*_by_metrics(grouped(units), whose), *_by_metrics(grouped(values), whose)]
    quiet = _by_metrics(grouped(notes), whose)
    return indented(known, "yellow", width) + indented(quiet, "dim", width)


def _by_metrics(notes: Mapping[str, Sequence[str]], whose: str = "") -> list[str]:
    start = f"{whose}: " if whose else ""
    return [f"{start}{clean_text(', '.join(names))}: {note}" for note, names in notes.items()]


def _role_notes(roles: Sequence[tuple[str, RoleUse]], width: int | None) -> list[Text]:
    notes: list[str] = []
    unknown: list[str] = []
    for name, use in roles:
        total = sum(use.rungs.values())
        ordered = sorted(use.rungs.items(), key=lambda one: (-one[1], one[0]))
        rungs = ", ".join(f"{clean_text(rung)} {share(many, total)}" for rung, many in ordered)
        special = [
            f"{tokens(amount, use.untold)} tokens {what}"
            for amount, what in ((use.cached_tokens, "cached"), (use.reasoning_tokens, "reasoning"))
            if amount
        ]
        if rungs:
            notes.append(f"{name}: {total:,} of {use.calls:,} replies read: {rungs}")
        if use.asked_schema:
            asked, met = f"{use.asked_schema:,}", f"{use.met_schema:,}"
            notes.append(f"{name}: {asked} calls asked for a schema, {met} replies met it")
        if special:
            notes.append(f"{name}: {', '.join(special)}")
        if use.thought_out:
            unknown.append(
                f"{name}: {use.thought_out:,} of {use.calls:,} replies spent their limit on "
                "thinking: switch it off or allow more; `harness show RUN --failures` says how"
            )
        unknown += [*token_notes(name, use), *cost_notes(name, use.cost)]
    return indented(notes, "dim", width) + indented(unknown, "yellow", width)


class Directed(Protocol):
    """A metric, or a result in one."""

    @property
    def higher_is_better(self) -> bool: ...


def metric_name(name: str, metric: Directed) -> str:
    """The name of a metric in tables, with an arrow in the direction of better values."""
    return f"{clean_text(name)} {'↑' if metric.higher_is_better else '↓'}"


def interval_header(results: Iterable[MetricResult]) -> str:
    """The header of the intervals' column, with confidence and method if all share them."""
    kinds = {(result.confidence, result.interval_method) for result in results}
    if len(kinds) != 1:
        return "interval"
    confidence, method = kinds.pop()
    return f"{confidence:.0%} {'BCa ' if method == 'bca' else ''}interval"


def value_of(
    result: MetricResult | MeanOverTasks | Difference | DecidedGate,
    shown: Callable[[float | None], str] = number,
) -> str:
    """The value with its interval, if it has one: `0.857 [0.571, 1.000]`; a difference `signed`."""
    if result.value is None or result.interval is None:
        return shown(result.value)
    low, high = result.interval
    return f"{shown(result.value)} [{shown(low)}, {shown(high)}]"


def metric_words(
    metrics: Iterable[tuple[str, MetricResult | Metric]], width: int | None
) -> list[Text]:
    """Each metric once, in words."""
    words = dict.fromkeys(
        f"{clean_text(name)}: {clean_text(each.description.partition(';')[0])}"
        for name, each in metrics
        if each.description
    )
    return [Text(cut_end(line, width), style="dim") for line in words]


MOST_TASKS = 24
"""Of more tasks, those of a group are shown by its mean alone."""

JUDGE = "judge"


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A line of the table; `value` may also say why there is none.

    `baseline` is the best value of the answers that ask no model.
    """

    name: str
    value: str = ""
    metric: str = ""
    baseline: str = ""
    n: str = ""
    missing: str = ""
    in_mean: bool = False
    """Whether the mean of its group stands for it."""
    is_task: bool = False


def _row(
    name: str, metric: str, summaries: Sequence[TaskSummary], mean: MeanOverTasks | None = None
) -> _Row:
    """The line of a task, or of the mean over these tasks."""
    results = [each.metrics[metric] for each in summaries]
    result, rules = mean or results[0], baselines_of(summaries, metric)
    missing = sum(sum(one.missing.values()) for one in results)
    lost = sum(map(missing_share, results)) / len(results)
    none = "no value" if mean is None else "no mean"
    return _Row(
        name=name, metric=metric_name(metric, result),
        value=none if result.value is None else value_of(result),
        baseline=number(rules[0][1]) if rules else "",
        n=f"{sum(one.units_behind for one in results):,}",
        missing=missing_cell(results[0]) if mean is None else missing_units(missing, lost),
    )  # fmt: skip


def print_short_table(
    manifest: Manifest,
    summaries: Sequence[TaskSummary],
    means: Sequence[MeanOverTasks],
    *,
    run: str | None = None,
    reports: Iterable[Report] = (),
    console: Console | None = None,
) -> None:
    """Print the main metrics of a run, what limits them, and first tables that say more.

    `run` is what `harness show` calls the run; None where everything follows.
    """
    console = console or result_console()
    width = room_on(console)
    rows = list(_Rows(manifest, summaries, means).all())
    if sum(row.is_task for row in rows) > MOST_TASKS:
        rows = [row for row in rows if not row.in_mean]
    title = Text(cut_end(_title(manifest, summaries), width), style="bold")
    words = (
        (name, each.metrics[name])
        for each in summaries
        for name in main_metrics(each.main, each.metrics)
    )
    rules = any(row.baseline for row in rows)
    cells: list[Row] = [
        (
            row.name, row.metric, row.value, *([row.baseline] if rules else []), row.n,
            Text(row.missing, "" if row.missing == NOTHING else "yellow"),
        )
        for row in rows
    ]  # fmt: skip
    heads = ("task", "main metric", "value", *(["baseline"] if rules else []), "n", "missing")
    show(console, [title, *metric_words(words, width)])
    show(console, grid(heads, cells, numbers=len(heads) - 2, width=width))
    show(console, wrapped(_below(summaries), width))
    for sheet in (sheet for report in reports for sheet in report.sheets[:1]):
        if _says_more(sheet, summaries, means):
            show(console, [Text(), *sheet_lines(sheet, console.width)])
    if run is not None:
        show(console, [Text(f"more: harness show {clean_text(run)}")])


def _says_more(
    sheet: Sheet, summaries: Sequence[TaskSummary], means: Sequence[MeanOverTasks]
) -> bool:
    """Whether a table of a group has a number that the lines of its tasks and means do not have."""
    shown: list[MetricResult | MeanOverTasks] = [*means]
    for each in summaries:
        shown += [each.metrics[name] for name in main_metrics(each.main, each.metrics)]
    known = [end for one in shown for end in (one.value, *(one.interval or ())) if end is not None]
    return any(
        isinstance(cell, float)
        and all(abs(cell - one) > 0.5 * 10.0 ** -digits_of(sheet, column) for one in known)
        for row in sheet.rows
        for column, cell in enumerate(row)
    )


def _title(manifest: Manifest, summaries: Sequence[TaskSummary]) -> str:
    """The candidate, and each model in other roles, the judge first."""
    candidates = dict.fromkeys(map(candidate_of, summaries)) or [clean_text(manifest.label)]
    asked = []
    for each in summaries:
        task = manifest.tasks[each.task].task()
        follow = {role: THE_CANDIDATE for role in each.roles if manifest.of_candidate(task, role)}
        asked.append({**each.roles, **follow})
    return "; ".join([", ".join(candidates), *other_models(asked)])


def other_models(asked: Iterable[Mapping[str, str]]) -> list[str]:
    """Each model in other roles than the candidate's, with these roles, the judge's first."""
    roles: dict[str, dict[str, None]] = {}
    found = [item for each in asked for item in each.items()]
    for role, model in sorted(found, key=lambda item: item[0] != JUDGE):
        if role != "candidate" and JUDGE not in roles.setdefault(model, {}):
            roles[model][role] = None
    return [f"{clean_text(', '.join(of))}: {clean_text(model)}" for model, of in roles.items()]


class _Rows:
    """The rows of a run's groups and tasks."""

    def __init__(
        self, manifest: Manifest, summaries: Iterable[TaskSummary], means: Iterable[MeanOverTasks]
    ) -> None:
        self._manifest = manifest
        self._found = {summary.task: summary for summary in summaries}
        self._means = grouped(((str(mean.over), mean.name), mean) for mean in means)
        self._repeats = grouped((task_and_repeat(name)[0], name) for name in manifest.tasks)
        self._shown: set[str] = set()

    def all(self) -> Iterator[_Row]:
        """The rows: groups with their tasks, and tasks of no group; finished ones first."""
        groups = self._manifest.groups
        inner = {name for members in groups.values() for name in members if name in groups}
        outer = {name: tasks_of_group(name, groups) for name in groups if name not in inner}
        for task in self._finished_first(self._repeats):
            for group in [name for name, tasks in outer.items() if task in tasks]:
                del outer[group]
                yield from self._of_group(group, 0)
            yield from self._of_task(task, 0)

    def _of_group(self, group: str, depth: int) -> Iterator[_Row]:
        groups = self._manifest.groups
        tasks = [name for name in tasks_of_group(group, groups) if name in self._repeats]
        means = self._means.get(("tasks", group), [])
        within = depth + (len(tasks) > 1)
        name = f"{INDENT * depth}{clean_text(group)}"
        if len(tasks) > 1 and group in self._manifest.without_mean:
            yield _Row(name=f"{name} ({len(tasks)} tasks)")
        elif len(tasks) > 1:
            name += f" (mean of {len(tasks)})"
            finished = any(each in self._found for each in tasks)
            why = "main metrics differ" if finished else ""
            yield from self._of_means(name, means) if means else [_Row(name=name, value=why)]
        summed = bool(means) and all(mean.value is not None for mean in means)
        members = groups[group]
        while len(members) == 1 and members[0] in groups:  # the same tasks under another name
            members = groups[members[0]]
        for inner in members:
            if inner in groups:
                yield from self._of_group(inner, within)
        for task in self._finished_first(name for name in members if name in self._repeats):
            for row in self._of_task(task, within):
                yield replace(row, in_mean=summed)

    def _of_task(self, task: str, depth: int) -> Iterator[_Row]:
        if task in self._shown:
            return
        self._shown.add(task)
        repeats, name = self._repeats[task], INDENT * depth + clean_text(task)
        if len(repeats) > 1:
            means = self._means.get(("repeats", task), [])
            many = len(means[0].tasks) if means else 0
            of = f"{len(repeats)}" if many in (0, len(repeats)) else f"{many} of {len(repeats)}"
            rows = self._of_means(f"{name} ×{of}", means)
        else:
            rows = self._of_summary(name, self._found.get(task))
        first = next(rows, None) or _Row(name=name, value=self._why_not(repeats))
        yield replace(first, is_task=True)
        yield from rows

    def _of_summary(self, name: str, summary: TaskSummary | None) -> Iterator[_Row]:
        if summary is None:
            return
        for metric in main_metrics(summary.main, summary.metrics):
            yield _row(name, metric, [summary])
            name = ""

    def _of_means(self, name: str, means: Sequence[MeanOverTasks]) -> Iterator[_Row]:
        for mean in means:
            yield _row(name, mean.metric, [self._found[task] for task in mean.tasks], mean)
            name = ""

    def _why_not(self, names: Sequence[str]) -> str:
        if not self._found.keys().isdisjoint(names):
            return "no metric"
        entry = self._manifest.tasks[names[0]]
        stages, undone = len(entry.stages), len(unfinished_stages(entry))
        return f"{stages - undone} of {stages} stages done" if undone else "not scored"

    def _finished_first(self, tasks: Iterable[str]) -> list[str]:
        return sorted(tasks, key=lambda task: self._found.keys().isdisjoint(self._repeats[task]))


def _below(summaries: Sequence[TaskSummary]) -> Iterator[Text]:
    yield Text(comparability(summaries), style="red")
    results = [
        each.metrics[name]
        for each in summaries
        for name in main_metrics(each.main, each.metrics)[:1]
    ]
    concerned = [result for result in results if missing_share(result)]
    causes = sum((Counter(result.missing) for result in concerned), Counter[str]())
    tasks = f" in {len(concerned)} of {len(summaries)} tasks" if len(summaries) > 1 else ""
    parts = [] if all(sum(result.missing.values()) for result in concerned) else ["parts of units"]
    missing = f"missing{tasks}: {', '.join([*filter(None, [reasons(causes)]), *parts])}"
    yield Text(missing if concerned else "", style="yellow")
    spent = sum(map(thought_out, summaries))
    cures = "switch it off or allow more"
    spender = "reply spent its" if spent == 1 else "replies spent their"
    yield Text(f"{spent:,} {spender} limit on thinking: {cures}" if spent else "", style="yellow")
    yield Text(members_note(summaries), style="yellow")
    notes = list(dict.fromkeys(note for each in summaries for note in each.notes or ()))
    if notes:
        more = f" (and {len(notes) - 1} more)" if len(notes) > 1 else ""
        yield Text(f"note{more}: {clean_text(notes[0])}", style="yellow")


def comparability(summaries: Sequence[TaskSummary | Comparison]) -> str:
    """Why results are not comparable with published ones, with the tasks that each reason is of."""
    counts = Counter(why for each in summaries for why in each.not_comparable_because)
    if not counts:
        return ""
    many = len(summaries)
    return "not comparable to published: " + "; ".join(
        clean_text(why) + ("" if times == many else f" ({times} of {many} tasks)")
        for why, times in counts.most_common()
    )
