"""The hooks of the plugin; what they register is imported at first use."""

from __future__ import annotations

from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from harness import hookimpl
from harness.analysis.analysis import analysis_from, tool_from
from harness_gistbench.analyses import ANALYSES, WITH_OPTIONS
from harness_gistbench.synthesis import TOOLS

if TYPE_CHECKING:
    from harness.registry import hookspecs


@hookimpl
def register_benchmarks(register: hookspecs.RegisterBenchmark) -> None:
    register("gistbench", partial(resolve_name, "harness_gistbench.benchmark:GISTBENCH"))


@hookimpl
def register_respondents(register: hookspecs.RegisterRespondent) -> None:
    """Lets `--model baseline` stand in for the candidate."""
    words = partial(resolve_name, "harness_gistbench.baselines:frequent_words")
    register("gistbench", "predict", "candidate", words)


@hookimpl
def register_analyses(register: hookspecs.RegisterAnalysis) -> None:
    for name, (function, about) in ANALYSES.items():
        path = f"harness_gistbench.analyses.{function}"
        make = partial(analysis_from, path, name=name, description=about)
        register("gistbench", name, make, description=about, report=name not in WITH_OPTIONS)


@hookimpl
def register_data_tools(register: hookspecs.RegisterDataTool) -> None:
    for name, (function, about) in TOOLS.items():
        path = f"harness_gistbench.synthesis.{function}"
        register(name, partial(tool_from, path, name=name, description=about), description=about)
