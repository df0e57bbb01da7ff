"""The result of a run in one table that fits a screen: the main metrics of its tasks.

Imports rich at the top: import this module where it is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from harness.reporting.report_tables import sheet_parts
from harness.reporting.tables import (
    candidate_of,
    members_note,
    metric_name,
    missing_cell,
    missing_share,
    missing_units,
    plain_table,
    result_console,
    thought_out,
    value_of,
)
from harness.reporting.text import NOTHING, aligned, clean_text, reasons
from harness.runs.manifest import Manifest
from harness.scoring.comparable import THE_CANDIDATE
from harness.scoring.group_means import MeanOverTasks, tasks_of_group
from harness.scoring.grouping import grouped
from harness.scoring.score_run import unfinished_stages
from harness.scoring.summary import MetricResult, TaskSummary, main_metrics
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.contracts.report import Sheet
    from harness.scoring.comparison_document import Comparison

SCREEN = 40
"""The lines that the table fits in a file or a pipe, with what is printed after it."""

MOST_TASKS = 24
"""Of more tasks, only those that fit the screen have a line."""

WIDTH = 80
"""The width of the table in a file or a pipe."""

HEAD = 4
"""The lines of the title, of the table's head, and of the command that shows the rest."""

LEAST_ROWS = 5
SHORTEST_NAME = 12
INDENT = "  "
JUDGE = "judge"


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A line of the table; `value` may also say why there is none."""

    name: str
    value: str = ""
    metric: str = ""
    n: str = ""
    missing: str = ""
    optional: bool = False
    """Whether the line may be left out, since the mean of its group is shown."""
    tasks: int = 0
    """How many tasks the line counts for where lines are left out."""
    benchmark: str = ""
    is_number: bool = False


def print_short_table(
    manifest: Manifest,
    summaries: Sequence[TaskSummary],
    means: Sequence[MeanOverTasks],
    *,
    run: str | None,
    reserved: int = 4,
    sheets: Sequence[Sheet] = (),
    console: Console | None = None,
) -> None:
    """Print the main metrics of a run; with `reserved` more lines it fits a screen.

    `run` is what `harness show` calls the run; None where everything follows. Each task has a line
    unless there are more than `MOST_TASKS`. Below stand those of `sheets` that fit and say more,
    and in a run of one benchmark the first of them; their notes only where there is room for them.
    """
    console = console or result_console()
    options = console.options.update(width=console.width if console.is_terminal else WIDTH)
    below = wrapped(_below(summaries), options.max_width)
    rows = list(_Rows(manifest, summaries, means).all())
    few = sum(row.tasks for row in rows) <= MOST_TASKS
    height = console.height if console.is_terminal else SCREEN
    room = height - reserved - len(below) - HEAD
    several = len({row.benchmark for row in rows}) > 1
    needed = len(rows) if few else sum(not row.optional for row in rows)
    if not (few or several):
        needed = min(needed, room // 2)
    further: list[Group] = []
    for sheet in sheets:
        if not _says_more(sheet, summaries, means):
            continue
        parts, lines = _lines(sheet, console)
        if lines > room - needed:
            parts, lines = _lines(msgspec.structs.replace(sheet, notes=()), console)
        if lines <= room - needed or not (several or further):
            further.append(parts)
            room -= lines
    every = rows
    if not few and len(rows) > max(room, LEAST_ROWS):
        every = [row for row in rows if not row.optional]
        rows = _fitting(every, max(room, LEAST_ROWS))
    left = sum(row.tasks for row in every) - sum(row.tasks for row in rows)
    console.print(Text(cut(_title(manifest, summaries), options.max_width), style="bold"))
    table = _table(rows)
    wanted = console.measure(table, options=options.update_width(10 * WIDTH)).maximum
    if wanted > options.max_width:
        longest = max(cell_len(row.name) for row in rows)
        names = max(longest - (wanted - options.max_width), SHORTEST_NAME)
        shown = middle_cuts([row.name for row in rows], names)
        table = _table(replace(row, name=name) for row, name in zip(rows, shown, strict=True))
    console.print(table, width=options.max_width)
    if left:
        console.print(f"and {left:,} more {'task' if left == 1 else 'tasks'}")
    for line in below:
        console.print(line)
    for each in further:
        console.print(each)
    if run is not None:
        console.print(f"the rest: harness show {clean_text(run)}", soft_wrap=True)


def _fitting(rows: Sequence[_Row], room: int) -> list[_Row]:
    """The first rows that fit, and of each benchmark at least one, with a number if it has any."""
    if len(rows) <= room:
        return list(rows)
    first: dict[str, int] = {}
    for place, row in sorted(enumerate(rows), key=lambda each: not each[1].is_number):
        first.setdefault(row.benchmark, place)
    others = [place for place in range(len(rows)) if place not in first.values()]
    kept = {*first.values(), *others[: max(room - 1 - len(first), 0)]}
    found, headed = [], {-len(INDENT): True}
    for place, row in enumerate(rows):
        depth = len(row.name) - len(row.name.lstrip())
        if place in kept:
            # A line whose head is cut would stand below that of another benchmark.
            is_below_its_head = headed.get(depth - len(INDENT), False)
            found.append(row if is_below_its_head else replace(row, name=row.name.lstrip()))
        if row.name:
            headed[depth] = place in kept
    return found


def _says_more(
    sheet: Sheet, summaries: Sequence[TaskSummary], means: Sequence[MeanOverTasks]
) -> bool:
    """Whether a table of a group has a number that the lines of its tasks and means do not have."""
    shown: list[MetricResult | MeanOverTasks] = [*means]
    for each in summaries:
        shown += [each.metrics[name] for name in main_metrics(each.main, each.metrics)]
    known = [end for one in shown for end in (one.value, *(one.interval or ())) if end is not None]
    digits = (
        sheet.digits if isinstance(sheet.digits, tuple) else [sheet.digits] * len(sheet.columns)
    )
    return any(
        isinstance(cell, float) and all(abs(cell - one) > 0.5 * 10.0**-many for one in known)
        for row in sheet.rows
        for cell, many in zip(row, digits, strict=True)
    )


def _lines(sheet: Sheet, console: Console) -> tuple[Group, int]:
    """What a table of a group's analysis shows, and how many lines it takes."""
    shown = Group(Text(), *sheet_parts(sheet, console))
    return shown, len(console.render_lines(shown, pad=False))


