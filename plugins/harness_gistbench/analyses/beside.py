"""Tables that a person lays beside stored runs: labels, stated interests, outside figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.data import Table
    from harness.tasks.task import Column


def table(path: str, name: str, columns: Mapping[str, Column]) -> Table:
    """The table in a file of any format that data may have; columns not named are passed over."""
    from harness.data import Table
    from harness.data.fingerprint import stamp_of
    from harness.data.source import FileSource

    file = Path(path).expanduser()
    return Table(name=name, columns=columns, sources=(FileSource(path=file, stamp=stamp_of(file)),))
