"""Timeouts, retries and budget of a run's calls."""

from __future__ import annotations

import msgspec


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """Timeouts and retries, in seconds."""

    attempts: int = 8
    """The most attempts; rate limits have more."""

    attempt_timeout: float = 600.0
    """The timeout of one attempt."""

    total_timeout: float = 3600.0
    """The timeout of all attempts and the waits between them, from the first attempt's start."""

    start_timeout: float = 3600.0
    """The timeout of a server's start, for models that start one: long, as weights may come over a
    slow network."""

    first_delay: float = 0.5
    """The longest wait after the first attempt; doubles with each attempt."""

    longest_delay: float = 60.0
    """The longest wait."""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a run's calls; None is no bound."""

    calls: int | None = None
    """The most attempts."""

    tokens: int | None = None
    """The most tokens, prompts and replies together."""

    cost: float | None = None
    """The most money, in the currency of the prices."""
