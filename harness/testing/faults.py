"""The faults of a model server, and the rules that choose the requests for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Literal, TypeAlias

import msgspec

Kind = Literal["answer", "reset", "reset_in_body", "silence"]


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A wrong answer of a server.

        FaultyServer(faults=[Fault(status=503, headers={"retry-after": "1"}, body={})])

    `kind` "answer" sends `status`, `headers` and `body` as `content_type` after `delay` seconds; a
    body that is no text is sent as JSON, and without a body the right answer is sent, so that a
    delay alone makes a slow answer. `choice` replaces fields of the right answer's only choice.
    "reset" cuts the connection, "reset_in_body" cuts it after half of a right answer, and "silence"
    keeps it open and never answers.
    """

    kind: Kind = "answer"
    status: int = 200
    headers: Mapping[str, str] = {}
    body: Any = None
    content_type: str = "application/json"
    choice: Mapping[str, Any] | None = None
    delay: float = 0.0


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it arrived.

    `number` counts requests from 0, `again` is how often the same body arrived before, `digest` the
    hash of the body, `at` the time by `time.monotonic()`, `target` the path with its query.
    """

    number: int
    again: int
    digest: str
    body: dict[str, Any]
    headers: dict[str, str]
    at: float
    target: str = ""


When: TypeAlias = Callable[[Asked], Fault | None]
Faults: TypeAlias = When | Sequence[Fault | None]
"""A rule, or a list with an entry for each request in the order of arrival."""


def status(
    code: int,
    *,
    message: str = "no",
    code_name: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Fault:
    """An error status with the body that OpenAI's servers send."""
    error = {"message": message, "type": "error", "param": None, "code": code_name}
    return Fault(status=code, headers=headers or {}, body={"error": error})


RESET = Fault(kind="reset")
RESET_IN_BODY = Fault(kind="reset_in_body")
SILENCE = Fault(kind="silence")
BROKEN_JSON = Fault(body='{"id": "x", "choices": [{"index": 0, "mess')
OTHER_TYPE = Fault(body="<html>the proxy is tired</html>", content_type="text/html")
TRUNCATED = Fault(choice={"finish_reason": "length"})
FILTERED = Fault(choice={"finish_reason": "content_filter"})


def slow(seconds: float) -> Fault:
    """The right answer after some seconds."""
    return Fault(delay=seconds)


def first(count: int, fault: Fault) -> When:
    """The fault for the first `count` requests."""
    return lambda asked: fault if asked.number < count else None


def once_each(fault: Fault) -> When:
    """The fault for the first request with each body, and none for its repetitions."""
    return lambda asked: None if asked.again else fault


def where(text: str, fault: Fault) -> When:
    """The fault for every request with this text in one of its messages."""

    def rule(asked: Asked) -> Fault | None:
        contents = [str(message.get("content")) for message in asked.body.get("messages", ())]
        return fault if any(text in content for content in contents) else None

    return rule


def share(part: float, faults: Sequence[Fault], *, seed: int = 0) -> When:
    """A random one of the faults for this share of requests, drawn in the order of arrival."""
    draw = Random(seed)

    def rule(_: Asked) -> Fault | None:
        return draw.choice(faults) if draw.random() < part else None

    return rule
