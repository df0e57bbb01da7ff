"""The contract between the harness and a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.contracts.finding import Finding
from harness.contracts.identity import Identity

Finish = Literal["stop", "length", "refused"]
"""How a reply ended: by itself, at the token limit, or stopped by the server's content filter."""


class Message(msgspec.Struct, frozen=True):
    """One turn of a chat: `Message("user", "Hello")`."""

    role: Literal["system", "user", "assistant"]
    content: str


class Sampling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a reply is sampled; every field enters the key of a call."""

    temperature: float = 0.0
    max_tokens: int = 1024
    top_p: float | None = None
    """The share of probability that tokens are sampled from; None for the server's default."""

    top_k: int | None = None
    """How many of the likeliest tokens are sampled from; None for the server's default."""

    presence_penalty: float | None = None
    """How much less likely a token becomes once it has occurred; None for the server's default."""

    stop: tuple[str, ...] = ()
    reasoning_tokens: int = 0
    """The tokens for reasoning, on top of `max_tokens`: 0 in requests to models that do not
    think."""

    @property
    def limit(self) -> int:
        """The longest reply, in tokens: answer and reasoning."""
        return self.max_tokens + self.reasoning_tokens

    @property
    def seldom_set(self) -> dict[str, Any]:
        """The fields that are in requests and keys only where they are set."""
        given = {"top_k": self.top_k, "presence_penalty": self.presence_penalty}
        return {name: value for name, value in given.items() if value is not None}


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a request, for models that answer by rule; never part of a key."""

    benchmark: str
    stage: str
    role: str
    prompt: str
    variables: Mapping[str, Any]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a model.

    `Request(messages=(Message("user", "Hello"),), sampling=Sampling(), seed=7)`
    """

    messages: tuple[Message, ...]
    sampling: Sampling
    seed: int
    repeat: int = 0
    schema: dict[str, Any] | None = None
    """The JSON schema of the reply, for servers that enforce one."""

    topic: Topic | None = None
    """The origin of the request, for models that answer by rule."""

    key: str = ""
    """The key of the call, the same in every session of a run: patient models know it by that."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens that a reply cost, as the server counted them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    """All tokens of the reply, reasoning included."""

    cached_tokens: int = 0
    """The part of the prompt's tokens that came from the server's cache."""

    reasoning_tokens: int = 0


class TokenLogprob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One token of a reply with its probability."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model's answer to one request: `Reply(text="Hello", usage=Usage(prompt_tokens=4))`."""

    text: str
    """The answer, without reasoning that the server returns apart."""

    finish: Finish = "stop"
    reasoning: str | None = None
    """The reasoning, if the server returns it apart."""

    usage: Usage | None = None
    id: str | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    """The probabilities of its tokens; None if they were not requested or not returned."""


@dataclass(eq=False, repr=False)
class CallError(Exception):
    """Why one attempt brought no reply.

        raise CallError("server_error", "HTTP 503: overloaded", retryable=True, status=503)

    `cause`: one of auth, bad_request, overflow, not_found, rate_limited, server_error, timeout,
    connection, bad_response, no_content, not_recorded.
    `detail`: what happened, for people.
    `retryable`: another attempt may succeed.
    `fatal`: no other call can succeed (a wrong key, an unknown model), so the run ends.
    `status`: the HTTP status, if there was one.
    `retry_after`: the seconds that the server asks to wait.
    `usage`: the tokens that the failed attempt cost, if the server reported them.
    """

    cause: str
    detail: str
    _: KW_ONLY
    retryable: bool = False
    fatal: bool = False
    status: int | None = None
    retry_after: float | None = None
    usage: Usage | None = None

    def __post_init__(self) -> None:
        self.args = (self.cause, self.detail)

    def __str__(self) -> str:
        return f"{self.cause}: {self.detail}"


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that a model's factory receives."""

    args: Mapping[str, str]
    concurrency: int | None = None
    """`--concurrency`; None if it was not given."""

    attempt_timeout: float = 600.0
    start_timeout: float = 3600.0
    """The seconds that a server may take to start, if the model starts one."""

    structured: bool = False
    embeds: bool = False
    """Whether each message of a request is a text to embed, and the text of a reply is what
    `harness.contracts.embedder.vectors_in` reads; kinds of model that cannot embed ignore it."""

    store: Path | None = None
    """The file of the run's store of calls, for a model that asks others; None without a store."""

    elsewhere: bool = False
    """Whether an engine starts on another machine, so that this one may lack GPUs for it."""

    given_hosts: frozenset[str] | None = None
    """The hosts, each with its port if the address has one, that the user's own command names: only
    these, its own service and this machine may get a key that no argument names, as the value of
    OPENAI_API_KEY. Any other host comes from a task or a settings file. None for no limit."""


class AskLive(CallError):
    """A patient model leaves a question that it did not send to another `model`, asked at once."""

    def __init__(self, model: Model) -> None:
        super().__init__("not_sent", "too few for a batch")
        self.model = model


