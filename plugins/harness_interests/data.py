"""Loads people from rows of engagements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_interests.records import Engagement, Options, Person

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset


def load(dataset: Dataset, _options: Options) -> list[Person]:
    """The chosen people with their engagements, in the order of the file.

    The rows are read twice, so that memory only holds those of the chosen people.
    """
    table = dataset.table()
    everybody = {row["user"] for _, row in table.rows()}
    histories: dict[str, list[Engagement]] = {user: [] for user in dataset.choose(everybody)}
    for number, row in table.rows():
        if not row["title"].strip():
            raise table.bad(number, "title", row["title"], "a title that is not blank")
        if row["user"] in histories:
            histories[row["user"]].append(Engagement(row["title"], row["action"] == "liked"))
    return [Person(id=user, history=tuple(history)) for user, history in histories.items()]
