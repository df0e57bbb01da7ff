"""A model behind a server that the harness starts, uses and stops.

`Engine` describes the differences between the kinds of servers; everything else is the same.
"""

from __future__ import annotations

import asyncio
import functools
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from harness.base.errors import ModelError
from harness.contracts.finding import Finding
from harness.contracts.model import (
    CallError,
    Message,
    Model,
    ModelSettings,
    Reply,
    Request,
    Sampling,
)
from harness_models.openai import OpenAIModel
from harness_models.openai_args import OpenAIArgs
from harness_models.openai_embeddings import EmbeddingModel
from harness_models.server.ports import HOST, free_port, held_by

if TYPE_CHECKING:
    from harness.contracts.identity import Identity
    from harness_models.server.gpus import Gpu, GpuMemory
    from harness_models.server.launching import Launched

LOOK_SECONDS = 0.2
"""Between two checks of a starting server."""

BEAT_SECONDS = 10.0
"""Between two lines about a start that takes long."""

WATCH_SECONDS = 30.0
"""Between two looks at a server that answers nothing."""

HEALTH_SECONDS = 60.0
"""A server that does not answer so long hangs: it has only to say that it is healthy, or a word."""

STOP_SECONDS = 30.0
"""Twice the time that the keeper gives a server to end by itself."""

RESTARTS = 1
"""A server that crashes twice crashes again."""

PORTS = 3
"""The number of attempts to find a port: another process may take one before the server does."""

SOCKET = "socket"
LONGEST_FOLDER = 80
"""The system limits a socket's path to 107 bytes, and the socket has a folder of its own."""

LINES_READ = 1000
"""The last lines of a log that are searched for a failure's reason: a traceback per process."""

SIGNALLED = 128
"""The exit code is so much more than the number of a signal that ended the process."""

LONGEST_REASON = 400
ERROR = re.compile(r"[\w.]*(Error|Exception)\b.*: \S|\S.*: error: ")
ELSEWHERE = re.compile(
    r"root cause|KeyError: '/(psm|mp)[-_]|resource_tracker|leaked \w+ objects"
    r"|CancelledError|KeyboardInterrupt|EngineDeadError|ActorDiedError"
)
"""Parts of errors that only report the error of a child, or that a shutdown makes."""

BROKEN = ("connection", "server_error")
"""Causes of failed calls whose server may have ended."""

QUESTION = Request(messages=(Message("user", "Hello"),), sampling=Sampling(max_tokens=1), seed=0)
"""Sent until it is answered: a server may report that it is healthy before it can answer."""


@dataclass(frozen=True)
class Trouble:
    """A known failure: a `pattern` of its log or reply, in which a dot matches all.

    `cause` and `cure` contain named groups in braces.
    """

    pattern: str
    cause: str
    cure: str | Callable[[re.Match[str]], str]

    def texts(self, log: str) -> tuple[str, str] | None:
        """The cause and what to do about it; None if a log or a reply does not show the failure."""
        found = re.search(self.pattern, log, re.DOTALL)
        if found is None:
            return None
        cure = self.cure(found) if callable(self.cure) else self.cure.format(**found.groupdict())
        return self.cause.format(**found.groupdict()), cure


