"""Comparisons of runs on a terminal. Imports rich: import this module where it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.reporting.changed_lines import changed_lines
from harness.reporting.tables import (
    data_name,
    indented,
    interval_header,
    known_notes,
    metric_name,
    open_notes,
    other_policies,
    plain_table,
    result_cells,
    result_console,
    stamp,
    value_cells,
    value_of,
)
from harness.reporting.text import NOTHING, aligned, clean_text, number, signed
from harness.scoring.changed_units import MOST_KEPT
from harness.scoring.comparison_document import Comparison
from harness.scoring.grouping import grouped
from harness.scoring.paired_differences import Difference
from harness.tasks.repeats import task_and_repeat


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
    table = _by_metric("run", names, numbers=numbers)
    rows = [run.metrics[metric] for metric in comparison.runs[0].metrics for run in comparison.runs]
    values = iter(value_cells(rows, numbers[0]))
    for metric, first in comparison.runs[0].metrics.items():
        shown = metric_name(metric, first)
        for run in comparison.runs:
            cells = result_cells(run.metrics[metric], others)
            table.add_row(Text(shown), Text(names[run.run]), next(values), *cells)
            shown = ""
    return table


def _common_table(comparison: Comparison, names: Mapping[str, str]) -> Table:
    """The metrics of which the runs do not share all units, on the units that they share."""
    results = [result for run in comparison.runs for result in run.common.values()]
    table = _by_metric(
        "on common units", names, numbers=(f"value [{interval_header(results)}]", "n")
    )
    for metric, first in comparison.runs[0].metrics.items():
        shown = metric_name(metric, first)
        shared = [run.common.get(metric) for run in comparison.runs]
        if all(
            result and result.n == run.metrics[metric].units_behind
            for run, result in zip(comparison.runs, shared, strict=True)
        ):
            continue
        for run, result in zip(comparison.runs, shared, strict=True):
            table.add_row(
                Text(shown),
                Text(names[run.run]),
                Text(value_of(result) if result else NOTHING, style="bold"),
                Text(f"{result.n:,}" if result else NOTHING),
            )
            shown = ""
    return table


def _difference_table(comparison: Comparison, names: Mapping[str, str]) -> Table:
    numbers = ("difference", "p", "p (Holm)", "n")
    table = _by_metric("first − second", names, numbers=numbers)
    before = ""
    values = iter(aligned(map(difference_of, comparison.differences), len(numbers[0])))
    metrics = comparison.runs[0].metrics
    for each in comparison.differences:
        name = metric_name(each.metric, metrics[each.metric])
        table.add_row(
            Text("" if each.metric == before else name),
            Text(f"{names[each.first]} − {names[each.second]}"),
            Text(next(values), style="bold", justify="left"),
            Text(p_value(each.p)),
            Text(p_value(each.p_holm)),
            Text(f"{each.n:,}"),
        )
        before = each.metric
    return table


def difference_of(difference: Difference) -> str:
    """A difference with its interval: `+0.120 [+0.030, +0.210]`."""
    interval = None if difference.value is None else difference.interval
    return f"{signed(difference.value)} {signed_interval(interval)}".rstrip()


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
        f"{many} tasks of {clean_text(comparison.within)}" if comparison.within else _runs(many)
    )
    title.append(f"  version {comparison.version}, {compared} compared", style="dim")
    if oracle is not None:
        models = f" of {oracle.models:,} {'model' if oracle.models == 1 else 'models'}"
        file = f" and {clean_text(oracle.file)}" if oracle.file else ""
        made_of = f"{_runs(many)}{models if oracle.models < many else ''}{file}"
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


def _by_metric(who: str, names: Mapping[str, str], *, numbers: Sequence[str]) -> Table:
    """A table whose second column is never too narrow for the longest word of a label."""
    table = plain_table("metric", who, numbers=numbers)
    table.columns[1].min_width = max(len(word) for name in names.values() for word in name.split())
    return table


def _runs(many: int) -> str:
    return f"{many:,} {'run' if many == 1 else 'runs'}"
