"""The hooks of the plugin; its factories import the other modules at first use."""

from __future__ import annotations

from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.registry import hookspecs

PACKAGE = "harness_behaviour"

ANALYSES = {
    "behaviour": ("tables.main", "gap, slope and inflection of each setting, beside baselines"),
    "behaviour-curve": ("curves.run", "cross-entropy over entropy, with the inflection points"),
    "behaviour-boxes": ("boxes.run", "cross-entropy and entropy by proxy and by history"),
}
"""Each analysis: its function in `analyses`, and what it shows."""

TOOLS = {
    "behaviour-prompts": ("building.tool.run", "build the prompts of a domain from its logs"),
    "behaviour-describe": ("building.describe.run", "describe the prompts in a folder"),
}
"""Each data tool: its function, and what it does."""


@hookimpl
def register_benchmarks(register: hookspecs.RegisterBenchmark) -> None:
    register("behaviour", partial(resolve_name, f"{PACKAGE}.benchmark:BEHAVIOUR"))


@hookimpl
def register_respondents(register: hookspecs.RegisterRespondent) -> None:
    rule = partial(resolve_name, f"{PACKAGE}.rules:recommend")
    register("behaviour", "recommend", "candidate", rule)


@hookimpl
def register_analyses(register: hookspecs.RegisterAnalysis) -> None:
    from harness.analysis.analysis import analysis_from

    for name, (function, description) in ANALYSES.items():
        path = f"{PACKAGE}.analyses.{function}"
        make = partial(analysis_from, path, name=name, description=description)
        register("behaviour", name, make, description=description, report=True)


@hookimpl
def register_data_tools(register: hookspecs.RegisterDataTool) -> None:
    from harness.analysis.analysis import tool_from

    for name, (function, description) in TOOLS.items():
        make = partial(tool_from, f"{PACKAGE}.{function}", name=name, description=description)
        register(name, make, description=description, command="data")
