"""Results of runs by task and metric: values of models, of rules and published ones, as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

from harness.calls.pricing import together
from harness.contracts.published import PublishedResult
from harness.reporting.comparison_tables import better_of
from harness.reporting.html.markup import Html, breakable, element, joined
from harness.reporting.html.report_html import Entry, entries_html
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.html.run_differences import POOLED, Differences, Established, untested_pairs
from harness.reporting.run_lines import paid
from harness.reporting.tables import missing_share
from harness.reporting.text import NOTHING, duration, number, reasons, share
from harness.scoring.grouping import grouped
from harness.scoring.means import MeanOverTasks, means_of
from harness.scoring.run_costs import costs_of
from harness.scoring.score_run import unfinished_stages
from harness.scoring.summary import MetricResult, main_metrics
from harness.tasks.repeats import task_and_repeat


@dataclass(frozen=True, kw_only=True)
class Value:
    """The value of a run in a metric; `why` there is none, if there is none.

    It is of `of` units, of which `n` are behind it and `missing` were lost, by their `causes`.
    `lost` is the share that is missing of what it is made of: of the units, or of their parts.
    `other` is the value by the other policy for what was lost, which `counts` says of `value`. It
    is the mean of `repeats` repeats.
    """

    value: float | None = None
    interval: tuple[float, float] | None = None
    n: int = 0
    of: int = 0
    causes: Mapping[str, int] = field(default_factory=dict)
    lost: float = 0.0
    other: float | None = None
    counts: bool = False
    repeats: int = 1
    why: str = ""

    @property
    def missing(self) -> int:
        """How many units were lost."""
        return sum(self.causes.values())


class Rule(NamedTuple):
    """What an answer without any model gets in a metric."""

    name: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Line:
    """A metric of a task, or its mean over the `tasks` of a group, by the label of each run.

    `first` is whether it is the first main metric. `together` says that the values are of runs
    that were scored against what they found together. The best of the `rules` stands first.
    `counts_as` is as what a missing unit counts where it counts. `ahead` are the runs that are
    better than the leader on the units that both have, `untested` those that were not tested
    against it.
    """

    name: str
    metric: str
    tasks: frozenset[str]
    values: Mapping[str, Value]
    higher: bool = True
    counts_as: str = "worst"
    first: bool = True
    together: bool = False
    rules: tuple[Rule, ...] = ()
    published: tuple[PublishedResult, ...] = ()
    better: tuple[Established, ...] = ()
    ahead: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()

    @property
    def shown_metric(self) -> str:
        """The metric with an arrow in the direction of better values."""
        return f"{self.metric} {'↑' if self.higher else '↓'}" if self.metric else ""

    @property
    def is_group(self) -> bool:
        """Whether it is a mean over several tasks."""
        return self.tasks != {self.name}

    def order(self, *, other: bool = False) -> list[str]:
        """The labels of the runs, the best first; by the other policy for what was lost."""
        sign = -1 if self.higher else 1
        known = {label: _by(one, other) for label, one in self.values.items()}
        with_value = {label: value for label, value in known.items() if value is not None}
        return sorted(with_value, key=lambda label: sign * with_value[label])

    def leader(self, *, other: bool = False) -> str | None:
        """The run that is alone with the best value; None without one."""
        order = self.order(other=other)
        if not order:
            return None
        best = _by(self.values[order[0]], other)
        alone = len(order) == 1 or _by(self.values[order[1]], other) != best
        return order[0] if alone else None

    @property
    def is_undecided(self) -> bool:
        """Whether the other policy for what was lost changes who leads."""
        return self.leader() != self.leader(other=True)

    @property
    def is_open(self) -> bool:
        """Whether lost units, or those that runs share, change who leads, or nothing tested it."""
        return self.is_undecided or bool(self.ahead or self.untested)

    @property
    def best(self) -> str | None:
        """The run that leads however lost units count, on shared units too, and was tested."""
        return None if self.is_open else self.leader()

    @property
    def beaten_by(self) -> tuple[Rule, ...]:
        """The rules without a model that are better than every run, the best first."""
        order = self.order()
        if not order:
            return ()
        best, sign = self.values[order[0]].value or 0.0, 1 if self.higher else -1
        return tuple(rule for rule in self.rules if sign * rule.value > sign * best)


def _by(one: Value, other: bool) -> float | None:
    return one.other if other and one.other is not None else one.value


def lines_of(runs: Sequence[ReportedRun], found: Differences) -> list[Line]:
    """The lines of these runs: groups, each with its tasks behind it, and the other tasks."""
    values: dict[str, dict[str, dict[str, Value]]] = {}
    tasks: dict[str, set[str]] = {}
    shown: dict[tuple[str, str], MetricResult] = {}
    for run in runs:
        for name, metric, members, value, result in _values(run):
            values.setdefault(name, {}).setdefault(metric, {})[run.label] = value
            tasks.setdefault(name, set()).update(members)
            if result is not None:
                shown.setdefault((name, metric), result)
    lines = []
    for name in _in_order(tasks):
        metrics = [metric for metric in values[name] if metric] or [""]
        for metric in metrics:
            result = shown.get((name, metric))
            counts_as = (
                task.benchmark.metrics[metric].counts_as
                for run in runs
                for task in run.tasks
                if task_and_repeat(task.task.name)[0] in tasks[name]
                and metric in task.benchmark.metrics
            )
            higher = result is None or result.higher_is_better
            line = Line(
                name=name, metric=metric, tasks=frozenset(tasks[name]),
                values={**values[name].get("", {}), **values[name].get(metric, {})},
                higher=higher, first=metric == metrics[0],
                counts_as=next(counts_as, "worst"),
                rules=_rules(runs, tasks[name], metric, higher=higher),
                published=_published(runs, name, metric, metrics),
                better=_better(found, name, metric),
            )  # fmt: skip
            lines.append(replace(line, ahead=_ahead(found, line), untested=_untested(found, line)))
        lines += _together(found, name, metrics)
    return lines


_Found = tuple[str, str, set[str], Value, MetricResult | None]


def _values(run: ReportedRun) -> Iterator[_Found]:
    """The values of a run: means of its groups, then its tasks; repeats are one, their mean."""
    finished = {task.task.name: task for task in run.tasks}
    known = {each.task: each for each in run.summaries}
    means = means_of(run.manifest, [task.summary for task in run.tasks], finished.__getitem__)
    for mean in means:
        members = {task_and_repeat(task)[0] for task in mean.tasks}
        parts = {task: known[task].metrics[mean.metric] for task in mean.tasks}
        yield mean.name, mean.metric, members, _value(parts, mean), parts[mean.tasks[0]]
    repeated = {mean.name for mean in means if mean.over == "repeats"}
    for name, entry in run.manifest.tasks.items():
        base = task_and_repeat(name)[0]
        if base in repeated:
            continue
        summary = known.get(name)
        if summary is None:
            undone = unfinished_stages(entry)
            done = len(entry.stages) - len(undone)
            why = f"{done} of {len(entry.stages)} stages done" if undone else "not scored"
            yield base, "", {base}, Value(why=f"{why}, {run.manifest.status}"), None
            continue
        metrics = main_metrics(summary.main, summary.metrics)
        for metric in metrics:
            result = summary.metrics[metric]
            yield base, metric, {base}, _value({name: result}, result), result
        if not metrics:
            yield base, "", {base}, Value(why="no metric"), None


def _value(parts: Mapping[str, MetricResult], result: MetricResult | MeanOverTasks) -> Value:
    """A value by the results of the tasks that it is made of."""
    of_tasks = grouped(
        (task_and_repeat(task)[0], one.counted_as_worst if one.left_out is None else one.left_out)
        for task, one in parts.items()
    )
    others = [_mean(values) for values in of_tasks.values()]
    return Value(
        value=result.value, interval=result.interval,
        n=sum(part.units_behind for part in parts.values()),
        of=sum(part.n + sum(part.missing.values()) for part in parts.values()),
        causes=dict(sum((Counter(part.missing) for part in parts.values()), Counter())),
        lost=fmean(map(missing_share, parts.values())), other=_mean(others),
        counts=any(part.left_out is not None for part in parts.values()),
        repeats=len(parts) // len(of_tasks),
        why="" if result.value is not None else f"no value: {result.undefined}",
    )  # fmt: skip


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _in_order(tasks: Mapping[str, set[str]]) -> list[str]:
    """The tasks in their order, each group at its first task with its other members behind it."""
    order: dict[str, None] = {}
    for task in (name for name in tasks if tasks[name] == {name}):
        groups = [name for name in tasks if name != task and task in tasks[name]]
        outer = max(groups, key=lambda group: len(tasks[group]), default=task)
        order |= dict.fromkeys((outer, *(name for name in tasks if tasks[name] < tasks[outer])))
        order[task] = None
    return list(order)


def _rules(
    runs: Sequence[ReportedRun], tasks: Collection[str], metric: str, *, higher: bool
) -> tuple[Rule, ...]:
    """What answers without any model get in all these tasks, the best first.

    They ask nothing, so that the first run of a task speaks for all.
    """
    found: dict[str, dict[str, float]] = {}
    for task in (task for run in runs for task in run.tasks):
        for name, of in task.benchmark.metrics.items():
            result = task.summary.metrics.get(name)
            if of.baseline == metric and result is not None and result.value is not None:
                base = task_and_repeat(task.task.name)[0]
                found.setdefault(name, {}).setdefault(base, result.value)
    rules = [
        Rule(name, fmean(values[task] for task in tasks))
        for name, values in found.items()
        if values.keys() >= {*tasks}
    ]
    return tuple(sorted(rules, key=lambda rule: rule.value, reverse=higher))


def _published(
    runs: Sequence[ReportedRun], name: str, metric: str, metrics: Sequence[str]
) -> tuple[PublishedResult, ...]:
    """The published results of a task or group in a metric, else in one named after it."""
    benchmarks = {task.benchmark.name: task.benchmark for run in runs for task in run.tasks}
    results = [
        one
        for benchmark in benchmarks.values()
        for one in (benchmark.published() if benchmark.published else ())
        if one.task == name
    ]
    if any(one.metric in metrics for one in results):
        return tuple(one for one in results if one.metric == metric)
    return tuple(one for one in results if metric and one.metric.startswith(f"{metric}_"))


def _better(found: Differences, name: str, metric: str) -> tuple[Established, ...]:
    return tuple(each for each in found.established() if (each.task, each.metric) == (name, metric))


def _ahead(found: Differences, line: Line) -> tuple[str, ...]:
    labels, leader = found.labels(), line.leader()
    ahead: list[str] = []
    for task, each, higher in found.tested():
        if (task, each.metric) == (line.name, line.metric) and each.value:
            better, worse = better_of(each, higher=higher)
            ahead += [labels[better]] if labels[worse] == leader else []
    return tuple(ahead)


def _untested(found: Differences, line: Line) -> tuple[str, ...]:
    """The runs with a value that were not tested against the leader on all tasks of a line."""
    leader, pairs = line.leader(), untested_pairs(found.untested)
    apart = [pair for task in line.tasks for pair in pairs.get(task, ()) if leader in pair]
    return tuple(label for label in line.order() if any({leader, label} == {*p} for p in apart))


def _together(found: Differences, name: str, metrics: Sequence[str]) -> Iterator[Line]:
    """The metrics in which runs are compared alone, as the first repeat has them."""
    for one in found.document.comparisons:
        for metric in one.main if one.task == name else ():
            if metric not in metrics:
                results = {run.label: run.metrics[metric] for run in one.runs}
                first = next(iter(results.values()))
                yield Line(
                    name=name, metric=metric, tasks=frozenset({name}), first=False, together=True,
                    values={label: _value({name: each}, each)
                            for label, each in results.items()},
                    higher=first.higher_is_better,
                    better=_better(found, name, metric),
                )  # fmt: skip


RULES, PUBLISHED = "baseline", "published"
GREY = "published"
"""The style of what is not a result of these runs."""


def matrix_html(
    runs: Sequence[ReportedRun],
    lines: Sequence[Line],
    untested: Mapping[str, Sequence[tuple[str, str]]],
) -> Html:
    """The table of results. The members of a group, and what is said of a line, follow it."""
    labels = [run.label for run in runs]
    names = []
    for label in labels:
        repeats = [line.values[label].repeats for line in lines if label in line.values]
        many = max(repeats, default=1)
        names.append(f"{label} ×{many}" if many > 1 else label)
    conditions = conditions_of(lines)
    rules = any(line.rules for line in lines)
    published = any(line.published for line in lines)
    columns = ["n", *names, *([RULES] if rules else []), *([PUBLISHED] if published else [])]
    rows: list[list[Entry]] = []
    marks = []
    task, group, many = "", None, 0
    for line in lines:
        starts, task = line.name != task, line.name
        member = group is not None and line.tasks < group.tasks
        head = _head(line, runs, starts=starts)
        if starts and not member:
            group = line if line.is_group else None
            many += line.is_group
            if group:
                fold = element("button", f"{len(line.tasks)} tasks", type="button",
                               class_="fold", value=f"in-{many}")  # fmt: skip
                head = joined([head, " ", fold])
        units = units_of(line)
        cells = [Entry(NOTHING if units is None else f"{units:,}", units)]
        cells += [_cell(line, label) for label in labels]
        cells += [_rules_cell(line)] if rules else []
        cells += [_published_cell(line, conditions)] if published else []
        within = f" in-{many}" if member else ""
        rows.append([Entry(head), *cells])
        marks.append(f"{'follows' if member or not line.first else 'leads'}{within}")
        of_task = [other for other in lines if other.name == task] if starts else []
        if notes := [*_notes(line), *_of_task(of_task, untested)]:
            rows.append([Entry(element("p", " ".join(notes), class_="note"))])
            marks.append(f"follows says{within}")
    return entries_html("Results", ("task", *columns), rows, marks=marks,
                        foot=_foot(runs, len(columns)),
                        numbers=[False, *[True] * len(columns)])  # fmt: skip


def _foot(runs: Sequence[ReportedRun], columns: int) -> list[list[Entry]]:
    rows = {"the run took, min:s": [Entry(duration(run.seconds), run.seconds) for run in runs]}
    # None if the run was given no prices.
    costs = [together("", own) if (own := costs_of(run.summaries)) else None for run in runs]
    if any(cost is not None for cost in costs):
        currencies = sorted({cost.currency for cost in costs if cost is not None})
        rows[f"paid, {', '.join(currencies)}"] = [
            Entry(paid(cost), cost.paid if cost else None) for cost in costs
        ]
    return [
        [Entry(name), Entry(""), *cells, *[Entry("")] * (columns - 1 - len(cells))]
        for name, cells in rows.items()
    ]


def conditions_of(lines: Sequence[Line]) -> dict[str, int]:
    """The conditions under which a run may stand next to published results, numbered."""
    every = [one.comparable_if for line in lines for one in line.published]
    return {why: place for place, why in enumerate(dict.fromkeys(filter(None, every)), 1)}


def _head(line: Line, runs: Sequence[ReportedRun], *, starts: bool) -> Html:
    """The name of a line with its metric, and if it has a published value, whether it may stand
    next to it."""
    name = line.name + (f" (mean of {len(line.tasks)})" if line.is_group else "")
    badge = None
    if line.published:
        # The stamp of a task, once for all its models, or with those that it is of.
        own: dict[str, list[bool]] = {run.label: [] for run in runs}
        for run in runs:
            mine = (one for one in run.summaries if one.task.partition("@")[0] in line.tasks)
            own[run.label] += [one.comparable for one in mine]
        stamped = [label for label, comparable in own.items() if not all(comparable)]
        whose = "" if len(stamped) == sum(map(bool, own.values())) else f": {', '.join(stamped)}"
        badge = element("span", f"not comparable{whose}", class_="badge") if stamped else None
    return joined([
        element("span", breakable(name), class_=None if starts else "hidden"), " ",
        element("span", line.shown_metric, " " if badge else None, badge, class_="metric"),
    ])  # fmt: skip


def units_of(line: Line) -> int | None:
    """How many units each run has in a line, each counted once; None if they differ."""
    each = {one.of // one.repeats for one in line.values.values() if one.of}
    return each.pop() if len(each) == 1 else None


def _cell(line: Line, label: str) -> Entry:
    one = line.values.get(label)
    if one is None:
        return Entry(NOTHING)
    if one.value is None:
        return Entry(element("span", one.why, class_="note"))
    low_high = f" [{number(one.interval[0])}, {number(one.interval[1])}]" if one.interval else ""
    better = [each for each in line.better if each.winner == label]
    others = sum(each.value is not None for each in line.values.values()) - 1
    best = "best" if others and line.best == label else None
    sure = others and sum(each.holds for each in better) == others
    shown = element("strong" if sure else "span", number(one.value), class_=best)
    than = ", ".join(f"{each.loser} ({each.known})" if each.known else each.loser
                     for each in better)  # fmt: skip
    # How many units the value is of if the row does not say so, and what of them was lost.
    known = [] if units_of(line) is not None else [f"{one.of // one.repeats:,} units"]
    counted = f", counted as {line.counts_as}" if one.counts else ""
    if one.missing:
        left_out = one.of - one.n if one.counts else 0
        but = f" but for {left_out:,} left out" if left_out else ""
        why = reasons(one.causes) if len(one.causes) > 1 else next(iter(one.causes))
        known.append(f"{one.missing:,} of {one.of:,} units lost ({why}){counted}{but}")
    if one.lost and round(one.lost, 2) != round(one.missing / one.of, 2):
        known.append(f"{share(one.lost, 1)} of the parts of {line.metric} lost{counted}")
    if line.is_undecided and one.other is not None and one.lost:
        policy = "if they are left out" if one.counts else f"if they count as {line.counts_as}"
        known.append(f"{policy}: {number(one.other)}")
    parts = [
        shown, element("span", low_high, class_="interval"),
        element("small", f"better than {than}", class_="ahead") if than else None,
        element("small", "; ".join(known)) if known else None,
    ]  # fmt: skip
    return Entry(joined(parts), one.value)


def _rules_cell(line: Line) -> Entry:
    if not line.rules:
        return Entry(NOTHING, kind=GREY)
    best, many = line.rules[0], len(line.rules)
    said = "a better value than every model"
    ahead = element("small", said, class_="ahead") if line.beaten_by else None
    others = "; ".join(f"{rule.name} too: {number(rule.value)}" for rule in line.beaten_by[1:])
    of = f", best of {many} for {line.metric}" if many > 1 else ""
    name = element("small", element("dfn", best.name), of, f"; {others}" if others else None)
    return Entry(joined([number(best.value), ahead, name]), best.value, GREY)


def _published_cell(line: Line, conditions: Mapping[str, int]) -> Entry:
    """The best of the published results, and under which condition a run may stand next to it."""
    if not line.published:
        return Entry(NOTHING, kind=GREY)
    best = (max if line.higher else min)(line.published, key=lambda one: one.value)
    known = [f"{best.model}, {best.source}"]
    known += [f"best of {len(line.published)}"] if len(line.published) > 1 else []
    known += [f"in {best.metric}"] if best.metric != line.metric else []
    see = f" ({conditions[best.comparable_if]})" if best.comparable_if else ""
    small = element("small", f"{', '.join(known)}{see}")
    return Entry(joined([number(best.value), small]), best.value, GREY)


def _notes(line: Line) -> Iterator[str]:
    """What the values are measured against, and whether what was lost decides who leads."""
    if line.together:
        yield f"{line.metric}: {POOLED}."
    if line.is_undecided:
        counts = any(one.counts for one in line.values.values())
        here, there = "is left out", f"counts as {line.counts_as}"
        here, there = (there, here) if counts else (here, there)
        yield (
            f"{line.metric}: {_leads(line.leader())} here, where what was lost {here}; where it "
            f"{there}, {_leads(line.leader(other=True))}."
        )
    if line.ahead:
        are = "is" if len(line.ahead) == 1 else "are"
        yield (
            f"{line.metric}: on the units that both have, {', '.join(line.ahead)} {are} ahead of "
            f"{line.leader()} (see Differences)."
        )


def _of_task(
    lines: Sequence[Line], untested: Mapping[str, Sequence[tuple[str, str]]]
) -> Iterator[str]:
    """Which runs of a task were not tested, and whether its metrics disagree."""
    if lines and (pairs := untested.get(lines[0].name)):
        every = combinations(lines[0].order(), 2)
        named = ", ".join(f"{run} against {other}" for run, other in pairs)
        none = {*map(frozenset, every)} <= {*map(frozenset, pairs)} and len(pairs) > 1
        said = f"Not tested: {'any two of these runs' if none else named}"
        yield f"{said}; “What to look at next” says why."
    led = {line.metric: line.leader() for line in lines}
    leaders = {metric: leader for metric, leader in led.items() if leader is not None}
    if len({*leaders.values()}) > 1:
        firsts = ", ".join(f"{leader} leads by {metric}" for metric, leader in leaders.items())
        yield f"The metrics disagree: {firsts}. Decide which one your question is about."


def _leads(leader: str | None) -> str:
    return f"{leader} leads" if leader else "none is alone in the lead"
