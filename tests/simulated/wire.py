"""Connections in memory: the real HTTP client of the openai models talks to the world's server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from simulated.server import Server

from harness.calls.client import call_seed
from harness.contracts.model import CallError, Message, Reply, Request, Sampling

REPEATS = {call_seed(0, repeat): repeat for repeat in range(16)}
"""Which time a question is asked, by the seed that the request has."""

MODELS = ("candidate", "referee", "judge")
FINISH = {"refused": "content_filter"}


class Wire(asyncio.Transport):
    """The client's end of a connection, at whose other end the server answers."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: Any, server: Server) -> None:
        super().__init__()
        self._loop, self._protocol, self._server = loop, protocol, server
        self._received = bytearray()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        protocol.connection_made(self)

    def write(self, data: Any) -> None:
        self._received += data
        head, found, body = bytes(self._received).partition(b"\r\n\r\n")
        sizes = [
            line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
        ]
        size = int(sizes[0].partition(b":")[2]) if sizes else 0
        if found and len(body) >= size and not self._closed:
            self._received.clear()
            task = self._loop.create_task(self._answer(head, body[:size]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET"):
            self._send(200, {"data": [{"id": name} for name in MODELS]})
            return
        asked = json.loads(body)
        try:
            reply = await self._server.ask(asked["model"], 10**6, request_of(asked))
        except CallError as error:
            self._fail(error)
        else:
            self._send(200, body_of(reply))

    def _fail(self, error: CallError) -> None:
        if error.status is not None:
            pause = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
            self._send(error.status, {"error": {"message": error.detail}}, **pause)
        elif error.cause == "no_content":
            self._send(200, body_of(Reply(text="", finish="error", usage=error.usage)))
        elif error.cause == "bad_response":
            self._send(200, body_of(Reply(text="half of it")), cut=True)
        else:
            self._lose(ConnectionResetError("reset by peer"))

    def _send(self, status: int, body: dict[str, Any], cut: bool = False, **more: str) -> None:
        if self._closed:
            return
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(data)), **more}
        lines = [f"HTTP/1.1 {status} OK", *(f"{name}: {text}" for name, text in headers.items())]
        sent = "\r\n".join([*lines, "", ""]).encode() + data
        self._protocol.data_received(sent[: -len(data) // 2] if cut else sent)
        if cut:
            self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        if not self._closed:
            self._closed = True
            self._loop.call_soon(self._protocol.connection_lost, error)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._lose(None)

    abort = close

    def is_closing(self) -> bool:
        return self._closed

    def get_write_buffer_size(self) -> int:
        return 0


def request_of(asked: dict[str, Any]) -> Request:
    """The request as the harness sent it."""
    return Request(
        messages=tuple(Message(one["role"], one["content"]) for one in asked["messages"]),
        sampling=Sampling(max_tokens=asked["max_tokens"]),
        seed=asked["seed"],
        repeat=REPEATS[asked["seed"]],
    )


def body_of(reply: Reply) -> dict[str, Any]:
    """The reply as servers write it."""
    body: dict[str, Any] = {
        "id": reply.id,
        "choices": [
            {
                "message": {"role": "assistant", "content": reply.text},
                "finish_reason": FINISH.get(reply.finish, reply.finish),
            }
        ],
    }
    if reply.usage is not None:
        body["usage"] = {
            "prompt_tokens": reply.usage.prompt_tokens,
            "completion_tokens": reply.usage.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": reply.usage.cached_tokens},
        }
    return body
