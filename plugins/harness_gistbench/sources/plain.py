"""Files in the one schema: a row an engagement, with the object's text in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness_gistbench.log_index import CODES, Engagements, Log, Texts
from harness_gistbench.sources.cells import engagements_of, filled
from harness_gistbench.sources.times import Clock

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset, Table
    from harness_gistbench.records import Options


def open_log(dataset: Dataset, _options: Options) -> Log:
    """The log of the table `engagements`; its rows show which signals there are."""
    table = dataset.table("engagements")
    return Log(engagements=lambda: _engagements(table), texts=lambda: _texts(table), joined=False)


def _engagements(table: Table) -> Iterator[Engagements]:
    clock = Clock(table=table, column="interaction_time")
    for batch in table.batches("user_id", "object_id", "interaction_type", "interaction_time"):
        signals = [CODES[one] for one in batch.columns["interaction_type"]]
        yield engagements_of(
            table, batch, user="user_id", thing="object_id", signals=signals, clock=clock
        )


def _texts(table: Table) -> Iterator[Texts]:
    for batch in table.batches("object_id", "object_text"):
        texts = filled(table, batch, "object_text", what="a text")
        yield Texts(objects=batch.columns["object_id"], texts=texts)
