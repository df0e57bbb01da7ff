"""Comparisons of runs on a terminal: the verdict, one grid, and what limits it.

Imports rich at the top: import this module where it is used.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from rich.console import Console
from rich.text import Text

from harness.comparison.differences import FEW, LEAST_USERS, MOST_KEPT
from harness.comparison.document import (
    Comparison,
    ComparisonDocument,
    Decision,
    Difference,
)
from harness.reporting.grid import INDENT, grid, indented, result_console, room_on, show, wrapped
from harness.reporting.tables import (
    comparability,
    data_name,
    interval_header,
    known_notes,
    metric_name,
    metric_words,
    open_notes,
    other_models,
    other_policies,
    result_cells,
    value_of,
)
from harness.reporting.text import (
    NOTHING,
    clean_text,
    counted,
    number,
    reasons,
    signed,
    wrapped_whole,
)
from harness.scoring.grouping import grouped
from harness.tasks.repeats import task_and_repeat

GATE_WORDS = {True: "holds", False: "does not hold", None: "undecided"}
GATE_STYLES = {True: "green", False: "bold red", None: "yellow"}
MOST_CHANGED = 3
"""The units shown that changed most; each takes two lines."""

MOST_MISSING = 3
"""The runs that are named with what they lack."""

WORSE = "▼"
MORE = "more: --verbose (all metrics and pairs, changed units, each run's own values)"


def print_comparison(
    document: ComparisonDocument,
    console: Console | None = None,
    *,
    against: bool = False,
    verbose: bool = False,
) -> None:
    """Print who is better, the main metrics of the compared runs, and what limits the verdict.

    With `against`, and with `verbose`, each difference has a row; with `verbose`, the tables of
    each task follow.
    """
    console = console or result_console()
    width = room_on(console)
    labels = {run: clean_text(label) for run, label in document.labels().items()}
    decisions = [each for each in document.decisions() if verbose or not each.in_mean]
    said = clean_text(document.verdict())
    for line in wrapped_whole(said, width) if width else [said]:
        if line:
            console.print(Text(line, style="bold"), soft_wrap=True)
    show(console, wrapped([Text(_about(document.comparisons, decisions, labels))], width))
    results = (
        (name, run.metrics[name])
        for one in document.comparisons
        for name in one.main
        for run in one.runs[:1]
    )
    show(console, metric_words(results, width))
    show(console, _grid(decisions, labels, width))
    show(console, wrapped(_legend(document), width))
    if verbose or (against and len(labels) > 2):
        show(console, _differences(decisions, labels, width))
    for one in document.comparisons:
        show(console, _by_slice(document, one, labels, width))
    most = MOST_KEPT if verbose else MOST_CHANGED
    changed = list(changed_lines(document.comparisons, labels, most=most, both=verbose))
    show(console, map(Text, ["", *changed] if changed else []))
    show(console, wrapped(_below(document, labels), width))
    if not verbose:
        show(console, [Text(MORE)])
        return
    for one in document.comparisons:
        show(console, [Text(), *_in_full(one, labels, width)])


def _about(
    comparisons: Sequence[Comparison], decisions: Sequence[Decision], labels: Mapping[str, str]
) -> str:
    """How many runs are compared, of two which minus which, and the models in other roles."""
    many = len(labels)
    title = f"{many} runs on the units that all of them share" if many > 1 else "1 run"
    if within := next((one.within for one in comparisons if one.within), None):
        title = f"{counted(many, 'task')} of {clean_text(within)} on the same units"
    pairs = {(one.first, one.second) for each in decisions for one in each.differences}
    minus = [f"difference: {' − '.join(labels[run] for run in pair)}" for pair in pairs]
    others = other_models(each.roles for each in comparisons)
    return "; ".join([title, *(minus if many == 2 else []), *others])


def _name(each: Decision) -> str:
    name = clean_text(each.name)
    if each.over is None:
        return name
    many = len({task_and_repeat(task)[0] for task in each.tasks})
    return f"{name} ({many})" if each.over == "tasks" else f"{name} ×{len(each.tasks)}"


def _grid(
    decisions: Sequence[Decision], labels: Mapping[str, str], width: int | None
) -> list[Text]:
    """A row for each metric, a column for each run; of two runs their difference too."""
    two = len(labels) == 2 and any(each.differences for each in decisions)
    heads = ["task", "metric", *labels.values(), *(["difference", "p"] if two else []), "n"]
    marked = {one.loser for each in decisions for one in each.better}
    rows, before = [], ""
    for each in decisions:
        name = _name(each)
        row = ["" if name == before else name, metric_name(each.metric, each)]
        before = name
        for run in labels:
            worse = any(one.loser == run for one in each.better)
            mark = "" if run not in marked else f" {WORSE}" if worse else INDENT
            value = number(each.results[run].value) if run in each.results else NOTHING
            row.append(value + mark)
        if two:
            one = next(iter(each.differences), None)
            row += [value_of(one, signed), p_value(one.p_holm)] if one else [NOTHING, NOTHING]
        of = "" if each.n == each.asked else f" of {each.asked:,}"
        rows.append([*row, f"{each.n:,}{of}" if each.n else NOTHING])
    return grid(heads, rows, numbers=len(heads) - 2, width=width, keys=2)


def _legend(document: ComparisonDocument) -> list[Text]:
    tests = document.tested()
    if not tests:
        return []
    bounds = sorted({f"{1 - each.confidence:.2g}".removeprefix("0") for each in tests})
    mark = f"{WORSE} significantly worse than another run: "
    if not document.established():
        mark = "significant would be: "
    many = f" for {len(tests):,} tests" if len(tests) > 1 else ""
    said = f"{mark}paired over people, p < {' or '.join(bounds)} after Holm{many}"
    return [Text(said, style="dim")]


def _differences(
    decisions: Sequence[Decision], labels: Mapping[str, str], width: int | None
) -> list[Text]:
    heads = ["task", "metric", "first − second", "difference", "p", "p (Holm)", "n"]
    rows = [
        [
            _name(each), metric_name(each.metric, each),
            f"{labels[one.first]} − {labels[one.second]}",
            value_of(one, signed), p_value(one.p), p_value(one.p_holm), f"{one.n:,}",
        ]
        for each in decisions
        for one in each.differences
    ]  # fmt: skip
    if not rows:
        return []
    every = [one for each in decisions for one in each.differences]
    return [
        Text(),
        *grid(heads, rows, numbers=4, width=width),
        *indented(missing_tests(every), "dim", width),
    ]


def _by_slice(
    document: ComparisonDocument, one: Comparison, labels: Mapping[str, str], width: int | None
) -> Iterator[Text]:
    parts = document.parts(one)
    if not parts:
        return
    task = task_and_repeat(one.task)[0]
    repeats = sum(task_and_repeat(each.task)[0] == task for each in document.comparisons)
    names = ", ".join(dict.fromkeys(part.slice for part in one.slices or ()))
    alone = ", this repeat alone" if repeats > 1 else ""
    yield Text()
    yield Text(clean_text(f"{one.task} by {names}{alone}"), style="bold")
    yield from _grid(parts, labels, width)
    small = [
        each.name for each in parts if any(0 < one.users < LEAST_USERS for one in each.differences)
    ]
    if small:
        few = clean_text(", ".join(dict.fromkeys(small)))
        yield Text(f"{FEW}, no interval: {few}", style="dim")


def _below(document: ComparisonDocument, labels: Mapping[str, str]) -> Iterator[Text]:
    """What limits the verdict, each in a text of its own."""
    comparisons = document.comparisons
    if why := comparability(comparisons):
        yield Text(why, style="red")
    if lost := [*_missing(comparisons, labels)]:
        left = len(lost) - MOST_MISSING
        more = f"; and of {counted(left, 'more run')}" if left > 0 else ""
        yield Text(f"missing: {'; '.join(lost[:MOST_MISSING])}{more}", style="yellow")
    refused = grouped(
        ((each.label, "; ".join(each.because)), clean_text(one.task))
        for one in comparisons
        for each in one.refused
    )
    forced = grouped(
        ((labels[run.run], "; ".join(run.marks)), clean_text(one.task))
        for one in comparisons
        for run in one.runs
        if run.marks
    )
    for what, found in (("not compared", refused), ("forced in", forced)):
        for (label, why), tasks in found.items():
            where = "" if len(tasks) == len(comparisons) else f" on {', '.join(tasks)}"
            yield Text(f"{what}{where}: {clean_text(label)}: {clean_text(why)}", style="red")
    for one in comparisons:
        concerned = [name for name in one.main if one.oracle and name in one.oracle.metrics]
        if one.oracle and one.oracle.warning and concerned:
            names = clean_text(", ".join(concerned))
            yield Text(f"{names}: {clean_text(one.oracle.warning)}", style="yellow")
        for name in one.main:
            lacking = grouped(
                (run.metrics[name].undefined or "no common unit", labels[run.run])
                for run in one.runs
                if name not in run.common
            )
            what = f"{clean_text(one.task)} has no {clean_text(name)}"
            for why, whose in lacking.items():
                yield Text(f"{what} of {', '.join(whose)}: {clean_text(why)}", style="yellow")
        if len(labels) == 2:
            main = [each for each in one.differences if each.metric in one.main]
            for line in missing_tests(main):
                yield Text(f"{clean_text(one.task)}, {line}", style="dim")
    for mean in document.mean_differences or ():
        if mean.deviations:
            spread = (f"{labels[run]} {number(one)}" for run, one in mean.deviations.items())
            name = f"{clean_text(mean.name)} ×{len(mean.tasks)}, {mean.difference.metric}"
            yield Text(f"{name}: deviation over repeats: {', '.join(spread)}", style="dim")
    for doubt in dict.fromkeys(doubt for each in comparisons for doubt in each.doubts):
        yield Text(clean_text(doubt), style="yellow")


def _missing(comparisons: Sequence[Comparison], labels: Mapping[str, str]) -> Iterator[str]:
    """How much each run lacks of the first main metrics, and why, the run that lacks most first."""
    causes: dict[str, Counter[str]] = defaultdict(Counter)
    every: Counter[str] = Counter()
    for one in comparisons:
        for run in one.runs if one.main else ():
            result = run.metrics[one.main[0]]
            causes[run.run].update(result.missing)
            every[run.run] += result.n + sum(result.missing.values())
    for name, of in sorted(causes.items(), key=lambda each: -each[1].total()):
        if lost := of.total():
            yield f"{labels[name]} {lost:,} of {every[name]:,} ({reasons(of)})"


def _in_full(one: Comparison, labels: Mapping[str, str], width: int | None) -> Iterator[Text]:
    """Each run's own values of a task, and on the units that all runs share where it lacks some."""
    many, oracle = len(one.runs), one.oracle
    title = f"{one.task}  version {one.version}, {counted(many, 'run')} compared"
    if oracle is not None:
        models = f" of {counted(oracle.models, 'model')}" if oracle.models < many else ""
        file = f" and {oracle.file}" if oracle.file else ""
        title += f", oracle of {counted(many, 'run')}{models}{file}"
    yield Text(clean_text(title), style="bold")
    yield Text(f"data: {clean_text(data_name(one.data))}; {clean_text(one.chosen)}", style="dim")
    results = [result for run in one.runs for result in run.metrics.values()]
    others = other_policies(results)
    heads = ["metric", "run", f"value [{interval_header(results)}]", "n", "missing", *others]
    shares = any(
        run.common.get(name) and run.common[name].n != result.units_behind
        for run in one.runs
        for name, result in run.metrics.items()
    )
    rows: list[list[str | Text]] = []
    for name, first in one.runs[0].metrics.items():
        shown = metric_name(name, first)
        for run in one.runs:
            result, common = run.metrics[name], run.common.get(name)
            shared = f"{number(common.value)} of {common.n:,}" if common else NOTHING
            rows.append([
                shown, labels[run.run], Text(value_of(result), "bold"),
                *result_cells(result, others), *([shared] if shares else []),
            ])  # fmt: skip
            shown = ""
    heads += ["on common units"] if shares else []
    yield from grid(heads, rows, numbers=len(heads) - 2, width=width, keys=2)
    yield from known_notes(one.runs[0].metrics, width)
    for run in one.runs:
        counts = [f"{clean_text(name)} {times:,}" for name, times in run.counts.items()]
        lines = [f"{labels[run.run]}: {', '.join(counts)}"] if counts else []
        yield from indented(lines, "dim", width)
        yield from open_notes(run.metrics, width, labels[run.run])


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
    width = room_on(console)
    known = {run: clean_text(label) for run, label in document.labels().items()}
    labels = {**names, **known}
    console.print()
    for gate in document.gates or ():
        runs = [labels.get(run, clean_text(label)) for run, label in gate.labels.items()]
        parts = [clean_text(gate.gate), *([" − ".join(runs)] if runs else [])]
        said = [clean_text(gate.undecided or "")]
        if gate.undecided is None:
            said = [value_of(gate, signed), f"bound {gate.bound:+g}"]
        margin = abs(gate.bound)
        if gate.holds and gate.interval and max(map(abs, gate.interval)) < margin:
            said.append(f"equal within {margin:g}")
        if gate.holds is False and gate.least_seen:
            said.append(f"{gate.users:,} people can show {number(gate.least_seen)}")
        line = f"gate {GATE_WORDS[gate.holds]}: {': '.join(parts)}: {', '.join(said)}"
        for row in wrapped_whole(line, width, "  ") if width else [line]:
            console.print(Text(row, style=GATE_STYLES[gate.holds]), soft_wrap=True)
