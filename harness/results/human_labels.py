"""Labels that people gave to what judges decided, from a file, and which decision each is of.

A row has an `item`, as `harness show --sample` calls it, and a `label`: yes or no for an option
that may be selected, a class for a text. Where that leaves several decisions, `task`, `stage`,
`question` (its number within the item, or its subject) and `option` (what it was called, or the
text's number) say which. `rater` tells several people apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.results.beside import table
from harness.results.decisions import Decision, Label

if TYPE_CHECKING:
    from harness.data import Table
    from harness.tasks.task import Column

MEANING = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
ANYBODY = ""
"""The rater of rows that name none."""

NARROWING = ("task", "stage", "question", "option")
"""Columns that say which decision of an item is meant, where there are several."""


@dataclass(frozen=True, kw_only=True)
class HumanLabel:
    """One row of a file; `where` holds those of the narrowing columns that it fills."""

    rows: Table
    number: int
    item: str
    label: str
    rater: str
    where: Mapping[str, str]


@dataclass(kw_only=True)
class HumanLabels:
    """The rows of all files that have a label, and how many have none."""

    rows: list[HumanLabel] = field(default_factory=list)
    blank: int = 0


@dataclass(frozen=True, kw_only=True)
class Matched:
    """A person's label and the decision that it is of."""

    rater: str
    label: Label
    decision: Decision


@dataclass(kw_only=True)
class Matching:
    """The labels that are of one decision each, and why others are not."""

    found: list[Matched] = field(default_factory=list)
    unmatched: Counter[str] = field(default_factory=Counter)


def read_human_labels(paths: Sequence[str]) -> HumanLabels:
    """The labels in files of any format that data may have."""
    labels = HumanLabels()
    for path in paths:
        rows = table(path, "labels", _columns())
        for number, row in rows.rows():
            text = "" if row["label"] is None else _plain(row["label"])
            if not text:
                labels.blank += 1
                continue
            labels.rows.append(
                HumanLabel(
                    rows=rows,
                    number=number,
                    item=_plain(row["item"]),
                    label=text,
                    rater=(row["rater"] or ANYBODY).strip(),
                    where={n: _plain(row[n]) for n in NARROWING if row[n] is not None},
                )
            )
    return labels


def match(labels: HumanLabels, decisions: Iterable[Decision], *, task: str) -> Matching:
    """Each label with its decision; a second label of one rater for the same is a DataError."""
    by_item: dict[str, list[Decision]] = defaultdict(list)
    wanted = {row.item for row in labels.rows}
    for decision in decisions:
        if decision.item in wanted:
            by_item[decision.item].append(decision)
    matching = Matching()
    taken: set[tuple[str, int]] = set()
    for row in labels.rows:
        if row.where.get("task", task) != task:
            matching.unmatched["of other tasks"] += 1
            continue
        meant = [each for each in by_item[row.item] if _is_meant(row, each)]
        if len(meant) != 1:
            why = "of several decisions, without saying which" if meant else "of no decision here"
            matching.unmatched[why] += 1
            continue
        key = (row.rater, id(meant[0]))
        if key in taken:
            raise row.rows.bad(row.number, "item", row.item, "one label of each by a rater")
        taken.add(key)
        label = _label(row, meant[0])
        matching.found.append(Matched(rater=row.rater, label=label, decision=meant[0]))
    return matching


def meaning(rows: Table, number: int, label: object) -> bool:
    """Whether a label says yes."""
    said = MEANING.get(str(label).strip().casefold())
    if said is None:
        raise rows.bad(number, "label", label, "yes or no")
    return said


def _columns() -> dict[str, Column]:
    from harness.tasks.task import Column

    free = {name: Column(type="any", required=False) for name in (*NARROWING, "label")}
    return {"item": Column(type="any"), "rater": Column(required=False), **free}


def _plain(value: Any) -> str:
    # A column of whole numbers with a gap comes out of many tools as one of fractions.
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value).strip()


def _is_meant(row: HumanLabel, decision: Decision) -> bool:
    """Whether what a row fills in is so of a decision."""
    where = row.where
    return (
        where.get("stage", decision.stage) == decision.stage
        and where.get("option", decision.option) == decision.option
        and where.get("question", decision.subject) in (decision.subject, str(decision.question))
    )


def _label(row: HumanLabel, decision: Decision) -> Label:
    """What the label says: yes or no of an option, a class of a text."""
    return meaning(row.rows, row.number, row.label) if decision.subject is not None else row.label
