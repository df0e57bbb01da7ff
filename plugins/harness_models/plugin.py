"""The hooks of the plugin; its factories import the other modules at first use."""

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
    "base_url": "the server's address, or several with ; between them, of servers of the same "
    "model; else OPENAI_BASE_URL, else OpenAI's own",
    "api_key_env": "the environment variable that holds the key (OPENAI_API_KEY)",
    "api_key_file": "a file that holds the key, instead of a variable",
    "revision": "the commit of the weights behind the name; other runs then reuse their answers",
    "identity": "as revision, in your own words",
    "immutable": "true: this host never changes the weights behind the name",
    "concurrency": "requests in flight; else --concurrency, else 64 for each address",
    "batch": "true: ask in batches of the server's batch service, which take up to a day; only: "
    "also the few requests that are left",
    "max_tokens_field": "the server's name for the token limit",
    "seed": "false: send no seed, for servers that refuse the field",
    "system_role": "false: for models without system messages; auto: the server's first refusal "
    "decides",
    "endpoint": "chat, or completions for models without a chat template",
    "chat_template": "a chat template's file, for endpoint=completions",
    "chat_template_kwargs": "variables of the template: eos_token=</s>, several separated by ;, or "
    "a JSON object",
    "stop": "texts that end answers, in addition to the task's: a text, or a JSON list",
    "extra_body": "a JSON object of additional fields; extra_body.NAME=VALUE sets a single one",
    "logprobs": "true: record the logprobs of the answer's tokens",
    "top_logprobs": "record so many alternatives for each token as well",
    "thinking": "whether the model thinks: true, false, or auto, which asks it once; it does not "
    "switch thinking on or off",
    "azure_endpoint": "an Azure address instead of base_url; AZURE_OPENAI_API_KEY holds the key",
    "azure_deployment": "the deployment's name, if it differs from the model's",
    "api_version": "the version in Azure addresses that have one",
    "max_answer_bytes": "the largest body of an answer that is read (33554432)",
}

REQUESTS = {
    name: OPENAI[name]
    for name in ("system_role", "endpoint", "stop", "extra_body", "logprobs", "top_logprobs")
}

VLLM = {
    "pretrained": "a folder of weights or a repository of the hub; else HARNESS_PRETRAINED, else "
    "Qwen/Qwen3-8B",
    "model": "the same as pretrained",
    "python": "an interpreter with vllm; else HARNESS_VLLM_PYTHON, else the harness's own",
    "preset": "h100 or h200: memory, sequences and batch for that GPU",
    "gpus": "the GPUs to use, 0-3 or 0,2; else all that CUDA_VISIBLE_DEVICES shows",
    "revision": "a branch, tag or commit of the hub",
    "tokenizer": "a folder or repository, instead of the checkpoint's tokenizer",
    "chat_template": "a file, instead of the checkpoint's template",
    "chat_template_kwargs": "variables of the template: enable_thinking=false, several separated "
    "by ;, or a JSON object",
    "thinking": "whether the model thinks: true, false, or auto, by its template; it does not "
    "switch thinking on or off",
    "lora": "the folder of an adapter to evaluate",
    "concurrency": "requests in flight; else --concurrency, else max_num_seqs (256) by "
    "data_parallel_size and an eighth more",
    **REQUESTS,
    "any other": "an argument of vLLM's server, with underscores in its name; true and false are "
    "switches",
}

WEIGHTS = ("pretrained", "model", "revision", "chat_template", "chat_template_kwargs", "thinking")
HF = {
    **{name: VLLM[name] for name in WEIGHTS},
    "python": "an interpreter with transformers; else HARNESS_HF_PYTHON, else the harness's own",
    "max_model_len": "the limit for the tokens of a prompt and its longest answer; else the "
    "model's own, at most 100000",
    "concurrency": "requests in flight; 1, or with continuous_batching=true --concurrency, else 64",
    **REQUESTS,
    "any other": "an argument of `transformers serve`, with underscores in its name",
}

BASELINE = {"respondent": "the name of the registered rule that answers (default)"}

REPLAY = {
    "run": "the folder of the run whose answers are replayed",
    "file": "a file of recorded replies, instead of run",
    "model": "with file: the model's name",
    "role": "with run: the role whose answers are replayed (candidate)",
    "concurrency": "requests in flight; else --concurrency",
}


SHARED = {
    "openai": (
        "base_url", "api_key_env", "api_key_file", "azure_endpoint", "api_version", "immutable",
        "concurrency", "max_tokens_field", "seed", "system_role", "logprobs", "top_logprobs",
    ),
    "vllm": (
        "python", "preset", "gpus", "gpu_memory_utilization", "download_dir", "concurrency",
        "max_num_seqs", "max_num_batched_tokens", "enforce_eager", "enable_prefix_caching",
        "generation_config", "distributed_executor_backend", "logprobs", "top_logprobs",
    ),
    "hf": (
        "python", "device", "concurrency", "continuous_batching", "compile", "logprobs",
        "top_logprobs",
    ),
    "baseline": ("respondent",),
    "replay": ("run", "file", "role", "concurrency"),
}  # fmt: skip
"""Kind of model → the arguments that suit all weights in the same place."""

KINDS = {
    "openai": ("any server that speaks the OpenAI protocol", OPENAI),
    "vllm": ("weights served by a vLLM that the harness starts", VLLM),
    "hf": ("small weights served by transformers", HF),
    "baseline": ("answers by the rules of benchmarks", BASELINE),
    "replay": ("recorded answers", REPLAY),
}
"""Kind of model → its description and its arguments; the module of that name makes the model."""


@hookimpl
def register_models(register: RegisterModel) -> None:
    for kind, (description, arguments) in KINDS.items():
        register(
            kind, partial(make, kind),
            description=description, arguments=arguments, shared=SHARED[kind],
        )  # fmt: skip


def make(kind: str, settings: ModelSettings) -> Model:
    """A model of one of these kinds: `make("openai", ModelSettings(args={"model": "small"}))`."""
    from harness_models.arguments import check_no_keys

    check_no_keys(kind, settings.args)
    how = "_embeddings" if settings.embeds else "_batches" if "batch" in settings.args else ""
    module = f"{kind}{how}" if kind == "openai" else kind
    model: Model = import_module(f"harness_models.{module}").make(settings)
    return model
