"""A comparison of runs in one table that fits a screen, and which run is better, in words.

Imports rich at the top: import this module where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from harness.reporting.changed_lines import changed_lines
from harness.reporting.comparison_tables import (
    difference_of,
    labels_shown,
    missing_tests,
    p_value,
    slices_title,
)
from harness.reporting.short_table import (
    INDENT,
    SCREEN,
    WIDTH,
    comparability,
    cut,
    middle_cuts,
    other_models,
    wrapped,
)
from harness.reporting.tables import metric_name, result_console, value_of
from harness.reporting.text import NOTHING, aligned, clean_text, number, wrapped_whole
from harness.scoring.compared_slices import FEW, LEAST_USERS
from harness.scoring.comparison_document import Comparison, ComparisonDocument
from harness.scoring.group_means import MeanOverTasks
from harness.scoring.grouping import grouped
from harness.scoring.paired_differences import Difference
from harness.scoring.without_lost import tested_differences
from harness.tasks.repeats import task_and_repeat

VALUE_WIDTH = len("0.857 [0.571, 1.000]")
FURTHER = "other metrics, pairs and changed units, each run's own values, notes: --verbose"
MOST_CHANGED = 5
"""The units shown that changed most, if the screen has room; each takes two lines."""

CHANGED_HEAD = 3
RESERVED = 4
"""Lines of the screen for the command and what follows it."""


@dataclass(frozen=True, kw_only=True)
class _Measure:
    """A metric of a task, or its mean over a group: the value of each run, and of what n units."""

    task: str
    metric: str
    values: Mapping[str, str]
    n: str = ""
    differences: tuple[Difference, ...] = ()
    higher_is_better: bool = True
    in_mean: bool = False
    """Whether the measure may be left out, since a mean over it is shown."""
    repeated: bool = False
    """Whether the difference of the mean over repeats is shown in place of this one's."""


def print_short_comparison(document: ComparisonDocument, console: Console | None = None) -> None:
    """Print the main metrics of compared runs, and the differences if one run is the base."""
    console = console or result_console()
    width = console.width if console.is_terminal else WIDTH
    runs: dict[str, str] = {}
    for comparison in document.comparisons:
        for run, label in labels_shown(comparison).items():
            runs[run] = max(runs.get(run, ""), label)
    means = list(_means(document, runs))
    measures = [*(_of_mean(each, document) for each in means), *_of_tasks(document, means)]
    below = wrapped(_below(document.comparisons, runs), width)
    shown = [each for each in measures if each.differences and not each.repeated]
    bases = {each.second for measure in shown for each in measure.differences}
    tests = sum(1 for _ in tested_differences(document))
    pairs = list(_pairs(shown, runs, tests, width)) if len(bases) == 1 else []
    if shown:
        said = wrapped_whole(verdict(shown, runs), width)
        pairs += [Text(), *(Text(line, style="bold") for line in said)]
    spread = list(_deviations(document, runs)) if pairs else []
    lines = _table(measures, runs, width)
    used = len(pairs) + len(spread) + len(below) + RESERVED
    if len(lines) + used > SCREEN:
        lines = _table([each for each in measures if not each.in_mean], runs, width)
    room = (SCREEN - used - len(lines) - CHANGED_HEAD) // 2
    most = min(MOST_CHANGED, max(room, 1))
    changed = changed_lines(document.comparisons, runs, most=most) if pairs else ()
    console.print(Text(cut(_title(document.comparisons, len(runs)), width), style="bold"))
    for line in (*lines, *pairs, *spread):
        console.print(line, soft_wrap=True)
    for comparison in document.comparisons:
        for line in _by_slice(comparison, document.comparisons, runs, width):
            console.print(line, soft_wrap=True)
    for place, text in enumerate(changed):
        console.print(Text(("" if place else "\n") + text), soft_wrap=True)
    for line in below:
        console.print(line)
    if len(runs) > 2 and len(bases) != 1:
        console.print(Text("differences, with intervals and p, and changed units: --against RUN"))
    console.print(Text(FURTHER))


def _title(comparisons: Sequence[Comparison], many: int) -> str:
    title = f"{many} runs on the units that all of them share" if many > 1 else "1 run"
    if within := next((one.within for one in comparisons if one.within), None):
        title = (
            f"{many} {'task' if many == 1 else 'tasks'} of {clean_text(within)} on the same units"
        )
    return "; ".join([title, *other_models(each.roles for each in comparisons)])


