"""Data of the task "people" that is fetched, and the errors of what cannot be had."""

from __future__ import annotations

from typing import Any

import pytest
from builders.tables import data_in

from harness.base.errors import HarnessError
from harness.contracts.task import DataSpec
from harness.data import TaskData
from harness.data.fetch import Fetching


def opened(given: DataSpec, said: list[str] | None = None, **fetching: Any) -> TaskData:
    """The data, with the lines for people in `said`."""
    allowed = Fetching(**{"say": (said if said is not None else []).append, **fetching})
    return data_in(None, given, task="people", fetching=allowed)


def refused(given: DataSpec, **fetching: Any) -> HarnessError:
    """The error instead of data."""
    with pytest.raises(HarnessError) as caught:
        opened(given, **fetching)
    return caught.value


def users(data: TaskData) -> list[str]:
    """The users of its only table, in order."""
    return [row["user"] for _, row in data.table().rows()]
