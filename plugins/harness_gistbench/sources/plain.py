"""Files in the one schema: a row an engagement, with the object's text in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness_gistbench.log_index import Log
from harness_gistbench.records import SIGNALS
from harness_gistbench.sources.rules import check, not_blank
from harness_gistbench.sources.times import with_times

if TYPE_CHECKING:
    from harness.contracts.dataset import Database, Table
    from harness_gistbench.records import Options


def open_log(database: Database, tables: Mapping[str, Table], _: Options) -> Log:
    """The log of the table `engagements`; its rows show which signals there are."""
    table = tables["engagements"]
    timed = with_times(database, "engagements", table, "interaction_time")
    rules = not_blank("user_id"), not_blank("object_id"), not_blank("object_text", "a text")
    check(database, "engagements", table, *rules)
    rows = (
        "SELECT row, user_id AS user, object_id AS object, moment AS time, object_text AS text, "
        f"list_position({list(SIGNALS)}, interaction_type) - 1 AS signal FROM ({timed})"
    )
    texts = "SELECT row, object_id AS object, object_text AS text FROM engagements"
    return Log(engagements=rows, texts=texts, joined=False)
