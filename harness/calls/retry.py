"""Whether a failed attempt is made again, and how long to wait before."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from harness.calls.policy import Patience
from harness.contracts.model import CallError

MOST_ATTEMPTS = {"no_content": 3}
"""Causes that seldom mend by asking again get fewer attempts than the rest."""

OUTAGES = ("connection", "server_error")
"""Causes that last for a while whoever asks: half of each wait is fixed, so that the waits of the
default patience add up to half a minute at the least. Pure full jitter now and then draws a row
of tiny waits and gives up within the ten seconds that a server takes to restart."""


RATE_LIMIT_PATIENCE = 4
"""How many times more often a 429 is tried again: it says "later", not that the call is at fault,
and a server may answer most calls so. The total timeout bounds it as well."""


def may_retry(error: CallError, tries: Mapping[str, int], patience: Patience) -> bool:
    """True when one more attempt may be made; `tries` counts the failed ones by cause."""
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
    """Seconds to wait after the given number of attempts: exponential, with jitter.

    What the server asks for in Retry-After is waited in full, and the jitter on top of it.
    """
    doublings = min(attempts - 1, 30)
    longest = min(patience.longest_delay, patience.first_delay * float(2**doublings))
    if error.retry_after is not None:
        return error.retry_after + draw.uniform(0.0, min(longest, patience.first_delay))
    if error.cause in OUTAGES:
        return longest / 2 + draw.uniform(0.0, longest / 2)
    return draw.uniform(0.0, longest)
