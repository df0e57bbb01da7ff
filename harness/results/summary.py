"""What a run says of one task: metrics with n, intervals and failures, and what was spent."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from harness.calls.costs import Cost


class MetricResult(msgspec.Struct, frozen=True, kw_only=True):
    """One metric under both policies: missing units left out, and counted as worst.

    `value` leaves them out, unless `left_out` is there: then it counts them, and `left_out` is the
    value without them. `value` is None where nothing was scored, or too little to show; `undefined`
    then says why. `interval` is that of `value`, None where none can be drawn; `no_interval` then
    says why. `n` units of so many `users` have a value.
    `interval_method` is how its bounds came of the bootstrap's draws.
    """

    value: float | None
    n: int
    users: int
    interval: tuple[float, float] | None
    confidence: float
    missing: dict[str, int]
    counted_as_worst: float | None
    higher_is_better: bool
    description: str
    undefined: str | None = None
    note: str = ""
    no_interval: str | None = None
    left_out: float | None = None
    baseline: bool = False
    interval_method: Literal["percentile", "bca"] = "percentile"


class RoleUse(msgspec.Struct, frozen=True, kw_only=True):
    """What one role of one stage cost. Tokens are those of all replies, stored ones as well.

    Of `untold` replies no tokens were told, and are not among these; where none were told of any,
    they are None. A model that answers by rule uses none, which is 0.

    `cost` is there where the run was given prices.

    `asked_schema` calls asked the server to hold its reply to a schema; `met_schema` of them were
    answered with JSON that could be read as it stood.
    """

    calls: int
    from_store: int
    failed: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    asked_schema: int
    met_schema: int
    rungs: dict[str, int]
    untold: int = 0
    cost: Cost | None = None


class StageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How one stage went."""

    items: int
    done: int
    failures: dict[str, int]
    roles: dict[str, RoleUse]


class TaskSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one task; its file's absence means the task is unfinished.

    `repeat` tells which of the run's repeats it is, from 1.
    """

    format: int
    task: str
    version: int
    content: str
    benchmark: str
    model: str
    roles: dict[str, str]
    data: dict[str, Any]
    comparable: bool
    not_comparable_because: tuple[str, ...]
    limit: int | None
    seed: int
    repeat: int = 1
    units: int
    counts: dict[str, int] = {}
    metrics: dict[str, MetricResult]
    stages: dict[str, StageSummary]
