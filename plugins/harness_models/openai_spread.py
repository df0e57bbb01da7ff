"""One model behind several servers of an `openai` model: `base_url=URL;URL`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.contracts.finding import Finding, doubtful
from harness.contracts.model import CallError, Model, ModelSettings, Reply, Request
from harness_models.openai_args import OpenAIArgs
from harness_models.openai_findings import is_unreachable
from harness_models.openai_jobs import Job, paid_twice, refuse_open_batches

REST_SECONDS = 10.0
"""So long a server that failed is asked only if no other is left: one that fails at once has the
fewest requests in flight, and would get all of them."""

TROUBLES = ("connection", "timeout", "server_error")
"""Causes that another server need not have."""


class NotConnected(CallError):
    """The request did not reach the server, so that it cost nothing and another may be asked."""


@dataclass(eq=False)
class _Server:
    """One server: its requests in flight and so far, and until when it rests after a failure."""

    address: str
    model: Model
    in_flight: int = 0
    asked: int = 0
    unreached: int = 0
    rests_until: float = 0.0


class SpreadModel(Model):
    """Sends each request to the server with the fewest in flight; to another if it is not reached.

    Each server has a client of its own, with the key that its host may have. Unless `concurrency`
    is given, each adds its own to the requests in flight.
    """

    def __init__(self, servers: Sequence[_Server], settings: ModelSettings) -> None:
        models = [server.model for server in servers]
        self._servers, self._first = servers, models[0]
        self.identity = models[0].identity
        if "host" in self.identity.details:
            hosts = sorted({model.identity.details["host"] for model in models})
            host = {"host": hosts[0] if len(hosts) == 1 else hosts}
            details = {**self.identity.details, **host}
            self.identity = msgspec.structs.replace(self.identity, details=details)
        given = "concurrency" in settings.args or settings.concurrency is not None
        self.concurrency = self._first.concurrency * (1 if given else len(models))
        for model in models:
            model.concurrency = self.concurrency
        self.takes_batches = self._first.takes_batches
        self.asked_if_thinking = self._first.asked_if_thinking
        self.thinking_switch = self._first.thinking_switch
        self.variables = tuple(dict.fromkeys(name for model in models for name in model.variables))
        self.key_files = self._first.key_files
        self._sent: dict[str, Job] = {}

    def attach_log(self, folder: Path, show: Callable[[str], None]) -> None:
        """The folder and the function are those of all clients."""
        super().attach_log(folder, show)
        for server in self._servers:
            server.model.attach_log(folder, show)

    def thinks(self) -> bool | None:
        """What `thinking=` says, as for a single server."""
        return self._first.thinks()

    def require(self) -> None:
        """Raise UsageError if the key of any server is missing, or batches are open."""
        self._sent = self._sent or refuse_open_batches(self)
        for server in self._servers:
            server.model.require()

    async def open(self) -> None:
        """Make the sessions; no request is sent."""
        for server in self._servers:
            await server.model.open()

    async def close(self) -> None:
        """Close every connection."""
        for server in self._servers:
            await server.model.close()

    async def ask(self, request: Request) -> Reply:
        """The reply of one server, or a CallError; of the last one if none is reached."""
        if job := self._sent.get(request.key):
            raise paid_twice(self, job)
        left = list(self._servers)
        while True:
            now = time.monotonic()
            server = min(left, key=lambda one: (now < one.rests_until, one.in_flight, one.asked))
            left.remove(server)
            server.in_flight += 1
            server.asked += 1
            try:
                return await server.model.ask(request)
            except NotConnected as error:
                if not server.unreached and left:
                    self.show(f"{self.identity.label}: {error.detail}; the other servers are asked")
                server.unreached += 1
                server.rests_until = time.monotonic() + REST_SECONDS
                if not left:
                    raise
            except CallError as error:
                if error.retryable and error.cause in TROUBLES:
                    server.rests_until = time.monotonic() + REST_SECONDS
                raise
            finally:
                server.in_flight -= 1

    def report(self) -> dict[str, Any]:
        """What the clients learnt, with counts summed, and the servers that were not reached."""
        found: dict[str, Any] = {}
        for server in self._servers:
            for name, value in server.model.report().items():
                found[name] = value + found.get(name, 0) if type(value) is int else value
        unreached = {one.address: one.unreached for one in self._servers if one.unreached}
        return {**found, "unreached": unreached} if unreached else found

    async def check(self) -> Sequence[Finding]:
        """Findings about the keys and all servers; bad ones if no server can be reached."""
        refuse_open_batches(self)
        each = await asyncio.gather(*(server.model.check() for server in self._servers))
        found = list(dict.fromkeys(one for findings in each for one in findings))
        reached = [all(not is_unreachable(one) for one in findings) for findings in each]
        if not any(reached):
            return found
        return [
            doubtful(one.about, one.says, one.to_do) if is_unreachable(one) else one
            for one in found
        ]

    def batch_line(self, request: Request) -> dict[str, Any]:
        """The line of a batch file, as for a single server."""
        return self._first.batch_line(request)

    def read_batch(self, status: int, body: object) -> Reply:
        """The reply in an answered line, as for a single server."""
        return self._first.read_batch(status, body)


def spread(
    each: Iterable[OpenAIArgs],
    make: Callable[[OpenAIArgs, ModelSettings], Model],
    settings: ModelSettings,
) -> Model:
    """The only model that is made, or one model over the servers of all."""
    servers = [_Server(args.address, make(args, settings)) for args in each]
    return servers[0].model if len(servers) == 1 else SpreadModel(servers, settings)
