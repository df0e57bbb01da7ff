"""The four questions: accuracy, position bias, and the paper's bars from these runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from harness import Done
from harness.contracts.report import Axis, Bars, Figure, Report, Sheet
from harness_usersumbench.analyses.results import TITLES, Compared, compared
from harness_usersumbench.parsing import LETTERS
from harness_usersumbench.records import TASKS

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell
    from harness.scoring.summary import MetricResult

ASKED = {
    "t1": "t1: next activity", "t2": "t2: next activity, with recent ones",
    "t3": "t3: next category", "t4": "t4: next category, with recent activities",
}  # fmt: skip
MAIN = {
    "qm": "Quality Metric",
    "ifm": "Instruction Following Metric",
    "idm": "Information Density Metric, ×0.1%",
}
"""The metrics of Figure 5 and their titles."""

ACCURACY_NOTES = (
    "right: of all answers, one that cannot be read is wrong; of readable: without these; low and "
    "high: bootstrap over users; chance is 20%",
)
POSITION_NOTES = (
    "named: the share of readable answers that name the option at this position; right: the share "
    "of right answers there, one fifth by chance; right if there: the accuracy if the right answer "
    "stands there",
    "a position is preferred if it is named much more often than it is right",
)


class Placed(msgspec.Struct, frozen=True):
    """The part of a question that is read."""

    user: str
    right: int


def questions(tasks: Sequence[FinishedTask], options: object) -> Report:
    """The report of `usersum-questions`: accuracy and positions by method, and bars."""
    found = compared(tasks)
    every = [(one, method, task) for one in found for method, task in one.tasks.items()]
    return Report(
        sheets=(
            Sheet(
                title="Accuracy of the four questions, %",
                columns=("data", "model", "method", "question", "users", "right", "low", "high",
                         "of readable", "unread"),
                rows=tuple(
                    (TITLES[one.source], one.model, method, *cells)
                    for one, method, task in every
                    for cells in accuracy_rows(task)
                ),
                notes=ACCURACY_NOTES,
            ),
            Sheet(
                title="Answers by position, %",
                columns=("data", "model", "method", "answers", *LETTERS),
                rows=tuple(
                    (TITLES[one.source], one.model, f"{method}, {what}", *cells)
                    for one, method, task in every
                    for what, cells in position_rows(task)
                ),
                notes=POSITION_NOTES,
            ),
        ),
        figures=(*context_figures(found), *metric_figures(found)),
    )  # fmt: skip


def accuracy_rows(task: FinishedTask) -> Iterator[tuple[Cell, ...]]:
    """The cells of each question of a task."""
    for name in TASKS:
        found = task.summary.metrics[name]
        low, high = found.interval or (None, None)
        counted, readable = both(found)
        share = found.missing_share or 0.0
        yield (ASKED[name], found.units_behind,
               *map(percent, (counted, low, high, readable, share)))  # fmt: skip


def both(found: MetricResult) -> tuple[float | None, float | None]:
    """The value that counts what is missing as wrong, and the value that leaves it out."""
    if found.left_out is not None:
        return found.value, found.left_out
    return found.counted_as_worst, found.value


def position_rows(task: FinishedTask) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    """How often each position is named, is right, and is right where the right answer stands."""
    named: Counter[int] = Counter()
    right: Counter[int] = Counter()
    met: Counter[int] = Counter()
    for record in task.records("predict").with_items(Placed):
        if isinstance(record.outcome, Done):
            named[record.outcome.value] += 1
            right[record.item.right] += 1
            met[record.item.right] += record.outcome.value == record.item.right
    many = named.total()
    places = range(len(LETTERS))
    yield "named", (many, *(_share(named[place], many) for place in places))
    yield "right", (many, *(_share(right[place], many) for place in places))
    yield "right if there", (many, *(_share(met[place], right[place]) for place in places))


def context_figures(found: Sequence[Compared]) -> Iterator[Figure]:
    """Figure 2 for each source of data and t1 and t2: accuracy by what the predictor is shown."""
    for source, of_source in _by_source(found).items():
        for name in TASKS[:2]:
            marks = [
                _bars(
                    one.model,
                    {method: percent(both(task.summary.metrics[name])[0])
                     for method, task in one.tasks.items()},
                )
                for one in of_source
            ]  # fmt: skip
            yield Figure(
                title=f"{TITLES[source]}, {ASKED[name]} by what the predictor is shown",
                x=Axis(label=""),
                y=Axis(label="accuracy, %", low=0.0, high=100.0),
                marks=tuple(marks),
                note="as the paper's Figure 2",
            )


def metric_figures(found: Sequence[Compared]) -> Iterator[Figure]:
    """Figure 5: each metric by data, a bar for each model and method that summarises."""
    for name, title in MAIN.items():
        bars: dict[str, dict[str, float | None]] = {}
        for one in found:
            for method, task in one.tasks.items():
                value = task.summary.metrics[name].value if name in task.summary.metrics else None
                label = f"{one.model}, {method.replace('_', '-')}"
                bars.setdefault(label, {})[TITLES[one.source]] = value
        marks = tuple(
            mark for label, values in bars.items() if (mark := _bars(label, values)).names
        )
        if marks:
            yield Figure(
                title=title,
                x=Axis(label=""),
                y=Axis(label=title, low=0.0),
                marks=marks,
                note="as the paper's Figure 5, which has the single-step method alone",
            )


def percent(value: float | None) -> float | None:
    """A share in per cent."""
    return None if value is None else 100 * value


def _share(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def _bars(label: str, values: Mapping[str, float | None]) -> Bars:
    """A bar for each value that is there."""
    known = {name: value for name, value in values.items() if value is not None}
    texts = tuple(f"{value:.3g}" for value in known.values())
    return Bars(label=label, names=tuple(known), values=tuple(known.values()), texts=texts)


def _by_source(found: Sequence[Compared]) -> dict[str, list[Compared]]:
    sources: dict[str, list[Compared]] = {}
    for one in found:
        sources.setdefault(one.source, []).append(one)
    return sources
