"""Rows of values on axes as the template draws them: where each dot, line and label stands.

Places across are percent of the axis, so that a picture fits any width; places down are pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from harness.comparison.document import ComparisonDocument
from harness.reporting.html.compared_runs import Ending, short
from harness.reporting.html.results import Result, Value
from harness.reporting.tables import metric_name
from harness.reporting.text import number, reasons, share

LONGEST = 24
CHARACTER = 2.5
"""The width of a character of a label, in percent of the axis on a phone."""

MOST_RULES = 2
MOST_IN_LEGEND = 7
"""More runs than this have their name at their value, as colours are hard to tell apart."""


class Mark(NamedTuple):
    """A run in a row: its colour, its value with the interval, and what stands beside it."""

    label: str
    colour: int
    value: float | None
    interval: tuple[float, float] | None
    text: str
    aside: str = ""
    title: str = ""


class Reference(NamedTuple):
    """A dashed tick across a row: a rule without a model, or a published value.

    Its label stands on the `line` above the row that leaves room for it.
    """

    label: str
    title: str
    value: float
    published: bool
    line: int = 0


class Axis(NamedTuple):
    """The numbers at the ends of a row."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float | None]) -> Axis:
        """From 0, or from below it, to a round number beyond all values; to 1 if that is near."""
        known = [value for value in values if value is not None]
        size = max(map(abs, known), default=1.0) or 1.0
        unit = 10.0 ** math.floor(math.log10(size))
        end = next(step * unit for step in (1, 2, 5, 10) if step * unit >= size * (1 - 1e-9))
        end = 1.0 if 0.25 < size <= 1.0 else end
        return cls(-end if min(known, default=0.0) < 0 else 0.0, end)

    def place(self, value: float) -> float:
        """Where a value stands, in percent."""
        return round(100 * (value - self.low) / (self.high - self.low), 2)

    @property
    def ticks(self) -> tuple[float, ...]:
        """The numbers that are written."""
        return self.low, (self.low + self.high) / 2, self.high


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of a picture, with the rows of the group's members that open below it."""

    name: str = ""
    metric: str
    words: str
    marks: Sequence[Mark]
    references: Sequence[Reference] = ()
    ending: Ending | None = None
    members: tuple[Row, ...] = ()
    balanced: bool = False
    """Whether 0 stands in the middle of the axis."""

    @property
    def axis(self) -> Axis:
        """The axis on which all values of the row fit."""
        ends = [end for one in self.marks for end in (one.value, *(one.interval or ()))]
        ends += [one.value for one in self.references]
        size = max((abs(end) for end in ends if end is not None), default=1.0)
        return Axis.around([*ends, -size] if self.balanced else ends)

    @property
    def summary(self) -> str:
        """The row in words."""
        known = [f"{one.label} {one.text} {one.aside}".rstrip() for one in self.marks]
        return (
            f"{self.name} {self.metric}: {'; '.join([*known, *(r.title for r in self.references)])}"
        )


def result_rows(results: Sequence[Result], labels: Sequence[str]) -> list[Row]:
    """The rows of results, those of a group's members within the group's last row."""
    rows: list[Row] = []
    group: Result | None = None
    for place, result in enumerate(results):
        starts = not place or results[place - 1].name != result.name
        row = _result_row(result, labels, starts=starts)
        if group and result.tasks < group.tasks:
            rows[-1] = replace(rows[-1], members=(*rows[-1].members, row))
        else:
            group = result if result.is_group else None
            rows.append(row)
    return rows


def _result_row(result: Result, labels: Sequence[str], *, starts: bool) -> Row:
    known = result.values
    references = [
        Reference(rule.short, f"{rule.name}: {number(rule.value)}", rule.value, False)
        for rule in result.rules[:MOST_RULES]
    ]
    if result.comparable and (best := result.best_published):
        condition = f", comparable if {best.comparable_if}" if best.comparable_if else ""
        about = f"{best.model} in {best.source}: {number(best.value)}{condition}"
        references.append(Reference(f"paper: {best.model}", about, best.value, True))
    many = len(result.tasks)
    name = f"{result.name} (mean of {many})" if result.is_group else result.name
    row = Row(
        name=name if starts else "",
        metric=metric_name(result.metric, result) if result.metric else "",
        words=result.words.partition(";")[0], ending=result.ending or _beside_rule(result),
        marks=[
            Mark(label, place, one.value, one.interval,
                 number(one.value) if one.value is not None else one.why.partition(":")[0],
                 *_missing(one, result.counts_as))
            for place, label in enumerate(labels)
            if (one := known.get(label)) is not None
        ],
        references=references,
    )  # fmt: skip
    return replace(row, references=_on_lines(references, row.axis))


def _on_lines(references: Sequence[Reference], axis: Axis) -> list[Reference]:
    """The references with their labels on so many lines that none stands on another."""
    ends: list[float] = []
    placed = []
    for one in sorted(references, key=lambda one: one.value):
        label = one.label if len(one.label) <= LONGEST else f"{one.label[: LONGEST - 1]}…"
        at, width = axis.place(one.value), CHARACTER * len(label) + 2
        start, end = (at - width, at) if at > 50 else (at, at + width)
        line = next((place for place, taken in enumerate(ends) if taken <= start), len(ends))
        ends[line : line + 1] = [end]
        placed.append(one._replace(label=label, line=line))
    return placed


def _beside_rule(result: Result) -> Ending | None:
    """How the only run of a result stands to the best rule without a model."""
    if len(result.values) != 1 or not result.rules:
        return None
    (one,) = result.values.values()
    rule = result.rules[0]
    if one.value is None:
        return None
    low, high = one.interval or (one.value, one.value)
    above, below = low > rule.value, high < rule.value
    words = "above" if above else "below" if below else "level with"
    good = (above and result.higher_is_better) or (below and not result.higher_is_better)
    kind = "wins" if good else "worse" if above or below else "undecided"
    return Ending(kind, f"{words} {rule.short}", f"which has {short(rule.value)}")  # type: ignore[arg-type]


def _missing(one: Value, counts_as: str) -> tuple[str, str]:
    """How much of a value is missing, and why and what follows from it."""
    units = sum(one.causes.values())
    if not one.missing:
        return "", one.why
    said = [one.why] if one.why else []
    said += [f"{units:,} of {one.of:,}: {reasons(one.causes)}"] if units else []
    if one.other is not None:
        policy = "without them" if one.counts else f"counted as {counts_as}"
        said.append(f"{policy}: {number(one.other)}")
    return f"{units:,} missing" if units else f"{share(one.missing, 1)} missing", "; ".join(said)


def difference_rows(document: ComparisonDocument) -> list[Row]:
    """A row for each metric of a task or group: the differences of its runs around 0."""
    labels = document.labels()
    colours = {run: place for place, run in enumerate(labels)}
    rows, last = [], ""
    for one in document.decisions():
        marks = [
            Mark(
                f"{labels[each.first]} − {labels[each.second]}", colours[each.first], each.value,
                each.interval, "no value" if each.value is None else number(each.value),
                "" if each.p_holm is None else f"p {short(each.p_holm)}",
                "; ".join(filter(None, (each.no_interval, each.no_p))),
            )
            for each in one.differences
        ]  # fmt: skip
        if marks:
            side = "right" if one.higher_is_better else "left"
            rows.append(Row(
                name=one.name if one.name != last else "", marks=marks,
                metric=metric_name(one.metric, one),
                words=f"{side} of 0 the first is better",
                references=[Reference("", "no difference", 0.0, False)], balanced=True,
            ))  # fmt: skip
            last = one.name
    return rows
