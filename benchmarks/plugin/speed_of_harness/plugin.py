"""What the plugin tells the harness."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness import Benchmark, ModelSettings
    from harness.registry.hookspecs import RegisterBenchmark, RegisterModel, StageEnded
    from speed_of_harness.engine import KeptEngine
    from speed_of_harness.model import FreeModel


@hookimpl
def register_benchmarks(register: RegisterBenchmark) -> None:
    """Adds the benchmark `speed`."""
    register("speed", make_benchmark)


@hookimpl
def register_models(register: RegisterModel) -> None:
    """Adds the models `free` and `kept`."""
    register("free", make_model, description="answers at once, in this process, for nothing")
    register("kept", kept_model, description="an engine that stays open from run to run")


@hookimpl
def on_stage_end(event: StageEnded) -> None:
    """Leaves the seconds from the first question to this end in the run folder, for the table."""
    from speed_of_harness.clock import note, processor_seconds, seconds

    note("last")
    if (asked := seconds()) is not None:
        (event.folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
        computed = json.dumps(processor_seconds())
        (event.folder / "computed.json").write_text(computed, encoding="utf-8")


def make_benchmark() -> Benchmark:
    """The benchmark of this plugin."""
    from speed_of_harness.benchmark import SPEED

    return SPEED


def make_model(settings: ModelSettings) -> FreeModel:
    """The model of this plugin."""
    from speed_of_harness.model import FreeModel

    return FreeModel(settings)


def kept_model(settings: ModelSettings) -> KeptEngine:
    """The engine that the contender keeps open."""
    from speed_of_harness.engine import kept

    return kept(settings)
