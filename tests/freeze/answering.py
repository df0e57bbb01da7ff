"""A server that gives recorded answers, some of them badly written, always the same."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from stored import dumps, sha

DOES_IT_THINK = "What is 17 times 23?"
"""The question that the harness asks each model once, before its runs."""


def answer_to(body: Mapping[str, Any], answers: Mapping[str, str]) -> str:
    """The answer by rule to the same question, or a judge's; one in two is written another way."""
    prompt = body["messages"][-1]["content"]
    manner = int(sha({key: value for key, value in body.items() if key != "model"}), 16) % 8
    text = answers[prompt] if prompt in answers else choice_of(prompt)
    return {
        0: f"```json\n{text}\n```",
        1: f"Here is what I found:\n\n{text}\n\nThat is all.",
        2: text[: len(text) // 2],
        3: "I cannot say." if prompt in answers else "NONE",
    }.get(manner, text)


def choice_of(prompt: str) -> str:
    """What a judge chooses by hash: so many labels, or categories; else every other label."""
    labels = re.findall(r"^(\w{1,4})[.:] ", prompt, re.MULTILINE)
    if "Answer with a JSON object" in prompt:
        categories = prompt.split("\n\n")[1].splitlines()
        chosen = {label: int(sha(label + prompt), 16) % len(categories) for label in labels}
        return dumps({label: categories[number] for label, number in chosen.items()})
    if exactly := re.search(r"exactly (\d+)", prompt):
        return ", ".join(sorted(labels, key=lambda label: sha(label + prompt))[: int(exactly[1])])
    return ", ".join(labels[::2])


NAMES = ("candidate", "judge", "profiler")
"""The models that the server lists."""


class AnsweringServer:
    """The server in a thread of its own; a context manager."""

    def __init__(self) -> None:
        self.answers: Mapping[str, str] = {}
        self.bodies: list[dict[str, Any]] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body leave together: otherwise the client waits for the second

            def do_GET(self) -> None:
                names = [{"id": name, "object": "model"} for name in NAMES]
                self.reply({"object": "list", "data": names})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if body["messages"][-1]["content"].startswith(DOES_IT_THINK):
                    self.reply(completion(body, "391"))
                    return
                owner.bodies.append(body)
                self.reply(completion(body, answer_to(body, owner.answers)))

            def reply(self, value: Mapping[str, Any]) -> None:
                payload = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *_: object) -> None:
                """Nothing: the record says what was asked."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> AnsweringServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def lines(self) -> list[dict[str, Any]]:
        """What came over the wire: of each model one request whole, and the digest of all."""
        lines = []
        for model in sorted({body["model"] for body in self.bodies}):
            asked = sorted(dumps(body) for body in self.bodies if body["model"] == model)
            lines.append({"wire": model, "requests": len(asked), "sha": sha(asked)})
            lines.append({"wire": model, "first": json.loads(asked[0])})
        return lines


def completion(body: Mapping[str, Any], text: str) -> dict[str, Any]:
    """A reply as OpenAI's servers send it; a word counts as a token."""
    asked = sum(len(turn["content"].split()) for turn in body["messages"])
    spoken = len(text.split())
    usage = {"prompt_tokens": asked, "completion_tokens": spoken, "total_tokens": asked + spoken}
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-0", "object": "chat.completion", "created": 0, "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage,
    }  # fmt: skip
