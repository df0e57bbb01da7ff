"""A chat server that costs next to nothing: a fixed answer, or one by rule, after a fixed time.

Speaks just enough HTTP/1.1 for clients that send a Content-Length. Prints its port, then serves
until its standard input ends.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "plugin"))
from speed_of_harness.answers import of_interests

MODELS = json.dumps({"object": "list", "data": [{"id": "bench", "object": "model"}]}).encode()


def response(body: bytes) -> bytes:
    """A whole HTTP response around a JSON body."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def chat_response(text: str) -> bytes:
    """A whole HTTP response with one answer."""
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "bench",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 500, "completion_tokens": 1, "total_tokens": 501},
    }
    return response(json.dumps(answer).encode())


CHAT_RESPONSE = chat_response("ok")
MODELS_RESPONSE = response(MODELS)


def fixed(request: bytes) -> bytes:
    """The response that costs nothing to make."""
    return CHAT_RESPONSE


def by_rule(request: bytes) -> bytes:
    """A response that GISTBench can use."""
    body = json.loads(request[request.find(b"\r\n\r\n") :])
    return chat_response(of_interests(body["messages"][-1]["content"]))


class Connection(asyncio.Protocol):
    """Answers the requests of one connection, each `latency` seconds after it came."""

    def __init__(self, latency: float, respond: Callable[[bytes], bytes]) -> None:
        self._latency = latency
        self._respond = respond
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (size := self._request_size()) is not None:
            models = self._buffer.startswith(b"GET ")
            answer = MODELS_RESPONSE if models else self._respond(bytes(self._buffer[:size]))
            del self._buffer[:size]
            if self._latency:
                asyncio.get_running_loop().call_later(self._latency, self._send, answer)
            else:
                self._send(answer)

    def _request_size(self) -> int | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        length = 0
        for line in bytes(self._buffer[:end]).lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line[15:])
        whole = end + 4 + length
        return whole if len(self._buffer) >= whole else None

    def _send(self, answer: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(answer)


async def serve(latency: float, respond: Callable[[bytes], bytes]) -> None:
    """Serve on a free port of 127.0.0.1 until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(latency, respond), "127.0.0.1", 0, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--by-rule", action="store_true", help="answers that GISTBench can use")
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.latency, by_rule if arguments.by_rule else fixed))
