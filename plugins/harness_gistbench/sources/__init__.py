"""Where engagements come from: the published layouts, and plain files."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from harness_gistbench.histories import Histories, gather
from harness_gistbench.log_index import LogIndex
from harness_gistbench.records import Options

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset

OPENERS = {
    "plain": "plain.open_log",
    "kuairec": "kuairec.open_log",
    "mind": "mind.open_log",
    "amazon": "stars.open_amazon",
    "goodreads": "stars.open_goodreads",
    "yelp": "stars.open_yelp",
}
"""The option `source` → the function of this package that opens such a log."""

MEMORY = "200MB"
"""What DuckDB may hold of a log in memory: less makes it slower, more is hardly faster."""


def load(dataset: Dataset, options: Options) -> Histories:
    """The histories of the people that the run keeps."""
    return gather(open_log(dataset, options), dataset, options)


def open_log(dataset: Dataset, options: Options) -> LogIndex:
    """The whole log of a dataset, whomever the run keeps; all tasks that share it read it once."""
    layout = Options(source=options.source, untimed_history=options.untimed_history)
    names = tuple(dataset.tables)
    index: LogIndex = dataset.once(names, _indexed, dataset.database, names, layout)
    return index


def _indexed(*given: Any) -> LogIndex:
    *tables, database, names, layout = given
    database.sql(f"SET memory_limit = '{MEMORY}'")
    opener = resolve_name(f"{__name__}.{OPENERS[layout.source]}")
    return LogIndex(database, opener(database, dict(zip(names, tables, strict=True)), layout))
