"""What the plugin tells the harness; the factories import the rest at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.hookspecs import RegisterModel
    from harness.models import Model, ModelSettings


@hookimpl
def register_models(register: RegisterModel) -> None:
    """Adds `openai`, `vllm`, `hf`, `baseline` and `replay`."""
    register(
        "openai",
        make_openai,
        description="any server that speaks the OpenAI protocol; args: model=NAME,base_url=URL",
    )
    register(
        "vllm",
        make_vllm,
        description="weights served by a vLLM of our own; args: pretrained=NAME or FOLDER",
    )
    register(
        "hf",
        make_hf,
        description="small weights served by transformers; args: pretrained=NAME or FOLDER",
    )
    register(
        "baseline",
        make_baseline,
        description="answers by the rules that benchmarks bring; args: respondent=NAME",
    )
    register(
        "replay",
        make_replay,
        description="answers that were recorded; args: run=RUN or file=FILE",
    )


def make_openai(settings: ModelSettings) -> Model:
    """A model behind an OpenAI-compatible server."""
    from harness_models.openai import make

    return make(settings)


def make_vllm(settings: ModelSettings) -> Model:
    """A model served by a vLLM that is started for it."""
    from harness_models.vllm import make

    return make(settings)


def make_hf(settings: ModelSettings) -> Model:
    """A model served by a `transformers serve` that is started for it."""
    from harness_models.hf import make

    return make(settings)


def make_baseline(settings: ModelSettings) -> Model:
    """The model that answers with the registered respondents."""
    from harness_models.baseline import make

    return make(settings)


def make_replay(settings: ModelSettings) -> Model:
    """The model that answers with recorded replies."""
    from harness_models.replay import make

    return make(settings)
