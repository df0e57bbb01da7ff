"""A model served by `transformers serve`, started by us: small checkpoints, CPUs, tests.

The server keeps to what it is asked less than it seems to: it draws only where the checkpoint's own
settings say so, takes all they say of sampling, reads prompts beyond what the model was made for,
and leaves the words at which it should stop in the answer.
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
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Model, ModelSettings, Reply, Request
from harness_models.arguments import bad, flags_of, refuse_revision
from harness_models.hf_args import (
    KIND,
    KNOWN,
    OF_THE_MACHINE,
    HfArgs,
    check_with_help,
    read_args,
)
from harness_models.server.interpreter import engine_findings, looked_into
from harness_models.server.launching import without_secrets
from harness_models.server.ports import HOST
from harness_models.server.served import HUB_TROUBLES, Engine, ServedModel, trouble
from harness_models.server.weights import (
    check_template,
    checked_folder,
    commit_of,
    end_tokens,
    identity_details,
    longest_context,
)

SERVER = ("-m", "transformers.cli.transformers", "serve")

LONGEST_CONTEXT = 100_000
"""Taken of models that were made for more: beyond it, one prompt takes the memory of many."""

FAILED = 500
"""How the server answers where it failed itself: it would again."""

ENVIRONMENT = {"HF_HUB_DISABLE_UPDATE_CHECK": "1"}
"""Else it asks the package index at each start whether it is the newest."""

WIDE = {"COLUMNS": "200", "NO_COLOR": "1"}
"""A help that breaks no line of an option."""

LOOK = """
import importlib.util, json
wanted = ("transformers", "torch", "accelerate", "fastapi", "uvicorn", "openai", "pydantic")
print(json.dumps([name for name in wanted if importlib.util.find_spec(name) is None]))
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
"""What a request does not say of its sampling is not taken from the checkpoint: stages say how
they are asked."""

STAGES = (
    (r"\[transformers\] Loading \S+@", "loading the weights"),
    (r"Loading weights: 100%", "weights loaded"),
    (r"Application startup complete", "server up"),
)

TROUBLES = (
    trouble(
        r"Missing dependencies for serving|No module named '(fastapi|uvicorn|openai|pydantic)'",
        "transformers is installed without what serving needs",
        'pip install "transformers[serving]" into the environment of python=…',
    ),
    trouble(
        r"No module named 'torch'|PyTorch (was not found|library but it was not found)",
        "transformers is installed without torch",
        "pip install torch into the environment of python=…",
    ),
    trouble(
        r"tokenizer\.chat_template is not set|does not have a chat template",
        "the checkpoint has no chat template, so it cannot be asked",
        "chat_template=FILE.jinja, the one that it was trained with",
    ),
    trouble(
        r"Unsupported dtype: '(?P<dtype>[^']*)'",
        "there is no dtype {dtype}",
        "dtype=auto, float32, float16 or bfloat16",
    ),
    trouble(
        r"Invalid value for '?(?P<reason>[^\n]+)",
        "transformers serve refuses an argument: {reason}",
        "see `transformers serve --help`",
    ),
    trouble(
        r"out of memory\. Tried to allocate (?P<wanted>[\d.]+ \w+)",
        "the GPU is out of memory: {wanted} more are wanted",
        "smaller weights, a smaller max_model_len, or device=cpu",
    ),
    trouble(
        r"`?trust_remote_code=True`?",
        "the checkpoint brings code of its own",
        "trust_remote_code=true, if you have read that code",
    ),
    *HUB_TROUBLES,
    trouble(r"No space left on device", "a disk is full", "free some: weights need it"),
)


def make(settings: ModelSettings) -> Model:
    """The model that the arguments describe; what can be wrong without a start is found here."""
    args = read_args(settings)
    if settings.structured:
        raise UsageError(
            "transformers serve cannot hold answers to a schema",
            where="--structured",
            found="--model hf, whose server ignores response_format without a word",
            expected="a server that follows it: --model vllm, or openai",
            hint="leave --structured out: answers are read and checked as well without it",
        )
    folder = checked_folder(args.model, argument="pretrained")
    if folder is not None:
        _check_folder(folder, args)
    python = _checked_python(args.python)
    foreign = {name: value for name, value in args.engine.items() if name not in KNOWN}
    if foreign:
        check_with_help(_help(python), foreign)
    commit = None if folder else commit_of(args.model, args.revision)
    if args.chat_template is None:
        check_template(args.model, folder=folder, commit=commit)
    served = str(folder) if folder else _pinned(args.model, commit or args.revision)
    context, notes = _context(args, commit or args.revision)
    ends = _ends(args, commit or args.revision) if args.batching else None

    def command(port: str) -> Sequence[str]:
        return [python, *SERVER, served, "--host", HOST, "--port", port, *server_flags(args)]

    return ServedModel(
        Engine(
            identity=identity_of(args, folder=folder, commit=commit),
            model=served,
            command=command,
            listens_on="port",
            concurrency=args.concurrency,
            environment=ENVIRONMENT,
            fields=partial(fields, context=context, ends=ends),
            checked=partial(checked, context=context),
            final=(FAILED,),
            stages=STAGES,
            troubles=TROUBLES,
            notes=notes,
            check=partial(engine_findings, python, "transformers"),
        ),
        settings,
    )


