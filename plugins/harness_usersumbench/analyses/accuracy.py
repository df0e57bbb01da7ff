"""The four questions: accuracy, position bias, and the paper's bars from these runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from harness import Done
from harness.contracts.report import Axis, Bars, Figure, Report, Sheet
from harness_usersumbench.analyses.examples import FINAL
from harness_usersumbench.analyses.results import HEADS, Row, answered, by_data, percent
from harness_usersumbench.parsing import LETTERS
from harness_usersumbench.records import TASKS

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

ACCURACY_NOTE = (
    "t1: next activity; t2: with the most recent activities; t3: its category; t4: with the most "
    "recent activities; users: those who were asked, since they have a summary if the method makes "
    "one; right: of all answers, one that cannot be read is wrong; of readable: without these; low "
    "and high: its interval, a bootstrap over users; chance: 20%"
)
POSITION_NOTE = (
    "named: of the readable answers, those that name the option there; right: those for which it "
    "is right, one fifth by chance; right if there: the accuracy where it is right; a position is "
    "preferred if it is named more often than it is right"
)


class Placed(msgspec.Struct, frozen=True):
    """The part of a question that is read."""

    user: str
    right: int


def questions(tasks: Sequence[FinishedTask], options: object) -> Report:
    """The report of `usersum-questions`: accuracy and positions by method, and bars."""
    found = by_data(tasks)
    sheets = [
        sheet
        for data, rows in found.items()
        for row in rows
        for sheet in sheets_of(row, f"{data}, {row.name}")
    ]
    return Report(sheets=tuple(sheets), figures=(*contexts(found), *main_metrics(found)))


def sheets_of(row: Row, title: str) -> tuple[Sheet, Sheet]:
    """The accuracy of each question by method, and the answers by position."""
    tasks = row.tasks.items()
    return (
        Sheet(
            title=f"Accuracy in %: {title}",
            columns=("method", "question", "users", "right", "of readable", "low", "high",
                     "unread"),
            rows=tuple((method, *cells) for method, task in tasks for cells in accuracy(task)),
            notes=(ACCURACY_NOTE,),
        ),
        Sheet(
            title=f"Answers by position in %: {title}",
            columns=("method", "share", "answers", *LETTERS),
            rows=tuple((method, *cells) for method, task in tasks for cells in positions(task)),
            notes=(POSITION_NOTE,),
        ),
    )  # fmt: skip


def accuracy(task: FinishedTask) -> Iterator[tuple[Cell, ...]]:
    """The cells of each question of a task."""
    for name, (users, right, unread) in answered(task).items():
        found = task.summary.metrics[name]
        shares = map(percent, (found.value, *(found.interval or (None, None))))
        yield (name, users, right, *shares, unread)


def positions(task: FinishedTask) -> Iterator[tuple[Cell, ...]]:
    """How often each position is named, is right, and is named where it is right."""
    named: Counter[int] = Counter()
    right: Counter[int] = Counter()
    met: Counter[int] = Counter()
    for record in task.records("predict").with_items(Placed):
        if isinstance(record.outcome, Done):
            named[record.outcome.value] += 1
            right[record.item.right] += 1
            met[record.item.right] += record.outcome.value == record.item.right
    every, many = range(len(LETTERS)), named.total()
    for share, counts, whole in (
        ("named", named, [many] * len(every)),
        ("right", right, [many] * len(every)),
        ("right if there", met, [right[place] for place in every]),
    ):
        cells = (100 * counts[one] / whole[one] if whole[one] else None for one in every)
        yield (share, many, *cells)


def contexts(found: Mapping[str, Sequence[Row]]) -> Iterator[Figure]:
    """Figure 2 for each data set: the accuracy of t1 and of t2 by what the predictor is shown."""
    for data, rows in found.items():
        for name in TASKS[:2]:
            bars = {
                row.name: {method: answered(task)[name].right for method, task in row.tasks.items()}
                for row in rows
            }
            title = f"{data}: accuracy of {name} by what the predictor is shown"
            yield from figure(title, "right, %", bars, "as the paper's Figure 2")


def main_metrics(found: Mapping[str, Sequence[Row]]) -> Iterator[Figure]:
    """Figure 5: each metric by data set, with bars for each model and method that summarises."""
    for name, called in HEADS.items():
        bars: dict[str, dict[str, float | None]] = {}
        for data, rows in found.items():
            for row in rows:
                for method, task in row.tasks.items():
                    if method in FINAL:
                        value = task.summary.metrics[name].value
                        bars.setdefault(f"{row.name}, {method}", {})[data] = value
        yield from figure(called, called, bars, "as the paper's Figure 5, of single_step alone")


def figure(
    title: str, axis: str, bars: Mapping[str, Mapping[Any, float | None]], note: str
) -> Iterator[Figure]:
    """A figure of the bars by label and name; none without any bar."""
    marks = []
    for label, values in bars.items():
        known = {name: value for name, value in values.items() if value is not None}
        texts = tuple(f"{value:.3g}" for value in known.values())
        if known:
            marks.append(Bars(
                label=label, names=tuple(known), values=tuple(known.values()), texts=texts
            ))  # fmt: skip
    if marks:
        yield Figure(
            title=title,
            x=Axis(label=""),
            y=Axis(label=axis, low=0.0),
            marks=tuple(marks),
            note=note,
        )
