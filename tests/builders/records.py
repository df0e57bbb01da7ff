"""The records of a stage, written by hand."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import msgspec

from harness.contracts.outcomes import FAILURES
from harness.contracts.records import Done, Record


class WrittenRecords(list[Record[Any, Any]]):
    """A list that reads like the records of a stage, in the order in which a journal gives them."""

    def values(self) -> Iterator[tuple[Any, Any]]:
        for record in self:
            if isinstance(record.outcome, Done):
                yield record.item, record.outcome.value

    def with_items(self, kind: Any) -> "WrittenRecords":
        return WrittenRecords(
            msgspec.structs.replace(
                one, item=msgspec.json.decode(msgspec.json.encode(one.item), type=kind)
            )
            for one in self
        )

    def by_user(self) -> Iterator[tuple[str, list[Record[Any, Any]]]]:
        for user, records in groupby(self, key=lambda record: record.user):
            yield user, list(records)


def make_record(item: Any, value: Any, *, stage: str = "") -> Record[Any, Any]:
    """The record of an item with its value or failure."""
    outcome = value if isinstance(value, FAILURES) else Done(value)
    return Record(key="", stage=stage, user=item.user, id=item.id, item=item, outcome=outcome)


def make_records(pairs: Iterable[tuple[Any, Any]], *, stage: str = "") -> WrittenRecords:
    """The records of a stage from pairs of an item and its value or failure."""
    return WrittenRecords(make_record(item, value, stage=stage) for item, value in pairs)
