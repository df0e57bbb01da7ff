"""A model served by `transformers serve`, started by us: small checkpoints, CPUs, tests."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from harness.errors import ModelError, UsageError
from harness.hashing import digest_bytes
from harness.models import Identity, Model, ModelSettings
from harness_models.arguments import bad, flags_of, refuse_revision
from harness_models.hf_args import (
    KIND,
    KNOWN,
    OF_THE_MACHINE,
    HfArgs,
    check_with_help,
    read_args,
)
from harness_models.hf_log import STAGES, TROUBLES
from harness_models.hf_wire import checked, fields
from harness_models.server.interpreter import engine_findings, looked_into
from harness_models.server.launching import without_secrets
from harness_models.server.ports import HOST
from harness_models.server.served import Engine, ServedModel
from harness_models.server.weights import (
    check_template,
    checked_folder,
    commit_of,
    end_tokens,
    folder_identity,
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
    details: dict[str, Any] = {
        "engine": {k: v for k, v in sorted(args.engine.items()) if k not in OF_THE_MACHINE}
    }
    if folder is not None:
        details["identity"] = folder_identity(folder)
    elif commit is not None:
        details["revision"] = commit
    if args.chat_template is not None:
        details["chat_template"] = digest_bytes(args.chat_template.read_bytes())
    if args.chat_template_kwargs:
        details["chat_template_kwargs"] = dict(args.chat_template_kwargs)
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