def _table(rows: Iterable[_Row]) -> Table:
    shown = list(rows)
    table = plain_table("task", "main metric", numbers=("value", "n", "missing"))
    for row, value in zip(shown, aligned((row.value for row in shown), len("value")), strict=True):
        lost = "" if row.missing == NOTHING else "yellow"
        table.add_row(
            *map(Text, (row.name, row.metric)),
            Text(value, justify="left"),
            Text(row.n),
            Text(row.missing, style=lost),
        )
    return table


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
            yield _Row(name=f"{name} ({len(tasks)} tasks)", benchmark=self._benchmark(tasks[0]))
        elif len(tasks) > 1:
            name += f" (mean of {len(tasks)})"
            finished = any(each in self._found for each in tasks)
            why = "main metrics differ" if finished else ""
            for row in self._of_means(name, means) if means else [_Row(name=name, value=why)]:
                yield replace(row, benchmark=self._benchmark(tasks[0]))
        summed = bool(means) and all(mean.value is not None for mean in means)
        members = groups[group]
        while len(members) == 1 and members[0] in groups:  # the same tasks under another name
            members = groups[members[0]]
        for inner in members:
            if inner in groups:
                yield from self._of_group(inner, within)
        for task in self._finished_first(name for name in members if name in self._repeats):
            for row in self._of_task(task, within):
                yield replace(row, optional=summed)

    def _benchmark(self, task: str) -> str:
        return str(self._manifest.tasks[self._repeats[task][0]].definition["benchmark"])

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
        for row in (replace(first, tasks=1), *rows):
            yield replace(row, benchmark=self._benchmark(task))

    def _of_summary(self, name: str, summary: TaskSummary | None) -> Iterator[_Row]:
        if summary is None:
            return
        for metric in main_metrics(summary.main, summary.metrics):
            result = summary.metrics[metric]
            yield _Row(
                name=name,
                metric=metric_name(metric, result),
                value="no value" if result.value is None else value_of(result),
                is_number=result.value is not None,
                n=f"{result.units_behind:,}",
                missing=missing_cell(result),
            )
            name = ""

    def _of_means(self, name: str, means: Sequence[MeanOverTasks]) -> Iterator[_Row]:
        for mean in means:
            results = [self._found[task].metrics[mean.metric] for task in mean.tasks]
            missing = sum(sum(result.missing.values()) for result in results)
            lost = sum(map(missing_share, results)) / len(results)
            yield _Row(
                name=name,
                metric=metric_name(mean.metric, mean),
                value="no mean" if mean.value is None else value_of(mean),
                is_number=mean.value is not None,
                n=f"{sum(result.units_behind for result in results):,}",
                missing=missing_units(missing, lost),
            )
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


def wrapped(texts: Iterable[Text], width: int) -> list[Text]:
    """The texts that are not empty in lines of a width, two for each at most."""
    return [
        Text(line, style=text.style)
        for text in texts
        for line in wrap(text.plain, width, max_lines=2, placeholder=" …")
    ]


def cut(text: str, width: int) -> str:
    """The text in a width, with `…` where its end is left out."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def middle_cuts(names: Sequence[str], room: int) -> list[str]:
    """The names in a width by their beginnings and ends; whole if two would look the same."""
    head, tail = room - room // 2 - 1, room // 2
    shown = [
        name if cell_len(name) <= room else f"{name[:head]}…{name[-tail:]}"
        for name in names
    ]  # fmt: skip
    return shown if len({*shown}) == len({*names}) else list(names)
