"""The contract between the harness and a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from harness.findings import Finding
from harness.models.identity import Identity

Finish = Literal["stop", "length", "refused"]
"""How a reply ended: by itself, at the token limit, or stopped by the server's content filter."""


class Message(msgspec.Struct, frozen=True):
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


class Sampling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a reply is drawn; all of it enters the key of a call."""

    temperature: float = 0.0
    max_tokens: int = 1024
    top_p: float | None = None
    stop: tuple[str, ...] = ()


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """What a request is about, for models that answer by rule; never part of a key."""

    benchmark: str
    stage: str
    role: str
    prompt: str
    variables: Mapping[str, Any]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a model. `repeat` numbers the times that the same is asked, from 0."""

    messages: tuple[Message, ...]
    sampling: Sampling
    seed: int
    repeat: int = 0
    schema: dict[str, Any] | None = None
    topic: Topic | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens a reply cost, as the server counted them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


class TokenLogprob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One token of an answer, the logarithm of its probability, and the likeliest in its place."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model answered. `logprobs` are None where none were asked for, or none came."""

    text: str
    finish: Finish = "stop"
    reasoning: str | None = None
    usage: Usage | None = None
    id: str | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None


class CallError(Exception):
    """Why one attempt brought no reply.

    `cause` is one of: auth, bad_request, overflow, not_found, rate_limited, server_error,
    timeout, connection, bad_response, no_content, not_recorded.
    `fatal` ends the run: no other call can do better (a wrong key, an unknown model). `usage` is
    what the attempt cost all the same, where the server told.
    """

    def __init__(
        self,
        cause: str,
        detail: str,
        *,
        retryable: bool = False,
        fatal: bool = False,
        status: int | None = None,
        retry_after: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause
        self.detail = detail
        self.retryable = retryable
        self.fatal = fatal
        self.status = status
        self.retry_after = retry_after
        self.usage = usage


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the run tells a model when it is made."""

    args: Mapping[str, str]
    concurrency: int | None = None
    attempt_timeout: float = 600.0
    structured: bool = False


class Model(Protocol):
    """A model bound to a role. Made cheaply; `open` does what is slow.

    `concurrency` is how many requests it wants in flight at most. `occupies` names what only one
    open model at a time may hold (a GPU); None for models that stand beside any other. Of several
    models of one identity that occupy the same, the first answers for all.
    """

    @property
    def identity(self) -> Identity: ...

    @property
    def concurrency(self) -> int: ...

    @property
    def occupies(self) -> str | None: ...

    async def open(self) -> None:
        """Make ready to answer; called once before the first request that the store misses."""

    async def close(self) -> None:
        """Give everything back; may be opened again."""

    async def ask(self, request: Request) -> Reply:
        """Answer one request, once, without retries; raises CallError."""
        ...


@runtime_checkable
class Demanding(Protocol):
    """A model that cannot be opened without something its user gives, such as a key."""

    def demand(self) -> None:
        """Raise the error that `open` would raise for want of it; at once, and asking nobody."""


@runtime_checkable
class Logging(Protocol):
    """A model that has more to say than its answers, such as one that starts a server."""

    def log_to(self, folder: Path, tell: Callable[[str], None]) -> None:
        """Learn, before `open`, where logs are kept and how to show a line to the user.

        The folder is that of a run, and is made by whoever writes to it first.
        """


@runtime_checkable
class StartsServer(Protocol):
    """A model that starts a server of its own."""

    def server_command(self) -> Sequence[str]:
        """The command line that starts it, for the user to look at."""
        ...


@runtime_checkable
class Reporting(Protocol):
    """A model that learns something of its server that a reader of its answers must know."""

    def report(self) -> dict[str, Any]:
        """What it has learnt so far, for the manifest; empty where nothing."""
        ...


@runtime_checkable
class Examinable(Protocol):
    """A model that can tell, before it is opened, whether it would answer; for `harness doctor`."""

    async def examine(self) -> Sequence[Finding]:
        """What a look of a few seconds finds that costs nothing and changes nothing."""
        ...


@runtime_checkable
class TakesBatches(Protocol):
    """A model whose questions may also be sent as lines of a file, in the OpenAI batch format."""

    def batch_line(self, request: Request) -> dict[str, Any]:
        """What a line says of a request beside its `custom_id`: method, url and body."""
        ...

    def read_batch(self, status: int, body: object) -> Reply:
        """The reply in an answered line's status and body; raises CallError where it holds none."""
        ...
