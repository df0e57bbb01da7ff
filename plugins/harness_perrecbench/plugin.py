"""What the plugin tells the harness; the factories import the rest at first use."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness import Benchmark, DataTool
    from harness.hookspecs import (
        RegisterAnalysis,
        RegisterBenchmark,
        RegisterDataTool,
        RegisterRespondent,
        Respondent,
    )

COMMAND = "perrec"

ASKED = {
    "profiler": ("profile",),
    "candidate": (
        "rate",
        "rate_thought",
        "rate_b",
        "rate_c",
        "rate_d",
        "compare",
        "compare_thought",
        "rank",
        "rank_thought",
    ),
}
"""The prompts of each role."""


@hookimpl
def register_benchmarks(register: RegisterBenchmark) -> None:
    """Adds the benchmark `perrecbench`."""
    register("perrecbench", make_benchmark)


@hookimpl
def register_respondents(register: RegisterRespondent) -> None:
    """Lets `--model baseline` stand in for the candidate and the profiler."""
    for role, prompts in ASKED.items():
        for prompt in prompts:
            register("perrecbench", prompt, role, partial(find_respondent, prompt))


@hookimpl
def register_analyses(register: RegisterAnalysis) -> None:
    """Adds the analyses of stored runs."""
    from harness_perrecbench.analyses import register as register_all

    register_all(register)


@hookimpl
def register_data_tools(register: RegisterDataTool) -> None:
    """Adds the tools for review logs and data folders, and those of `harness perrec`."""
    register("perrec-groups", make_groups_tool, description="build user groups from review logs")
    register(
        "perrec-describe", make_describe_tool, description="tell what a folder of groups holds"
    )
    register(
        "sft-export",
        make_sft_export,
        description="write training data from held-out groups",
        command=COMMAND,
    )
    register(
        "merge-adapters",
        make_merge_adapters,
        description="merge adapters trained pointwise, pairwise and listwise into one",
        command=COMMAND,
    )


def make_benchmark() -> Benchmark:
    """The benchmark of this plugin."""
    from harness_perrecbench.benchmark import PERRECBENCH

    return PERRECBENCH


def find_respondent(prompt: str) -> Respondent:
    """The respondent of a prompt."""
    from harness_perrecbench.respondents import of

    return of(prompt)


def make_groups_tool() -> DataTool:
    """The builder of groups."""
    from harness_perrecbench.grouping import GROUPS_TOOL

    return GROUPS_TOOL


def make_describe_tool() -> DataTool:
    """The statistics of a folder of groups."""
    from harness_perrecbench.grouping import DESCRIBE_TOOL

    return DESCRIBE_TOOL


def make_sft_export() -> DataTool:
    """The export of training data."""
    from harness_perrecbench.tuning.sft_export import SFT_EXPORT

    return SFT_EXPORT


def make_merge_adapters() -> DataTool:
    """The merging of adapters."""
    from harness_perrecbench.tuning.adapters import MERGE_ADAPTERS

    return MERGE_ADAPTERS
