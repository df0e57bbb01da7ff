"""How patient a run is with its models, and how much it may ask of them."""

from __future__ import annotations

import msgspec


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how often a call is tried.

    `total_timeout` runs from the first attempt's start and covers attempts and the waits between.
    """

    attempts: int = 8
    attempt_timeout: float = 600.0
    total_timeout: float = 3600.0
    first_delay: float = 0.5
    longest_delay: float = 60.0


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The most a run may ask of models; None is no bound. `cost` is in the prices' currency."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
