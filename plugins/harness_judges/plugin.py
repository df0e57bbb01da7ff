"""What the plugin tells the harness; the factories import the rest at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.hookspecs import RegisterJudge
    from harness.judging import Judge, JudgeParts


@hookimpl
def register_judges(register: RegisterJudge) -> None:
    """Adds `llm`, `panel` and `lexical`."""
    register(
        "llm",
        make_llm,
        on="model",
        description="a model, asked with the benchmark's own prompt",
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
        arguments={"share": "the part of the subject's words that an option must hold (0.5)"},
    )


def make_llm(parts: JudgeParts) -> Judge:
    """The judge `llm`, on the model bound to its role."""
    from harness_judges.llm import make

    return make(parts)


def make_panel(parts: JudgeParts) -> Judge:
    """The judge `panel`, of the judges that it was given."""
    from harness_judges.panel import make

    return make(parts)


def make_lexical(parts: JudgeParts) -> Judge:
    """The judge `lexical`."""
    from harness_judges.lexical import make

    return make(parts)
