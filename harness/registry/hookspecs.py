"""All hooks that a plugin may implement, and the registrations that it makes by them.

`register` takes names and lazy factories: each class of registrations is the `register` of its
hook, so that what it takes is what a plugin writes. The harness adds the origin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import pluggy

from harness.base.errors import PluginError
from harness.base.resources import package_folder

if TYPE_CHECKING:
    from harness.analysis.analysis import Analysis, DataTool
    from harness.contracts.benchmark import Benchmark, Metric
    from harness.contracts.embedder import Embedder, EmbedderSettings
    from harness.contracts.executor import Executor, ExecutorSettings
    from harness.contracts.judge import Judge, JudgeInput, JudgeParts
    from harness.contracts.model import Model, ModelSettings

F = TypeVar("F")

HARNESS = "user-understanding-harness"

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

    def __post_init__(self) -> None:
        """Raise PluginError for what would break the lists of all plugins."""
        arguments = getattr(self, "arguments", {})
        for text in (self.name, self.description, *arguments, *arguments.values()):
            if not isinstance(text, str):
                raise PluginError(f"{self.name!r} was registered with {text!r}, which is no text")

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

        super().__post_init__()
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
        super().__post_init__()
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


PROJECT = "harness"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

RegisterBenchmark = type[BenchmarkRegistration]
RegisterModel = type[ModelRegistration]
RegisterJudge = type[JudgeRegistration]
RegisterEmbedder = type[EmbedderRegistration]
RegisterExecutor = type[ExecutorRegistration]
RegisterRespondent = type[RespondentRegistration]
RegisterMetric = type[MetricRegistration]
RegisterAnalysis = type[AnalysisRegistration]
RegisterDataTool = type[DataToolRegistration]


class RunStarted(msgspec.Struct, frozen=True, kw_only=True):
    """A run folder was created or resumed."""

    folder: Path
    tasks: tuple[str, ...]
    model: str
    resumed: bool


class StageEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of a task ended: every item has a record, or the stage was given up."""

    folder: Path
    task: str
    stage: str
    items: int
    failures: dict[str, int]
    seconds: float


class RunEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A run ended, successfully or not."""

    folder: Path
    status: str
    """done, failed, interrupted or too_many_failures."""

    exit_code: int
    seconds: float


@hookspec
def register_benchmarks(register: RegisterBenchmark) -> None:
    """Register benchmarks; each factory is called at first use.

    @hookimpl
    def register_benchmarks(register):
        register("moods", lambda: importlib.import_module("moods.benchmark").benchmark())
    """


@hookspec
def register_models(register: RegisterModel) -> None:
    """Register kinds of model for `--model`.

        register("acme", AcmeModel, description="Acme's API", arguments={"name": "the model"})

    `arguments` documents the arguments for `harness list models NAME`. `shared` names those that
    suit other weights too (an address, an interpreter): a judge that a task names only by its
    weights takes these over from the candidate, and no others.
    """


@hookspec
def register_judges(register: RegisterJudge) -> None:
    """Register judges for `--judge`.

        register("strict", lambda parts: StrictJudge(parts.model), on="model")

    `on`: what follows the name in a SPEC: arguments only ("alone"), a "model" or other "judges".
    """


@hookspec
def register_embedders(register: RegisterEmbedder) -> None:
    """Register kinds of embedder, which turn texts into vectors.

    register("letters", Letters, description="counts vowels", arguments={"many": "how many"})
    """


@hookspec
def register_executors(register: RegisterExecutor) -> None:
    """Register executors for `--executor`, which have the workers of a run live elsewhere.

    register("slurm", SlurmExecutor, description="jobs of a Slurm cluster")
    """


@hookspec
def register_respondents(register: RegisterRespondent) -> None:
    """Register respondents of the baseline model.

        register("moods", "ask", "candidate", lambda: random_mood, name="random")

    A respondent returns the text of a reply: `random_mood(variables, rng)`.
    """


@hookspec
def register_metrics(register: RegisterMetric) -> None:
    """Register metrics of any benchmark, computed from its scores.

        register("moods", "both", Metric(description="…", needs=("joy", "calm"), compute=both))

    Tasks report it that name it in `metrics`, as `--set metrics=…` does too.
    """


@hookspec
def register_analyses(register: RegisterAnalysis) -> None:
    """Register analyses for `harness analyse`; the benchmark "*" means all.

    register("moods", "moods-by-hour", make_analysis, description="accuracy by hour")

    With `report=True`, `harness report` shows it by itself, in the order of the registrations. An
    analysis that must be given options cannot be shown so.
    """


@hookspec
def register_data_tools(register: RegisterDataTool) -> None:
    """Register tools of `harness data`, or of a plugin's own `command`.

    register("moods-split", make_tool, description="split the data by user")
    """


@hookspec
def on_run_start(event: RunStarted) -> None:
    """Called once, when the run folder exists and before the first call.

    @hookimpl
    def on_run_start(event):
        print(event.folder)
    """


@hookspec
def on_stage_end(event: StageEnded) -> None:
    """Called after each stage of each task: `print(event.task, event.stage, event.failures)`."""


@hookspec
def on_run_end(event: RunEnded) -> None:
    """Called once, when all files are written: `print(event.status, event.seconds)`."""


DISTRIBUTIONS = {"sklearn": "scikit-learn", "faiss": "faiss-cpu"}
"""The distributions of modules that have another name."""


def hint_for(error: Exception, distribution: str) -> str | None:
    """What to do about an error of a plugin's code, if it is a module that an extra brings.

    `distribution` holds the plugin; the extras of the harness are for every plugin.
    """
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    return install_hint(error.name, distribution) or install_hint(error.name, HARNESS)


def install_hint(module: str, distribution: str) -> str | None:
    """The command that installs the smallest extra of a distribution that brings a module.

    None if no extra does.

    >>> install_hint("sklearn.cluster", "user-understanding-harness")
    "pip install 'user-understanding-harness[analysis]'"
    """
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    top = module.partition(".")[0]
    wanted = canonicalize_name(DISTRIBUTIONS.get(top, top))
    try:
        about = metadata(distribution)
    except PackageNotFoundError:
        return None
    optional = [
        (canonicalize_name(one.name), one.marker)
        for one in map(Requirement, about.get_all("Requires-Dist") or ())
        if one.marker is not None and not one.marker.evaluate({"extra": ""})
    ]
    sizes = {}
    for extra in about.get_all("Provides-Extra") or ():
        brought = [name for name, marker in optional if marker.evaluate({"extra": extra})]
        if wanted in brought:
            sizes[extra] = len(brought)
    return f"pip install '{distribution}[{min(sizes, key=sizes.__getitem__)}]'" if sizes else None
