"""Where engagements come from: the published layouts, and plain files."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from harness_gistbench.histories import Histories, gather

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset
    from harness_gistbench.log_index import Log
    from harness_gistbench.records import Options

OPENERS = {
    "plain": "plain.open_log",
    "kuairec": "kuairec.open_log",
    "mind": "mind.open_log",
    "amazon": "stars.open_amazon",
    "goodreads": "stars.open_goodreads",
    "yelp": "stars.open_yelp",
}
"""The option `source` → the function of this package that opens such a log."""


def load(dataset: Dataset, options: Options) -> Histories:
    """The histories of the people that the run keeps."""
    return gather(open_log(dataset, options), dataset, options)


def open_log(dataset: Dataset, options: Options) -> Log:
    """The whole log of a dataset in the one schema, whomever the run keeps."""
    module, _, opener = OPENERS[options.source].partition(".")
    log: Log = getattr(importlib.import_module(f"{__name__}.{module}"), opener)(dataset, options)
    return log
