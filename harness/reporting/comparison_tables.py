"""Comparisons of runs on a terminal. Imports rich: import this module where it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.reporting.tables import (
    data_name,
    indented,
    interval_header,
    interval_of,
    known_notes,
    metric_name,
    open_notes,
    other_policies,
    plain_table,
    result_cells,
    result_console,
    stamp,
)
from harness.reporting.text import NOTHING, clean_text, number
from harness.scoring.comparison import ComparedRun, Comparison, Difference


def print_comparisons(comparisons: Sequence[Comparison], console: Console | None = None) -> None:
    """Print each comparison: its runs, their metrics, and the differences between them."""
    console = console or result_console()
    for comparison in comparisons:
        console.print(comparison_report(comparison))


def comparison_report(comparison: Comparison) -> Group:
    """A comparison: its runs, the runs left out, metrics, common units, differences."""
    names = {
        run.run: clean_text(run.label) + (" *" if run.marks else "") for run in comparison.runs
    }
    parts: list[RenderableType] = [*_head(comparison, names), Text(), run_table(comparison, names)]
    parts += known_notes(comparison.runs[0].metrics)
    for run in comparison.runs:
        counted = [f"{clean_text(name)} {times:,}" for name, times in run.counts.items()]
        parts += indented([f"{names[run.run]}: {', '.join(counted)}"] if counted else [], "dim")
        parts += open_notes(run.metrics, names[run.run])
    parts.append(Text())
    if len(comparison.runs) > 1:
        parts += [common_table(comparison, names), Text()]
    if comparison.differences:
        parts += [difference_table(comparison, names), *_missing_tests(comparison), Text()]
    return Group(*parts)


def run_table(comparison: Comparison, names: Mapping[str, str]) -> Table:
    """Every metric of every run, ordered by metric."""
    others = other_policies(each for run in comparison.runs for each in run.metrics.values())
    numbers = (f"value [{_interval_header(comparison)}]", "n", "missing", *others)
    table = _by_metric("run", names, numbers=numbers)
    for shown, metric, run in _rows(comparison):
        cells = result_cells(run.metrics[metric], others)
        table.add_row(Text(shown), Text(names[run.run]), *cells)
    return table


def common_table(comparison: Comparison, names: Mapping[str, str]) -> Table:
    """The metrics over the units that every run with a value of the metric has scored."""
    table = _by_metric(
        "on common units", names, numbers=("value", _interval_header(comparison), "n")
    )
    for shown, metric, run in _rows(comparison):
        result = run.common.get(metric)
        table.add_row(
            Text(shown),
            Text(names[run.run]),
            Text(number(result.value if result else None), style="bold"),
            Text(interval_of(result) if result else NOTHING),
            Text(f"{result.n:,}" if result else NOTHING),
        )
    return table


def difference_table(comparison: Comparison, names: Mapping[str, str]) -> Table:
    """Each pair of runs by metric: difference, interval, p, and p adjusted after Holm."""
    numbers = ("difference", _interval_header(comparison), "p", "p (Holm)", "n")
    table = _by_metric("first − second", names, numbers=numbers)
    before = ""
    for each in comparison.differences:
        table.add_row(
            Text("" if each.metric == before else clean_text(each.metric)),
            Text(f"{names[each.first]} − {names[each.second]}"),
            Text(_signed(each.value), style="bold"),
            Text(_interval(each)),
            Text(p_value(each.p)),
            Text(p_value(each.p_holm)),
            Text(f"{each.n:,}"),
        )
        before = each.metric
    return table


def p_value(value: float | None) -> str:
    """A p value as tables show it: never 0, which no test gives."""
    if value is None:
        return NOTHING
    return "<0.001" if value < 0.001 else number(value)


def _missing_tests(comparison: Comparison) -> Sequence[RenderableType]:
    """Notes on differences without p or interval, each reason once."""
    reasons: dict[str, list[str]] = {}
    for each in comparison.differences:
        for what, why in (("interval", each.no_interval), ("p", each.no_p)):
            if why is not None:
                reasons.setdefault(f"no {what}: {clean_text(why)}", []).append(each.metric)
    lines = [
        f"{', '.join(map(clean_text, dict.fromkeys(metrics)))}: {reason}"
        for reason, metrics in reasons.items()
    ]
    return indented(lines, "dim")


def _head(comparison: Comparison, names: Mapping[str, str]) -> list[RenderableType]:
    many, oracle = len(comparison.runs), comparison.oracle
    title = Text(clean_text(comparison.task), style="bold")
    about_set = f"  version {comparison.version}, {_runs(many)} compared"
    if oracle is not None:
        made_of = _runs(many)
        if oracle.models < many:
            made_of += f" of {oracle.models:,} {'model' if oracle.models == 1 else 'models'}"
        made_of += f" and {clean_text(oracle.file)}" if oracle.file else ""
        about_set += f", oracle of {made_of}"
    title.append(about_set, style="dim")
    about = [f"{clean_text(role)}: {clean_text(model)}" for role, model in comparison.roles.items()]
    about += [f"data: {clean_text(data_name(comparison.data))}", clean_text(comparison.chosen)]
    parts: list[RenderableType] = [title, *(Text(line, style="dim") for line in about)]
    if comparison.not_comparable_because:
        parts.append(stamp(comparison.not_comparable_because))
    refused: dict[str, list[str]] = {}
    for each in comparison.refused:
        refused.setdefault(_because(each.because), []).append(_with_run(each.label, each.run))
    lines = [f"left out, {why}: {', '.join(runs)}" for why, runs in refused.items()]
    lines += [
        f"forced in, {_because(run.marks)}: {names[run.run]} ({clean_text(run.run)})"
        for run in comparison.runs
        if run.marks
    ]
    lines += [clean_text(doubt) for doubt in comparison.doubts]
    return [*parts, *indented(lines, "red")]


def _with_run(label: str, run: str) -> str:
    """A label with its run, unless the label already ends with the run's name."""
    return clean_text(label if label.endswith(run) else f"{label} ({run})")


def _rows(comparison: Comparison) -> Iterator[tuple[str, str, ComparedRun]]:
    """Each metric of each run, with the metric's name as shown: only in its first row."""
    for metric, result in comparison.runs[0].metrics.items():
        shown = metric_name(metric, result)
        for run in comparison.runs:
            yield shown, metric, run
            shown = ""


def _by_metric(who: str, names: Mapping[str, str], *, numbers: Sequence[str]) -> Table:
    """A table whose second column is never too narrow for the longest word of a label."""
    table = plain_table("metric", who, numbers=())
    table.columns[1].min_width = max(len(word) for name in names.values() for word in name.split())
    for header in numbers:
        table.add_column(header, justify="right", no_wrap=len(header) < len("counted as"))
    return table


def _interval_header(comparison: Comparison) -> str:
    return interval_header(result for run in comparison.runs for result in run.metrics.values())


def _because(reasons: Sequence[str]) -> str:
    return "; ".join(clean_text(reason) for reason in reasons)


def _runs(many: int) -> str:
    return f"{many:,} {'run' if many == 1 else 'runs'}"


def _signed(value: float | None) -> str:
    if value is None:
        return NOTHING
    # Sums of the same numbers in another order differ in the last digits; that is no difference.
    value = round(value, 12) + 0.0
    return number(value) if value <= 0 else f"+{number(value)}"


def _interval(difference: Difference) -> str:
    if difference.interval is None:
        return NOTHING
    low, high = difference.interval
    return f"{_signed(low)} to {_signed(high)}"
