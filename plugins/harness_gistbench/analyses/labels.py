"""Labels that people gave to items, and those of the judge beside them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from harness.results.beside import table
from harness.results.human_labels import meaning
from harness_gistbench.analyses.pairs import QUESTIONS, Question, pairs_of

if TYPE_CHECKING:
    from harness.tasks.task import Column
    from harness_gistbench.analyses.comparing import Run

JUDGE = "judge"
"""What tables call the judge; no person may go by it."""

Labels: TypeAlias = dict[str, bool]
"""Yes or no by item."""


@dataclass(frozen=True, kw_only=True)
class Rated:
    """What each rater said of the items of one task; `blank` rows were left unfilled."""

    raters: dict[str, Labels]
    blank: int = 0

    @property
    def items(self) -> list[str]:
        """Every item that somebody labelled, in the order in which they were met."""
        return list(dict.fromkeys(item for labels in self.raters.values() for item in labels))


def read_labels(paths: Sequence[str]) -> dict[Question, Rated]:
    """The labels in files of the columns task, item, rater and label, by task."""
    from harness.tasks.task import Column

    found: dict[Question, dict[str, Labels]] = defaultdict(lambda: defaultdict(dict))
    blank: Counter[Question] = Counter()
    for path in paths:
        rows = table(path, "labels", {**columns(complete=False), "rater": Column(required=False)})
        for number, row in rows.rows():
            if row["label"] is None:
                blank[row["task"]] += 1
                continue
            label = meaning(rows, number, row["label"])
            rater = (row["rater"] or "").strip()
            if not rater or rater == JUDGE:
                raise rows.bad(number, "rater", row["rater"], f"a name, other than {JUDGE!r}")
            labels = found[row["task"]][rater]
            if row["item"] in labels:
                raise rows.bad(number, "item", row["item"], f"one label of each item by {rater!r}")
            labels[row["item"]] = label
    return {
        question: Rated(raters=dict(found[question]), blank=blank[question])
        for question in QUESTIONS
        if question in found
    }


def read_key(path: str) -> dict[Question, Labels]:
    """What the judge said of each item, from the key that was exported with them."""
    rows = table(path, "key", columns(complete=True))
    found: dict[Question, Labels] = defaultdict(dict)
    for number, row in rows.rows():
        found[row["task"]][row["item"]] = meaning(rows, number, row["label"])
    return found


def said_in(runs: Iterable[Run], question: Question, items: Collection[str]) -> Labels:
    """What the judge said of the items, from the records of the runs that they were drawn from."""
    wanted = frozenset(items)
    return {
        pair.item: pair.label
        for run in runs
        for _, pairs in pairs_of(run, question)
        for pair in pairs
        if pair.item in wanted
    }


def columns(*, complete: bool) -> dict[str, Column]:
    """The columns of a file of labels; rows that wait for a rater are not complete."""
    from harness.tasks.task import Column

    return {
        "task": Column(one_of=QUESTIONS),
        "item": Column(),
        "label": Column(type="any", required=complete),
    }
