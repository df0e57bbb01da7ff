"""What stands in the place of a statistic that has no value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Undefined:
    """Why a statistic has no value for what it was given."""

    reason: str
