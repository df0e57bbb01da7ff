"""A chat server that costs next to nothing: one fixed answer, after a fixed time.

Speaks just enough HTTP/1.1 for clients that send a Content-Length. Prints its port, then serves
until its standard input ends.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "bench",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "ok"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 500, "completion_tokens": 1, "total_tokens": 501},
    }
).encode()
MODELS = json.dumps({"object": "list", "data": [{"id": "bench", "object": "model"}]}).encode()


def response(body: bytes) -> bytes:
    """A whole HTTP response around a JSON body."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


CHAT_RESPONSE = response(ANSWER)
MODELS_RESPONSE = response(MODELS)


class Connection(asyncio.Protocol):
    """Answers the requests of one connection, each `latency` seconds after it came."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (size := self._request_size()) is not None:
            answer = MODELS_RESPONSE if self._buffer.startswith(b"GET ") else CHAT_RESPONSE
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


async def serve(latency: float) -> None:
    """Serve on a free port of 127.0.0.1 until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(latency), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0)
    asyncio.run(serve(parser.parse_args().latency))
