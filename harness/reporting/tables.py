"""Result tables on a terminal. Imports rich at the top: import this module where it is used."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from harness.calls.pricing import costs_by_model, together
from harness.contracts.stage import CANDIDATE
from harness.reporting.money import cost_notes, paid, saved, token_notes, tokens
from harness.reporting.text import (
    NOTHING,
    ROUNDING,
    Trimmed,
    aligned,
    causes,
    clean_text,
    number,
    reasons,
    share,
)
from harness.scoring.grouping import grouped
from harness.scoring.run_costs import costs_of
from harness.scoring.summary import (
    MetricResult,
    RepeatedTask,
    RoleUse,
    Spread,
    TaskSummary,
    over_repeats,
)

if TYPE_CHECKING:
    from harness.contracts.benchmark import Metric
    from harness.scoring.group_means import MeanOverTasks

PIPE_WIDTH = 120
"""The width of wide tables that go into a file or a pipe."""

MISSING, LEFT_OUT = "missing ", "missing left out"
"""What the columns for the value by the policy that a metric does not use begin with, and the one
of them for values without what is missing."""


def result_console(stream: TextIO | None = None, *, width: int = PIPE_WIDTH) -> Console:
    """A console for results, on standard output unless given; it reads no markup."""
    stream = stream or sys.stdout
    shown: dict[str, Any] = {"file": stream}
    if not stream.isatty():
        shown = {"file": Trimmed(stream), "width": width}
    return Console(**shown, markup=False, highlight=False, emoji=False)


def print_summaries(summaries: Sequence[TaskSummary], console: Console | None = None) -> None:
    """Print each task's results, then means over repeats and costs."""
    console = console or result_console()
    for summary in summaries:
        console.print(_report(summary))
    if repeated := over_repeats(summaries):
        console.print(_repeats_table(repeated))
        console.print()
    _print_costs(summaries, console)


def _print_costs(summaries: Sequence[TaskSummary], console: Console) -> None:
    costs = costs_by_model(costs_of(summaries))
    if not costs:
        return
    (currency,) = {clean_text(cost.currency) for cost in costs.values()}
    numbers = ("calls", f"paid, {currency}", "reused", f"saved, {currency}")
    table = plain_table("model", numbers=numbers)
    rows = dict(costs)
    if len(costs) > 1:
        rows["total"] = together("total", costs.values())
    for name, cost in rows.items():
        if name not in costs:
            table.add_section()
        table.add_row(
            Text(clean_text(name)),
            Text(f"{cost.asked:,}"),
            Text(paid(cost), style="bold"),
            Text(f"{cost.reused:,}"),
            Text(saved(cost)),
        )
    console.print(table)
    for name, cost in costs.items():
        for note in indented(cost_notes(clean_text(name), cost), "yellow"):
            console.print(note)
    console.print()


def _report(summary: TaskSummary) -> Group:
    title = Text(clean_text(summary.task), style="bold")
    title.append(f"  version {summary.version}, {candidate_of(summary)}", style="dim")
    others = [
        Text(f"{clean_text(role)}: {clean_text(model)}", style="dim")
        for role, model in summary.roles.items()
        if role != "candidate"
    ]
    others.append(Text(f"data: {clean_text(data_name(summary.data))}", style="dim"))
    others += [
        Text(f"  {clean_text(fact)}: {number:,}", style="dim")
        for fact, number in summary.data.get("notes", {}).items()
    ]
    stamps = [] if summary.comparable else [stamp(summary.not_comparable_because)]
    parts: list[RenderableType] = [title, *others, *stamps, Text()]
    # Baselines without any unit say nothing.
    metrics = {
        name: each
        for name, each in summary.metrics.items()
        if each.n or each.missing or not each.baseline
    }
    parts += [_metric_table(metrics), *known_notes(metrics), *open_notes(metrics)]
    parts += indented(filter(None, [members_note([summary])]), "yellow")
    parts += indented([clean_text(note) for note in summary.notes or ()], "yellow")
    width = max(map(len, metrics), default=0)
    meanings = [
        f"{clean_text(name).ljust(width)}  {clean_text(result.description)}"
        for name, result in metrics.items()
        if result.description
    ]
    parts += [*indented(meanings, "dim"), Text()]
    if summary.counts:
        counts = plain_table("counted", numbers=("times",))
        for name, times in summary.counts.items():
            counts.add_row(Text(clean_text(name)), Text(f"{times:,}"))
        parts += [counts, Text()]
    parts += [_stage_table(summary), Text()]
    if any(stage.roles for stage in summary.stages.values()):
        parts += [_role_table(summary), *_role_notes(summary), Text()]
    return Group(*parts)


