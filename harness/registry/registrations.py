"""The registrations of plugins, by name and with their origin.

Each class is the `register` of its hook: what it takes is what a plugin writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from harness.base.errors import PluginError
from harness.base.resources import package_folder
from harness.registry.missing_packages import HARNESS

if TYPE_CHECKING:
    from harness.analysis.analysis import Analysis, DataTool
    from harness.contracts.benchmark import Benchmark, Metric
    from harness.contracts.embedder import Embedder, EmbedderSettings
    from harness.contracts.executor import Executor, ExecutorSettings
    from harness.contracts.judge import Judge, JudgeInput, JudgeParts
    from harness.contracts.model import Model, ModelSettings

F = TypeVar("F")

Respondent = Callable[[Mapping[str, Any], Random], str]

COMMAND = re.compile(r"[A-Za-z]\w*", re.ASCII)
DATA = "data"
"""The command that data tools belong to by default."""

ANY_BENCHMARK = "*"
"""Registers an analysis for the runs of all benchmarks."""

TAKEN = (
    "tasks", "show", "score", "analyse", "validate", "config", "doctor", "completion",
    "batch", "export", "list", "new-plugin", "run", "runs", "ls",
    "plugins", "models", "judges", "embedders", "prompts",
    "compare", "report", "suite",
    "help", "version",
)  # fmt: skip
"""The commands of `harness` that data tools cannot belong to, with those that it will have."""

TAKEN_TOOLS = ("fetch", "where")
"""The names under `harness data` that data tools cannot have."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """A plugin as its distribution declares it; `package` is the folder of its package."""

    plugin: str
    distribution: str
    module: str
    package: Path | None = None
    version: str = ""

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} of {self.distribution}"


OWN = Origin(
    plugin="harness", distribution=HARNESS, module="harness.analysis",
    package=package_folder("harness"),
)  # fmt: skip


class Named(Generic[F]):
    """A name with the factory that a plugin registered for it."""

    name: str
    factory: F


@dataclass(frozen=True, kw_only=True)
class Registration(Named[F]):
    """What a plugin registered, with its description; the harness adds the origin."""

    description: str = ""
    origin: Origin = OWN

    @property
    def key(self) -> Any:
        """The key in the registry."""
        return self.name


@dataclass(frozen=True)
class ByName(Registration[F]):
    """A registration that takes a name and a factory, whatever its kind."""

    name: str
    factory: F


@dataclass(frozen=True)
class BenchmarkRegistration(ByName[Callable[[], "Benchmark"]]):
    """A benchmark, made at first use."""


@dataclass(frozen=True)
class ModelRegistration(ByName[Callable[["ModelSettings"], "Model"]]):
    """A kind of model; `arguments` holds the help of each of its arguments.

    `shared` are the arguments that suit all weights of a candidate's kind in its place.
    """

    _: KW_ONLY
    arguments: Mapping[str, str] = field(default_factory=dict)
    shared: Collection[str] = ()


@dataclass(frozen=True)
class JudgeRegistration(ByName[Callable[["JudgeParts"], "Judge"]]):
    """A judge adapter; `on` is what it wraps, `arguments` the help of its arguments."""

    _: KW_ONLY
    on: JudgeInput = "alone"
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EmbedderRegistration(ByName[Callable[["EmbedderSettings"], "Embedder"]]):
    """A kind of embedder; `arguments` holds the help of each of its arguments."""

    _: KW_ONLY
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ExecutorRegistration(ByName[Callable[["ExecutorSettings"], "Executor"]]):
    """An executor, whose workers live elsewhere."""


@dataclass(frozen=True)
class RespondentRegistration(Registration[Callable[[], Respondent]]):
    """A baseline respondent; its factory returns the function that answers."""

    benchmark: str
    prompt: str
    role: str
    factory: Callable[[], Respondent]
    _: KW_ONLY
    name: str = "default"
    version: int = 1

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Benchmark, prompt, role and the respondent's name."""
        return self.benchmark, self.prompt, self.role, self.name


@dataclass(frozen=True)
class MetricRegistration(Registration["Metric"]):
    """A metric that a plugin adds to a benchmark, of this or of another plugin."""

    benchmark: str
    name: str
    factory: Metric

    def __post_init__(self) -> None:
        from harness.contracts.benchmark import Metric

        if not isinstance(self.factory, Metric):
            raise PluginError(
                f"{self.name!r} was registered with {self.factory!r}, which is no Metric",
                expected=f"register({self.benchmark!r}, {self.name!r}, Metric(…))",
            )

    @property
    def key(self) -> tuple[str, str]:
        """The benchmark and the metric's name."""
        return self.benchmark, self.name


@dataclass(frozen=True)
class AnalysisRegistration(Registration[Callable[[], "Analysis"]]):
    """An analysis; its name is unique over all benchmarks, so that commands stay short.

    `report` is whether a report shows it by itself.
    """

    benchmark: str
    name: str
    factory: Callable[[], Analysis]
    _: KW_ONLY
    report: bool = False


@dataclass(frozen=True)
class DataToolRegistration(ByName[Callable[[], "DataTool"]]):
    """A data tool, called by `harness COMMAND NAME`; PluginError if nobody could call it so."""

    _: KW_ONLY
    command: str = DATA

    def __post_init__(self) -> None:
        if self.command in TAKEN or not COMMAND.fullmatch(self.command):
            taken = "a command of the harness itself, " if self.command in TAKEN else ""
            raise PluginError(
                f"the tool {self.name!r} cannot belong to {taken}{self.command!r}",
                expected=f"a command of letters, digits and _, other than {', '.join(TAKEN)}",
            )
        if self.command == DATA and self.name in TAKEN_TOOLS:
            raise PluginError(
                f"the tool {self.name!r} cannot belong to {DATA!r}, where the harness has this "
                "name",
                expected=f"a name other than {', '.join(TAKEN_TOOLS)}, or another command",
            )

    @property
    def key(self) -> tuple[str, str]:
        """The command and the name."""
        return self.command, self.name


KINDS: dict[str, Callable[..., Registration[Any]]] = {
    "benchmarks": BenchmarkRegistration,
    "models": ModelRegistration,
    "judges": JudgeRegistration,
    "embedders": EmbedderRegistration,
    "executors": ExecutorRegistration,
    "respondents": RespondentRegistration,
    "metrics": MetricRegistration,
    "analyses": AnalysisRegistration,
    "data_tools": DataToolRegistration,
}
"""What plugins register, each kind by the hook `register_` with its name."""
