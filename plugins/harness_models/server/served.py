"""A model behind a server of our own: started at the first call, asked, ended.

What is peculiar to a kind of server stands in its `Engine`; everything else is the same for all.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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
from harness_models.server.ports import HOST, free_port, held_by

if TYPE_CHECKING:
    from harness.contracts.identity import Identity
    from harness_models.server.gpus import GpuMemory, Look
    from harness_models.server.launching import Launched

LOOK_SECONDS = 0.2
"""Between two looks at a server that starts."""

START_SECONDS = 3600.0
"""The longest start: some hundred gigabytes of weights over a slow network."""

STOP_SECONDS = 30.0
"""The keeper gives a server fifteen seconds to end by itself; more is a server that cannot die."""

RESTARTS = 1
"""What crashes twice crashes again: at the third start it would only burn time."""

PORTS = 3
"""How many ports are tried: another process may take one before the server does."""

SOCKET = "socket"
LONGEST_FOLDER = 80
"""The system takes no path of a socket above 107 bytes, and ours stands in a folder of its own."""

LINES_READ = 1000
"""The end of a log in which the reason of a failure is looked for: a traceback of each process."""

SIGNALLED = 128
"""What exit codes that stand for a signal lie above."""

LONGEST_REASON = 400
ERROR = re.compile(r"[\w.]*(Error|Exception)\b.*: \S|\S.*: error: ")
ELSEWHERE = "root cause"
"""In a parent's error, which only says that a child had one."""

BROKEN = ("connection", "server_error")
"""How a request fails whose server is about to end, or has ended."""

QUESTION = Request(messages=(Message("user", "Hello"),), sampling=Sampling(max_tokens=1), seed=0)
"""Asked until it is answered: a server that says it is healthy may still be unable to."""


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """A failure that the log or a refusal gives away: what to look for, its cause and its cure.

    `cause` and `cure` are made of the match.
    """

    pattern: re.Pattern[str]
    cause: Callable[[re.Match[str]], str]
    cure: Callable[[re.Match[str]], str]


def trouble(pattern: str, cause: str, cure: str) -> Trouble:
    """One whose sentences hold the match's named groups in braces; a dot matches line ends too."""
    return Trouble(
        pattern=re.compile(pattern, re.DOTALL),
        cause=lambda found: cause.format(**found.groupdict()),
        cure=lambda found: cure.format(**found.groupdict()),
    )


