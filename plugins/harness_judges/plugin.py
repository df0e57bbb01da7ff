"""The hooks of the plugin; its factories import the other modules at first use."""

from __future__ import annotations

from functools import partial
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
    """Adds `llm`, `panel` and `lexical`."""
    register(
        "llm",
        make_llm,
        on="model",
        description="a model with the benchmark's own prompt",
    )
    register(
        "panel",
        make_panel,
        on="judges",
        description="several judges and their majority: panel:SPEC+SPEC+…",
    )
    register(
        "lexical",
        make_lexical,
        description="word overlap, for demos and tests",
        arguments={"share": "the share of the subject's words that an option must hold (0.5)"},
    )


@hookimpl
def register_analyses(register: RegisterAnalysis) -> None:
    """Adds the analyses of the judges of any benchmark."""
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


def make_llm(parts: JudgeParts) -> Judge:
    """The judge `llm`, on the model bound to its role."""
    from harness_judges.llm import make

    return make(parts)


def make_panel(parts: JudgeParts) -> Judge:
    """The judge `panel`, with its members."""
    from harness_judges.panel import make

    return make(parts)


def make_lexical(parts: JudgeParts) -> Judge:
    """The judge `lexical`."""
    from harness_judges.lexical import make

    return make(parts)
