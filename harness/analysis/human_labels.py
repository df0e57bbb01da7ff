"""People's labels for the decisions of judges: their majority, and how far two agree.

A row has an `item`, as `harness show --sample` names it, and a `label`: yes or no for an option
that may be selected, a class for a text. If the item has several decisions, `task`, `stage`,
`question` (its number within the item, or its subject) and `option` (its name, or the number of
the text) choose one. `rater` is the person who gave the label, if there are several.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import msgspec

from harness.analysis.user_tables import table
from harness.contracts.task import Column

if TYPE_CHECKING:
    from harness.base.errors import DataError
    from harness.contracts.report import Cell
    from harness.data import Table
    from harness.scoring.finished_task import FinishedTask

MEANING = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
ANYBODY = ""
"""The rater of rows without a rater."""

NARROWING = ("task", "stage", "question", "option")
"""Columns that choose one decision of an item that has several."""

Label: TypeAlias = bool | str
"""The label of an option (whether it is selected) or of a text (its class)."""

Pairs: TypeAlias = Sequence[tuple[Label, Label, str]]
"""Both labels of each thing, with the user that it is about."""

ThingT = TypeVar("ThingT")
LabelT = TypeVar("LabelT", bound=Label)


@dataclass(frozen=True, kw_only=True)
class HumanLabel:
    """One row of a file; `where` holds its values of the narrowing columns.

    `called` are the file's names of columns that have other names here.
    """

    rows: Table
    number: int
    item: str
    label: str
    rater: str
    where: Mapping[str, str]
    called: Mapping[str, str] = field(default_factory=dict)

    def bad(self, column: str, value: str | None, expected: str) -> DataError:
        """The error for a value that cannot be used, with its file and line."""
        return self.rows.bad(self.number, self.called.get(column, column), value, expected)

    def says_yes(self) -> bool:
        """Whether the label is a yes; DataError if it is neither yes nor no."""
        return self.means(MEANING, "yes or no")

    def means(self, meaning: Mapping[str, LabelT], expected: str) -> LabelT:
        """The meaning of the label, whose case does not matter; DataError if it has none."""
        found = meaning.get(self.label.casefold())
        if found is None:
            raise self.bad("label", self.label, expected)
        return found


@dataclass(kw_only=True)
class HumanLabels:
    """The rows with a label in all files, and the number of rows without one by task."""

    rows: list[HumanLabel] = field(default_factory=list)
    blank: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, kw_only=True)
class Majority(Generic[ThingT, LabelT]):
    """The most frequent label of each thing, and the counts of things without a majority.

    `few` things have too few labels; `tied` things have two labels that are most frequent.
    """

    labels: dict[ThingT, LabelT]
    few: int
    tied: int


def read_human_labels(
    paths: Sequence[str],
    columns: Mapping[str, Column] | None = None,
    *,
    called: Mapping[str, str] | None = None,
) -> HumanLabels:
    """The labels in files of any format that data may have; `columns` replace default columns.

    `called` gives columns other names in the files: `called={"item": "example"}`.
    """
    labels = HumanLabels()
    called = called or {}
    free = {name: Column(type="any", required=False) for name in (*NARROWING, "label")}
    default = {"item": Column(type="any"), "rater": Column(required=False), **free}
    columns = {**default, **(columns or {})}
    for path in paths:
        rows = table(path, "labels", {called.get(name, name): one for name, one in columns.items()})
        for number, given in rows.rows():
            row = {name: given[called.get(name, name)] for name in columns}
            where = {name: _plain(row[name]) for name in NARROWING if row[name] is not None}
            text = "" if row["label"] is None else _plain(row["label"])
            if not text:
                labels.blank[where.get("task", "")] += 1
                continue
            labels.rows.append(
                HumanLabel(
                    rows=rows,
                    number=number,
                    item=_plain(row["item"]),
                    label=text,
                    rater=(row["rater"] or ANYBODY).strip(),
                    where=where,
                    called=called,
                )
            )
    return labels


def labels_by_rater(
    rows: Iterable[HumanLabel],
    meaning: Callable[[HumanLabel], LabelT],
    *,
    but: Collection[str] = (),
) -> dict[str, dict[str, LabelT]]:
    """The labels of each rater by item.

    DataError for a row without a rater or with one of the names in `but`, and for a second label of
    an item by the same rater.
    """
    found: dict[str, dict[str, LabelT]] = {}
    first: dict[tuple[str, str], int] = {}
    for row in rows:
        label = meaning(row)
        if row.rater in (ANYBODY, *but):
            others = f", other than {' or '.join(map(repr, but))}" if but else ""
            error = row.bad("rater", row.rater or None, f"a name{others}")
            error.hint = f"the column {row.called.get('rater', 'rater')!r} says who rated each row"
            raise error
        given = found.setdefault(row.rater, {})
        if row.item in given:
            of, a = row.called.get("item", "item"), row.called.get("label", "label")
            earlier = f"{row.rater!r}, who has another in row {first[row.rater, row.item]}"
            raise row.bad("item", row.item, f"one {a} of each {of} by {earlier}")
        given[row.item] = label
        first[row.rater, row.item] = row.number
    return found


def votes_of(raters: Mapping[str, Mapping[ThingT, LabelT]]) -> dict[ThingT, Counter[LabelT]]:
    """How many raters gave each label to each thing."""
    votes: dict[ThingT, Counter[LabelT]] = defaultdict(Counter)
    for labels in raters.values():
        for thing, label in labels.items():
            votes[thing][label] += 1
    return votes


def majority_of(
    raters: Mapping[str, Mapping[ThingT, LabelT]], *, least: int
) -> Majority[ThingT, LabelT]:
    """The majority label of each thing that at least `least` raters labelled."""
    found: dict[ThingT, LabelT] = {}
    few = tied = 0
    for thing, votes in votes_of(raters).items():
        first = votes.most_common(2)
        if votes.total() < least:
            few += 1
        elif len(first) == 2 and first[0][1] == first[1][1]:
            tied += 1
        else:
            found[thing] = first[0][0]
    return Majority(labels=found, few=few, tied=tied)


def _plain(value: Any) -> str:
    # Many tools write a column of whole numbers with gaps as decimals.
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value).strip()


def kappa_cells(
    both: Pairs, task: FinishedTask, *, seed: int
) -> tuple[tuple[Cell, ...], list[str]]:
    """The share of equal labels in %, Cohen's κ, and its interval over users as text."""
    from harness.scoring.stats import Interval, Undefined, agreement_of, kappa_interval

    first, second, users = zip(*both, strict=True) if both else ((), (), ())
    found = agreement_of(first, second)
    share = 100 * found.same / found.n if found.n else None
    if isinstance(found.kappa, Undefined):
        return (share, None, None), [f"no κ: {found.kappa.reason}"]
    settings = msgspec.structs.asdict(task.task.interval)
    drawn = kappa_interval(first, second, users, seed=seed, **settings)
    if not isinstance(drawn, Interval):
        return (share, found.kappa, None), [f"no interval: {drawn.reason}"]
    return (share, found.kappa, f"{drawn.low:.2f} to {drawn.high:.2f}"), []