COMMON_TROUBLES = (
    Trouble(
        r"default chat template is no longer|tokenizer\.chat_template is not set"
        r"|does not have a chat template",
        "the checkpoint has no chat template, so it cannot answer messages",
        "give the template that it was trained with: chat_template=FILE.jinja",
    ),
    Trouble(
        r"`trust_remote_code=True`",
        "the checkpoint contains code of its own",
        "read that code, then set trust_remote_code=true",
    ),
    Trouble(
        r"GatedRepoError|gated repo|401 Client Error",
        "the hub restricts access to these weights",
        "accept their licence on the hub, and set HF_TOKEN",
    ),
    Trouble(
        r"LocalEntryNotFoundError|OfflineModeIsEnabled|outgoing traffic has been disabled"
        r"|couldn't connect to '?https://huggingface\.co",
        "the weights are not in the cache, and the hub cannot be reached",
        "give the weights as pretrained=FOLDER, or start with a network connection",
    ),
    Trouble("No space left on device", "a disk is full", "free space for weights and their code"),
)
"""Failures of all servers of weights."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """How one server is started and used.

    `model`: the model's name on the server.
    `command`: makes the command line from an address: a socket's path, or a port on 127.0.0.1 if
    `listens_on` is "port". It may take long, and raises errors before the start.
    `requests`: arguments of an `openai` model about requests, such as `system_role`.
    `occupies`, `gpus`, `variables`: as in `Model`; parts as in "gpu:0,1" may be held side by side.
    `environment`: additional variables.
    `fields`: additional fields of a request; it may raise a CallError.
    `checked`: checks and corrects a reply; it may raise a CallError.
    `final`: statuses that the same request would get again.
    `stages`: patterns of log lines, and their meanings for the user.
    `troubles`: known failures, the first that matches is reported.
    `notes`: shown before the start.
    `memory`: the GPU memory that is checked before and after.
    `check`: the findings of `harness doctor` about the requirements of a start.
    `thinks`: whether the weights think, by their template.
    """

    identity: Identity
    model: str
    command: Callable[[str], Sequence[str]]
    concurrency: int
    listens_on: Literal["socket", "port"] = "socket"
    requests: Mapping[str, Any] = field(default_factory=dict)
    occupies: str | None = "gpu"
    gpus: int = 0
    variables: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    fields: Callable[[Request], Mapping[str, Any]] = lambda request: {}
    checked: Callable[[Request, Reply], Reply] = lambda request, reply: reply
    final: Collection[int] = ()
    stages: Sequence[tuple[str | re.Pattern[str], str]] = ()
    troubles: Sequence[Trouble] = ()
    notes: Sequence[str] = ()
    memory: GpuMemory | None = None
    check: Callable[[], Sequence[Finding]] = tuple
    thinks: Callable[[], bool | None] = lambda: None


class PortTaken(Exception):
    """Another process listens on our server's port."""


@dataclass(frozen=True, kw_only=True)
class _Server:
    """A started server, its client, its folder, and its port if it has one."""

    launched: Launched
    client: OpenAIModel
    folder: Path
    port: int | None
    held_before: list[Gpu] | None

    def log_end(self) -> str:
        """The last lines of its log since the start."""
        return "\n".join(self.launched.log_tail(LINES_READ))

    def listens(self) -> bool:
        """True if it listens on its socket or port; PortTaken if another process does."""
        if self.port is None:
            return True
        ours = held_by(self.port, self.launched.processes())
        if ours is False:
            raise PortTaken
        return bool(ours)

    async def has_ended(self) -> bool:
        """True if it has ended; waits for one that accepts no connections."""
        until = time.monotonic() + STOP_SECONDS
        while self.launched.ended() is None and time.monotonic() < until:
            # The pause comes first: a dying server may still seem to listen.
            await asyncio.sleep(LOOK_SECONDS)
            with suppress(OSError, PortTaken):
                _, writer = await self._connect()
                writer.close()
                return False
        return self.launched.ended() is not None

    async def is_healthy(self) -> bool:
        """False if it says that it is unhealthy, or does not answer at all."""
        try:
            async with asyncio.timeout(HEALTH_SECONDS):
                reader, writer = await self._connect()
                with closing(writer):
                    writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    status = await reader.readline()
        except (OSError, TimeoutError, PortTaken):
            return False
        # A server without this address is healthy if it says so.
        return bool(status) and status.split()[1:2] != [b"503"]

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self.port is None:
            return await asyncio.open_unix_connection(str(self.folder / SOCKET))
        if not self.listens():
            raise ConnectionRefusedError
        return await asyncio.open_connection(HOST, self.port)


