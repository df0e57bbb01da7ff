"""Tables of people's data: from the hub, from a user's files, or from a bundled sample."""

from harness.data.dataset import TaskData, open_dataset
from harness.data.table import Table

__all__ = ["Table", "TaskData", "open_dataset"]
