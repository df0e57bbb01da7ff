"""The clock of worlds, within which the project is simulated."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from simulated.loop import Clock
from simulated.setting import simulated


@pytest.fixture(scope="module")
def machine() -> Iterator[Clock]:
    """The clock of all worlds of a module."""
    with simulated() as clock:
        yield clock
