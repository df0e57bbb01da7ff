"""The arguments of a `vllm` model: the harness's own, vLLM's, and those of a preset."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.contracts.model import ModelSettings
from harness_models.arguments import (
    WeightsArgs,
    bad,
    check_given,
    check_switches,
    count_of,
    shared_of,
)

KIND = "vllm"

DEFAULT_SHARE = 0.92
"""The share of the GPU's memory that vLLM takes by default."""

PRESETS: Mapping[str, Mapping[str, str]] = {
    "h100": {
        "dtype": "bfloat16",
        "gpu_memory_utilization": "0.92",
        "max_num_seqs": "256",
        "max_num_batched_tokens": "8192",
    },
    "h200": {
        "dtype": "bfloat16",
        "gpu_memory_utilization": "0.94",
        "max_num_seqs": "512",
        "max_num_batched_tokens": "16384",
    },
}

DEFAULTS = {
    "enable_prefix_caching": "true",
    "generation_config": "vllm",
    "max_num_seqs": "256",
}
"""Prompts of a user share long histories, so their prefixes are cached. Settings that a request
leaves open do not come from the checkpoint's `generation_config.json`: stages define them."""

OWN = (
    "pretrained", "model", "python", "preset", "revision", "tokenizer", "chat_template",
    "chat_template_kwargs", "thinking", "lora", "concurrency",
)  # fmt: skip

SWITCHES = ("enable_prefix_caching", "trust_remote_code", "enforce_eager", "enable_chunked_prefill")

COUNTS = (
    "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "max_num_seqs",
    "max_num_batched_tokens",
)  # fmt: skip

KNOWN = (
    *SWITCHES, *COUNTS, "dtype", "max_model_len", "gpu_memory_utilization", "seed", "quantization",
    "generation_config", "data_parallel_backend", "kv_cache_dtype", "load_format",
    "reasoning_parser",
)  # fmt: skip
"""vLLM's arguments that pass without a check by its parser, which takes ten seconds."""

PLAIN = {
    "dtype": "auto|half|float16|bfloat16|float|float32",
    "max_model_len": "[0-9]+",
    "seed": "[0-9]+",
    "data_parallel_backend": "mp|ray",
}
"""The values of frequent arguments that pass without that check."""

SPEED_ARGS = frozenset({
    *COUNTS, "data_parallel_backend", "distributed_executor_backend", "max_model_len",
    "gpu_memory_utilization", "kv_cache_memory_bytes", "enable_prefix_caching", "load_format",
    "download_dir", "trust_remote_code", "enforce_eager", "enable_chunked_prefill", "block_size",
    "swap_space", "cpu_offload_gb", "max_parallel_loading_workers", "safetensors_load_strategy",
    "disable_log_stats", "async_scheduling", "numa_bind", "data_parallel_size_local",
    "data_parallel_address", "data_parallel_rpc_port", "enable_log_requests",
})  # fmt: skip
"""Arguments that decide the speed and the memory of answers, but not their text."""

RESERVED = {
    "uds": "leave it out: the harness chooses the socket",
    "host": "leave it out: the harness connects over a socket",
    "port": "leave it out: the harness connects over a socket",
    "api_key": "leave it out: only the harness can reach the socket",
    "served_model_name": "leave it out: the harness names the model",
    "lora_modules": "use lora=FOLDER",
    "enable_lora": "use lora=FOLDER",
    "default_chat_template_kwargs": "use chat_template_kwargs=…",
    "api_server_count": "leave it out: one server serves all engines",
}
"""vLLM's arguments that the harness sets itself → what to do."""


@dataclass(frozen=True, kw_only=True)
class VllmArgs(WeightsArgs):
    """The parsed `--model_args`."""

    tokenizer: str | None
    lora: str | None


def read_args(settings: ModelSettings) -> VllmArgs:
    """The arguments, checked as far as is possible without vLLM; UsageError if wrong."""
    given = dict(settings.args)
    check_given(KIND, given, RESERVED)
    shared = shared_of(KIND, given)
    preset = given.get("preset")
    if preset is not None and preset not in PRESETS:
        raise bad(KIND, f"preset={preset}", "one of " + ", ".join(PRESETS))
    engine = {
        **DEFAULTS,
        **(PRESETS[preset] if preset else {}),
        **{name: value for name, value in given.items() if name not in OWN},
    }
    for name in COUNTS:
        if name in engine:
            count_of(KIND, name, engine[name])
    if "gpu_memory_utilization" in engine:
        _share("gpu_memory_utilization", engine["gpu_memory_utilization"])
    check_switches(KIND, engine, SWITCHES)
    return VllmArgs(
        **shared | {"model": _expanded(shared["model"])},
        tokenizer=_expanded(given["tokenizer"]) if "tokenizer" in given else None,
        lora=_expanded(given["lora"]) if "lora" in given else None,
        concurrency=_concurrency(given, settings, engine),
        engine=engine,
    )


def is_plain(name: str, value: str) -> bool:
    """True if vLLM certainly accepts an argument, so that its parser need not check it."""
    return name in KNOWN and re.fullmatch(PLAIN.get(name, ".*"), value) is not None


def _concurrency(
    given: Mapping[str, str], settings: ModelSettings, engine: Mapping[str, str]
) -> int:
    """Requests in flight: as many as the engines process, and an eighth more that waits."""
    if "concurrency" in given:
        return count_of(KIND, "concurrency", given["concurrency"])
    if settings.concurrency is not None:
        return settings.concurrency
    held = int(engine["max_num_seqs"]) * int(engine.get("data_parallel_size", "1"))
    return held + max(8, held // 8)


def _expanded(path: str) -> str:
    """The path with `~` replaced: vLLM would take it for a folder's name."""
    return str(Path(path).expanduser()) if path.startswith("~") else path


def _share(name: str, text: str) -> None:
    if not re.fullmatch(r"\d*\.?\d+", text) or not 0 < float(text) <= 1:
        raise bad(KIND, f"{name}={text}", "a share of the GPU's memory, above 0 and at most 1")
