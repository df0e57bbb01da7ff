"""Every hook a plugin may implement. `register` callables take names and lazy factories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import pluggy

if TYPE_CHECKING:
    from harness.analysis.analysis import Analysis, DataTool
    from harness.contracts.benchmark import Benchmark
    from harness.contracts.judge import Judge, JudgeParts, Stands
    from harness.contracts.model import Model, ModelSettings

PROJECT = "harness"
DATA = "data"
"""The command that tools belong to unless they name one of their own."""

ANY_BENCHMARK = "*"
"""What an analysis is registered for that reads runs of whatever benchmark."""

TAKEN = (
    "tasks", "show", "score", "analyse", "validate", "config", "doctor", "completion",
    "batch", "export", "new-plugin", "run", "ls",
    "plugins", "models", "judges", "prompts",
)  # fmt: skip
"""The commands of `harness` that no tool can belong to."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

BenchmarkFactory = Callable[[], "Benchmark"]
ModelFactory = Callable[["ModelSettings"], "Model"]
JudgeFactory = Callable[["JudgeParts"], "Judge"]
Respondent = Callable[[Mapping[str, Any], Random], str]


AnalysisFactory = Callable[[], "Analysis"]
DataToolFactory = Callable[[], "DataTool"]


class RegisterBenchmark(Protocol):
    def __call__(self, name: str, factory: BenchmarkFactory) -> None: ...


class RegisterModel(Protocol):
    def __call__(
        self,
        name: str,
        factory: ModelFactory,
        *,
        description: str = "",
        arguments: Mapping[str, str] | None = None,
    ) -> None: ...


class RegisterJudge(Protocol):
    def __call__(
        self,
        name: str,
        factory: JudgeFactory,
        *,
        on: Stands = "alone",
        description: str = "",
        arguments: Mapping[str, str] | None = None,
    ) -> None: ...


class RegisterRespondent(Protocol):
    def __call__(
        self,
        benchmark: str,
        prompt: str,
        role: str,
        respond: Callable[[], Respondent],
        *,
        name: str = "default",
        version: int = 1,
    ) -> None: ...


class RegisterAnalysis(Protocol):
    def __call__(
        self, benchmark: str, name: str, factory: AnalysisFactory, *, description: str = ""
    ) -> None: ...


class RegisterDataTool(Protocol):
    def __call__(
        self, name: str, factory: DataToolFactory, *, description: str = "", command: str = DATA
    ) -> None: ...


class RunStarted(msgspec.Struct, frozen=True, kw_only=True):
    """A run folder was made or taken up again."""

    folder: Path
    tasks: tuple[str, ...]
    model: str
    resumed: bool


class StageEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of a task is over: every item has its record, or it was given up."""

    folder: Path
    task: str
    stage: str
    items: int
    failures: dict[str, int]
    seconds: float


class RunEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A run ended, in whatever way; `status` is done, failed, interrupted or too_many_failures."""

    folder: Path
    status: str
    exit_code: int
    seconds: float


@hookspec
def register_benchmarks(register: RegisterBenchmark) -> None:
    """Call `register(name, factory)` for each benchmark; the factory is called at first use."""


@hookspec
def register_models(register: RegisterModel) -> None:
    """Call `register(name, factory)` for each kind of model that `--model` may name.

    `arguments` say what each of its arguments means, for `harness models NAME`.
    """


@hookspec
def register_judges(register: RegisterJudge) -> None:
    """Call `register(name, factory, on=…)` for each judge that `--judge` may name.

    `on` is what stands behind its name in a SPEC: arguments, a model, or other judges.
    """


@hookspec
def register_respondents(register: RegisterRespondent) -> None:
    """Call `register(benchmark, prompt, role, factory)` for each baseline respondent."""


@hookspec
def register_analyses(register: RegisterAnalysis) -> None:
    """Call `register(benchmark, name, factory)` for each analysis of `harness analyse`.

    With `"*"` for the benchmark it is one of runs of any.
    """


@hookspec
def register_data_tools(register: RegisterDataTool) -> None:
    """Call `register(name, factory)` for each tool of `harness data`, or of another `command`."""


@hookspec
def on_run_start(event: RunStarted) -> None:
    """Called once, after the run folder stands and before anything is asked."""


@hookspec
def on_stage_end(event: StageEnded) -> None:
    """Called after each stage of each task."""


@hookspec
def on_run_end(event: RunEnded) -> None:
    """Called once, after everything was written."""
