"""Tables of people's data: from the hub, from a user's files, or from a bundled sample."""

from harness.data.batches import Batch
from harness.data.dataset import Dataset, open_dataset
from harness.data.table import Table

__all__ = ["Batch", "Dataset", "Table", "open_dataset"]
