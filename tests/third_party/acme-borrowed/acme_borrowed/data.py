"""From rows of loans to readers."""

from __future__ import annotations

from collections import defaultdict

from acme_borrowed.records import Loan, Offer, Options, Reader
from harness import Dataset


def load(dataset: Dataset, options: Options) -> list[Reader]:
    table = dataset.table("loans")
    loans: dict[str, list[Loan]] = defaultdict(list)
    untitled = 0
    for number, row in table.rows():
        if row["weeks"] < 0:
            raise table.bad(number, "weeks", row["weeks"], "a number of weeks")
        untitled += not row["title"].strip()
        if row["title"].strip():
            loans[row["reader"]].append(Loan(row["title"], row["state"] == "finished"))
    dataset.note("loans left out for want of a title", untitled)
    offers = {}
    if options.next and dataset.has("offers"):
        for _, row in dataset.table("offers").rows():
            offers[row["reader"]] = Offer(row["borrowed"], row["other"])
    return [Reader(id, tuple(loans[id]), offers.get(id)) for id in dataset.choose(loans)]
