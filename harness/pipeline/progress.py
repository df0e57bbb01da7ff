"""The progress of a run: plain counters that displays poll, and the contract of a display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from harness.calls.pricing import Cost


@dataclass(eq=False, kw_only=True)
class StageProgress:
    """The counters of one stage of one task; times are `time.monotonic()` seconds.

    `total`, `done`, `resumed` and `in_flight` count items, `failures` counts them by cause: `done`
    includes `resumed`, and items in flight are being worked. `calls` includes `calls_from_store`.
    The tokens are those of calls that a model answered now; for `unreported` replies the server
    reported no tokens. A stage that this session will not start has an end without a start.
    """

    task: str
    stage: str
    total: int | None = None
    done: int = 0
    resumed: int = 0
    in_flight: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    calls_from_store: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unreported: int = 0
    started: float | None = None
    ended: float | None = None

    @property
    def label(self) -> str:
        """TASK/STAGE, as displays name it."""
        return f"{self.task}/{self.stage}"


@dataclass(eq=False, kw_only=True)
class ClusterProgress:
    """What a run uses of workers in other processes: counters that its executor sets.

    `workers` are at work, `opening` are being opened, and `engines` are open. `lost` counts the
    deaths of workers, each of which was started again.
    """

    workers: int = 0
    engines: int = 0
    opening: int = 0
    lost: int = 0


@dataclass(kw_only=True)
class RunProgress:
    """The counters of a run; `stages` holds every stage of the plan in order.

    `costs` gives what this session has cost so far by stage and role, nothing without prices;
    `limits` what the limiter of each model reports; `max_cost` is its budget of money; `cluster` is
    None in a run of one process.
    """

    folder: Path
    model: str
    resumed: bool
    stages: list[StageProgress] = field(default_factory=list)
    costs: Callable[[], Mapping[str, Cost]] = dict
    limits: Callable[[], Mapping[str, Mapping[str, Any]]] = dict
    max_cost: float | None = None
    cluster: ClusterProgress | None = None


class Display(Protocol):
    """Shows a run to its user. It polls the progress that `start` received."""

    def start(self, progress: RunProgress) -> None: ...

    def show_line(self, text: str, *, problem: bool = False) -> None:
        """Show one line now, above the live part; problems are shown even with --quiet."""

    def stage_started(self, stage: StageProgress) -> None: ...

    def stage_ended(self, stage: StageProgress) -> None: ...

    def stop(self) -> None: ...
