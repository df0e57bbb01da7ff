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
    count_of,
    shared_of,
)
from harness_models.openai_args import OF_REQUESTS, is_extra, request_args

KIND = "vllm"

DEFAULT_SHARE = 0.92
"""The share of the GPU's memory that vLLM takes by default."""

PRESETS: Mapping[str, Mapping[str, str]] = {
    "h100": {
        "gpu_memory_utilization": "0.92",
        "max_num_seqs": "1024",
        "max_num_batched_tokens": "8192",
    },
    "h200": {
        "gpu_memory_utilization": "0.94",
        "max_num_seqs": "1024",
        "max_num_batched_tokens": "16384",
    },
}
"""Only what decides speed and memory, so that an answer is the same with and without a preset."""

SEQUENCES = 256
"""Prompts that an engine surely answers at once; how many it does by itself depends on the GPU."""

DEFAULTS = {"enable_prefix_caching": "true", "generation_config": "vllm"}
"""Prompts of a user share long histories, so their prefixes are cached. Settings that a request
leaves open do not come from the checkpoint's `generation_config.json`: stages define them."""

POOLING = {"runner": "pooling"}
"""In place of these for weights that embed: encoders that read both ways cannot cache prefixes."""

OWN = (
    "pretrained", "model", "python", "preset", "revision", "tokenizer", "chat_template",
    "chat_template_kwargs", "thinking", "lora", "concurrency", "gpus", *OF_REQUESTS, "extra_body",
)  # fmt: skip

SWITCHES = ("enable_prefix_caching", "trust_remote_code", "enforce_eager", "enable_chunked_prefill")

COUNTS = (
    "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "max_num_seqs",
    "max_num_batched_tokens",
)  # fmt: skip

KNOWN = (
    *SWITCHES, *COUNTS, "dtype", "max_model_len", "gpu_memory_utilization", "seed", "quantization",
    "generation_config", "data_parallel_backend", "kv_cache_dtype", "load_format",
    "reasoning_parser", "runner",
)  # fmt: skip
"""vLLM's arguments that pass without a check by its parser, which takes ten seconds."""

PLAIN = {
    "dtype": "auto|half|float16|bfloat16|float|float32",
    "max_model_len": "[0-9]+",
    "seed": "[0-9]+",
    "data_parallel_backend": "mp|ray",
    "runner": "auto|generate|pooling",
}
"""The values of frequent arguments that pass without that check."""

SPEED_ARGS = frozenset({
    *COUNTS, "distributed_executor_backend", "max_model_len",
    "gpu_memory_utilization", "kv_cache_memory_bytes", "enable_prefix_caching", "load_format",
    "download_dir", "trust_remote_code", "enforce_eager", "enable_chunked_prefill", "block_size",
    "swap_space", "cpu_offload_gb", "max_parallel_loading_workers", "safetensors_load_strategy",
    "async_scheduling", "numa_bind", "numa_bind_cpus", "numa_bind_nodes", "device_ids", "headless",
    "data_parallel_backend", "data_parallel_size_local", "data_parallel_address",
    "data_parallel_rpc_port", "data_parallel_rank", "data_parallel_start_rank",
    "data_parallel_hybrid_lb", "data_parallel_external_lb", "master_addr", "master_port", "nnodes",
    "node_rank", "distributed_timeout_seconds", "cpu_distributed_timeout_seconds",
    "ray_workers_use_nsight", "shutdown_timeout", "log_level", "uvicorn_log_level",
    "log_config_file", "logging_config", "aggregate_engine_logging", "max_log_len",
    "disable_log_stats", "enable_log_requests", "enable_log_outputs", "enable_log_deltas",
    "log_error_stack", "use_tqdm_on_load", "otlp_traces_endpoint", "collect_detailed_traces",
    "kv_cache_metrics", "kv_cache_metrics_sample", "cudagraph_metrics", "enable_mfu_metrics",
    "show_hidden_metrics_for_version", "profiler_config",
})  # fmt: skip
"""Arguments that decide where and how fast answers come, and what is logged, but not their text."""

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
    gpus: tuple[str, ...] = ()


def read_args(settings: ModelSettings) -> VllmArgs:
    """The arguments, checked as far as is possible without vLLM; UsageError if wrong."""
    given = dict(settings.args)
    shared = shared_of(KIND, given, RESERVED, SWITCHES)
    preset = given.get("preset")
    if preset is not None and preset not in PRESETS:
        raise bad(KIND, f"preset={preset}", "one of " + ", ".join(PRESETS))
    engine = {
        **(POOLING if settings.embeds else DEFAULTS),
        **(PRESETS[preset] if preset else {}),
        **{name: value for name, value in given.items() if name not in OWN and not is_extra(name)},
    }
    for name in COUNTS:
        if name in engine:
            count_of(KIND, name, engine[name])
    share = engine.get("gpu_memory_utilization", "1")
    if not re.fullmatch(r"\d*\.?\d+", share) or not 0 < float(share) <= 1:
        expected = "a share of the GPU's memory, above 0 and at most 1"
        raise bad(KIND, f"gpu_memory_utilization={share}", expected)
    return VllmArgs(
        **shared | {"model": _expanded(shared["model"])},
        tokenizer=_expanded(given["tokenizer"]) if "tokenizer" in given else None,
        lora=_expanded(given["lora"]) if "lora" in given else None,
        gpus=gpu_numbers(given["gpus"]) if "gpus" in given else (),
        concurrency=concurrency_of(settings, engine),
        engine=engine,
        requests=request_args(KIND, given, shared),
    )


def concurrency_of(settings: ModelSettings, engine: Mapping[str, str]) -> int:
    """Requests in flight: as many as the engines process, and an eighth more that waits."""
    if "concurrency" in settings.args:
        return count_of(KIND, "concurrency", settings.args["concurrency"])
    if settings.concurrency is not None:
        return settings.concurrency
    sequences = int(engine.get("max_num_seqs", SEQUENCES))
    held = sequences * int(engine.get("data_parallel_size", "1"))
    return held + max(8, held // 8)


def gpu_numbers(text: str) -> tuple[str, ...]:
    """The GPUs in `0-3`, `4` or `0,2-3`, each once; UsageError for any other text."""
    found: list[str] = []
    for part in text.split(","):
        ends = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", part.strip())
        if ends is None or int(ends[2] or ends[1]) < int(ends[1]):
            raise bad(KIND, f"gpus={text}", "numbers of nvidia-smi, as in gpus=0-3 or gpus=0,2")
        found += [str(one) for one in range(int(ends[1]), int(ends[2] or ends[1]) + 1)]
    return tuple(dict.fromkeys(found))


def _expanded(path: str) -> str:
    """The path with `~` replaced: vLLM would take it for a folder's name."""
    return str(Path(path).expanduser()) if path.startswith("~") else path
