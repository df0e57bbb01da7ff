"""The hooks of the plugin; its factories import the other modules at first use."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness import Analysis
    from harness.contracts.judge import Judge, JudgeParts
    from harness.registry.hookspecs import RegisterAnalysis, RegisterJudge


ANALYSES = {
    "judge-panel": "agreement of the members of a panel of judges",
    "judge-agreement": "agreement of judges with people's labels from a file",
}
"""Name of the analysis → description."""


@hookimpl
def register_judges(register: RegisterJudge) -> None:
    own = "a model with the benchmark's own prompt"
    register("llm", partial(make, "llm"), on="model", description=own)
    majority = "several judges and their majority: panel:SPEC+SPEC+…"
    register("panel", partial(make, "panel"), on="judges", description=majority)
    register(
        "lexical",
        partial(make, "lexical"),
        description="word overlap, for demos and tests",
        arguments={"share": "the share of the subject's words that an option must hold (0.5)"},
    )


@hookimpl
def register_analyses(register: RegisterAnalysis) -> None:
    for name, description in ANALYSES.items():
        make = partial(analysis, name)
        register("*", name, make, description=description, report=name == "judge-panel")


def analysis(name: str) -> Analysis:
    """The analysis of that name."""
    from harness import Analysis
    from harness_judges.agreement import Options, panel_agreement, people_agreement

    if name == "judge-panel":
        return Analysis(name=name, description=ANALYSES[name], run=panel_agreement)
    return Analysis(name=name, description=ANALYSES[name], run=people_agreement, options=Options)


def make(kind: str, parts: JudgeParts) -> Judge:
    """A judge of one of these kinds: `make("lexical", JudgeParts())`."""
    judge: Judge = import_module(f"harness_judges.{kind}").make(parts)
    return judge