def candidate_of(summary: TaskSummary) -> str:
    """The candidate's label, and whether it thought if that is known."""
    thinks = True if thought_out(summary) else summary.thinks
    thinking = {True: ", with thinking", False: ", without thinking", None: ""}[thinks]
    return clean_text(summary.model) + thinking


def thought_out(summary: TaskSummary) -> int:
    """How many replies of the candidate spent their limit on thinking."""
    uses = (stage.roles.get(CANDIDATE) for stage in summary.stages.values())
    return sum(use.thought_out for use in uses if use is not None)


def failed_members(summaries: Iterable[TaskSummary]) -> dict[str, tuple[int, int]]:
    """By each member of a panel some of whose calls failed: how many did, and of how many."""
    failed: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for summary in summaries:
        for stage in summary.stages.values():
            for name, use in stage.roles.items():
                if " " in name:  # see `player_name`
                    failed[name] += use.failed
                    calls[name] += use.calls
    return {name: (many, calls[name]) for name, many in sorted(failed.items()) if many}


def members_note(summaries: Iterable[TaskSummary]) -> str:
    """Of which members of panels calls failed, asked again or not; empty if of none."""
    found = [
        f"{clean_text(name)} {many:,} of {calls:,}"
        for name, (many, calls) in failed_members(summaries).items()
    ]
    return f"failed calls of panel members: {', '.join(found)}" if found else ""


def _metric_table(metrics: Mapping[str, MetricResult]) -> Table:
    others = other_policies(metrics.values())
    value = f"value [{interval_header(metrics.values())}]"
    numbers = (value, "n", "missing", *others)
    table = plain_table("metric", numbers=numbers)
    values = dict(zip(metrics, value_cells(metrics.values(), value), strict=True))
    for title, wanted in (("", False), ("without any model", True)):
        results = {name: each for name, each in metrics.items() if each.baseline is wanted}
        if title and results:
            table.add_section()
            table.add_row(Text(title, style="dim"))
        for name, result in results.items():
            table.add_row(
                Text(metric_name(name, result)), values[name], *result_cells(result, others)
            )
    return table


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
    wanted = ((f"{MISSING}{counted}", bool(missing) or not left_out), (LEFT_OUT, left_out))
    return tuple(header for header, shown in wanted if shown)


def value_cells(results: Iterable[MetricResult], head: str) -> list[Text]:
    """The values with their intervals below one another, in a column of this head."""
    cells = aligned(map(value_of, results), len(head))
    return [Text(cell, style="bold", justify="left") for cell in cells]


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
        *(Text(number(left_out if other == LEFT_OUT else counted)) for other in others),
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


def _stage_table(summary: TaskSummary) -> Table:
    table = plain_table("stage", numbers=("items", "done"))
    table.add_column("missing", overflow="fold")
    for name, stage in summary.stages.items():
        table.add_row(
            Text(clean_text(name)),
            Text(f"{stage.items:,}"),
            Text(f"{stage.done:,}"),
            Text(causes(stage.failures), style="yellow" if stage.failures else "dim"),
        )
    return table


def _role_table(summary: TaskSummary) -> Table:
    numbers = ["calls", "stored", "failed", "tokens in", "tokens out"]
    roles = _roles(summary)
    currencies = {clean_text(use.cost.currency) for _, use in roles if use.cost is not None}
    numbers += [f"{what}, {currency}" for currency in currencies for what in ("paid", "saved")]
    table = plain_table("asked", numbers=numbers)
    for name, use in roles:
        table.add_row(
            Text(name),
            Text(f"{use.calls:,}"),
            Text(share(use.from_store, use.calls)),
            Text(f"{use.failed:,}", style="yellow" if use.failed else "dim"),
            Text(tokens(use.prompt_tokens, use.untold)),
            Text(tokens(use.completion_tokens, use.untold)),
            *((Text(paid(use.cost)), Text(saved(use.cost))) if currencies else ()),
        )
    return table


def _repeats_table(tasks: Sequence[RepeatedTask]) -> Table:
    numbers = ("mean", "deviation", "stderr", "repeats")
    table = plain_table("over repeats", "metric", numbers=numbers)
    for task in tasks:
        name = clean_text(task.task)
        for metric, spread in task.metrics.items():
            if spread.baseline:
                continue
            with_value = f"{spread.n} of {len(task.repeats)}" if spread.without else f"{spread.n}"
            values = map(number, (spread.mean, spread.sd, spread.stderr))
            table.add_row(*map(Text, (name, metric_name(metric, spread), *values, with_value)))
            name = ""
    return table