class Model(ABC):
    """A model bound to a role. Creating it is cheap; `open` does the slow work.

    A subclass sets `identity` and implements `ask`; everything else has a default:

        class Parrot(Model):
            def __init__(self, settings: ModelSettings) -> None:
                self.identity = Identity(kind="parrot", name="parrot")
                self.concurrency = settings.concurrency or self.concurrency

            async def ask(self, request: Request) -> Reply:
                return Reply(text=request.messages[-1].content)

    Models compare by identity of the object, so that they can be keys of a dictionary.
    """

    identity: Identity
    """Everything that decides the answers: `Identity(kind="acme", name="small", details={…})`.

    If several models have the same identity and occupy the same resource, the first answers for
    all of them.
    """

    concurrency: int = 64
    """The most requests in flight that the model can use."""

    limited: bool = False
    """Whether all workers of a run on a cluster share `concurrency`, instead of having so many
    each; also where the user gives a number: `self.limited = True`."""

    occupies: str | None = None
    """The resource that only one open model may hold at a time, such as "gpu"."""

    gpus: int = 0
    """The GPUs of one machine that its engine needs at least; 0 for a model that needs none:
    `self.gpus = int(settings.args.get("tensor_parallel_size", "1"))`."""

    variables: tuple[str, ...] = ()
    """The environment variables that its keys and addresses come from, such as `("ACME_KEY",)`: on
    other machines they are set as they are where the run was started, or unset."""

    key_files: tuple[str, ...] = ()
    """The files that its keys come from, as the user names them. Another machine may lack them:
    `harness.base.key_files.key_text(file)` reads them there as well."""

    writes: bool = True
    """Whether it writes its replies, which forecasts count; false for one that looks them up."""

    takes_batches: bool = False
    """Whether requests may also be sent as lines of a file: see `batch_line`, `read_batch`."""

    patient: bool = False
    """Whether answers may take hours, as those of a batch service. Calls have no timeout, and their
    requests a `key`; `gathered`, `holds` and `leave` are for such models."""

    live: Model | None = None
    """The model that a patient model's questions are left to which cannot wait."""

    folder: Path | None = None
    """The folder in which a patient model keeps what it sent, set before `open`."""

    taken_up: bool = False
    """Whether a patient model takes up the questions in the folder of this one, which asks live."""

    asked_if_thinking: bool = False
    """Whether one small question shows what `thinks` does not know; its answer is kept."""

    thinking_switch: str | None = None
    """The argument that switches thinking off, for messages; None if there is none."""

    log_folder: Path | None = None
    """The folder for logs, created by the first writer; None outside a run."""

    _show: Callable[[str], None] | None = None

    def require(self) -> None:  # noqa: B027 - most need nothing
        """Raise the error that `open` would raise without a key; no network access.

        All models are checked before the first one opens that may cost money:

            def require(self) -> None:
                if "ACME_KEY" not in os.environ:
                    raise UsageError("the environment holds no ACME_KEY", where="acme:small")
        """

    def attach_log(self, folder: Path, show: Callable[[str], None]) -> None:
        """Set `log_folder` and the function behind `show`; called before `open`."""
        self.log_folder, self._show = folder, show

    def show(self, text: str) -> None:
        """Print a line for the user of the run; does nothing outside a run."""
        if self._show is not None:
            self._show(text)

    def thinks(self) -> bool | None:
        """Whether the model reasons before it answers; None if that is not known. No network access
        beyond the files of its weights.

        Requests to a model that thinks have `reasoning_tokens` on top of their `max_tokens`.
        """
        return None

    async def open(self) -> None:  # noqa: B027 - most need nothing
        """Prepare to answer; called once, before the first request that is not in the store.

        `self._session = aiohttp.ClientSession()`
        """

    async def close(self) -> None:  # noqa: B027 - most need nothing
        """Release all resources; the model may be opened again.

        `await self._session.close()`
        """

    @abstractmethod
    async def ask(self, request: Request) -> Reply:
        """Answer one request in a single attempt, without retries; raises CallError.

        `reply = await model.ask(Request(messages=(Message("user", "Hello"),), …))`
        """

    def batch_line(self, request: Request) -> dict[str, Any]:
        """A request as a line of a batch, without its `custom_id`; needs `takes_batches`.

        `{"method": "POST", "url": "/v1/chat/completions", "body": {…}}` in OpenAI's format.
        """
        raise NotImplementedError

    def read_batch(self, status: int, body: object) -> Reply:
        """The reply in the status and body of an answered line; raises CallError if there is none.

        `reply = model.read_batch(200, line["response"]["body"])`
        """
        raise NotImplementedError

    def read_line(self, line: Mapping[str, Any]) -> Reply:
        """The reply in an answered line of a batch; raises CallError if there is none.

        `reply = model.read_line(json.loads(line))`
        """
        response, error = line.get("response"), line.get("error")
        if isinstance(response, Mapping) and isinstance(response.get("status_code"), int):
            return self.read_batch(response["status_code"], response.get("body"))
        known = error if isinstance(error, Mapping) else {}
        said = f"{known.get('code') or 'the batch has no answer'}: {known.get('message') or error}"
        raise CallError("server_error", said, retryable=True)

    def gathered(self, *, live: bool) -> None:  # noqa: B027 - for patient models
        """Send what was asked: no more comes now. Few may be asked `live`. Errors end the run."""

    def holds(self, key: str) -> bool:
        """Whether the request of this key was asked before, and paid, as by an earlier session."""
        return False

    def leave(self, reason: Exception, *, send: bool) -> None:  # noqa: B027 - for patient models
        """Let all calls in flight raise the reason; `send` sends what was asked before."""

    def server_command(self) -> Sequence[str] | None:
        """The command line for `harness doctor`; None if the model starts no server.

        `["acme-serve", "--weights", "weights/small"]`
        """
        return None

    def report(self) -> dict[str, Any]:
        """Facts that the model has learnt about its server, for the manifest.

        `{"system_role": False}`
        """
        return {}

    async def check(self) -> Sequence[Finding]:
        """Findings about a closed model: made in seconds, without a start and at no cost.

        They are made before the first call of a run that costs, and by `harness doctor`. A bad one
        ends the run. Where one is doubtful and none is bad, a model that occupies no resource is
        asked the small question of `asked_if_thinking`.

        `[good("server", "answers"), bad("key", "ACME_KEY is not set", "set it")]`
        """
        return ()
