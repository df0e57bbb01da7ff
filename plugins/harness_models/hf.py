"""A model served by `transformers serve`, started by the harness: small checkpoints, CPUs, tests.

The server does not follow every request by itself: it samples only if the checkpoint's settings
do, takes all other sampling settings from the checkpoint, reads prompts longer than the model
supports, and leaves the stop texts in the answer. `fields` and `checked` correct this.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import ModelError, UsageError
from harness.contracts.model import CallError, Model, ModelSettings, Reply, Request
from harness_models.arguments import bad, flags_of, variables_of
from harness_models.hf_args import (
    KIND,
    KNOWN,
    SPEED_ARGS,
    HfArgs,
    check_with_help,
    read_args,
)
from harness_models.server.fits import not_ready, weights_findings
from harness_models.server.gpus import GPU_DEVICES, gpu_findings
from harness_models.server.interpreter import interpreter, last_words, probe_interpreter
from harness_models.server.launching import without_secrets
from harness_models.server.ports import HOST
from harness_models.server.served import COMMON_TROUBLES, Engine, ServedModel, Trouble
from harness_models.server.weights import (
    CONTEXT,
    LONGEST_CONTEXT,
    Weights,
    given_weights,
    weights_identity,
    weights_think,
)

SERVER = ("-m", "transformers.cli.transformers", "serve")

FAILED = 500
"""The status of a failure inside the server; the same request would fail again."""

ENVIRONMENT = {"HF_HUB_DISABLE_UPDATE_CHECK": "1"}
"""Prevents a version check on the package index at each start."""

WIDE = {"COLUMNS": "200", "NO_COLOR": "1"}
"""Keeps each option of the help text on one line."""

OWN_ENVIRONMENT = (
    'pip install "user-understanding-harness[hf]", or pip install "transformers[serving]" into an'
    " environment of its own, then set HARNESS_HF_PYTHON=ITS_PYTHON"
)

PROBE = """
import importlib.metadata, importlib.util, json
wanted = ("transformers", "torch", "accelerate", "fastapi", "uvicorn", "openai", "pydantic")
missing = [name for name in wanted if importlib.util.find_spec(name) is None]
try:
    version = importlib.metadata.version("transformers")
except importlib.metadata.PackageNotFoundError:
    version = None