def _of_tasks(
    document: ComparisonDocument, means: Sequence[Mapping[str, MeanOverTasks]]
) -> Iterator[_Measure]:
    """The main metrics of each task; `means` are those that are shown."""
    summed = {
        (task, mean.metric) for of_runs in means for mean in of_runs.values() for task in mean.tasks
    }
    repeats = {
        (task, each.difference.metric)
        for each in document.mean_differences or ()
        if each.over == "repeats"
        for task in each.tasks
    }
    for comparison in document.comparisons:
        for name in comparison.main:
            first = comparison.runs[0].metrics[name]
            common = {one.run: one.common[name] for one in comparison.runs if name in one.common}
            n = max((each.n for each in common.values()), default=0)
            results = [run.metrics[name] for run in comparison.runs]
            of = max(each.n + sum(each.missing.values()) for each in results)
            yield _Measure(
                task=clean_text(comparison.task),
                metric=metric_name(name, first),
                values={run: value_of(each) for run, each in common.items()},
                n=f"{n:,}" if n == of else f"{n:,} of {of:,}",
                differences=tuple(each for each in comparison.differences if each.metric == name),
                higher_is_better=first.higher_is_better,
                in_mean=(comparison.task, name) in summed,
                repeated=(comparison.task, name) in repeats,
            )


def _means(
    document: ComparisonDocument, runs: Mapping[str, str]
) -> Iterator[dict[str, MeanOverTasks]]:
    """By run each mean that every run has, of the same tasks."""
    found: dict[tuple[str, str, str], dict[str, MeanOverTasks]] = {}
    for run, means in document.means.items():
        for mean in means:
            if mean.value is not None:
                found.setdefault((mean.over, mean.name, mean.metric), {})[run] = mean
    for of_runs in found.values():
        same_tasks = len({frozenset(mean.tasks) for mean in of_runs.values()}) == 1
        if same_tasks and of_runs.keys() == runs.keys():
            yield of_runs


def _of_mean(of_runs: Mapping[str, MeanOverTasks], document: ComparisonDocument) -> _Measure:
    mean = next(iter(of_runs.values()))
    differences = tuple(
        each.difference
        for each in document.mean_differences or ()
        if (each.over, each.name, each.difference.metric) == (mean.over, mean.name, mean.metric)
    )
    many = len({task_and_repeat(task)[0] for task in mean.tasks})
    of = f"(mean of {many})" if mean.over == "tasks" else f"×{len(mean.tasks)}"
    return _Measure(
        task=f"{clean_text(mean.name)} {of}",
        metric=metric_name(mean.metric, mean),
        values={run: value_of(each) for run, each in of_runs.items()},
        n=f"{differences[0].n:,}" if differences else "",
        differences=differences,
        higher_is_better=mean.higher_is_better,
    )


def _deviations(document: ComparisonDocument, runs: Mapping[str, str]) -> Iterator[Text]:
    """How much the repeats of a task vary, which no interval over people says."""
    for each in document.mean_differences or ():
        if each.deviations:
            found = [f"{runs[run]} {number(one)}" for run, one in each.deviations.items()]
            name = f"{clean_text(each.name)} ×{len(each.tasks)}, {each.difference.metric}"
            yield Text(f"{name}: deviation over repeats: {', '.join(found)}", style="dim")


def _by_slice(
    comparison: Comparison, every: Sequence[Comparison], runs: Mapping[str, str], width: int
) -> Iterator[Text]:
    """The main metrics by the parts of the data: values, and differences if one run is the base."""
    for name in comparison.main if comparison.slices else ():
        first = comparison.runs[0].metrics[name]
        parts = []
        for part in comparison.slices or ():
            found = {run: of[name] for run, of in part.common.items() if name in of}
            parts.append(
                _Measure(
                    task=f"{clean_text(part.slice)} {clean_text(part.value)}",
                    metric=metric_name(name, first),
                    values={run: value_of(result) for run, result in found.items()},
                    n=f"{max((result.n for result in found.values()), default=0):,}",
                    differences=tuple(each for each in part.differences if each.metric == name),
                    higher_is_better=first.higher_is_better,
                )
            )
        yield Text()
        yield Text(cut(slices_title(comparison, every), width), style="bold")
        yield from _table(parts, runs, width)
        small = [
            each.task
            for each, part in zip(parts, comparison.slices or (), strict=True)
            if any(of[name].users < LEAST_USERS for of in part.common.values() if name in of)
        ]
        if small:
            yield Text(f"{FEW}, no interval: {', '.join(small)}", style="dim")
        tested = [each for each in parts if each.differences]
        if len({each.second for part in tested for each in part.differences}) == 1:
            yield from _pairs(tested, runs, 0, width, reasons=False)


