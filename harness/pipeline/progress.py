"""How far a run has come: plain counters that displays poll, and the contract of a display."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(eq=False, kw_only=True)
class StageProgress:
    """The counters of one stage of one task; times are `time.monotonic()` seconds.

    `done` includes `resumed`, `calls` includes `calls_from_store`; tokens are those of calls that a
    model was asked, and were not told of `untold` replies. `put_off` items wait for answers that
    come after this session.
    """

    task: str
    stage: str
    total: int | None = None
    done: int = 0
    resumed: int = 0
    put_off: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    calls_from_store: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    untold: int = 0
    started: float | None = None
    ended: float | None = None


@dataclass(kw_only=True)
class RunProgress:
    """The counters of a run; `stages` holds every stage of the plan in order."""

    folder: Path
    model: str
    resumed: bool
    stages: list[StageProgress] = field(default_factory=list)


class Display(Protocol):
    """What shows a run to its user. It polls the progress it was given; events only tell."""

    def start(self, progress: RunProgress) -> None: ...

    def tell(self, text: str, *, problem: bool = False) -> None:
        """Show one line now, above whatever is live; problems even when quiet."""
        ...

    def stage_started(self, stage: StageProgress) -> None: ...

    def stage_ended(self, stage: StageProgress) -> None: ...

    def stop(self) -> None: ...