HUB_TROUBLES = (
    trouble(
        r"GatedRepoError|gated repo|401 Client Error",
        "the hub does not give these weights to everybody",
        "accept their licence on the hub, and set HF_TOKEN",
    ),
    trouble(
        r"LocalEntryNotFoundError|OfflineModeIsEnabled|outgoing traffic has been disabled"
        r"|couldn't connect to '?https://huggingface\.co",
        "the weights are not in the cache, and the hub cannot be reached",
        "pretrained=FOLDER, or a start with a network",
    ),
)
"""How a start fails that needs weights of the hub."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """How one server is started, how it is asked, and what its log says.

    `command` makes the command line that listens on the address it is given: the path of a socket,
    or where the server knows only ports the number of one, on 127.0.0.1. It may take its time, and
    raise what is wrong before anything is started. `model` is the name that the server knows its
    model by. `fields` go along with a request, `checked` is what a reply is worth; both may raise
    a CallError. The statuses in `final` would come again for the same request. `stages` are lines
    of the log and what they mean to the user, `notes` are said first. `check` looks at what
    a start needs, for `harness doctor`.
    """

    identity: Identity
    model: str
    command: Callable[[str], Sequence[str]]
    concurrency: int
    listens_on: Literal["socket", "port"] = "socket"
    occupies: str | None = "gpu"
    environment: Mapping[str, str] = field(default_factory=dict)
    fields: Callable[[Request], Mapping[str, Any]] = lambda request: {}
    checked: Callable[[Request, Reply], Reply] = lambda request, reply: reply
    final: Collection[int] = ()
    stages: Sequence[tuple[str | re.Pattern[str], str]] = ()
    troubles: Sequence[Trouble] = ()
    notes: Sequence[str] = ()
    memory: GpuMemory | None = None
    check: Callable[[], Sequence[Finding]] = tuple


class PortTaken(Exception):
    """Another process listens where our server was told to."""


@dataclass(frozen=True, kw_only=True)
class _Server:
    """A server under way, the client that asks it, its folder, and its port if it has one."""

    launched: Launched
    client: OpenAIModel
    folder: Path
    port: int | None
    held_before: Look | None

    def said(self) -> str:
        """The end of what it has written to its log since it was started."""
        return "\n".join(self.launched.log_tail(LINES_READ))

    def listens(self) -> bool:
        """Whether it listens on its port, and PortTaken where somebody else does."""
        if self.port is None:
            return True
        ours = held_by(self.port, self.launched.processes())
        if ours is False:
            raise PortTaken
        return bool(ours)

    async def lets_in(self) -> bool:
        """Whether it takes a connection."""
        with suppress(OSError, PortTaken):
            if self.port is None:
                _, writer = await asyncio.open_unix_connection(str(self.folder / SOCKET))
            elif self.listens():
                _, writer = await asyncio.open_connection(HOST, self.port)
            else:
                return False
            writer.close()
            return True
        return False


class ServedModel(Model):
    """A model whose server lives from `open` to `close`; one that dies between is started again.

    It dies with us, however we end: see `keeper.py`.
    """

    def __init__(self, engine: Engine, settings: ModelSettings) -> None:
        self.engine = engine
        self.identity = engine.identity
        self.concurrency = engine.concurrency
        self.occupies = engine.occupies
        self._settings = settings
        self._server: _Server | None = None
        self._restarts = 0
        self._mending: asyncio.Task[None] | None = None

    def _say(self, text: str) -> None:
        self.show(f"{self.identity.label}: {text}")

    def server_command(self) -> Sequence[str]:
        """The command that would start the server, with an address of no consequence."""
        return self.engine.command(self.engine.listens_on.upper())

    async def check(self) -> Sequence[Finding]:
        """What can be said of the server before it is started."""
        return await asyncio.to_thread(self.engine.check)

    async def open(self) -> None:
        """Start the server and return when it has answered; ModelError tells why it cannot."""
        if self._server is None:
            self._restarts = 0
            for note in self.engine.notes:
                self._say(note)
            self._server = await self._start()

    async def close(self) -> None:
        """End the server; ModelError where a process of it, or what it held of a GPU, is left."""
        mending, self._mending = self._mending, None
        if mending is not None:
            mending.cancel()
            await asyncio.gather(mending, return_exceptions=True)
        server, self._server = self._server, None
        if server is not None:
            await self._stop(server)

    async def ask(self, request: Request) -> Reply:
        """The server's reply; where the server has died, a CallError after a new one stands."""
        server = self._server
        if server is None:
            raise RuntimeError("the model is asked before it was opened")
        try:
            reply = await server.client.ask(request)
            if server.port is not None and server.launched.ended() is not None:
                raise CallError("connection", "the server had ended", retryable=True)
        except CallError as error:
            if error.cause in BROKEN and await _has_ended(server):
                await self._mended(server)
            raise self._told(error, server) from None
        return self.engine.checked(request, reply)

    def _told(self, error: CallError, server: _Server) -> CallError:
        """The same error, and final where the server would say it again."""
        if error.status not in self.engine.final:
            return error
        detail = f"{error.detail} (its log tells more: {server.launched.log})"
        return CallError(error.cause, detail, status=error.status)

    async def _mended(self, dead: _Server) -> None:
        """Return when another server stands in place of a dead one."""
        if self._server is dead and self._mending is None:
            self._mending = asyncio.create_task(self._mend(dead))
        if self._mending is not None:
            # Shielded: one request that has waited too long must not end the start for all.
            await asyncio.shield(self._mending)

    async def _mend(self, dead: _Server) -> None:
        reason, cure = self._reason(dead.said(), dead)
        why = killed_by(dead.launched.ended()) or reason
        if self._restarts >= RESTARTS:
            raise CallError("server_error", f"the server died again: {why}; {cure}", fatal=True)
        self._restarts += 1
        self._say(f"the server died: {why}; starting it again")
        try:
            await self._stop(dead)
            self._server = await self._start()
        except ModelError as error:
            raise CallError("server_error", " ".join(str(error).split()), fatal=True) from error
        self._mending = None

    async def _start(self) -> _Server:
        for _ in range(PORTS):
            try:
                return await self._started()
            except PortTaken:
                self._say("another process was faster at its port; trying another")
        raise ModelError(
            "the model cannot be started: its server finds no port",
            where=self.identity.label,
            found=f"{PORTS} ports that were free and then taken by other processes",
            hint="the same command again; what on this machine opens so many ports?",
        )

    async def _started(self) -> _Server:
        """A server that has answered, PortTaken where another process listens at its port."""
        from harness_models.server.launching import launch

        memory = self.engine.memory
        held_before = await memory.before_start(self.show) if memory is not None else None
        # The command may ask the hub or another interpreter first.
        roomy = len(tempfile.gettempdir()) <= LONGEST_FOLDER
        folder = Path(tempfile.mkdtemp(prefix="harness-", dir=None if roomy else "/tmp"))
        port = free_port() if self.engine.listens_on == "port" else None
        address = str(folder / SOCKET if port is None else port)
        try:
            command = await asyncio.to_thread(self.engine.command, address)
            launched = await launch(
                command,
                log=self._log_file(folder),
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
        except BaseException:
            await self._end(server)
            raise
        return server

    def _client(self, socket: Path, port: int | None) -> OpenAIModel:
        host = "localhost" if port is None else f"{HOST}:{port}"
        args = OpenAIArgs(
            model=self.engine.model, base_url=f"http://{host}/v1", concurrency=self.concurrency
        )
        return OpenAIModel(
            args,
            self._settings,
            own=True,
            socket=socket if port is None else None,
            fields=self.engine.fields,
        )

    def _log_file(self, otherwise: Path) -> Path:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.identity.label)
        return (self.log_folder or otherwise) / f"{name}.log"

    async def _until_ready(self, server: _Server) -> None:
        began = time.monotonic()
        self._say(f"starting its server; its log is {server.launched.log}")
        told: set[str] = set()
        while True:
            new = "\n".join(server.launched.new_lines())
            for pattern, meaning in self.engine.stages:
                if meaning not in told and re.search(pattern, new):
                    told.add(meaning)
                    self._say(f"{meaning} ({time.monotonic() - began:.0f} s)")
            listens = server.listens()
            if (code := server.launched.ended()) is not None:
                killed = killed_by(code)
                how = f"was {killed}" if killed else f"ended with code {code}"
                raise self._failed(server, f"its server {how}", server.said())
            if listens and await self._answers(server):
                break
            if time.monotonic() - began > START_SECONDS:
                raise self._failed(server, f"no answer within {START_SECONDS:.0f} s", server.said())
            await asyncio.sleep(LOOK_SECONDS)
        self._say(f"ready after {time.monotonic() - began:.0f} s")

    async def _answers(self, server: _Server) -> bool:
        """Whether the server answers a question; ModelError where it never will."""
        try:
            await server.client.ask(QUESTION)
        except CallError as error:
            if error.cause == "no_content":
                return True
            final = error.status in self.engine.final
            if error.retryable and not final:
                return False
            if final:
                # A server tells its log why it failed after it has answered.
                await asyncio.sleep(LOOK_SECONDS)
            text = f"{server.said()}\n{error.detail}" if final else error.detail
            raise self._failed(server, "its server refuses a first question", text) from error
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
        """Why the server failed, and what to do."""
        for trouble in self.engine.troubles:
            match = trouble.pattern.search(text)
            if match:
                return trouble.cause(match), trouble.cure(match)
        return last_words(text), f"its log tells more: {server.launched.log}"

    async def _stop(self, server: _Server) -> None:
        """End a server, and return when all that it held is free for the next."""
        ours = server.launched.processes()
        await self._end(server)
        if self.engine.memory is not None and server.held_before is not None:
            await self.engine.memory.given_back(server.held_before, ours=ours)

    async def _end(self, server: _Server) -> None:
        try:
            await server.client.close()
            await server.launched.stop(STOP_SECONDS)
        finally:
            shutil.rmtree(server.folder, ignore_errors=True)


