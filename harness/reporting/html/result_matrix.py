"""The table of results: a row for each task and metric, a column for each model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from harness.reporting.html.markup import Html, breakable, element, joined
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.html.result_lines import Line, cost_of
from harness.reporting.html.run_differences import POOLED
from harness.reporting.html.sheet_html import Entry, entries_html
from harness.reporting.run_lines import paid
from harness.reporting.text import NOTHING, duration, number, reasons, share

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
        cells += [_rules(line)] if rules else []
        cells += [_published(line, conditions)] if published else []
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
    costs = [cost_of(run.summaries) for run in runs]
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


def _rules(line: Line) -> Entry:
    if not line.rules:
        return Entry(NOTHING, kind=GREY)
    best, many = line.rules[0], len(line.rules)
    said = "a better value than every model"
    ahead = element("small", said, class_="ahead") if line.beaten_by else None
    others = "; ".join(f"{rule.name} too: {number(rule.value)}" for rule in line.beaten_by[1:])
    of = f", best of {many} for {line.metric}" if many > 1 else ""
    name = element("small", element("dfn", best.name), of, f"; {others}" if others else None)
    return Entry(joined([number(best.value), ahead, name]), best.value, GREY)


def _published(line: Line, conditions: Mapping[str, int]) -> Entry:
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
        yield f"{said}; “What to look at next” says what would help."
    led = {line.metric: line.leader() for line in lines}
    leaders = {metric: leader for metric, leader in led.items() if leader is not None}
    if len({*leaders.values()}) > 1:
        firsts = ", ".join(f"{leader} leads by {metric}" for metric, leader in leaders.items())
        yield f"The metrics disagree: {firsts}. Decide which one your question is about."


def _leads(leader: str | None) -> str:
    return f"{leader} leads" if leader else "none is alone in the lead"
