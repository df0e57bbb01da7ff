"""One session of a run: the work of one process on a run folder."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base import clock
from harness.base.errors import HarnessError
from harness.calls.client import Client
from harness.calls.engines import SharedEngines
from harness.calls.pricing import Cost
from harness.contracts.executor import Executor
from harness.contracts.model import Model
from harness.pipeline.elsewhere import RequestFiles
from harness.pipeline.preparation import Prepared
from harness.pipeline.progress import Display, RunProgress
from harness.pipeline.resume import LockedFolder
from harness.pipeline.settings import RunSettings
from harness.pipeline.thinking import Thinks

if TYPE_CHECKING:
    from harness.registry import Plugins


@dataclass(frozen=True, kw_only=True)
class Start:
    """What is known before a run begins.

    `asked` are the models that this session may ask, and `client` is for the small question. `look`
    looks before the first call that costs; None if that is done, with the `problem` that it found.
    """

    asked: list[Model]
    thinks: Thinks
    client: Client
    look: Callable[[], Awaitable[object]] | None
    problem: HarnessError | None = None


@dataclass(kw_only=True)
class Session:
    """A run under way, and what this session found out; on `machines` it has so many `workers`."""

    settings: RunSettings
    plugins: Plugins
    prepared: Prepared
    taken: LockedFolder
    start: Start
    display: Display
    progress: RunProgress
    outbox: RequestFiles | None = None
    answers: Sequence[Path] = ()
    engines: SharedEngines | None = None
    machines: Executor | None = None
    workers: int = 0
    began: float = field(default_factory=clock.seconds)
    usage: dict[str, Any] = field(default_factory=dict)
    costs: dict[str, Cost] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