class ServedModel(Model):
    """A model whose server runs from `open` to `close`, and is restarted if it dies in between.

    A server that hangs is restarted as well: one that is unhealthy, or that leaves a call without
    an answer until it times out, and then answers no short question either. The server ends with
    the harness in any case: see `keeper.py`.
    """

    takes_batches = True
    thinking_switch = "chat_template_kwargs=enable_thinking=false"

    def __init__(self, engine: Engine, settings: ModelSettings) -> None:
        self.engine = engine
        self.identity = engine.identity
        self.concurrency = engine.concurrency
        self.occupies, self.gpus, self.variables = engine.occupies, engine.gpus, engine.variables
        self._settings = settings
        self._thinks: bool | None = None
        self._server: _Server | None = None
        self._restarts = 0
        self._restarting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._in_flight = 0
        self._last_answer = 0.0
        self._overdue = False
        self._client_report: Callable[[], dict[str, Any]] = dict
        self._hardware: dict[str, Any] = {}

    def _announce(self, text: str) -> None:
        self.show(f"{self.identity.label}: {text}")

    def thinks(self) -> bool | None:
        """Whether the weights think, by their arguments and template."""
        if self._thinks is None:
            self._thinks = self.engine.thinks()
        return self._thinks

    def server_command(self) -> Sequence[str]:
        """The command that would start the server, with a placeholder for the address."""
        return self.engine.command(self.engine.listens_on.upper())

    async def check(self) -> Sequence[Finding]:
        """Findings about the requirements of a start."""
        return await asyncio.to_thread(self.engine.check)

    def report(self) -> dict[str, Any]:
        """The GPUs with their driver, and what the server turned out to lack."""
        return {**self._hardware, **self._client_report()}

    async def open(self) -> None:
        """Start the server and return when it has answered; ModelError gives the reason if not."""
        if self._server is None:
            self._restarts = 0
            for note in self.engine.notes:
                self._announce(note)
            self._server = await self._start()
            self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """End the server; ModelError if a process of it or its GPU memory remains."""
        tasks = [task for task in (self._watching, self._restarting) if task is not None]
        self._watching = self._restarting = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        server, self._server = self._server, None
        if server is not None:
            await self._stop(server)

    async def ask(self, request: Request) -> Reply:
        """The server's reply; if the server died, a CallError after the restart."""
        if self._restarting is not None:
            await asyncio.shield(self._restarting)
        server = self._server
        if server is None:
            raise RuntimeError("ask() was called before open()")
        request = _with_stop(request, server.client)
        sent = time.monotonic()
        self._in_flight += 1
        try:
            reply = await server.client.ask(request)
            if server.port is not None and server.launched.ended() is not None:
                raise CallError("connection", "the server had ended", retryable=True)
        except CallError as error:
            if error.cause == "timeout":
                self._note_silence(sent)
            elif error.cause not in BROKEN:
                self._last_answer = time.monotonic()
            elif self._restarting is not None or await server.has_ended():
                await self._wait_for_restart(server)
            if error.status not in self.engine.final:
                raise
            # Not retryable: the same request would get the same error again.
            detail = f"{error.detail} (see the server's log: {server.launched.log})"
            raise CallError(error.cause, detail, status=error.status) from None
        except asyncio.CancelledError:
            if time.monotonic() - sent >= self._settings.attempt_timeout:
                self._note_silence(sent)
            raise
        finally:
            self._in_flight -= 1
        self._last_answer = time.monotonic()
        return self.engine.checked(request, reply)

    def batch_line(self, request: Request) -> dict[str, Any]:
        """The line of a batch file, for an engine elsewhere that has the same weights."""
        return self._elsewhere.batch_line(_with_stop(request, self._elsewhere))

    def read_batch(self, status: int, body: object) -> Reply:
        """The reply in an answered line."""
        return self._elsewhere.read_batch(status, body)

    @functools.cached_property
    def _elsewhere(self) -> OpenAIModel:
        return self._client(Path(SOCKET), None)

    def _note_silence(self, sent: float) -> None:
        """Remember that nothing was answered during a whole call."""
        self._overdue = self._overdue or self._last_answer < sent

    async def _watch(self) -> None:
        """Restart a server that hangs."""
        while True:
            looked = time.monotonic()
            await asyncio.sleep(WATCH_SECONDS)
            server = self._server
            if server is None or self._restarting is not None or self._last_answer > looked:
                self._overdue = False
            elif (self._in_flight or self._overdue) and await self._hangs(server):
                self._overdue = False
                with suppress(CallError):  # every call gets it too
                    await self._wait_for_restart(server, hangs=True)

    async def _hangs(self, server: _Server) -> bool:
        """True if a server answers neither calls nor the shortest question."""
        if server.launched.ended() is not None:
            return False
        if not await server.is_healthy():
            return True
        # A server that answers one call after the other may be busy with one that was given up.
        if not self._overdue or self.concurrency == 1:
            return False
        try:
            async with asyncio.timeout(HEALTH_SECONDS):
                await server.client.ask(QUESTION)
        except TimeoutError:
            return True
        except CallError as error:
            return error.cause == "timeout"
        return False

    async def _wait_for_restart(self, dead: _Server, *, hangs: bool = False) -> None:
        """Return when another server has replaced the dead one."""
        if self._server is dead and self._restarting is None:
            self._restarting = asyncio.create_task(self._restart(dead, hangs=hangs))
        if self._restarting is not None:
            # Shielded: the timeout of one request must not end the restart for all.
            await asyncio.shield(self._restarting)

    async def _restart(self, dead: _Server, *, hangs: bool) -> None:
        reason, cure = self._reason(dead.log_end(), dead)
        why = killed_by(dead.launched.ended()) or reason
        what, why = ("no longer answers", "") if hangs else ("died", f": {why}")
        if self._restarts >= RESTARTS:
            if hangs:
                await self._end(dead)
            raise CallError("server_error", f"the server {what} again{why}; {cure}", fatal=True)
        self._restarts += 1
        self._announce(f"the server {what}{why}; restarting it")
        try:
            await self._stop(dead)
            self._server = await self._start()
        except ModelError as error:
            raise CallError("server_error", " ".join(str(error).split()), fatal=True) from error
        self._restarting = None

    async def _start(self) -> _Server:
        for _ in range(PORTS):
            try:
                return await self._try_start()
            except PortTaken:
                self._announce("another process took the server's port first; trying another port")
        raise ModelError(
            "the model cannot be started: its server finds no port",
            where=self.identity.label,
            found=f"{PORTS} free ports, each taken by another process before the server",
            hint="repeat the command, and find out which process opens so many ports",
        )

    async def _try_start(self) -> _Server:
        """A server that has answered; PortTaken if another process listens on its port."""
        from harness_models.server.launching import launch

        memory = self.engine.memory
        held_before = await memory.before_start(self.show) if memory is not None else None
        # The command runs in a thread: it may first query the hub or another interpreter.
        roomy = len(tempfile.gettempdir()) <= LONGEST_FOLDER
        folder = Path(tempfile.mkdtemp(prefix="harness-", dir=None if roomy else "/tmp"))
        port = free_port() if self.engine.listens_on == "port" else None
        address = str(folder / SOCKET if port is None else port)
        try:
            command = await asyncio.to_thread(self.engine.command, address)
            name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.identity.label)
            launched = launch(
                command,
                log=(self.log_folder or folder) / f"{name}.log",
                environment=self.engine.environment,
                folder=folder,
            )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        server = _Server(
            launched=launched,
            client=self._client(folder / SOCKET, port),
            folder=folder,
            port=port,
            held_before=held_before,
        )
        try:
            await server.client.open()
            await self._until_ready(server)
            if memory is not None:
                self._hardware = await asyncio.to_thread(memory.make_and_driver)
        except BaseException:
            await self._end(server)
            raise
        return server

    def _client(self, socket: Path, port: int | None) -> OpenAIModel:
        host = "localhost" if port is None else f"{HOST}:{port}"
        args = OpenAIArgs(
            model=self.engine.model,
            base_url=f"http://{host}/v1",
            concurrency=self.concurrency,
            **self.engine.requests,
        )
        own_socket = socket if port is None else None
        client = (EmbeddingModel if self._settings.embeds else OpenAIModel)(
            args, self._settings, own=True, socket=own_socket, fields=self.engine.fields
        )
        client.identity = self.identity  # its messages name this model
        client.attach_log(socket.parent, self.show)
        self._client_report = client.report
        return client

    async def _until_ready(self, server: _Server) -> None:
        began = time.monotonic()
        self._announce(f"starting its server; its log is {server.launched.log}")
        shown: set[str] = set()
        last, beat = "", began
        while True:
            new = "\n".join(server.launched.new_lines())
            for pattern, meaning in self.engine.stages:
                if meaning not in shown and re.search(pattern, new):
                    shown.add(meaning)
                    last, beat = f"; last: {meaning}", time.monotonic()
                    self._announce(f"{meaning} ({beat - began:.0f} s)")
            if time.monotonic() - beat >= BEAT_SECONDS:
                beat = time.monotonic()
                self._announce(f"still starting ({beat - began:.0f} s){last}")
            listens = server.listens()
            if (code := server.launched.ended()) is not None:
                killed = killed_by(code)
                how = f"was {killed}" if killed else f"ended with code {code}"
                raise self._failed(server, f"its server {how}", server.log_end())
            if listens and await self._answers(server):
                break
            if time.monotonic() - began > self._settings.start_timeout:
                late = f"no answer within {self._settings.start_timeout:g} s (--start_timeout)"
                raise self._failed(server, late, server.log_end())
            await asyncio.sleep(LOOK_SECONDS)
        self._announce(f"ready after {time.monotonic() - began:.0f} s")

    async def _answers(self, server: _Server) -> bool:
        """True if the server answers a question; ModelError if it never will."""
        try:
            await server.client.ask(QUESTION)
        except CallError as error:
            if error.cause == "no_content":
                return True
            final = error.status in self.engine.final
            if error.retryable and not final:
                return False
            if final:
                # A server writes the reason of a failure to its log after the answer.
                await asyncio.sleep(LOOK_SECONDS)
            text = f"{server.log_end()}\n{error.detail}" if final else error.detail
            raise self._failed(server, "its server refuses the first question", text) from error
        return True

    def _failed(self, server: _Server, what: str, text: str) -> ModelError:
        reason, cure = self._reason(text, server)
        return ModelError(
            f"the model cannot be started: {what}",
            where=self.identity.label,
            found=reason,
            hint=cure,
        )

    def _reason(self, text: str, server: _Server) -> tuple[str, str]:
        """The reason of a failure, and a hint."""
        for trouble in self.engine.troubles:
            if known := trouble.texts(text):
                return known
        return last_error(text), f"see the server's log: {server.launched.log}"

    async def _stop(self, server: _Server) -> None:
        """End a server, and return when its GPU memory is free."""
        ours = server.launched.processes()
        await self._end(server)
        if self.engine.memory is not None and server.held_before is not None:
            await self.engine.memory.wait_until_freed(server.held_before, ours=ours)

    async def _end(self, server: _Server) -> None:
        try:
            await server.client.close()
            await server.launched.stop(STOP_SECONDS)
        finally:
            shutil.rmtree(server.folder, ignore_errors=True)


