"""One session of a run: the work of one process on a run folder."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from harness.pipeline.desk import StageContext
from harness.pipeline.elsewhere import RequestFiles
from harness.pipeline.plan import StageRun
from harness.pipeline.preflight import Thinks
from harness.pipeline.preparation import Prepared
from harness.pipeline.progress import Display, RunProgress
from harness.pipeline.resume import LockedFolder
from harness.pipeline.settings import RunSettings
from harness.scoring.run_costs import session_costs

if TYPE_CHECKING:
    from harness.registry import Plugins


@dataclass(kw_only=True)
class Session:
    """A run under way, and what this session found out.

    The questions to the model `written` go to files, by the `outbox`. On `machines` there are so
    many `workers`.

    `asked` are the models that this session may ask; `thinks` has which of them think. `client` has
    the calls of this process. `look` looks before the first call that costs; None if that is done,
    with the error that it found in `errors`. The stages `later` are left to the next session.
    """

    plugins: Plugins
    prepared: Prepared
    taken: LockedFolder
    display: Display
    answers: Sequence[Path] = ()
    engines: SharedEngines | None = None
    machines: Executor | None = None
    written: Model | None = None
    outbox: RequestFiles | None = None
    workers: int = 0
    asked: list[Model] = field(init=False)
    thinks: Thinks = field(init=False)
    client: Client = field(init=False)
    look: Callable[[], Awaitable[object]] | None = None
    later: set[tuple[str, str]] = field(init=False)
    contexts: dict[str, tuple[StageContext, ...]] = field(init=False)
    stages: list[StageRun] = field(init=False)
    progress: RunProgress = field(init=False)
    began: float = field(default_factory=clock.seconds)
    errors: list[HarnessError] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> RunSettings:
        """The settings of the run."""
        return self.prepared.settings

    @property
    def number(self) -> int:
        """The number of sessions of the run until now, with this one."""
        return len(self.taken.manifest.sessions)

    def contexts_of(self, thinks: Thinks) -> dict[str, tuple[StageContext, ...]]:
        """The contexts of each task's stages, where it is known so far who thinks."""
        thinking = frozenset(model for model, answer in thinks.items() if answer)
        return {
            each.task.name: each.contexts(self.taken.run_id, thinking)
            for each in self.prepared.tasks
        }

    def costs(self, usage: Mapping[str, Mapping[str, int]]) -> dict[str, Cost]:
        """The costs of a session's usage by stage and role; empty without prices."""
        manifest = self.taken.manifest
        return {} if manifest.prices is None else session_costs(manifest, usage, manifest.prices)

    def warn(self, line: str) -> None:
        """Show a problem of the run."""
        self.display.show_line(line, problem=True)

    def notify(self, hook: str, event: object) -> None:
        """Call a hook of all plugins; its problems are shown."""
        for problem in self.plugins.notify(hook, event):
            self.warn(problem)
