"""An HTTP server on 127.0.0.1 with /v1/chat/completions, /v1/completions and /v1/embeddings that
misbehaves on purpose.

In a test: `with FaultyServer(faults=[status(429)]) as server: … server.url …`. On its own:
`python -m harness.testing.server --port 0 --latency 0.2` prints its address and serves until
it is stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from harness.base.hashing import digest_bytes
from harness.pipeline.preflight import QUESTION
from harness.testing.faults import TRUNCATED, Asked, Fault, Faults

AnswerWith: TypeAlias = Callable[[dict[str, Any]], "str | dict[str, Any]"]
"""Makes the text of an answer, or the fields of its message, from a request's body."""

REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests"}


def think_to_the_limit(_: dict[str, Any]) -> str:
    """The beginning of 2,000 words of reasoning; with TRUNCATED, a reply that was cut within it."""
    return "<think>\n" + "hmm " * 2000


class FaultyServer:
    """A model server in its own thread; a context manager.

        with FaultyServer(lambda body: "ok", faults=[status(429), None]) as server:
            client = openai.OpenAI(base_url=server.url, api_key="none")

    `answer` makes the text of right answers, which are sent after `latency` seconds. `faults`
    decides which requests get wrong answers. `models` are the names in the list of models, or the
    fault of a request for the list; the server answers under any name. `port` 0 takes a free port.
    `requests` holds the last bodies, `asked` the last requests as a whole. `count` counts requests,
    `counts` requests by digest of the body, `answered` right answers by that digest, `in_flight`
    and `most_in_flight` requests at the same time. `mistake` is the first error that `answer`
    raised.

    The small question by which the harness finds out whether a model answers, and whether it
    thinks, is answered at once, and counts only in `asked_if_thinking`. `thinks` is whether the
    model does, or the fault that the question gets.
    """

    def __init__(
        self,
        answer: AnswerWith = lambda _: "ok",
        *,
        faults: Faults = (),
        latency: float = 0.0,
        models: Sequence[str] | Fault = ("m",),
        port: int = 0,
        thinks: bool | Fault = False,
    ) -> None:
        self.answer = answer
        self.faults = faults
        self.latency = latency
        self.models = models
        self.port = port
        self.thinks = thinks
        self.asked_if_thinking = 0
        self.count = 0
        self.counts: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.asked: deque[Asked] = deque(maxlen=10_000)
        self.mistake: Exception | None = None
        self.in_flight = 0
        self.most_in_flight = 0
        self._connections: set[_Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._listener: asyncio.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The bodies of the last requests, in the order of arrival."""
        return [asked.body for asked in list(self.asked)]

    def start(self) -> FaultyServer:
        """Serve in a daemon thread until `stop`."""
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._on_loop(self._listen())
        return self

    def stop(self) -> None:
        """Close every connection and end the thread."""
        if self._thread is None:
            return
        self._on_loop(self._hang_up())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._thread = None
        self._loop.close()

    def __enter__(self) -> FaultyServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def die(self, seconds: float | None = None) -> None:
        """Close the listening socket and every connection; listen again after so many seconds."""
        self._on_loop(self._hang_up())
        if seconds is not None:
            self._loop.call_soon_threadsafe(
                self._loop.call_later, seconds, lambda: self._loop.create_task(self._listen())
            )

    def revive(self) -> None:
        """Listen again on the same port."""
        self._on_loop(self._listen())

    def received(self, body: bytes, headers: dict[str, str], *, target: str = "") -> Asked:
        """Record a request that arrived."""
        digest = digest_bytes(body)
        asked = Asked(
            number=self.count,
            again=self.counts[digest],
            digest=digest,
            body=json.loads(body),
            headers=headers,
            target=target,
            at=time.monotonic(),
        )
        self.count += 1
        self.counts[digest] += 1
        self.asked.append(asked)
        return asked

    async def _listen(self) -> None:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        self.port = listening.getsockname()[1]
        self._listener = await self._loop.create_server(
            lambda: _Connection(self), sock=listening, backlog=4096
        )

    async def _hang_up(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for connection in list(self._connections):
            connection.cut()

    def _on_loop(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)


class _Connection(asyncio.Protocol):
    """One connection: requests with a Content-Length, answered one after the other."""

    def __init__(self, server: FaultyServer) -> None:
        self._server = server
        self._connections = server._connections
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._answering = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        self._connections.discard(self)
        self._transport = None
        self._done()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._answering:
            self._next()

    def cut(self) -> None:
        """End the connection at once, without sending the rest."""
        if self._transport is not None:
            # Without lingering, the peer gets a reset instead of an orderly close.
            connection = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()

    def _next(self) -> None:
        head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        self._answering = True
        self._server.in_flight += 1
        self._server.most_in_flight = max(self._server.in_flight, self._server.most_in_flight)
        method, target = lines[0].split(" ")[:2]
        path = target.partition("?")[0]
        if method == "POST" and path.endswith(("/completions", "/embeddings")):
            self._chat(rest[:length], headers, target)
        elif method == "GET" and path.endswith("/models"):
            models = self._server.models
            if not isinstance(models, Fault):
                listed = [{"id": name, "object": "model"} for name in models]
                self._send(200, {"object": "list", "data": listed})
            elif models.kind == "answer":
                self._after(models.delay, lambda: self._wrong(models))
            elif models.kind == "reset":
                self.cut()
        else:
            self._send(404, {"error": {"message": f"no such path: {target}", "code": None}})

    def _chat(self, body: bytes, headers: dict[str, str], target: str) -> None:
        server = self._server
        if QUESTION.messages[0].content.encode() in body:
            server.asked_if_thinking += 1
            if isinstance(server.thinks, Fault):
                self._wrong(server.thinks)
            else:
                text = "<think>\n17 times 23\n</think>\n\n391" if server.thinks else "391"
                question = Asked(
                    number=0, again=0, digest="", body=json.loads(body), headers=headers, at=0.0
                )
                self._send(200, complete(question, text))
            return
        asked = server.received(body, headers, target=target)
        fault, faults = None, server.faults
        if callable(faults):
            fault = faults(asked)
        elif asked.number < len(faults):
            fault = faults[asked.number]
        if fault is None:
            self._after(server.latency, lambda: self._right(asked, None))
        elif fault.kind == "reset":
            self.cut()
        elif fault.kind == "reset_in_body" and self._transport is not None:
            payload = json.dumps(complete(asked, server.answer(asked.body))).encode()
            head = _head(200, len(payload), {}, "application/json")
            self._transport.write(head + payload[: len(payload) // 2])
            # Cut only after the half was sent: an abort drops the rest of the buffer.
            self._after(0.02, self.cut)
        elif fault.kind == "answer" and fault.body is None:
            self._after(fault.delay or server.latency, lambda: self._right(asked, fault))
        elif fault.kind == "answer":
            self._after(fault.delay, lambda: self._wrong(fault))

    def _after(self, seconds: float, work: Callable[[], None]) -> None:
        if seconds > 0:
            self._server._loop.call_later(seconds, work)
        else:
            work()

    def _right(self, asked: Asked, fault: Fault | None) -> None:
        if self._transport is None:
            return
        try:
            completion = complete(asked, self._server.answer(asked.body))
        except Exception as error:
            # A status without retries, so that the mistake in the test shows at once.
            self._server.mistake = self._server.mistake or error
            self._send(400, {"error": {"message": f"answer function: {error!r}", "code": None}})
            return
        if fault is not None and fault.choice is not None:
            completion["choices"][0].update(fault.choice)
        self._server.answered[asked.digest] += 1
        self._send(200, completion, headers=dict(fault.headers) if fault else None)

    def _wrong(self, fault: Fault) -> None:
        self._send(
            fault.status, fault.body, headers=dict(fault.headers), content_type=fault.content_type
        )

    def _send(
        self,
        status: int,
        body: Any,
        *,
        headers: dict[str, str] | None = None,
        content_type: str = "application/json",
    ) -> None:
        transport = self._transport
        if transport is None:
            return
        payload = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self._done()
        transport.write(_head(status, len(payload), headers or {}, content_type) + payload)
        if self._buffer:
            self._next()

    def _done(self) -> None:
        if self._answering:
            self._answering = False
            self._server.in_flight -= 1


def complete(asked: Asked, answer: str | dict[str, Any]) -> dict[str, Any]:
    """A completion in the form of OpenAI's servers, for chat or text; a word counts as a token.

    Texts to embed get the numbers of their letters a, b, c and d, and one more each.
    """
    if "input" in asked.body:
        return embedded(asked.body["input"])
    message = {"role": "assistant", "content": answer} if isinstance(answer, str) else answer
    text = message.get("content")
    if "prompt" in asked.body:
        name, kind = "cmpl", "text_completion"
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": "stop"}
        turns = [asked.body["prompt"]]
    else:
        name, kind = "chatcmpl", "chat.completion"
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        turns = [str(turn.get("content")) for turn in asked.body.get("messages", ())]
    prompt = sum(len(turn.split()) for turn in turns)
    spoken = len(str(text or "").split())
    return {
        "id": f"{name}-{asked.number}",
        "object": kind,
        "created": 0,
        "model": asked.body.get("model"),
        "choices": [choice],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": spoken,
            "total_tokens": prompt + spoken,
        },
    }


def embedded(texts: Sequence[str]) -> dict[str, Any]:
    """Vectors in the form of OpenAI's servers."""
    vectors = [[1.0 + text.count(letter) for letter in "abcd"] for text in texts]
    data = [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]
    tokens = sum(len(text.split()) for text in texts)
    return {"object": "list", "data": data, "usage": {"prompt_tokens": tokens}}


def _head(status: int, length: int, headers: dict[str, str], content_type: str) -> bytes:
    extra = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return (
        f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}\r\n"
        f"content-type: {content_type}\r\ncontent-length: {length}\r\n{extra}\r\n"
    ).encode("latin-1")


def main() -> None:
    """Serve from the command line until interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.testing.server", description=main.__doc__
    )
    parser.add_argument(
        "--port", type=int, default=0, help="the port to listen on; 0 takes a free port"
    )
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--answer", default="ok", help="the text of every answer")
    parser.add_argument(
        "--thinks",
        action="store_true",
        help="think before each answer, so long that the limit cuts every reply",
    )
    parser.add_argument(
        "--model",
        action="append",
        help="a name in the list of models (default: m); the server answers under any name",
    )
    args = parser.parse_args()
    server = FaultyServer(
        think_to_the_limit if args.thinks else lambda _: args.answer,
        faults=(lambda _: TRUNCATED) if args.thinks else (),
        thinks=args.thinks,
        latency=args.latency,
        models=args.model or ("m",),
        port=args.port,
    )
    with server:
        print(server.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
