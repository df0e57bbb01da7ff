"""What the plugin tells the harness; the factories import the rest at first use."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.contracts.model import Model, ModelSettings
    from harness.registry.hookspecs import RegisterModel

OPENAI = {
    "model": "the name that the server knows the model by",
    "base_url": "where the server is; OPENAI_BASE_URL, else OpenAI's own",
    "api_key_env": "the environment variable that holds the key (OPENAI_API_KEY)",
    "api_key_file": "the file that holds the key, in place of a variable",
    "revision": "which weights stand behind the name, as a commit; their answers are then reused "
    "in other runs",
    "identity": "the same in your own words",
    "immutable": "true: this host never puts other weights behind the name",
    "concurrency": "requests in flight; else --concurrency, else 64",
    "max_tokens_field": "what the server calls the token limit",
    "seed": "false: for servers that refuse the field",
    "system_role": "false: for models that know no system message; auto: its server decides",
    "endpoint": "chat, or completions for models without a chat template",
    "chat_template": "the file of one, for completions",
    "chat_template_kwargs": "what it is told: eos_token=</s>, several with ; between, or a JSON "
    "object",
    "stop": "what ends answers, beside what the task says: a text, or a JSON list",
    "extra_body": "a JSON object of further fields; extra_body.NAME=VALUE is one of them",
    "logprobs": "true: the logarithms of the answer's tokens are kept",
    "top_logprobs": "and those of so many likeliest ones in each place",
    "azure_endpoint": "Azure in place of base_url; the key is that of AZURE_OPENAI_API_KEY",
    "azure_deployment": "the deployment, where it is not called as the model is",
    "api_version": "for Azure's addresses that name one",
}

VLLM = {
    "pretrained": "a folder of weights or a name of the hub; HARNESS_PRETRAINED, else "
    "Qwen/Qwen3-8B",
    "model": "the same as pretrained",
    "python": "the interpreter that has vllm; HARNESS_VLLM_PYTHON, else the harness's own",
    "preset": "h100 or h200: bfloat16, and memory, sequences and batch for that GPU",
    "revision": "branch, tag or commit of the hub",
    "tokenizer": "a folder or name in place of the checkpoint's",
    "chat_template": "a file in place of the checkpoint's",
    "chat_template_kwargs": "what the template is told: enable_thinking=false, several with ; "
    "between, or a JSON object",
    "lora": "a folder with an adapter, which is then what is asked",
    "concurrency": "requests in flight; else --concurrency, else what the engine takes and an "
    "eighth more",
    "any other": "an argument of vLLM's server by its name with underscores; true and false are "
    "switches",
}

HF = {
    **{
        name: VLLM[name]
        for name in ("pretrained", "model", "revision", "chat_template", "chat_template_kwargs")
    },
    "python": "the interpreter that has transformers; HARNESS_HF_PYTHON, else the harness's own",
    "max_model_len": "tokens of a prompt and its longest answer; the model's own, and at most "
    "100000",
    "concurrency": "requests in flight; else --concurrency, else 1, or 64 with "
    "continuous_batching=true",
    "any other": "an argument of `transformers serve` by its name with underscores",
}

BASELINE = {"respondent": "which of the registered rules answers (default)"}

REPLAY = {
    "run": "a run's folder, whose answers are given again",
    "file": "a file of recorded replies, in place of run",
    "model": "beside file: what the model is called",
    "role": "beside run: the role whose answers are meant",
    "concurrency": "requests in flight; else --concurrency",
}


KINDS = {
    "openai": ("any server that speaks the OpenAI protocol", OPENAI),
    "vllm": ("weights served by a vLLM of our own", VLLM),
    "hf": ("small weights served by transformers", HF),
    "baseline": ("answers by the rules that benchmarks bring", BASELINE),
    "replay": ("answers that were recorded", REPLAY),
}
"""What each kind of model is, and its arguments; the module of its name makes it."""


@hookimpl
def register_models(register: RegisterModel) -> None:
    """Adds `openai`, `vllm`, `hf`, `baseline` and `replay`."""
    for kind, (description, arguments) in KINDS.items():
        register(kind, partial(make, kind), description=description, arguments=arguments)


def make(kind: str, settings: ModelSettings) -> Model:
    """A model of one of these kinds: `make("openai", ModelSettings(args={"model": "small"}))`."""
    model: Model = import_module(f"harness_models.{kind}").make(settings)
    return model