def _with_stop(request: Request, client: OpenAIModel) -> Request:
    """The request with the texts that end every answer of the engine."""
    stop = tuple(dict.fromkeys((*request.sampling.stop, *client.stop)))
    if stop == request.sampling.stop:
        return request
    sampling = msgspec.structs.replace(request.sampling, stop=stop)
    return msgspec.structs.replace(request, sampling=sampling)


def killed_by(code: int | None) -> str | None:
    """The signal that ended a server; None if it ended by itself."""
    number = (code or 0) - SIGNALLED
    if number not in signal.valid_signals():
        return None
    if number == signal.SIGKILL:
        return "killed by SIGKILL, as the system does when memory runs out"
    return f"killed by {signal.Signals(number).name}"


def last_error(text: str) -> str:
    """The last error in a log with its message, else the last line."""
    # Without process, level, time and place.
    prefix = re.compile(r"^(\([^()]*pid=\d+\)\s*)?([A-Z]+ [\d-]+ [\d:.,]+ \[[^\]]*\]\s*)?")
    lines = [prefix.sub("", line).strip() for line in text.splitlines() if line.strip()]
    errors = [n for n, line in enumerate(lines) if ERROR.match(line)]
    causes = [n for n in errors if not ELSEWHERE.search(lines[n])]
    if not errors:
        chosen = lines[-1] if lines else "an empty log"
    else:
        at = (causes or errors)[-1]
        # Some errors give only a count in their first line, and the reasons in the next lines.
        more = 3 if lines[at].endswith(":") or "validation error" in lines[at] else 1
        chosen = " ".join(lines[at : at + more])
    return chosen if len(chosen) <= LONGEST_REASON else chosen[: LONGEST_REASON - 1] + "…"
