"""The hooks of the plugin; its factories import the other modules at first use."""

from __future__ import annotations

from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.registry import hookspecs

PACKAGE = "harness_perrecbench"

ASKED = {
    "profiler": ("profile",),
    "candidate": (
        *("rate", "rate_thought", "rate_b", "rate_c", "rate_d"),
        *("compare", "compare_thought", "rank", "rank_thought"),
    ),
}
"""The prompts of each role."""

ANALYSES = {
    "perrec": (
        "tables.main",
        "the nine cells and their average, with published rows and baselines",
    ),
    "perrec-prompting": ("tables.prompting", "the nine cells by method of prompting"),
    "perrec-sizes": ("curves.by_size", "ptc by the number of users in a group"),
    "perrec-scale": ("curves.by_scale", "the average by the size of the model"),
    "perrec-domains": ("domains.run", "ptc by domain, against the frequency of the domain's items"),
    "perrec-shots": ("shots.run", "ptc by examples and retrieved behaviours, as heat maps"),
    "perrec-rating-tau": ("answers.errors", "ptc against the errors of predicted ratings"),
    "perrec-positions": ("answers.positions", "the position bias of pairwise answers"),
}
"""Each analysis: its function in `analyses`, and what it shows."""

WITH_OPTIONS = ("perrec-scale", "perrec-domains")
"""The analyses that must be given options, which no report can show by itself."""

TOOLS = {
    "perrec-groups": ("data", "grouping.build.run", "build user groups from review logs"),
    "perrec-describe": ("data", "grouping.describe.run", "describe the groups in a folder"),
    "sft-export": ("perrec", "tuning.sft_export.run", "write training data from held-out groups"),
    "merge-adapters": (
        "perrec",
        "tuning.adapters.run",
        "merge adapters trained pointwise, pairwise and listwise into one",
    ),
}
"""Each tool: the command that it is under, its function, and what it does."""


@hookimpl
def register_benchmarks(register: hookspecs.RegisterBenchmark) -> None:
    register("perrecbench", partial(resolve_name, f"{PACKAGE}.benchmark:PERRECBENCH"))


@hookimpl
def register_respondents(register: hookspecs.RegisterRespondent) -> None:
    for role, prompts in ASKED.items():
        for prompt in prompts:
            rule = f"{PACKAGE}.baselines:{prompt.partition('_')[0]}"
            register("perrecbench", prompt, role, partial(resolve_name, rule))


@hookimpl
def register_analyses(register: hookspecs.RegisterAnalysis) -> None:
    from harness.analysis.analysis import analysis_from

    for name, (function, description) in ANALYSES.items():
        path = f"{PACKAGE}.analyses.{function}"
        make = partial(analysis_from, path, name=name, description=description)
        shown = name not in WITH_OPTIONS
        register("perrecbench", name, make, description=description, report=shown)


@hookimpl
def register_data_tools(register: hookspecs.RegisterDataTool) -> None:
    from harness.analysis.analysis import tool_from

    for name, (command, function, description) in TOOLS.items():
        make = partial(tool_from, f"{PACKAGE}.{function}", name=name, description=description)
        register(name, make, description=description, command=command)
