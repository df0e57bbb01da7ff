"""How long a run is patient with a model: whether a failed attempt is repeated, and when."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import msgspec

from harness.contracts.model import CallError

MOST_ATTEMPTS = {"no_content": 3}
"""Causes that a retry seldom fixes get fewer attempts."""

OUTAGES = ("connection", "server_error")
"""Causes that last for a while: half of each wait is fixed, so that the waits of the default
patience add up to at least half a minute. Full jitter sometimes draws several tiny waits in a row
and gives up within the ten seconds that a server takes to restart."""


RATE_LIMIT_PATIENCE = 4
"""The factor by which a 429 has more attempts: it means "later", not that the call is wrong, and a
server may answer most calls with it. The total timeout bounds it as well."""


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


def may_retry(error: CallError, tries: Mapping[str, int], patience: Patience) -> bool:
    """Whether one more attempt may be made; `tries` counts the failed ones by cause."""
    if error.fatal or not error.retryable or patience.attempts <= 1:
        return False
    limited = tries.get("rate_limited", 0)
    if error.cause == "rate_limited":
        return limited < patience.attempts * RATE_LIMIT_PATIENCE
    most = min(patience.attempts, MOST_ATTEMPTS.get(error.cause, patience.attempts))
    same = tries.get(error.cause, 0)
    return same < most and sum(tries.values()) - limited < patience.attempts


def delay_before_retry(
    error: CallError, attempts: int, patience: Patience, *, draw: Random
) -> float:
    """The seconds to wait after a number of attempts: exponential, with jitter.

    A Retry-After of the server is waited in full, with jitter on top.
    """
    doublings = min(attempts - 1, 30)
    longest = min(patience.longest_delay, patience.first_delay * float(2**doublings))
    if error.retry_after is not None:
        return error.retry_after + draw.uniform(0.0, min(longest, patience.first_delay))
    if error.cause in OUTAGES:
        return longest / 2 + draw.uniform(0.0, longest / 2)
    return draw.uniform(0.0, longest)
