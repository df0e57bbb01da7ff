"""Comparisons of runs on a terminal: what fits a screen and which run is better, or all tables.

Imports rich at the top: import this module where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.comparison.differences import FEW, LEAST_USERS, MOST_KEPT
from harness.comparison.document import Comparison, ComparisonDocument, Difference
from harness.reporting.grid import (
    INDENT,
    SCREEN,
    WIDTH,
    Row,
    columns_of,
    cut,
    indented,
    middle_cuts,
    plain_table,
    result_console,
    wrapped,
)
from harness.reporting.tables import (
    comparability,
    data_name,
    interval_header,
    known_notes,
    metric_name,
    open_notes,
    other_models,
    other_policies,
    result_cells,
    stamp,
    value_cells,
    value_of,
)
from harness.reporting.text import (
    NOTHING,
    aligned,
    clean_text,
    counted,
    number,
    signed,
    wrapped_whole,
)
from harness.scoring.grouping import grouped
from harness.scoring.means import MeanOverTasks
from harness.tasks.repeats import task_and_repeat

GATE_WORDS = {True: "holds", False: "does not hold", None: "undecided"}
GATE_STYLES = {True: "green", False: "bold red", None: "yellow"}
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
    shown = [each for each in measures if each.differences]
    bases = {each.second for measure in shown for each in measure.differences}
    tests = len(document.tested())
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
        title = f"{counted(many, 'task')} of {clean_text(within)} on the same units"
    return "; ".join([title, *other_models(each.roles for each in comparisons)])


def _of_tasks(
    document: ComparisonDocument, means: Sequence[Mapping[str, MeanOverTasks]]
) -> Iterator[_Measure]:
    """The main metrics of each task; `means` are those that are shown."""
    summed = {
        (task, mean.metric) for of_runs in means for mean in of_runs.values() for task in mean.tasks
    }
    for comparison in document.comparisons:
        tested = without_repeats(comparison, document)
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
                differences=tuple(each for each in tested if each.metric == name),
                higher_is_better=first.higher_is_better,
                in_mean=(comparison.task, name) in summed,
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
    rows = [
        [each.task, each.metric, *(each.values.get(run, NOTHING) for run in runs), each.n]
        for each in measures
    ]
    names = middle_cuts([each.task for each in measures], VALUE_WIDTH)
    columns = [[name, *row[1:]] for name, row in zip(names, rows, strict=True)]
    by_run = list(zip(["", "run", *runs.values(), "n"], *columns, strict=True))
    by_task = [["task", "metric", *runs.values(), "n"], *rows]
    grids = [columns_of(by_run, heads=2, left=1), columns_of(by_task, heads=1, left=2)]
    if len(runs) == 2:  # the table of the differences has n
        grids.append(columns_of([row[:-1] for row in by_task], heads=1, left=2))
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
        lines += [Text(cut(head, width), style="bold"), *columns_of(rows, heads=0, left=1)]
    return lines


def _named(rows: Sequence[Sequence[str]], width: int) -> Iterator[Text]:
    """A head and rows, each of a name and its numbers; where cut names look the same, a name that
    does not fit has a line of its own."""
    columns = list(zip(*rows, strict=True))
    sizes = [max(map(cell_len, (column[0], *aligned(column[1:])))) for column in columns]
    room = width - sum(sizes[1:]) - len(INDENT) * len(sizes[1:])
    names = middle_cuts(columns[0], room)
    cells = ["" if cell_len(name) > room else name for name in names]
    head, rule, *lines = columns_of(
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
            of = f" of {runs[each.first]} and {runs[each.second]}" if len(pairs) > 1 else ""
            if each.p_holm is None or each.value is None:
                what, how = f"no test{of} is possible in", f": {clean_text(each.no_p or '')}"
            elif each.p_holm >= 1 - each.confidence:
                what, how = f"no difference{of} is shown in", f", p {p}"
            elif each.interval and each.interval[0] <= 0 <= each.interval[1]:
                what = f"it is not clear{of and f' which{of} is better'} in"
                how = f", p {p}, but the interval has 0 in it"
            else:
                how = f"{'higher' if measure.higher_is_better else 'lower'} by {size_of(each)}"
                better[better_of(each, higher=measure.higher_is_better)].append(
                    f"{measure.task} ({metric} {how}, p {p})"
                )
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


def print_comparisons(comparisons: Sequence[Comparison], console: Console | None = None) -> None:
    """Print each comparison: its runs, metrics, differences, and the units that changed most."""
    console = console or result_console()
    for comparison in comparisons:
        names = labels_shown(comparison)
        parts = [*_head(comparison, names), Text(), _run_table(comparison, names)]
        parts += known_notes(comparison.runs[0].metrics)
        for run in comparison.runs:
            counted = [f"{clean_text(name)} {times:,}" for name, times in run.counts.items()]
            parts += indented([f"{names[run.run]}: {', '.join(counted)}"] if counted else [], "dim")
            parts += open_notes(run.metrics, names[run.run])
        parts.append(Text())
        common = _common_table(comparison, names)
        if common.row_count:
            parts += [common, Text()]
        if comparison.differences:
            parts += [_difference_table(comparison, names)]
            parts += [*indented(missing_tests(comparison.differences), "dim"), Text()]
        console.print(Group(*parts))
        lines = list(changed_lines([comparison], names, most=MOST_KEPT, both=True))
        for line in lines if not lines else (*lines, ""):
            console.print(Text(line), soft_wrap=True)


def labels_shown(comparison: Comparison) -> dict[str, str]:
    """By run its label, with a `*` if the run was forced in."""
    return {run.run: clean_text(run.label) + (" *" if run.marks else "") for run in comparison.runs}


def slices_title(comparison: Comparison, every: Sequence[Comparison]) -> str:
    """What the parts of the data are of: `t by history`, and whether of one repeat alone."""
    task = task_and_repeat(comparison.task)[0]
    repeats = sum(task_and_repeat(each.task)[0] == task for each in every)
    names = dict.fromkeys(part.slice for part in comparison.slices or ())
    alone = ", this repeat alone" if repeats > 1 else ""
    return clean_text(f"{comparison.task} by {', '.join(names)}{alone}")


def _run_table(comparison: Comparison, names: Mapping[str, str]) -> Table:
    results = [result for run in comparison.runs for result in run.metrics.values()]
    others = other_policies(results)
    numbers = (f"value [{interval_header(results)}]", "n", "missing", *others)
    table: list[Row] = []
    rows = [run.metrics[metric] for metric in comparison.runs[0].metrics for run in comparison.runs]
    values = iter(value_cells(rows, numbers[0]))
    for metric, first in comparison.runs[0].metrics.items():
        shown = metric_name(metric, first)
        for run in comparison.runs:
            cells = result_cells(run.metrics[metric], others)
            table.append((shown, names[run.run], next(values), *cells))
            shown = ""
    return _by_metric("run", names, numbers=numbers, rows=table)


def _common_table(comparison: Comparison, names: Mapping[str, str]) -> Table:
    """The metrics of which the runs do not share all units, on the units that they share."""
    results = [result for run in comparison.runs for result in run.common.values()]
    rows: list[Row] = []
    for metric, first in comparison.runs[0].metrics.items():
        shown = metric_name(metric, first)
        shared = [run.common.get(metric) for run in comparison.runs]
        if all(
            result and result.n == run.metrics[metric].units_behind
            for run, result in zip(comparison.runs, shared, strict=True)
        ):
            continue
        for run, result in zip(comparison.runs, shared, strict=True):
            value = Text(value_of(result) if result else NOTHING, style="bold")
            rows.append((shown, names[run.run], value, f"{result.n:,}" if result else NOTHING))
            shown = ""
    numbers = (f"value [{interval_header(results)}]", "n")
    return _by_metric("on common units", names, numbers=numbers, rows=rows)


def _difference_table(comparison: Comparison, names: Mapping[str, str]) -> Table:
    numbers = ("difference", "p", "p (Holm)", "n")
    rows: list[Row] = []
    before = ""
    values = iter(aligned(map(difference_of, comparison.differences), len(numbers[0])))
    metrics = comparison.runs[0].metrics
    for each in comparison.differences:
        name = metric_name(each.metric, metrics[each.metric])
        pair = f"{names[each.first]} − {names[each.second]}"
        value = Text(next(values), style="bold", justify="left")
        tests = (p_value(each.p), p_value(each.p_holm), f"{each.n:,}")
        rows.append(("" if each.metric == before else name, pair, value, *tests))
        before = each.metric
    return _by_metric("first − second", names, numbers=numbers, rows=rows)


def difference_of(difference: Difference) -> str:
    """A difference with its interval: `+0.120 [+0.030, +0.210]`."""
    interval = None if difference.value is None else difference.interval
    return f"{signed(difference.value)} {signed_interval(interval)}".rstrip()


def better_of(each: Difference, *, higher: bool) -> tuple[str, str]:
    """The two runs of a difference, the one with the better value first."""
    ahead = ((each.value or 0.0) > 0) == higher
    return (each.first, each.second) if ahead else (each.second, each.first)


def size_of(each: Difference) -> str:
    """A difference without its sign, with its interval: `0.120 [0.030, 0.210]`."""
    sign = 1 if (each.value or 0.0) > 0 else -1
    ends = ", ".join(map(number, sorted(sign * end for end in each.interval or ())))
    return f"{number(abs(each.value or 0.0))}{f' [{ends}]' if ends else ''}"


def without_repeats(comparison: Comparison, document: ComparisonDocument) -> list[Difference]:
    """The differences of a task, but for a repeat where that of the mean over repeats is shown."""
    in_means = {
        (one.difference.metric, frozenset((one.difference.first, one.difference.second)))
        for one in document.mean_differences or ()
        if one.over == "repeats" and comparison.task in one.tasks
    }
    return [
        each
        for each in comparison.differences
        if (each.metric, frozenset((each.first, each.second))) not in in_means
    ]


def signed_interval(interval: tuple[float, float] | None) -> str:
    """The bounds of a difference, empty if there are none: `[+0.030, +0.210]`."""
    return "" if interval is None else f"[{signed(interval[0])}, {signed(interval[1])}]"


def p_value(value: float | None) -> str:
    """A p value as tables show it: never 0, which no test gives."""
    if value is None:
        return NOTHING
    return "<0.001" if value < 0.001 else number(value)


def missing_tests(differences: Sequence[Difference]) -> list[str]:
    """Lines on differences without p or interval, one for each reason."""
    reasons = grouped(
        (f"no {what}: {clean_text(why)}", each.metric)
        for each in differences
        for what, why in (("interval", each.no_interval), ("p", each.no_p))
        if why is not None
    )
    return [
        f"{', '.join(map(clean_text, dict.fromkeys(metrics)))}: {reason}"
        for reason, metrics in reasons.items()
    ]


def _head(comparison: Comparison, names: Mapping[str, str]) -> list[RenderableType]:
    many, oracle = len(comparison.runs), comparison.oracle
    title = Text(clean_text(comparison.task), style="bold")
    compared = (
        f"{many} tasks of {clean_text(comparison.within)}"
        if comparison.within
        else counted(many, "run")
    )
    title.append(f"  version {comparison.version}, {compared} compared", style="dim")
    if oracle is not None:
        models = f" of {counted(oracle.models, 'model')}"
        file = f" and {clean_text(oracle.file)}" if oracle.file else ""
        made_of = f"{counted(many, 'run')}{models if oracle.models < many else ''}{file}"
        title.append(f", oracle of {made_of}", style="dim")
    about = [f"{clean_text(role)}: {clean_text(model)}" for role, model in comparison.roles.items()]
    about += [f"data: {clean_text(data_name(comparison.data))}", clean_text(comparison.chosen)]
    because = comparison.not_comparable_because
    parts: list[RenderableType] = [title, *(Text(line, style="dim") for line in about)]
    parts += [stamp(because)] if because else []
    refused = grouped(
        (
            "; ".join(map(clean_text, one.because)),
            clean_text(one.label if one.label.endswith(one.run) else f"{one.label} ({one.run})"),
        )
        for one in comparison.refused
    )
    lines = [f"left out, {why}: {', '.join(runs)}" for why, runs in refused.items()]
    lines += [
        f"forced in, {'; '.join(map(clean_text, run.marks))}: {names[run.run]} "
        f"({clean_text(run.run)})"
        for run in comparison.runs
        if run.marks
    ]
    lines += [clean_text(doubt) for doubt in comparison.doubts]
    return [*parts, *indented(lines, "red")]


def _by_metric(
    who: str, names: Mapping[str, str], *, numbers: Sequence[str], rows: Sequence[Row]
) -> Table:
    """A table whose second column is never too narrow for the longest word of a label."""
    table = plain_table("metric", who, numbers=numbers, rows=rows)
    table.columns[1].min_width = max(len(word) for name in names.values() for word in name.split())
    return table


def changed_lines(
    comparisons: Sequence[Comparison], names: Mapping[str, str], *, most: int, both: bool = False
) -> Iterator[str]:
    """How many units changed in the first main metric of each task, and the largest changes.

    Metrics have different scales, so the changes stand metric by metric, in the order of the tasks.
    `names` are the labels of runs. The command of each change shows it in the first of two runs,
    and with `both` a second one in the other run.
    """
    found = [
        (comparison, changes)
        for comparison in comparisons
        for changes in comparison.changed or ()
        if changes.metric in comparison.main[:1]
    ]
    if not found:
        return
    counts = [
        f"{sum(getattr(changes, what) for _, changes in found):,} {words}"
        for what, words in (("better", "better"), ("worse", "worse"), ("same", "the same"))
    ]
    firsts = {changes.first for _, changes in found}
    whose = f" of {names[next(iter(firsts))]}" if len(firsts) == 1 else ""
    yield f"units{whose}: {', '.join(counts)}"
    every = [(comparison, changes, one) for comparison, changes in found for one in changes.largest]
    metrics = list(dict.fromkeys(changes.metric for _, changes in found))
    every.sort(key=lambda one: (metrics.index(one[1].metric), -abs(one[2].first - one[2].second)))
    for comparison, changes, one in every[:most]:
        about = [names[changes.first]] if len(firsts) > 1 else []
        about += [clean_text(name) for name in (comparison.task, changes.metric, one.unit)]
        change = f"{signed(one.first - one.second):>6}  {number(one.second)} → {number(one.first)}"
        yield f"{INDENT}{change}  {', '.join(about)}"
        for command in one.commands if both else one.commands[:1]:
            yield f"{INDENT}{INDENT}{clean_text(command)}"
    held = sum(changes.better + changes.worse for _, changes in found)
    if held > most:
        yield f"{INDENT}and {held - min(most, len(every)):,} more"


def print_gates(
    document: ComparisonDocument,
    console: Console | None = None,
    *,
    names: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Print a line for each gate: whether it holds, which run minus which, interval, bound."""
    console = console or result_console()
    width = console.width if console.is_terminal else WIDTH
    labels = dict(names)
    for one in document.comparisons:
        labels |= labels_shown(one)
    console.print()
    for gate in document.gates or ():
        runs = [labels.get(run, clean_text(label)) for run, label in gate.labels.items()]
        parts = [clean_text(gate.gate), *([" − ".join(runs)] if runs else [])]
        said = [clean_text(gate.undecided or "")]
        if gate.undecided is None:
            difference = f"{signed(gate.value)} {signed_interval(gate.interval)}".rstrip()
            said = [difference, f"bound {gate.bound:+g}"]
        if gate.holds is False and gate.least_seen:
            said.append(f"{gate.users:,} people can show {number(gate.least_seen)}")
        line = f"gate {GATE_WORDS[gate.holds]}: {': '.join(parts)}: {', '.join(said)}"
        for row in wrapped_whole(line, width, "  "):
            console.print(Text(row, style=GATE_STYLES[gate.holds]), soft_wrap=True)