print(json.dumps({"missing": missing, "version": version}))
"""

PLAIN = {"num_beams": 1, "repetition_penalty": 1.0, "no_repeat_ngram_size": 0}
GREEDY = {**PLAIN, "do_sample": False}
DRAWN = {
    **PLAIN,
    "do_sample": True,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
}
"""Neutral values for the settings that a request leaves open, so that none comes from the
checkpoint: stages define how they sample."""

STAGES = (
    (r"\[transformers\] Loading \S+@", "loading the weights"),
    (r"Loading weights: 100%", "weights loaded"),
    (r"Application startup complete", "server up"),
)

TROUBLES = (
    Trouble(
        r"Missing dependencies for serving|No module named '(fastapi|uvicorn|openai|pydantic)'",
        "transformers is installed without the packages for serving",
        'pip install "transformers[serving]" into the environment of python=…',
    ),
    Trouble(
        r"No module named 'torch'|PyTorch (was not found|library but it was not found)",
        "transformers is installed without torch",
        "pip install torch into the environment of python=…",
    ),
    Trouble(
        r"Unsupported dtype: '(?P<dtype>[^']*)'",
        "transformers has no dtype {dtype}",
        "use dtype=auto, float32, float16 or bfloat16",
    ),
    Trouble(
        r"Invalid value for '?(?P<reason>[^\n]+)",
        "transformers serve refuses an argument: {reason}",
        "see `transformers serve --help`",
    ),
    Trouble(
        r"out of memory\. Tried to allocate (?P<wanted>[\d.]+ \w+)",
        "the GPU is out of memory: {wanted} more are needed",
        "use smaller weights, a smaller max_model_len, or device=cpu",
    ),
    *COMMON_TROUBLES,
)


def make(settings: ModelSettings) -> Model:
    """The model that the arguments describe; raises all errors that need no started server."""
    args = read_args(settings)
    if settings.structured:
        raise UsageError(
            "transformers serve cannot constrain answers to a schema",
            where="--structured",
            found="--model hf, whose server silently ignores response_format",
            expected="a server that follows response_format: --model vllm or openai",
            hint="leave --structured out: answers are read and checked without it as well",
        )
    weights = given_weights(KIND, args)
    if weights.folder is not None and "@" in str(weights.folder):
        raise bad(
            KIND,
            f"pretrained={args.model}",
            "a path without @: transformers serve takes the text after @ for a revision",
            hint="rename the folder, or give a link to it",
        )
    python, found = probe_interpreter(
        args.python, PROBE, program="transformers", needs="transformers[serving]"
    )
    if missing := found["missing"]:
        says = f"no {', '.join(missing)}, which serving needs, for {python}"
        raise not_ready(weights, interpreter=(says, OWN_ENVIRONMENT))
    software = f"transformers {found['version']}" if found["version"] else None
    foreign = {name: value for name, value in args.engine.items() if name not in KNOWN}
    if foreign:
        check_with_help(_help(python), foreign)
    weights = weights.pinned()
    if args.chat_template is None and not args.completions:
        weights.check_template()
    served = str(weights.folder or args.model)
    served += f"@{weights.revision}" if weights.revision else ""
    context, ends, notes = _limits(args, weights)

    def command(port: str) -> Sequence[str]:
        flags = flags_of(args.engine)
        template = dict[str, Any](args.chat_template_kwargs)
        if args.chat_template is not None:
            # The server passes these variables to a function that also accepts a template.
            template["chat_template"] = args.chat_template.read_text("utf-8")
        if template:
            flags += ["--chat-template-kwargs", json.dumps(template)]
        return [python, *SERVER, served, "--host", HOST, "--port", port, *flags]

    device = args.engine.get("device", "auto")
    on_gpu = device.isdecimal() or device.startswith("cuda")
    if device == "auto":
        on_gpu = any(Path(each).exists() for each in GPU_DEVICES)

    return ServedModel(
        Engine(
            identity=weights_identity(
                KIND, args, weights, speed_args=SPEED_ARGS, software=software
            ),
            model=served,
            requests=args.requests,
            command=command,
            listens_on="port",
            gpus=int(on_gpu),
            variables=variables_of(settings.args),
            concurrency=args.concurrency,
            environment=ENVIRONMENT,
            fields=partial(fields, context=context, ends=ends),
            checked=partial(checked, context=context),
            final=(FAILED,),
            stages=STAGES,
            troubles=TROUBLES,
            notes=tuple(notes),
            check=lambda: [
                interpreter(python, "transformers"),
                *gpu_findings(None),
                *weights_findings(weights),
            ],
            thinks=partial(weights_think, args, weights),
        ),
        settings,
    )


def _limits(args: HfArgs, weights: Weights) -> tuple[int | None, list[int] | None, Sequence[str]]:
    """The tokens that fit into the model's context, None if unknown; those that end an answer, for
    a server that batches; and notes for the user."""
    context, notes = args.max_model_len, [args.note] if args.note else []
    if context is None and (longest := weights.number(CONTEXT)):
        context = min(longest, LONGEST_CONTEXT)
    elif context is None:
        notes.append(
            "its configuration does not limit the length of prompts (max_model_len=N does)"
        )
    ends = weights.end_tokens() if args.batching else None
    if ends == []:
        raise bad(
            KIND,
            "continuous_batching=true",
            "continuous_batching=false: the checkpoint does not define which token ends an answer",
            hint="or set eos_token_id in the checkpoint's generation_config.json",
        )
    return context, ends, notes


def fields(
    request: Request, *, context: int | None, ends: Sequence[int] | None = None
) -> Mapping[str, Any]:
    """The additional fields of a request; CallError if the server would answer it wrongly.

    A server that batches needs `ends`, the tokens that end an answer. An overlong prompt is cut to
    one token more than fits: it then costs no more than a prompt that fits, and its length shows
    that it was cut.
    """
    sampling = request.sampling
    drawn = sampling.temperature > 0
    ignored = None
    if ends is not None and (drawn or sampling.stop):
        ignored = (
            "with continuous_batching samples every answer as it did the first, and ignores a "
            "request's temperature and stop: set continuous_batching=false"
        )
    elif sampling.presence_penalty is not None:
        ignored = (
            "ignores a request's presence_penalty: leave it out of the sampling "
            "(--gen_kwargs presence_penalty=null)"
        )
    if ignored is not None:
        raise CallError("bad_request", f"transformers serve {ignored}", fatal=True)
    settings: dict[str, Any] = {**(DRAWN if drawn else GREEDY)}
    if drawn and sampling.top_k is not None:
        settings["top_k"] = sampling.top_k
    if ends is not None:
        settings["eos_token_id"] = list(ends)
    # The server refuses requests that have a top_k of their own.
    more: dict[str, Any] = {"generation_config": json.dumps(settings), "top_k": None}
    if context is not None:
        cut = {"truncation": True, "max_length": room_of(request, context) + 1}
        more["chat_template_kwargs"] = cut
    return more


def checked(request: Request, reply: Reply, *, context: int | None) -> Reply:
    """The reply, cut at the first stop text; CallError if its prompt was too long."""
    if reply.usage is None:
        raise CallError("bad_response", "the answer lacks the number of prompt tokens")
    if context is not None:
        room_of(request, context, least=reply.usage.prompt_tokens)
    ends = [at for at in (reply.text.find(word) for word in request.sampling.stop) if at >= 0]
    if not ends:
        return reply
    return msgspec.structs.replace(reply, text=reply.text[: min(ends)], finish="stop")


def room_of(request: Request, context: int, *, least: int = 1) -> int:
    """The tokens left for a prompt after the longest answer; CallError if there are too few."""
    answer = request.sampling.limit
    if context - answer < least:
        raise CallError(
            "overflow",
            f"the prompt and an answer of {answer} tokens do not fit into a context of {context}",
        )
    return context - answer


def _help(python: str) -> str:
    done = subprocess.run(
        [python, *SERVER, "--help"],
        capture_output=True,
        text=True,
        check=False,
        env={**without_secrets(os.environ), **ENVIRONMENT, **WIDE},
    )
    if done.returncode or "--port" not in done.stdout:
        raise ModelError(
            "transformers serve cannot be started",
            where=python,
            found=last_words(done),
            expected="transformers 5 or newer, in which `transformers serve --help` works",
        )
    return done.stdout