def _table(measures: Sequence[_Measure], runs: Mapping[str, str], width: int) -> list[Text]:
    """Runs by tasks, or tasks by runs, whichever fits the width; otherwise a block a task."""
    names = middle_cuts([each.task for each in measures], VALUE_WIDTH)
    columns = [[name, each.metric] for name, each in zip(names, measures, strict=True)]
    values = [[each.values.get(run, NOTHING) for each in measures] for run in runs]
    n = ["n", *(each.n for each in measures)]
    by_run = [
        ["", *(task for task, _ in columns)],
        ["run", *(metric for _, metric in columns)],
        *([label, *row] for label, row in zip(runs.values(), values, strict=True)),
        n,
    ]
    by_task = [
        ["task", "metric", *runs.values(), "n"],
        *(
            [each.task, each.metric, *(each.values.get(run, NOTHING) for run in runs), each.n]
            for each in measures
        ),
    ]
    grids = [_grid(by_run, heads=2, left=1), _grid(by_task, heads=1, left=2)]
    if len(runs) == 2:  # the table of the differences has n
        grids.append(_grid([row[:-1] for row in by_task], heads=1, left=2))
    for lines in grids:
        if all(cell_len(line.plain) <= width for line in lines):
            return lines
    return _blocks(measures, runs, width)


def _blocks(measures: Sequence[_Measure], runs: Mapping[str, str], width: int) -> list[Text]:
    lines = []
    labels = middle_cuts(list(runs.values()), width - 2 * len(INDENT) - VALUE_WIDTH)
    for each in measures:
        head = f"{each.task}, {each.metric}" + (f", n {each.n}" if each.n else "")
        rows = [
            [INDENT + label, each.values.get(run, NOTHING)]
            for run, label in zip(runs, labels, strict=True)
        ]
        lines += [Text(cut(head, width), style="bold"), *_grid(rows, heads=0, left=1)]
    return lines


def _grid(rows: Sequence[Sequence[str]], *, heads: int, left: int) -> list[Text]:
    """The rows with columns below one another, the first `left` of them aligned to the left."""
    columns = [
        [*column[:heads], *(column[heads:] if place < left else aligned(column[heads:]))]
        for place, column in enumerate(zip(*rows, strict=True))
    ]
    rows = list(zip(*columns, strict=True))
    sizes = [max(map(cell_len, column)) for column in columns]
    lines = []
    for place, row in enumerate(rows):
        cells = [
            cell + " " * (size - cell_len(cell))
            if column < left
            else " " * (size - cell_len(cell)) + cell
            for column, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ]
        lines.append(Text(INDENT.join(cells).rstrip(), style="bold" if place < heads else ""))
    if heads:
        lines.insert(heads, Text("─" * (sum(sizes) + len(INDENT) * (len(sizes) - 1))))
    return lines


def _named(rows: Sequence[Sequence[str]], width: int) -> Iterator[Text]:
    """A head and rows, each of a name and its numbers; where cut names look the same, a name that
    does not fit has a line of its own."""
    columns = list(zip(*rows, strict=True))
    sizes = [max(map(cell_len, (column[0], *aligned(column[1:])))) for column in columns]
    room = width - sum(sizes[1:]) - len(INDENT) * len(sizes[1:])
    names = middle_cuts(columns[0], room)
    cells = ["" if cell_len(name) > room else name for name in names]
    head, rule, *lines = _grid(
        [[cell, *row[1:]] for cell, row in zip(cells, rows, strict=True)], heads=1, left=1
    )
    yield from (head, rule)
    for name, cell, line in zip(names[1:], cells[1:], lines, strict=True):
        if name != cell:
            yield Text(name)
        if line.plain:
            yield line


