"""Tables of people's data: from their sources, from a user's files, or from a sample."""

from harness.data.dataset import TaskData
from harness.data.read import Table
from harness.data.task_sources import open_dataset

__all__ = ["Table", "TaskData", "open_dataset"]
