"""What `harness doctor` finds about the key and the server of an `openai` model."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import msgspec

from harness.base.errors import UsageError, did_you_mean
from harness.contracts.finding import NAME, Finding, bad, bad_by, doubtful, good
from harness_models.openai_args import (
    DEFAULT_HOST,
    NAME_KEY,
    OpenAIArgs,
    read_key,
)
from harness_models.openai_screen import Screen, check_header

KEY, SERVER = "key", "server"

UNREACHED = "cannot be reached"

SHOWN_NAMES = 6
"""How many of the server's models an error lists."""


def key_finding(args: OpenAIArgs) -> Finding:
    """The finding about the key's place and presence; it never shows the key itself."""
    if args.has_credentials:
        return good(KEY, "is part of the address")
    if args.api_key_file is not None:
        try:
            read_key(args.api_key_file)
        except UsageError as error:
            return bad_by(KEY, error)
        return good(KEY, f"is in the file {args.api_key_file}")
    variable = args.api_key_env or args.usual_key_env
    if key := os.environ.get(variable, "").strip():
        if args.api_key_env is None:
            return doubtful(KEY, withheld(args), NAME_KEY)
        try:
            check_header(key, variable)
        except UsageError as error:
            return bad_by(KEY, error)
        return good(KEY, f"{variable} is set")
    unset = f"{variable} is not set"
    if args.wants_key:
        return bad(
            KEY,
            unset + why_there(args),
            f"set {variable}, or give a file with the key: api_key_file=FILE",
        )
    return good(KEY, f"{unset}: requests carry no key")


def why_there(args: OpenAIArgs) -> str:
    """Why a model is asked at OpenAI's own servers, if no argument or variable names a host."""
    if args.base_url or args.azure_endpoint or args.host != DEFAULT_HOST:
        return ""
    return f", and without base_url= the model is asked at {DEFAULT_HOST}"


def withheld(args: OpenAIArgs) -> str:
    """Why a model gets no key although one may be set."""
    return f"{args.usual_key_env} is not sent to {args.host}, which only a file names"


def unusable(args: OpenAIArgs, why: str, to_do: str = "") -> Finding:
    """The finding about a server that cannot be asked at its address."""
    argument = "azure_endpoint" if args.azure_endpoint else "base_url"
    place = argument if args.base_url or args.azure_endpoint else "OPENAI_BASE_URL or base_url"
    return bad(SERVER, f"{args.address} {why}", f"{to_do}correct {place}")


def unreachable(args: OpenAIArgs, why: str) -> Finding:
    """The finding about a server that gave no answer at all."""
    return unusable(args, f"{UNREACHED}: {why}", "start the server there, or ")


def is_unreachable(finding: Finding) -> bool:
    """Whether a finding is about a server that gave no answer at all."""
    return finding.about == SERVER and f" {UNREACHED}: " in finding.says


def listing_finding(
    args: OpenAIArgs, status: int, received: bytes, *, keyed: bool, screen: Screen
) -> Finding:
    """The finding about address, key and model name, from an answer to `GET /models`."""
    answers = f"{args.address} answers {status}"
    if status in (401, 403):
        place = args.api_key_file or args.api_key_env
        problem = "refuses the key" if keyed else "needs a key"
        to_do = NAME_KEY if place is None else f"put a valid key into {place}"
        return doubtful(SERVER, f"{answers}: it {problem}", to_do)
    text = screen.error(" ".join(received[:4000].decode("utf-8", "replace").split()))
    beginning = (text[:120] + "…" if len(text) > 120 else text) or "nothing"
    if status >= 500:
        return doubtful(SERVER, f"{answers}: {beginning}", "look at the server's log")
    whole = args.azure_endpoint or args.base.rstrip("/").endswith("/v1")
    version = None if whole else f"base_url={args.address.rstrip('/')}/v1 is the usual form"
    if status >= 400:
        says = f"{args.address} does not list its models ({status})"
        return doubtful(SERVER, says, version)
    models: Any = None
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body: Any = msgspec.json.decode(received)
        models = body.get("data") if isinstance(body, dict) else None
    if not isinstance(models, list):
        other = f"{answers}, but not as a server of the OpenAI protocol: {beginning}"
        return doubtful(SERVER, other, version or "correct base_url")
    ids = [one["id"] for one in models if isinstance(one, dict) and "id" in one]
    names = [screen.error(name) for name in ids if isinstance(name, str)]
    access = "for this key" if keyed else "without a key"
    many = f"{len(names):,} model{'' if len(names) == 1 else 's'}"
    lists = f"{args.address} lists {many} {access}"
    if args.azure_endpoint is not None:
        deployed = args.azure_deployment or args.model
        return doubtful(SERVER, f"{lists}, but not whether {deployed!r} is deployed")
    if args.model in names:
        return good(SERVER, f"{lists}, including {args.model!r}")
    preview = ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
    return doubtful(
        NAME,
        f"{lists}, but not {args.model!r}" + (f": {preview}" if names else ""),
        did_you_mean(args.model, names) or "correct the model's name",
    )
