"""What the plugin tells the harness; the factories import the rest at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness import Benchmark
    from harness.hookspecs import (
        RegisterAnalysis,
        RegisterBenchmark,
        RegisterDataTool,
        RegisterRespondent,
        Respondent,
    )


@hookimpl
def register_benchmarks(register: RegisterBenchmark) -> None:
    """Adds the benchmark `gistbench`."""
    register("gistbench", make_benchmark)


@hookimpl
def register_respondents(register: RegisterRespondent) -> None:
    """Lets `--model baseline` stand in for the candidate."""
    register("gistbench", "predict", "candidate", find_respondent)


@hookimpl
def register_analyses(register: RegisterAnalysis) -> None:
    """Adds the analyses of stored runs."""
    from harness_gistbench.analyses import register as register_all

    register_all(register)


@hookimpl
def register_data_tools(register: RegisterDataTool) -> None:
    """Adds the tools for logs of engagements."""
    from harness_gistbench.synthesis import register as register_all

    register_all(register)


def make_benchmark() -> Benchmark:
    """The benchmark of this plugin."""
    from harness_gistbench.benchmark import GISTBENCH

    return GISTBENCH


def find_respondent() -> Respondent:
    """The respondent of the stage "predict"."""
    from harness_gistbench.baselines import frequent_words

    return frequent_words