def identity_of(args: HfArgs, *, folder: Path | None, commit: str | None) -> Identity:
    """Who the model is: its weights, and all that decides what it says but not how fast."""
    details = identity_details(
        engine={k: v for k, v in args.engine.items() if k not in OF_THE_MACHINE},
        folder=folder,
        commit=commit,
        chat_template=args.chat_template,
        chat_template_kwargs=args.chat_template_kwargs,
    )
    pinned = folder is not None or commit is not None
    return Identity(
        kind=KIND,
        name=folder.resolve().name if folder else args.model,
        details=details,
        scope="everywhere" if pinned else "run",
    )


def server_flags(args: HfArgs) -> list[str]:
    """The command line of the server, but for weights and address."""
    flags = flags_of(args.engine)
    template = dict[str, Any](args.chat_template_kwargs)
    if args.chat_template is not None:
        # What the server hands to the template goes through a function that also takes one.
        template["chat_template"] = args.chat_template.read_text("utf-8")
    if template:
        flags += ["--chat-template-kwargs", json.dumps(template)]
    return flags


def fields(
    request: Request, *, context: int | None, ends: Sequence[int] | None = None
) -> Mapping[str, Any]:
    """What goes along with a request; CallError for one that the server would answer wrongly.

    A server that batches has to be told the tokens that end an answer, `ends`. A prompt that is
    too long is cut one token above what has room, so that it costs no more than one that fits, and
    is known by that.
    """
    sampling = request.sampling
    drawn = sampling.temperature > 0
    if ends is not None and (drawn or sampling.stop):
        raise CallError(
            "bad_request",
            "transformers serve with continuous_batching draws every answer as the first one, and "
            "knows neither a temperature nor stop of a request: continuous_batching=false",
            fatal=True,
        )
    settings: dict[str, Any] = {**(DRAWN if drawn else GREEDY)}
    if ends is not None:
        settings["eos_token_id"] = list(ends)
    more: dict[str, Any] = {"generation_config": json.dumps(settings)}
    if context is not None:
        cut = {"truncation": True, "max_length": room_of(request, context) + 1}
        more["chat_template_kwargs"] = cut
    return more


def checked(request: Request, reply: Reply, *, context: int | None) -> Reply:
    """The reply, ended where it should stop; CallError where its prompt was too long."""
    if reply.usage is None:
        raise CallError("bad_response", "the answer does not tell the length of its prompt")
    if context is not None and reply.usage.prompt_tokens > room_of(request, context):
        raise too_long(request, context)
    ends = [at for at in (reply.text.find(word) for word in request.sampling.stop) if at >= 0]
    if not ends:
        return reply
    return msgspec.structs.replace(reply, text=reply.text[: min(ends)], finish="stop")


def room_of(request: Request, context: int) -> int:
    """The tokens that a prompt may have beside the longest answer; CallError where none is left."""
    room = context - request.sampling.max_tokens
    if room < 1:
        raise too_long(request, context)
    return room


def too_long(request: Request, context: int) -> CallError:
    """The error for a prompt that does not fit."""
    answer = request.sampling.max_tokens
    return CallError(
        "overflow",
        f"the prompt and an answer of {answer} tokens do not fit into a context of {context}",
    )


def _pinned(repository: str, revision: str | None) -> str:
    return f"{repository}@{revision}" if revision else repository


def _check_folder(folder: Path, args: HfArgs) -> None:
    if "@" in str(folder):
        raise bad(
            KIND,
            f"pretrained={args.model}",
            "a path without @, behind which transformers serve looks for a revision",
            hint="another name for the folder, or a link to it",
        )
    refuse_revision(KIND, args.revision)


def _context(args: HfArgs, revision: str | None) -> tuple[int | None, tuple[str, ...]]:
    """The tokens of prompt and answer together that the model takes, and what to say first."""
    notes = (args.note,) if args.note else ()
    if args.max_model_len is not None:
        return args.max_model_len, notes
    made_for = longest_context(args.model, revision=revision)
    if made_for is None:
        unknown = "its configuration does not tell how long prompts may be (max_model_len=N does)"
        return None, (*notes, unknown)
    return min(made_for, LONGEST_CONTEXT), notes


def _ends(args: HfArgs, revision: str | None) -> list[int]:
    """The tokens that end an answer: a server that batches would not find them by itself."""
    found = end_tokens(args.model, revision=revision)
    if not found:
        raise bad(
            KIND,
            "continuous_batching=true",
            "false, since the checkpoint does not tell which token ends an answer",
            hint="eos_token_id in its generation_config.json tells it",
        )
    return found


def _checked_python(name: str) -> str:
    """The interpreter, ModelError where it is not there or cannot serve."""
    python, missing = looked_into(name, LOOK, program="transformers", needs="transformers[serving]")
    if missing:
        raise ModelError(
            "transformers is not installed, or not with what serving needs",
            where=python,
            found=f"no {', '.join(missing)}",
            hint='pip install "user-understanding-harness[hf]", or pip install '
            '"transformers[serving]" into another environment, whose python is then named by'
            " python=… or HARNESS_HF_PYTHON",
        )
    return python


def _help(python: str) -> str:
    """What the installed server says of its arguments."""
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
            found=(done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1],
            expected="`transformers serve --help` to work, as it does from version 5 on",
        )
    return done.stdout
