"""All hooks that a plugin may implement; `register` takes names and lazy factories."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pluggy

from harness.registry.registrations import (
    AnalysisRegistration,
    BenchmarkRegistration,
    DataToolRegistration,
    EmbedderRegistration,
    ExecutorRegistration,
    JudgeRegistration,
    MetricRegistration,
    ModelRegistration,
    RespondentRegistration,
)

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
    suit
    other weights too (an address, an interpreter): a judge that a task names only by its weights
    takes these over from the candidate, and no others.
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
