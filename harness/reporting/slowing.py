"""What rate limits made of a run's pace, as lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.reporting.text import clean_text


def rate_limited(sessions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each model whose server asked for fewer requests, from each session's `limits`."""
    slowed: dict[str, list[Mapping[str, Any]]] = {}
    for limits in sessions:
        for model, limiter in limits.items():
            if limiter.get("cuts"):
                slowed.setdefault(model, []).append(limiter)
    for model, limiters in slowed.items():
        times = sum(one["cuts"] for one in limiters)
        often = "once" if times == 1 else f"{times:,} times"
        lowest = min(one["lowest"] for one in limiters)
        ceiling = max(one["ceiling"] for one in limiters)
        yield clean_text(
            f"{model}: slowed by rate limits (HTTP 429) {often}, "
            f"to {lowest:,} in flight at the least, of {ceiling:,}"
        )
