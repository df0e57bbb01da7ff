"""Tables 5 and 6 of stored runs, the layout of Table 10, and the curves of recall over K."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from harness.analysis.percentages import percent
from harness.analysis.task_setting import TaskSetting
from harness.contracts.report import Axis, Figure, Line, Panels, Report, Sheet
from harness.reporting.text import reasons
from harness_horizon.next_item.scores import TABLES
from harness_horizon.ranking import CUTS
from harness_horizon.text.finding import (
    BOUND,
    COMPARABLE_IF,
    COSINE,
    PUBLISHED,
    UNITS,
    WHOLE,
    column_of,
)

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

SETTING = {
    ask: TaskSetting(
        passed_over={"ask", "setting"},
        sampling={"temperature": 0.7, "top_p": 0.95, "max_tokens": most},
    )
    for ask, most in (("next", 220), ("long", 350))
}
PRINTED = tuple(f"{name}_{cut}" for name in ("recall", "precision") for cut in (10, 50, 100))
SETTINGS = {"1c": "users trained on", "1d": "users held out"}
COUNTED = dict(zip(UNITS, ("all", "whole", "by user"), strict=True))

NOTES = (
    "in per cent; R@K and P@K: the true title itself; ~: also a title with a cosine of at least "
    "0.9 to it, which is what the paper counts, so its rows stand there alone; ~cos: mean cosine "
    "of queries and true titles, and of each true title and its nearest query: the paper has .71 "
    "to .73 by BLaIR, and does not say which",
    "all: a case without queries counts 0; whole: the cases of users each of whose replies has as "
    "many queries as were asked for, as the authors count; by user: the mean over users",
    BOUND,
)
LONG_NOTE = (
    "~R@K of descriptions: relevant places by true titles, as the paper counts, which can pass "
    "100; ~S@K: the share of the true titles that are found"
)
TABLE_10 = "the cells of the paper's Table 10 cannot be placed in our text, so none are shown"


def main(tasks: Sequence[FinishedTask], options: object) -> Report:
    """The report of `horizon-text`."""
    several = [one for one in tasks if one.options.prompt != "one"]
    sheets = [
        _table(found, name, setting)
        for ask, name in zip(SETTING, PUBLISHED, strict=True)
        for setting in reversed(SETTINGS)
        if (found := [one for one in several
                      if (one.options.ask, one.options.setting) == (ask, setting)])
    ]  # fmt: skip
    if single := [one for one in tasks if one.options.prompt == "one"]:
        sheets.append(_single(single))
    return Report(sheets=tuple(sheets))


def _table(tasks: Sequence[FinishedTask], name: str, setting: str) -> Sheet:
    """One table, cosine beside exact; with the published rows in the setting that they are of."""
    table = TABLES.read(PUBLISHED[name])
    near = tuple(column_of(name, column) for column in PRINTED)
    shares = tuple(f"recall_{cut}{COSINE}" for cut in (10, 50, 100)) if "long" in name else ()
    rows = [row for task in tasks for row in _rows(task, (*PRINTED, *near, *shares))]
    ours, notes = setting == "1d", [*NOTES, *_catalogues(tasks), *_problems(tasks)]
    if ours:
        gaps = (None,) * (len(PRINTED) + 1), (None,) * (len(shares) + 2)
        rows += [(f"paper: {model}", "", "", *gaps[0], *cells, *gaps[1])
                 for model, *cells in table.rows]  # fmt: skip
        notes += (*table.notes, f"the paper's rows are of {COMPARABLE_IF}")
    heads = [f"{one[0].upper()}@{one.rpartition('_')[2]}" for one in PRINTED]
    near_heads = [f"~{one}" for one in (*heads, *("S@10", "S@50", "S@100")[: len(shares)])]
    columns = ("model", "setting", "cases", "n", *heads, *near_heads, "~cos", "~best")
    title = f"{'' if ours else 'As '}{table.source}: {table.title}, {SETTINGS[setting]}"
    notes += [LONG_NOTE] if shares else []
    return Sheet(title=title, columns=columns, rows=tuple(rows), notes=tuple(notes), digits=2)


def _percents(task: FinishedTask, columns: Iterable[str]) -> list[float | None]:
    found = map(task.summary.metrics.get, columns)
    return [one and percent(one.value) for one in found]


def _setting(task: FinishedTask) -> str:
    """The changes of a task, with all tokens that a model which thinks had."""
    described = [SETTING[task.options.ask].describe(task)]
    roles = task.entry.stages[0].components.get("roles", {})
    sampling = roles.get("candidate", {}).get("sampling", {})
    if more := sampling.get("reasoning_tokens"):
        most = sampling["max_tokens"] + more
        described.append(f"{most:,} tokens, {more:,} of them for reasoning")
    return ", ".join(filter(None, described))


def _rows(task: FinishedTask, columns: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    """The values of a task by what is counted."""
    metrics = task.summary.metrics
    cosines = [one and one.value for one in map(metrics.get, ("cosine_mean", "cosine_best"))]
    for end, counted in COUNTED.items():
        first = metrics.get(f"{columns[0]}{end}")
        if first is not None and (first.n or end != WHOLE):
            n = first.n + (0 if end == WHOLE else sum(first.missing.values()))
            values = _percents(task, (f"{column}{end}" for column in columns))
            yield (task.label, _setting(task), counted, n, *values, *cosines)
            cosines = [None, None]


def _catalogues(tasks: Sequence[FinishedTask]) -> Iterator[str]:
    """What each task searched: the embedder, the index, and how many titles if not all."""
    for task in tasks:
        searched = task.manifest.player(task.task.name, "retriever")
        model = searched.identity.get("model", {}) if searched else {}
        about = model.get("details", {})
        if index := about.get("index"):
            embedder = f"{about['embedder']['kind']}:{model['name']}"
            few = about.get("catalog_sample")
            sampled = f", a sample of {few:,} titles, in which more is found" if few else ""
            name = f"{task.label} {_setting(task)}".rstrip()
            yield f"{name}: titles by {embedder}, index {index[:12]}{sampled}"


def _problems(tasks: Sequence[FinishedTask]) -> Iterator[str]:
    """The replies of each task that were short, cut or not read."""
    for task in tasks:
        if text := reasons({**task.summary.counts, **task.summary.metrics["recall_10"].missing}):
            yield f"{task.label} {_setting(task)}".rstrip() + f": {text}"


def _single(tasks: Sequence[FinishedTask]) -> Sheet:
    """The layout of Table 10: a section for each setting, in which K goes down."""
    columns = [f"{name}_{{}}{way}" for way in ("", COSINE) for name in ("recall", "precision")]
    rows = [
        (f"{setting}: {users}", f"K={cut}", task.label,
         *_percents(task, (column.format(cut) for column in columns)))
        for setting, users in SETTINGS.items()
        for cut in (10, 100)
        for task in tasks
        if task.options.setting == setting
    ]  # fmt: skip
    heads = ("setting", "", "model", "R", "P", "~R", "~P")
    notes = (NOTES[0], BOUND, *_catalogues(tasks), TABLE_10)
    title = "In the layout of Table 10: a single query"
    return Sheet(title=title, columns=heads, rows=tuple(rows), notes=notes, digits=2)


def curves(tasks: Sequence[FinishedTask], options: object) -> Report:
    """The report of `horizon-recall`: recall over K, a panel for each task."""
    rows: list[tuple[Cell, ...]] = []
    lines: dict[str, list[Line]] = {}
    for task in tasks:
        for way, named in (("", "exact"), (COSINE, "cosine")):
            values = _percents(task, (f"recall_{cut}{way}" for cut in CUTS))
            rows.append((task.label, task.task.name, named, *values))
            y = tuple(value for value in values if value is not None)
            line = Line(label=f"{task.label} {named}", x=CUTS[: len(y)], y=y)
            lines.setdefault(task.task.name, []).append(line)
    heads = ("model", "task", "relevant", *map(str, CUTS))
    notes = ("in per cent, over all cases: one without queries counts 0",)
    sheet = Sheet(title="Recall at K", columns=heads, rows=tuple(rows), notes=notes, digits=2)
    x, y_axis = Axis(label="K"), Axis(label="recall, %", low=0.0)
    figures = [Figure(title=name, x=x, y=y_axis, marks=tuple(marks))
               for name, marks in lines.items()]  # fmt: skip
    panels = [Panels(title="Recall over K", figures=tuple(figures), across=2)] if figures else []
    return Report(sheets=(sheet,), figures=tuple(panels))
