"""What is drawn for a world before it begins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import msgspec

from harness.calls.budget import Budget
from harness.calls.retry import Patience


@dataclass(frozen=True, kw_only=True)
class Script:
    """What decides the results of a world."""

    number: int
    people: int
    parts: int
    scope: str
    judge_scope: str


def script_of(number: int) -> Script:
    draw = Random(f"script {number}")
    return Script(
        number=number, people=draw.randint(3, 6), parts=draw.randint(1, 3),
        scope=draw.choice(("everywhere", "run")), judge_scope=draw.choice(("everywhere", "run")),
    )  # fmt: skip


SCRIPTS = (0, 1, 2, 3, 6, 8, 9, 12, 13, 17, 21, 23)
"""Scripts in which every stage has a value: a run of others measures nothing, and says so."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that is drawn for a world before it begins.

    `crashes` are places in a session, as shares of the writes of one that nothing disturbs.
    In a `wired` world the real HTTP client asks; in a `paged` one SQLite's own writes count.
    """

    script: Script
    concurrency: int
    others: int
    faults: float
    latency: float
    patience: Patience
    budget: Budget
    few_failures: bool
    store: bool
    crashes: tuple[float, ...]
    interrupts: tuple[tuple[float, ...], ...]
    wired: bool = False
    paged: bool = False


def plan_of(seed: int) -> Plan:
    """The world of a seed."""
    draw = Random(f"world {seed}")
    budget = {
        "calls": draw.randint(3, 15), "tokens": draw.randint(200, 3000),
        "cost": draw.uniform(1.2, 4.0),
    }  # fmt: skip
    bounds = draw.choice(
        ((), (), (), (), (), (), (), ("calls",), ("tokens",), ("cost",), ("calls", "cost"))
    )
    crashes = draw.choice((0, 0, 1, 1, 1, 2, 2, 3))
    plan = Plan(
        script=script_of(draw.choice(SCRIPTS)),
        concurrency=draw.randint(1, 6),
        others=draw.randint(1, 4),
        faults=draw.choice((0.0, 0.0, 0.1, 0.2, 0.5)),
        latency=draw.choice((0.01, 0.3, 5.0)),
        patience=Patience(
            attempts=draw.choice((1, 2, 4, 8, 8)),
            attempt_timeout=draw.choice((20.0, 100.0, 600.0)),
            total_timeout=draw.choice((60.0, 600.0, 3600.0)),
        ),
        budget=Budget(**{name: budget[name] for name in bounds}),
        few_failures=draw.random() < 0.3,
        store=draw.random() < 0.5,
        crashes=tuple(draw.random() for _ in range(crashes)),
        interrupts=draw.choice(((), (), (), ((0.5,),), ((3.0, 3.2),), ((0.1,), (9.0, 9.0)))),
    )  # fmt: skip
    if draw.random() >= 0.1:
        return plan
    patience = msgspec.structs.replace(plan.patience, attempt_timeout=600.0, total_timeout=3600.0)
    return replace(plan, wired=True, interrupts=(), patience=patience)
