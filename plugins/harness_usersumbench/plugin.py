"""The hooks of the plugin; its factories import the other modules at first use."""

from __future__ import annotations

from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.registry.hookspecs import RegisterAnalysis, RegisterBenchmark, RegisterRespondent

PACKAGE = "harness_usersumbench"

RULES = {
    "candidate": ("summarise", "segment", "revise", "combine"),
    "verifier": ("fits_query", "entities", "questions", "judgements"),
    "predictor": ("predict",),
}
"""The prompts of each role; the rule for each has its name."""


@hookimpl
def register_benchmarks(register: RegisterBenchmark) -> None:
    register("usersumbench", partial(resolve_name, f"{PACKAGE}.benchmark:USERSUMBENCH"))


@hookimpl
def register_respondents(register: RegisterRespondent) -> None:
    for role, prompts in RULES.items():
        for prompt in prompts:
            rule = partial(resolve_name, f"{PACKAGE}.rules:{prompt}")
            register("usersumbench", prompt, role, rule)


@hookimpl
def register_analyses(register: RegisterAnalysis) -> None:
    from harness.analysis.analysis import analysis_from
    from harness_usersumbench.analyses import ANALYSES, WITH_OPTIONS

    for name, (function, description) in ANALYSES.items():
        path = f"{PACKAGE}.analyses.{function}"
        make = partial(analysis_from, path, name=name, description=description)
        shown = name not in WITH_OPTIONS
        register("usersumbench", name, make, description=description, report=shown)