def plain_table(*names: str, numbers: Sequence[str]) -> Table:
    """A table with one line, under its head: names on the left, numbers on the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    for header in numbers:
        table.add_column(Text(header), justify="right", no_wrap=not header.startswith(MISSING))
    return table


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


def stamp(reasons: Sequence[str]) -> Panel:
    """The box with the reasons why results are not comparable with published ones."""
    text = Text("NOT COMPARABLE with published results", style="bold")
    for reason in reasons:
        text.append(f"\n{clean_text(reason)}", style="not bold")
    return Panel(text, box=box.HEAVY, style="red", expand=False, padding=(0, 1))


def known_notes(metrics: Mapping[str, MetricResult]) -> list[Padding]:
    """The benchmark's own notes on its metrics, which readers must know."""
    notes = grouped((clean_text(one.note), name) for name, one in metrics.items() if one.note)
    return indented(_by_metrics(notes), "yellow")


def open_notes(metrics: Mapping[str, MetricResult], whose: str = "") -> list[Padding]:
    """The notes on missing units, values and intervals, with their causes."""
    notes: dict[str, list[str]] = {}
    units: dict[str, list[str]] = {}
    values: dict[str, list[str]] = {}
    for name, result in metrics.items():
        if result.value is not None and result.interval is None and result.no_interval:
            notes.setdefault(f"no interval: {clean_text(result.no_interval)}", []).append(name)
        if result.users not in (0, result.n):
            samples = f"{result.n:,} samples of {result.users:,} users"
            notes.setdefault(samples, []).append(name)
        counts = result.left_out is not None
        if missing := sum(result.missing.values()):
            counted = "; each counts as the worst score" if counts else ""
            if counts and result.not_counted:
                counted += f", except {result.not_counted:,} that other roles lost"
            note = f"{missing:,} missing ({reasons(result.missing)}){counted}"
            units.setdefault(note, []).append(name)
        if missing_share(result) * (result.n + missing) > missing + ROUNDING:
            note = f"{share(missing_share(result), 1)} is missing, with parts of units"
            if counts:
                note += "; it counts as the worst score"
            units.setdefault(note, []).append(name)
        if result.value is None and result.undefined:
            values.setdefault(f"no value: {clean_text(result.undefined)}", []).append(name)
    known = [*_by_metrics(units, whose), *_by_metrics(values, whose)]
    return indented(known, "yellow") + indented(_by_metrics(notes, whose), "dim")


def _by_metrics(notes: Mapping[str, Sequence[str]], whose: str = "") -> list[str]:
    start = f"{whose}: " if whose else ""
    return [f"{start}{clean_text(', '.join(names))}: {note}" for note, names in notes.items()]


def _role_notes(summary: TaskSummary) -> list[Padding]:
    notes: list[str] = []
    unknown: list[str] = []
    for name, use in _roles(summary):
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
    return indented(notes, "dim") + indented(unknown, "yellow")


def indented(lines: Iterable[str], style: str) -> list[Padding]:
    return [Padding(Text(line, style=style), (0, 0, 0, 2), expand=False) for line in lines]


def _roles(summary: TaskSummary) -> list[tuple[str, RoleUse]]:
    return [
        (clean_text(f"{stage_name}, {role}"), use)
        for stage_name, stage in summary.stages.items()
        for role, use in stage.roles.items()
    ]


def metric_name(name: str, metric: Metric | MetricResult | MeanOverTasks | Spread) -> str:
    """The name of a metric in tables, with an arrow in the direction of better values."""
    return f"{clean_text(name)} {'↑' if metric.higher_is_better else '↓'}"


def interval_header(results: Iterable[MetricResult]) -> str:
    """The header of the intervals' column, with confidence and method if all share them."""
    kinds = {(result.confidence, result.interval_method) for result in results}
    if len(kinds) != 1:
        return "interval"
    confidence, method = kinds.pop()
    return f"{confidence:.0%} {'BCa ' if method == 'bca' else ''}interval"


def value_of(result: MetricResult | MeanOverTasks) -> str:
    """The value with its interval, if it has one: `0.857 [0.571, 1.000]`."""
    if result.value is None or result.interval is None:
        return number(result.value)
    low, high = result.interval
    return f"{number(result.value)} [{number(low)}, {number(high)}]"
