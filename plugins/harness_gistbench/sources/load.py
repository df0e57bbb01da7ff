"""The histories of a task, read from the layout that its options name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from harness_gistbench.histories import Histories, gather

if TYPE_CHECKING:
    from harness.data import Dataset
    from harness_gistbench.log import Log
    from harness_gistbench.records import Options


def load(dataset: Dataset, options: Options) -> Histories:
    """The histories of the people that the run keeps."""
    return gather(open_log(dataset, options), dataset, options)


def open_log(dataset: Dataset, options: Options) -> Log:
    """The whole log of a dataset in the one schema, whomever the run keeps."""
    source = importlib.import_module(f"harness_gistbench.sources.{options.source}")
    log: Log = source.open_log(dataset, options)
    return log
