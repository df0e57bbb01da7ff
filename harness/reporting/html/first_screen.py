"""The first screen of a report: what was measured, on whom, and the answer in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from harness.calls.pricing import Cost, together
from harness.contracts.published import PublishedResult
from harness.contracts.stage import CANDIDATE
from harness.reporting.html.markup import Html, element, joined
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.html.run_differences import Differences, answers, standing
from harness.reporting.html.sheet_html import Entry, entries_html
from harness.reporting.money import paid
from harness.reporting.tables import (
    data_name,
    metric_name,
    missing_cell,
    missing_share,
    thought_out,
    value_of,
)
from harness.reporting.text import NOTHING, duration, number, reasons, share
from harness.scoring.group_means import MeanOverTasks, means_of
from harness.scoring.paired_differences import is_established
from harness.scoring.run_costs import costs_of
from harness.scoring.score_run import unfinished_stages
from harness.scoring.summary import MetricResult, RoleUse, TaskSummary, main_metrics
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.reporting.html.run_differences import Differences

LOOSE = 0.1
"""If a larger share of the replies was not read, or needed help, a report says so."""

UNDONE, UNLIKE = 2.0, 1.0
"""How much a run that is not done, and results without a comparison or an interval, weigh next to
a share that is missing."""

HELPED = ("brackets", "repaired")
"""The rungs of replies that were not in the form that was asked for."""

FEW_ANSWERS = 6
"""More comparisons than this are counted first, and those that establish nothing are folded."""

MOST_ANSWERS = 12
"""More established differences are shown when the reader asks for them."""

MOST_NEXT = 8
"""More things to look at are shown when the reader asks for them."""

FEW_TASKS = 4
"""What more tasks ask is shown when the reader asks for it."""

MOST_PUBLISHED = 12
"""More published rows are shown when the reader asks for them."""


@dataclass(frozen=True, kw_only=True)
class ResultRow:
    """One metric of a task or group of one run; `why` there is no result, if there is none.

    `summaries` are those behind the result.
    """

    run: ReportedRun
    task: str
    metric: str = ""
    result: MetricResult | MeanOverTasks | None = None
    summaries: tuple[TaskSummary, ...] = ()
    why: str = ""


class Doubt(NamedTuple):
    """Something to look at: how much it weighs, whose it is, and the part of the page about it."""

    weight: float
    whose: str
    what: str
    part: str


def first_screen(runs: Sequence[ReportedRun], found: Differences) -> Html:
    """The stamp, what was measured on whom, the answer in sentences and in one table."""
    rows = [row for run in runs for row in result_rows(run)]
    said = _said(found)
    table = _results(rows, published_rows(runs, rows))
    measured = _measured(runs)
    if len(measured) <= FEW_TASKS:
        return joined([_stamp(runs), _listed(measured), *said, table])
    title = element("summary", f"What each of the {len(measured)} tasks asks, and of whom")
    return joined([_stamp(runs), element("details", title, _listed(measured)), *said, table])


def _said(found: Differences) -> list[Html]:
    """How many comparisons establish a difference, and each of them; long lists are folded."""
    better, undecided = answers(found)
    many = len(better) + len(undecided)
    lines = [element("p", line, class_="answer") for line in better]
    rest = [element("p", line, class_="answer") for line in undecided]
    if many <= FEW_ANSWERS:
        return [*lines, *rest]
    how_many = f"{len(better):,} of {many:,} comparisons with the best run of a task"
    which = "establish a difference" if len(better) != 1 else "establishes a difference"
    head = element("p", element("strong", f"{how_many} {which}."), class_="answer")
    parts = [head, *lines[:MOST_ANSWERS], element("p", standing(found), class_="answer")]
    for count, title, hidden in (
        (len(better) - MOST_ANSWERS, "more that establish a difference", lines[MOST_ANSWERS:]),
        (len(rest), "that establish none, and who is ahead", rest),
    ):
        if hidden:
            parts.append(element("details", element("summary", f"{count:,} {title}"), *hidden))
    return parts


def result_rows(run: ReportedRun) -> Iterator[ResultRow]:
    """The rows of a run: means of its groups, then its tasks; repeats are one row, their mean."""
    finished = {task.task.name: task for task in run.tasks}
    known = {each.task: each for each in run.summaries}
    means = means_of(run.manifest, [task.summary for task in run.tasks], finished.__getitem__)
    for mean in means:
        many = len({task_and_repeat(task)[0] for task in mean.tasks})
        times = len(mean.tasks) // many
        of = f"mean of {many}, ×{times}" if times > 1 else f"mean of {many}"
        name = f"{mean.name} ×{times}" if mean.over == "repeats" else f"{mean.name} ({of})"
        behind = tuple(known[task] for task in mean.tasks)
        yield ResultRow(run=run, task=name, metric=mean.metric, result=mean, summaries=behind)
    repeated = {mean.name for mean in means if mean.over == "repeats"}
    for name, entry in run.manifest.tasks.items():
        if task_and_repeat(name)[0] in repeated:
            continue
        summary = known.get(name)
        if summary is None:
            undone = unfinished_stages(entry)
            done = len(entry.stages) - len(undone)
            why = f"{done} of {len(entry.stages)} stages done" if undone else "not scored"
            yield ResultRow(run=run, task=name, why=f"{why}, {run.manifest.status}")
            continue
        shown = main_metrics(summary.main, summary.metrics) or ("",)
        for metric in shown:
            yield ResultRow(
                run=run, task=name, metric=metric, result=summary.metrics.get(metric),
                summaries=(summary,), why="" if metric else "no metric",
            )  # fmt: skip


def published_rows(runs: Sequence[ReportedRun], rows: Sequence[ResultRow]) -> list[PublishedResult]:
    """The published results of the tasks and groups of these rows, in their metrics."""
    wanted: dict[str, dict[str, None]] = {}
    for row in rows:
        wanted.setdefault(row.task.partition(" ")[0], {})[row.metric] = None
    benchmarks = {task.benchmark.name: task.benchmark for run in runs for task in run.tasks}
    found = []
    for benchmark in benchmarks.values():
        results = benchmark.published() if benchmark.published else ()
        tasks = {one.task for one in results if one.metric in wanted.get(one.task, ())}
        for one in results:
            metrics = wanted.get(one.task, {})
            like = [name for name in metrics if one.metric.startswith(f"{name}_")]
            if one.metric in metrics or (one.task not in tasks and like):
                found.append(one)
    return found


def cost_of(summaries: Sequence[TaskSummary]) -> Cost | None:
    """The cost of all calls of these tasks; None if the run was given no prices."""
    costs = costs_of(summaries)
    return together("", costs) if costs else None


def _results(rows: Sequence[ResultRow], published: Sequence[PublishedResult]) -> Html:
    costs = [cost_of(row.summaries) for row in rows]
    currencies = {cost.currency for cost in costs if cost is not None}
    money = f"paid, {currencies.pop()}" if len(currencies) == 1 else "paid"
    columns = ("model", "task", "metric", "value", "n", "missing", money, "the run took")
    entries, marks = [], []
    reasons_given = dict.fromkeys(one.comparable_if for one in published if one.comparable_if)
    conditions = {why: place for place, why in enumerate(reasons_given, 1)}
    # A task and its mean over repeats stand together, with the published results once.
    for task in dict.fromkeys(_plain(row.task) for row in rows):
        for row in _by_metric(rows):
            if _plain(row.task) == task:
                entries.append(_entries(row))
                marks.append("" if row.result else "unfinished")
        for one in published:
            if one.task == task:
                entries.append(_published(one, conditions))
                marks.append("published")
    many = len(published)
    switch = None
    if many > MOST_PUBLISHED:
        box = element("input", type="checkbox", id="show-published")
        switch = element("p", box, element("label", f" show the {many:,} published results",
                                           for_="show-published"), class_="choice")  # fmt: skip
    kinds = (False, False, False, True, True, False, True, True)
    table = entries_html("Results", columns, entries, numbers=kinds, marks=marks)
    notes = [
        "In brackets is the 95% interval over people of each value alone; ↑ means that more is "
        "better, ↓ that less is. n is how many people or other units have a value. The time is of "
        "the whole run with all its tasks, as minutes:seconds.",
        "Missing: the units without a value, with the share that is lost of what the metric is "
        "made of, and the stage and cause; 0 (5%) means that each unit has a value, but parts of "
        "some were lost. A metric that counts lost units as worst has them in its value, not in n.",
    ]
    if any(cost is None for cost in costs):
        notes.append("What was paid is known where a run was given --prices.")
    if any("×" in row.task for row in rows):
        notes.append("×2 is the mean over two repeats: n counts each unit once for each repeat.")
    if published:
        notes.append("Grey rows are published results.")
    notes += [
        f"({place}) A run may stand next to these if: {why}." for why, place in conditions.items()
    ]
    return element(
        "div", switch, table, *(element("p", note, class_="note") for note in notes),
        class_="results few" if many > MOST_PUBLISHED else "results",
    )  # fmt: skip


def _plain(task: str) -> str:
    """The name in a row without how many tasks or repeats it is the mean of."""
    return task.partition(" ")[0]


def _by_metric(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """The rows with all runs of a metric next to each other, the metrics in their order."""
    places = {name: place for place, name in enumerate(dict.fromkeys(row.metric for row in rows))}
    return sorted(rows, key=lambda row: places[row.metric])


def _entries(row: ResultRow) -> list[Entry]:
    run, result = row.run, row.result
    named = element("span", run.label)
    if any(not each.comparable for each in row.summaries):
        named = joined([named, " ", element("span", "not comparable", class_="badge")])
    if result is None:
        rest = [Entry(row.metric or NOTHING), Entry(row.why), Entry(NOTHING), Entry(NOTHING)]
    else:
        parts = [each.metrics[row.metric] for each in row.summaries]
        causes = sum((Counter(part.missing) for part in parts), Counter[str]())
        lost = sum(map(missing_share, parts)) / len(parts)
        behind = sum(part.units_behind for part in parts)
        missing = (
            missing_cell(parts[0])
            if len(parts) == 1
            else f"{causes.total():,} ({share(lost, 1)})"
            if lost
            else NOTHING
        )
        value = value_of(result) if result.value is not None else f"no value: {result.undefined}"
        rest = [
            Entry(metric_name(row.metric, result)), Entry(value, result.value),
            Entry(f"{behind:,}", behind),
            Entry(f"{missing}: {reasons(causes)}" if causes else missing if lost else NOTHING,
                  lost),
        ]  # fmt: skip
    cost = cost_of(row.summaries)
    return [
        Entry(named), Entry(row.task), *rest, Entry(paid(cost), cost.paid if cost else None),
        Entry(duration(run.seconds), run.seconds),
    ]  # fmt: skip


def _published(one: PublishedResult, conditions: Mapping[str, int]) -> list[Entry]:
    value = number(one.value)
    if one.low is not None and one.high is not None:
        value += f" [{number(one.low)}, {number(one.high)}]"
    condition = conditions.get(one.comparable_if)
    why = f"published, {one.source}" + (f"; see ({condition})" if condition else "")
    many = NOTHING if one.n is None else f"{one.n:,}"
    return [
        Entry(one.model), Entry(one.task), Entry(one.metric), Entry(value, one.value),
        Entry(many, one.n), Entry(why), Entry(NOTHING), Entry(NOTHING),
    ]  # fmt: skip


def _stamp(runs: Sequence[ReportedRun]) -> Html | None:
    """The warning above everything, with the runs and tasks that each reason is of."""
    because: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        for summary in run.summaries:
            for why in summary.not_comparable_because:
                because.setdefault(why, {}).setdefault(run.label, []).append(summary.task)
    if not because:
        return None
    of_run = {run.label: len(run.summaries) for run in runs if run.summaries}
    lines = []
    for why, whose in because.items():
        named = [
            label if len(tasks) == of_run[label] else f"{label} on {', '.join(tasks)}"
            for label, tasks in whose.items()
        ]
        everywhere = named == [*of_run]
        lines.append(element("li", why if everywhere else f"{why} ({'; '.join(named)})"))
    title = element("strong", "NOT COMPARABLE with published results")
    return element("div", title, element("ul", *lines), class_="stamp", role="note")


def _listed(measured: Sequence[tuple[str, Html]]) -> Html:
    if not measured:
        return element("p", "No task of these runs is finished.", class_="note")
    pairs = (joined([element("dt", name), about]) for name, about in measured)
    return element("dl", *pairs, class_="measured")


def _measured(runs: Sequence[ReportedRun]) -> list[tuple[str, Html]]:
    """What each task asks, and of whom."""
    first: dict[str, tuple[ReportedRun, TaskSummary]] = {}
    for run in runs:
        for summary in run.summaries:
            first.setdefault(task_and_repeat(summary.task)[0], (run, summary))
    found = []
    for name, (run, summary) in first.items():
        like = [
            each for one in runs for each in one.summaries
            if task_and_repeat(each.task)[0] == name and each.roles.keys() >= summary.roles.keys()
        ]  # fmt: skip
        about = str(run.manifest.tasks[summary.task].definition.get("description", ""))
        people = max((each.users for each in summary.metrics.values()), default=0)
        alone = all(each.users == each.n for each in summary.metrics.values())
        whom = f"{summary.units:,} units, of {people:,} people with a score"
        others = [
            f"{role}: {', '.join(dict.fromkeys(each.roles[role] for each in like))}"
            for role in summary.roles
            if role != CANDIDATE
        ]
        facts = [
            f"{summary.units:,} people" if alone else whom,
            f"data: {data_name(summary.data)}",
            *others,
        ]
        small = element("span", f"{'; '.join(facts)}.", class_="note")
        means = [
            element("div", f"{metric_name(metric, result)}: {result.description}", class_="note")
            for metric in main_metrics(summary.main, summary.metrics)
            if (result := summary.metrics[metric]).description
        ]
        found.append((name, element("dd", f"{about} ", small, *means)))
    return found


def look_next(runs: Sequence[ReportedRun], found: Differences) -> Html:
    """What the numbers leave open, the worst first, with the part of the page that says more."""
    doubts = sorted([*_doubts(runs), *_apart(found), *_open_differences(found)],
                    key=lambda doubt: -doubt.weight)  # fmt: skip
    if not doubts:
        doubts = [Doubt(0, "", "Nothing is missing, unread or unlike: read some samples.",
                        "samples")]  # fmt: skip
    lines = [
        element("li", f"{one.whose}: " if one.whose else "", f"{one.what} ", _link(one.part))
        for one in doubts
    ]
    if len(lines) <= 2 * MOST_NEXT:
        return element("ul", *lines)
    more = element("summary", f"{len(lines) - MOST_NEXT:,} smaller ones")
    return joined([
        element("ul", *lines[:MOST_NEXT]),
        element("details", more, element("ul", *lines[MOST_NEXT:])),
    ])  # fmt: skip


def _link(part: str) -> Html:
    names = {"samples": "see its samples", "failures": "see the failures", "reading":
             "see how answers were read", "provenance": "see the command",
             "differences": "see the differences"}  # fmt: skip
    place = "samples" if part == "failures" else part
    return element("a", names[part], href=f"#{place}", data_show=part)


def _doubts(runs: Sequence[ReportedRun]) -> Iterator[Doubt]:
    for run in runs:
        if run.manifest.status != "done":
            status = run.manifest.status.replace("_", " ")
            yield Doubt(UNDONE, run.label, f"the run is {status}.", "provenance")
        for summary in run.summaries:
            whose = f"{run.label} on {summary.task}"
            for name in main_metrics(summary.main, summary.metrics)[:1]:
                result = summary.metrics[name]
                if (lost := missing_share(result)) > 0:
                    causes = f" ({reasons(result.missing)})" if result.missing else ""
                    what = f"{share(lost, 1)} of {name} is missing{causes}."
                    yield Doubt(lost, whose, what, "failures")
                if result.value is not None and result.interval is None:
                    what = f"{name} has no interval: {result.no_interval}."
                    yield Doubt(UNLIKE, whose, what, "samples")
            if spent := thought_out(summary):
                what = f"{spent:,} replies spent their limit on thinking."
                yield Doubt(UNLIKE, whose, what, "reading")
            for stage, use in _candidate(summary):
                calls, read = use.calls, sum(use.rungs.values())
                if calls - read > LOOSE * calls:
                    part = share(calls - read, calls)
                    what = f"{part} of the replies of {stage} were not read."
                    yield Doubt((calls - read) / calls, whose, what, "reading")
                if (helped := sum(use.rungs.get(rung, 0) for rung in HELPED)) > LOOSE * read:
                    part = share(helped, read)
                    what = f"{part} of the replies of {stage} needed repair."
                    yield Doubt(helped / read / 2, whose, what, "reading")


def _candidate(summary: TaskSummary) -> Iterator[tuple[str, RoleUse]]:
    for name, stage in summary.stages.items():
        if CANDIDATE in stage.roles:
            yield name, stage.roles[CANDIDATE]


def _apart(found: Differences) -> Iterator[Doubt]:
    """Which runs cannot be compared, once for all tasks of one reason."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for one in found.document.comparisons:
        for refused in one.refused:
            tasks.setdefault((refused.label, ", ".join(refused.because)), []).append(one.task)
    for (label, why), named in tasks.items():
        what = f"{label} cannot be compared: {why}."
        yield Doubt(UNLIKE, ", ".join(named), what, "differences")


def _open_differences(found: Differences) -> Iterator[Doubt]:
    """The comparisons that are not decided, in one line."""
    every = [each for _, each, _ in found.tested() if each.interval is not None]
    undecided = [each.users for each in every if not is_established(each)]
    if undecided:
        least, most = min(undecided), max(undecided)
        people = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        what = (
            f"{len(undecided):,} of {len(every):,} comparisons establish no difference on {people} "
            "people: more people would narrow the intervals."
        )
        yield Doubt(UNLIKE, "", what, "differences")
