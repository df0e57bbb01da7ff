"""What the plugin tells the harness; the factories import the rest at first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.hookspecs import RegisterJudge
    from harness.judging import Judge
    from harness.models import Model


@hookimpl
def register_judges(register: RegisterJudge) -> None:
    """Adds `llm` and `lexical`."""
    register(
        "llm",
        make_llm,
        needs_model=True,
        description="a model, asked with the benchmark's own prompt",
    )
    register(
        "lexical",
        make_lexical,
        description="word overlap, for demos and tests",
        arguments={"share": "the part of the subject's words that an option must hold (0.5)"},
    )


def make_llm(model: Model | None, args: Mapping[str, str]) -> Judge:
    """The judge `llm`, on the model bound to its role."""
    from harness_judges.llm import make

    return make(model, args)


def make_lexical(model: Model | None, args: Mapping[str, str]) -> Judge:
    """The judge `lexical`."""
    from harness_judges.lexical import make

    return make(model, args)
