from random import Random

import pytest

from harness.calls.retry import Patience, delay_before_retry, may_retry
from harness.contracts.model import CallError

PATIENCE = Patience(attempts=3, first_delay=1.0, longest_delay=10.0)


def error(cause: str, *, retry_after: float | None = None, **flags: bool) -> CallError:
    return CallError(cause, "x", retryable=flags.get("retryable", True), retry_after=retry_after,
                     fatal=flags.get("fatal", False))  # fmt: skip


@pytest.mark.parametrize(
    ("failed", "tries", "expected", "patience"),
    [
        (error("server_error"), {"server_error": 1}, True, PATIENCE),
        (error("server_error"), {"server_error": 2}, True, PATIENCE),
        (error("server_error"), {"server_error": 3}, False, PATIENCE),
        (error("server_error"), {"server_error": 1, "timeout": 2}, False, PATIENCE),
        (error("bad_request", retryable=False), {"bad_request": 1}, False, PATIENCE),
        (error("auth", fatal=True), {"auth": 1}, False, PATIENCE),
        (error("rate_limited"), {"rate_limited": 11}, True, PATIENCE),
        (error("rate_limited"), {"rate_limited": 12}, False, PATIENCE),
        (error("server_error"), {"rate_limited": 11, "server_error": 1}, True, PATIENCE),
        (error("no_content"), {"no_content": 2}, True, Patience(attempts=8)),
        (error("no_content"), {"no_content": 3}, False, Patience(attempts=8)),
        (error("rate_limited"), {"rate_limited": 1}, False, Patience(attempts=1)),
    ],
)
def test_attempts_are_bounded_by_cause(failed, tries, expected, patience):
    assert may_retry(failed, tries, patience) is expected


def bounds(failed: CallError, attempts: int) -> tuple[float, float]:
    draw = Random(0)
    waits = [delay_before_retry(failed, attempts, PATIENCE, draw=draw) for _ in range(4000)]
    return min(waits), max(waits)


@pytest.mark.parametrize(
    ("attempts", "longest"), [(1, 1.0), (2, 2.0), (4, 8.0), (5, 10.0), (100, 10.0), (2000, 10.0)]
)
def test_waits_are_drawn_from_zero_to_a_doubling_bound(attempts, longest):
    least, most = bounds(error("rate_limited"), attempts)
    assert 0 <= least < 0.01 * longest
    assert 0.99 * longest < most <= longest


@pytest.mark.parametrize("cause", ["connection", "server_error"])
def test_half_of_the_wait_for_an_outage_is_fixed(cause):
    least, most = bounds(error(cause), 3)
    assert 2.0 <= least < 2.02
    assert 3.98 < most <= 4.0


def test_the_default_patience_outlasts_an_outage_of_half_a_minute():
    shortest = min(
        sum(
            delay_before_retry(error("connection"), done, Patience(), draw=Random(seed))
            for done in range(1, Patience().attempts)
        )
        for seed in range(200)
    )
    assert shortest >= 30


def test_retry_after_is_waited_in_full():
    least, most = bounds(error("rate_limited", retry_after=30.0), 1)
    assert 30.0 <= least < 30.01
    assert 30.99 < most <= 31.0
    assert bounds(error("rate_limited", retry_after=0.0), 5)[1] <= 1.0
