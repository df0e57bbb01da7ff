"""The contract between the harness and a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.contracts.finding import Finding
from harness.contracts.identity import Identity

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
        super().__init__(cause, detail)
        self.cause = cause
        self.detail = detail
        self.retryable = retryable
        self.fatal = fatal
        self.status = status
        self.retry_after = retry_after
        self.usage = usage

    def __str__(self) -> str:
        return f"{self.cause}: {self.detail}"


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the run tells a model when it is made."""

    args: Mapping[str, str]
    concurrency: int | None = None
    attempt_timeout: float = 600.0
    structured: bool = False


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a batch is.

    `state` is the service's word for it, `ended` whether all answers that will come are there.
    `done` and `failed` count requests out of `total`. `expires_at` is in seconds since 1970,
    `problem` why the service refused the whole batch.
    """

    state: str
    ended: bool
    total: int = 0
    done: int = 0
    failed: int = 0
    expires_at: int | None = None
    problem: str | None = None


class Batches(ABC):
    """A service that answers files of requests:

        file_id = batches.upload(Path("requests.jsonl"))
        batch_id = batches.create(file_id, "/v1/chat/completions")
        if batches.status(batch_id).ended:
            Path("answers.jsonl").write_bytes(b"".join(batches.answers(batch_id)))

    Every method raises HarnessError where the service refuses or cannot be reached.
    """

    @abstractmethod
    def upload(self, path: Path) -> str:
        """The service's id of a file of requests that it now has."""

    @abstractmethod
    def create(self, file_id: str, endpoint: str) -> str:
        """The id of a new batch of that file; `endpoint` is the `url` of its lines."""

    @abstractmethod
    def find(self, file_id: str) -> str | None:
        """The id of the batch that was created of that file; None where there is none.

        Asked where a session ended between `upload` and the answer to `create`.
        """

    @abstractmethod
    def status(self, batch_id: str) -> BatchStatus:
        """How far the batch is."""

    @abstractmethod
    def answers(self, batch_id: str) -> Iterator[bytes]:
        """The lines of an ended batch, answers and failures, in pieces of any size."""


class Model(ABC):
    """A model bound to a role. Made cheaply; `open` does what is slow.

    A model of your own sets `identity` and answers in `ask`; everything else has a default:

        class Parrot(Model):
            def __init__(self, settings: ModelSettings) -> None:
                self.identity = Identity(kind="parrot", name="parrot")
                self.concurrency = settings.concurrency or self.concurrency

            async def ask(self, request: Request) -> Reply:
                return Reply(text=request.messages[-1].content)

    A model is equal to itself alone, so that it can be a key of a dictionary.
    """

    identity: Identity
    """All that decides the answers: `Identity(kind="acme", name="small", details={…})`.

    Of several models of one identity that occupy the same, the first answers for all.
    """

    concurrency: int = 64
    """How many requests the model wants in flight at most."""

    occupies: str | None = None
    """What only one open model at a time may hold, such as "gpu"; None where nothing is shared."""

    takes_batches: bool = False
    """Whether requests may also be sent as lines of a file: see `batch_line`, `read_batch`."""

    log_folder: Path | None = None
    """Where logs belong, None outside a run. Whoever writes to it first makes it."""

    _show: Callable[[str], None] | None = None

    def require(self) -> None:  # noqa: B027 - most need nothing
        """Raise the error that `open` would raise for want of a key; at once, and asking nobody.

        Called before the first model of a run opens that costs anything:

            def require(self) -> None:
                if "ACME_KEY" not in os.environ:
                    raise UsageError("the environment holds no ACME_KEY", where="acme:small")
        """

    def attach_log(self, folder: Path, show: Callable[[str], None]) -> None:
        """Set `log_folder`, and what `show` calls; done before `open`.

        `model.attach_log(Path("runs/…/engines"), print)`
        """
        self.log_folder, self._show = folder, show

    def show(self, text: str) -> None:
        """Show a line to the user of the run; nobody sees it outside one.

        `self.show(f"{self.identity.label}: weights loaded")`
        """
        if self._show is not None:
            self._show(text)

    async def open(self) -> None:  # noqa: B027 - most need nothing
        """Make ready to answer; called once before the first request that the store misses.

        `self._session = aiohttp.ClientSession()`
        """

    async def close(self) -> None:  # noqa: B027 - most need nothing
        """Give everything back; may be opened again.

        `await self._session.close()`
        """

    @abstractmethod
    async def ask(self, request: Request) -> Reply:
        """Answer one request, once, without retries; raises CallError.

        `reply = await model.ask(Request(messages=(Message("user", "Hello"),), …))`
        """

    def batch_line(self, request: Request) -> dict[str, Any]:
        """What a line of a batch holds besides its `custom_id`, where `takes_batches` is true.

        `{"method": "POST", "url": "/v1/chat/completions", "body": {…}}`, as OpenAI takes it.
        """
        raise NotImplementedError

    def read_batch(self, status: int, body: object) -> Reply:
        """The reply in an answered line's status and body; raises CallError where it holds none.

        `reply = model.read_batch(200, line["response"]["body"])`
        """
        raise NotImplementedError

    def batches(self) -> Batches | None:
        """The service that lines of `batch_line` are sent to; None where others send them.

        `return AcmeBatches(key=os.environ["ACME_KEY"])`, for `harness batch submit`.
        """
        return None

    def server_command(self) -> Sequence[str] | None:
        """The command line of the server that the model starts; None where it starts none.

        `["acme-serve", "--weights", "weights/small"]`, for `--print_server_command`.
        """
        return None

    def report(self) -> dict[str, Any]:
        """What the model has learnt of its server so far, for the manifest; empty where nothing.

        `{"system_role": False}`
        """
        return {}

    async def check(self) -> Sequence[Finding]:
        """What `harness doctor` shows of a model that is not open: found in seconds, at no cost.

        `[good("server", "answers"), bad("key", "ACME_KEY is not set", "set it")]`
        """
        return ()
