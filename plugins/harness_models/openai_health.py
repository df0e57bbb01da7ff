"""What a look at a server of the protocol finds, for `harness doctor`; nothing is asked of a model.

`GET /models` costs nothing anywhere, and tells whether address, key and name of a model are right.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec

from harness.errors import UsageError, did_you_mean
from harness.findings import Finding, bad, bad_by, doubtful, good
from harness_models.openai_address import address_of, base_url_of
from harness_models.openai_args import OpenAIArgs, wants_key
from harness_models.openai_key import read_key

KEY, SERVER = "key", "server"
SECONDS = 8.0
"""For a server that lists its models: it does so at once, or not at all."""

SHOWN = 6
"""How many names of models are told where one is not among them."""

ASK = "`harness doctor --ask` asks the model one small question"


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """How a server answered `GET /models`."""

    status: int
    received: bytes


def key_finding(args: OpenAIArgs) -> Finding:
    """Where the key is, and whether it is there; never the key itself."""
    if urlsplit(base_url_of(args)).username is not None:
        return good(KEY, "stands in the address")
    if args.api_key_file is not None:
        try:
            read_key(args.api_key_file)
        except UsageError as error:
            return bad_by(KEY, error)
        return good(KEY, f"stands in the file {args.api_key_file}")
    if os.environ.get(args.api_key_env, "").strip():
        return good(KEY, f"{args.api_key_env} is set")
    unset = f"{args.api_key_env} is not set"
    if wants_key(args):
        return bad(
            KEY,
            unset,
            f"set {args.api_key_env}, or name a file that holds the key with api_key_file",
        )
    return good(KEY, f"{unset}: the server is asked without one")


def unreachable(args: OpenAIArgs, why: str) -> Finding:
    """The finding of a server that gave no answer at all."""
    usual = "azure_endpoint" if args.azure_endpoint else "base_url"
    given = usual if args.base_url or args.azure_endpoint else "OPENAI_BASE_URL or base_url"
    return bad(
        SERVER,
        f"{address_of(args)} cannot be reached: {why}",
        f"start the server there, or mend {given}",
    )


def listing_findings(args: OpenAIArgs, listing: Listing, *, keyed: bool) -> Iterator[Finding]:
    """What an answer to `GET /models` tells of address, key and the model's name."""
    address, status = address_of(args), listing.status
    if status in (401, 403):
        said = f"{address} answers {status}: it {'refuses the key' if keyed else 'wants a key'}"
        place = args.api_key_file or args.api_key_env
        yield bad(SERVER, said, f"put one that it takes into {place}")
    elif status >= 500:
        yield bad(SERVER, f"{address} answers {status}: {_said(listing)}", "look at its log")
    elif status >= 400:
        whole = args.azure_endpoint or urlsplit(address).path.rstrip("/").endswith("/v1")
        ends = "" if whole else "does it end in /v1? "
        yield doubtful(
            SERVER,
            f"{address} answers, but does not list its models ({status}), so {args.model!r} may "
            "be none of them",
            f"{ends}{ASK}",
        )
    else:
        names = _names(listing.received)
        if names is None:
            yield bad(
                SERVER,
                f"{address} answers {status}, but not as a server of the OpenAI protocol: "
                f"{_said(listing)}",
                "mend base_url: it usually ends in /v1",
            )
        else:
            yield _named(args, names, keyed=keyed)


def _named(args: OpenAIArgs, names: list[str], *, keyed: bool) -> Finding:
    to_whom = "to this key" if keyed else "without a key"
    many = f"{len(names):,} model{'' if len(names) == 1 else 's'}"
    lists = f"{address_of(args)} lists {many} {to_whom}"
    if args.azure_endpoint is not None:
        deployed = args.azure_deployment or args.model
        return doubtful(SERVER, f"{lists}, and does not tell whether {deployed!r} is deployed", ASK)
    if args.model in names:
        return good(SERVER, f"{lists}, {args.model!r} among them")
    shown = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    return bad(
        SERVER,
        f"{lists}, and {args.model!r} is none of them" + (f": {shown}" if names else ""),
        did_you_mean(args.model, names)
        or f"mend the model's name; where it is another name of one of them, {ASK}",
    )


def _names(received: bytes) -> list[str] | None:
    """The names in a list of models; None for what is no such list."""
    try:
        body: Any = msgspec.json.decode(received)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    models = body.get("data") if isinstance(body, dict) else None
    if not isinstance(models, list):
        return None
    return [str(one["id"]) for one in models if isinstance(one, dict) and "id" in one]


def _said(listing: Listing) -> str:
    """The beginning of what a server sent."""
    text = " ".join(listing.received[:400].decode("utf-8", "replace").split())
    return (text[:120] + "…" if len(text) > 120 else text) or "nothing"
