"""The arguments of an `openai` model, read and checked before anything is asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

import msgspec

from harness.errors import UsageError
from harness.models import Identity, ModelSettings

DEFAULT_HOST = "api.openai.com"
DEFAULT_KEY_ENV = "OPENAI_API_KEY"
CONCURRENCY = 64


class OpenAIArgs(msgspec.Struct, frozen=True, kw_only=True):
    """What `--model_args` may say of a served model.

    `revision` or `identity` tell what stands behind the name, `immutable` that the host never puts
    other weights behind one: without any of them answers are reused inside one run only. A model
    without a `system_role` is told what the system says in its first user message.
    """

    model: str
    base_url: str | None = None
    api_key_env: str = DEFAULT_KEY_ENV
    api_key_file: str | None = None
    revision: str | None = None
    identity: str | None = None
    immutable: bool = False
    concurrency: int | None = None
    max_tokens_field: str | None = None
    seed: bool = True
    system_role: bool = True


def read_args(settings: ModelSettings) -> OpenAIArgs:
    """The arguments, typed; an unknown or unusable one is a UsageError."""
    known = OpenAIArgs.__struct_fields__
    values: dict[str, Any] = {}
    for name, text in settings.args.items():
        if name not in known:
            close = get_close_matches(name, known, n=1)
            raise UsageError(
                f"an openai model has no argument {name!r}",
                where="--model_args",
                expected="one of " + ", ".join(known),
                hint=f"did you mean {close[0]!r}?"
                if close
                else "`harness models openai` tells what each means",
            )
        values[name] = _READERS.get(name, _text)(name, text)
    if "model" not in values:
        raise UsageError(
            "an openai model needs the name that its server knows it by",
            where="--model_args",
            found=", ".join(f"{name}=…" for name in settings.args) or "nothing",
            expected="model=NAME",
        )
    if "api_key_env" in values and "api_key_file" in values:
        raise UsageError(
            "the key of an openai model is said to be in two places",
            where="--model_args",
            found="api_key_env and api_key_file",
            expected="one of them",
        )
    return OpenAIArgs(**values)


def identity_of(args: OpenAIArgs, *, structured: bool) -> Identity:
    """Who the model is: its name and what was said of it.

    The host belongs to the name where nothing was said, so that two servers with a model of one
    name are told apart in a run, and where the host vouches for its names (`immutable`). What is
    pinned is the same wherever it is served.
    """
    details: dict[str, Any] = {}
    if args.revision is not None:
        details["revision"] = args.revision
    if args.identity is not None:
        details["identity"] = args.identity
    pinned = bool(details)
    if not pinned:
        details["host"] = host_of(args)
    if not args.seed:
        details["seed"] = False
    if not args.system_role:
        details["system_role"] = False
    if structured:
        details["structured"] = True
    return Identity(
        kind="openai",
        name=args.model,
        details=details,
        scope="everywhere" if pinned or args.immutable else "run",
    )


def address_of(args: OpenAIArgs) -> str:
    """The base URL as it may be shown: without credentials and query."""
    parts = urlsplit(base_url_of(args))
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"


def host_of(args: OpenAIArgs) -> str:
    """Host, and port where one is named."""
    parts = urlsplit(base_url_of(args))
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def tokens_field_of(args: OpenAIArgs) -> str:
    """What the server calls the token limit: only OpenAI's own has taken up the new name."""
    if args.max_tokens_field is not None:
        return args.max_tokens_field
    return "max_completion_tokens" if host_of(args) == DEFAULT_HOST else "max_tokens"


def base_url_of(args: OpenAIArgs) -> str:
    """Where the server stands: as it was given, or as the official client would find it."""
    return args.base_url or os.environ.get("OPENAI_BASE_URL") or f"https://{DEFAULT_HOST}/v1"


def _text(name: str, text: str) -> str:
    if not text:
        raise _bad(name, text, "a value")
    return text


def _switch(name: str, text: str) -> bool:
    switches = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
    if text.lower() not in switches:
        raise _bad(name, text, "true or false")
    return switches[text.lower()]


def _positive(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise _bad(name, text, "a whole number from 1 on")
    return int(text)


def _address(name: str, text: str) -> str:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise _bad(name, text, "an address such as http://127.0.0.1:8000/v1")
    return text


def _bad(name: str, text: str, expected: str) -> UsageError:
    return UsageError(
        "an argument of the openai model cannot be used",
        where="--model_args",
        found=f"{name}={text}",
        expected=expected,
    )


_READERS: Mapping[str, Callable[[str, str], Any]] = {
    "immutable": _switch,
    "seed": _switch,
    "system_role": _switch,
    "concurrency": _positive,
    "base_url": _address,
}