def _pairs(
    measures: Sequence[_Measure],
    runs: Mapping[str, str],
    tests: int,
    width: int,
    *,
    reasons: bool = True,
) -> Iterator[Text]:
    differences = [each for measure in measures for each in measure.differences]
    base = runs[differences[0].second]
    others = {each.first for each in differences}
    alone = len(others) == 1
    whose = runs[differences[0].first] if alone else "each run"
    yield Text()
    yield Text(cut(f"{whose} − {base}, on the units that both share", width), style="bold")
    rows = [["task" if alone else "", "difference", "p", "p (Holm)", "n"]]
    for measure in measures:
        name = f"{measure.task}, {measure.metric}"
        if not alone:
            rows.append([name, "", "", "", ""])
        for each in measure.differences:
            head = name if alone else INDENT + runs[each.first]
            n = measure.n if alone else f"{each.n:,}"
            numbers = [difference_of(each), p_value(each.p), p_value(each.p_holm), n]
            rows.append([head, *numbers])
    yield from _named(rows, width)
    for reason in missing_tests(differences) if reasons else ():
        yield Text(reason, style="dim")
    if tests:
        over = "" if tests == 1 else f", adjusted for {tests:,} tests"
        chance = "p (Holm): chance of such a difference between equal runs"
        yield Text(chance + over, style="dim")


def verdict(measures: Sequence[_Measure], runs: Mapping[str, str]) -> str:
    """Which run is better than which in what, in words; `runs` are their labels."""
    pairs = dict.fromkeys((one.first, one.second) for each in measures for one in each.differences)
    better: dict[tuple[str, str], list[str]] = {}
    others: dict[str, list[str]] = {}
    for pair in pairs:
        better |= {pair: [], pair[::-1]: []}
    for measure in measures:
        for each in measure.differences:
            metric, _, _ = measure.metric.rpartition(" ")
            p = p_value(each.p_holm)
            pair = (each.first, each.second)
            of = f" of {runs[pair[0]]} and {runs[pair[1]]}" if len(pairs) > 1 else ""
            if each.p_holm is None or each.value is None:
                what, how = f"no test{of} is possible in", f": {clean_text(each.no_p or '')}"
            elif each.p_holm >= 1 - each.confidence:
                what, how = f"no difference{of} is shown in", f", p {p}"
            elif each.interval and each.interval[0] <= 0 <= each.interval[1]:
                what = f"it is not clear{of and f' which{of} is better'} in"
                how = f", p {p}, but the interval has 0 in it"
            else:
                who = pair if (each.value > 0) is measure.higher_is_better else pair[::-1]
                sign = -1 if each.value < 0 else 1
                ends = ", ".join(map(number, sorted(sign * end for end in each.interval or ())))
                size = f"{number(abs(each.value))}{f' [{ends}]' if ends else ''}"
                how = f"{'higher' if measure.higher_is_better else 'lower'} by {size}"
                better[who].append(f"{measure.task} ({metric} {how}, p {p})")
                continue
            others.setdefault(what, []).append(f"{measure.task} ({metric}{how})")
    parts = [
        f"{runs[first]} is better than {runs[second]} in {', '.join(found)}"
        for (first, second), found in better.items()
        if found
    ]
    parts += [f"{what} {', '.join(where)}" for what, where in others.items()]
    return "; ".join(parts)


def _below(comparisons: Sequence[Comparison], runs: Mapping[str, str]) -> Iterator[Text]:
    """What speaks against the comparison, each in a text of its own."""
    if stamp := comparability(comparisons):
        yield Text(stamp, style="red")
    out = grouped(
        ((each.label, "; ".join(each.because)), clean_text(one.task))
        for one in comparisons
        for each in one.refused
    )
    forced = grouped(
        ((runs[run.run], "; ".join(run.marks)), clean_text(one.task))
        for one in comparisons
        for run in one.runs
        if run.marks
    )
    for what, found in (("left out", out), ("forced in", forced)):
        for (label, why), tasks in found.items():
            where = "" if len(tasks) == len(comparisons) else f" of {', '.join(tasks)}"
            yield Text(f"{what}{where}: {clean_text(label)}: {clean_text(why)}", style="red")
    for comparison in comparisons:
        concerned = [name for name in comparison.main
                     if comparison.oracle and name in comparison.oracle.metrics]  # fmt: skip
        if comparison.oracle and comparison.oracle.warning and concerned:
            names = clean_text(", ".join(concerned))
            yield Text(f"{names}: {clean_text(comparison.oracle.warning)}", style="yellow")
        for name in comparison.main:
            lacking = grouped(
                (run.metrics[name].undefined or "no common unit", runs[run.run])
                for run in comparison.runs
                if name not in run.common
            )
            what = f"{clean_text(comparison.task)} has no {clean_text(name)}"
            for why, whose in lacking.items():
                yield Text(f"{what} of {', '.join(whose)}: {clean_text(why)}", style="yellow")
    for doubt in dict.fromkeys(doubt for each in comparisons for doubt in each.doubts):
        yield Text(clean_text(doubt), style="yellow")
