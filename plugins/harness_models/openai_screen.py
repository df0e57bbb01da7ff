"""Keeps a model's secrets out of what is shown and recorded of its server's answers."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from harness.base.errors import UsageError
from harness.base.redaction import HIDDEN, without_echoes
from harness.contracts.model import Reply

HEADERS_ENV = "OPENAI_CUSTOM_HEADERS"
SHORTEST_IN_ANSWERS = 16
"""Shorter keys are never looked for in what a model said: `x`, `EMPTY` and `test` are words."""

OPEN_HEADERS = ("accept", "content-type", "user-agent")
"""Custom headers that hold no secret."""


class Screen:
    """Redacts secrets in texts of a server, and counts what its answers made necessary."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._counts = {"keys_redacted": 0, "replies_with_unusable_usage": 0}
        self.know(secrets)

    def know(self, secrets: Iterable[str]) -> None:
        """Look for these secrets from now on; the counts go on."""
        self._secrets = tuple(dict.fromkeys(secrets))
        self._long = tuple(one for one in self._secrets if len(one) >= SHORTEST_IN_ANSWERS)

    def count(self, name: str, more: int = 1) -> None:
        """Add to one of the counts."""
        self._counts[name] += more

    def report(self) -> dict[str, Any]:
        """The counts that are not 0."""
        return {name: count for name, count in self._counts.items() if count}

    def error(self, text: str) -> str:
        """The text of an error without the secrets, in whatever form the server repeats them."""
        return without_echoes(text, self._secrets)

    def line(self, text: str) -> str:
        """A line of recorded answers without the secrets, except short ones and parts of them."""
        return without_echoes(text, self._long, whole=True)

    def reply(self, reply: Reply) -> Reply:
        """The reply without the secrets, except short ones."""
        texts = {"text": reply.text, "reasoning": reply.reasoning or "", "id": reply.id or ""}
        spoken = "".join(token.token for token in reply.logprobs or ())
        others = "\0".join(name for token in reply.logprobs or () for name, _ in token.top)
        changed: dict[str, Any] = {}
        for secret in self._long:
            if secret in spoken or secret in others:
                changed["logprobs"] = None
            for name, text in texts.items():
                if hits := text.count(secret):
                    changed[name] = texts[name] = text.replace(secret, HIDDEN)
                    self.count("keys_redacted", hits)
        return msgspec.structs.replace(reply, **changed) if changed else reply


NO_SCREEN = Screen()
"""For models without secrets."""


def custom_headers() -> dict[str, str]:
    """The headers in the lines of `Name: value` of OPENAI_CUSTOM_HEADERS."""
    pairs = (line.partition(":") for line in os.environ.get(HEADERS_ENV, "").split("\n"))
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


def secrets_in_headers(headers: Mapping[str, str]) -> Iterator[str]:
    """The values of headers, and their parts: `Bearer KEY` and `session=KEY` hold a key."""
    for name, value in headers.items():
        if name.lower() not in OPEN_HEADERS:
            yield value
            for part in re.split(r"[\s;,]+", value):
                yield part
                yield part.partition("=")[2]


def secrets_in_address(url: str) -> Iterator[str]:
    """The password in an address, as it is written and meant, and `user:password` as it is sent."""
    parts = urlsplit(url)
    if parts.username is not None:
        password = parts.password or ""
        pair = f"{unquote(parts.username)}:{unquote(password)}"
        yield from (password, unquote(password), pair, b64encode(pair.encode()).decode())


def check_header(value: str, where: str) -> None:
    """Raise UsageError, without repeating the value, if a header cannot have this value."""
    if not value.isprintable():
        raise UsageError(
            "a line break or another control character cannot be sent in a header",
            where=where,
            found="a value that contains one",
            expected="one line of printable characters",
            hint="set it without quotes, line breaks and what a terminal added",
        )
