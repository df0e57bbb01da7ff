"""Tables of people's data: from their sources, from a user's files, or from a sample."""

from harness.data.dataset import TaskData, open_dataset
from harness.data.read import Table

__all__ = ["Table", "TaskData", "open_dataset"]