async def _has_ended(server: _Server) -> bool:
    """Whether the server is gone; one that lets nobody in is given the time to end."""
    until = time.monotonic() + STOP_SECONDS
    while server.launched.ended() is None and time.monotonic() < until:
        # First the pause: who has just died may still seem to listen.
        await asyncio.sleep(LOOK_SECONDS)
        if await server.lets_in():
            return False
    return server.launched.ended() is not None


def killed_by(code: int | None) -> str | None:
    """Which signal ended a server; None for one that ended by itself."""
    if code is None or code <= SIGNALLED:
        return None
    name = signal.Signals(code - SIGNALLED).name
    return f"killed by {name}" + (
        ", as the system does where memory runs out" if name == "SIGKILL" else ""
    )


def last_words(text: str) -> str:
    """The last error of a log with what it says of itself, else the last line."""
    lines = [_without_prefix(line) for line in text.splitlines() if line.strip()]
    errors = [n for n, line in enumerate(lines) if ERROR.match(line)]
    telling = [n for n in errors if ELSEWHERE not in lines[n]]
    if not errors:
        chosen = lines[-1] if lines else "it said nothing"
    else:
        at = (telling or errors)[-1]
        # Some errors only count in their first line, and tell in the next ones.
        more = 3 if lines[at].endswith(":") or "validation error" in lines[at] else 1
        chosen = " ".join(lines[at : at + more])
    return chosen if len(chosen) <= LONGEST_REASON else chosen[: LONGEST_REASON - 1] + "…"


def _without_prefix(line: str) -> str:
    """A log's line without process, level, time and place."""
    line = re.sub(r"^\([^()]*pid=\d+\)\s*", "", line)
    return re.sub(r"^[A-Z]+ [\d-]+ [\d:.,]+ \[[^\]]*\]\s*", "", line).strip()
