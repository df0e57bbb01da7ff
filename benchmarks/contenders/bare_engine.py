"""A plain loop over an engine's server: every message once, nothing kept but how much came."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

URL = "http://localhost/v1"

Ask = Callable[[dict[str, Any]], Awaitable[str]]
"""Sends one body and gives the text of its answer."""


@asynccontextmanager
async def aiohttp_client(socket: str, concurrency: int) -> AsyncIterator[Ask]:
    """The fastest client there is for Python."""
    import aiohttp

    connector = aiohttp.UnixConnector(path=socket, limit=concurrency)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:

        async def ask(body: dict[str, Any]) -> str:
            async with session.post(f"{URL}/chat/completions", json=body) as response:
                response.raise_for_status()
                return (await response.json())["choices"][0]["message"]["content"]

        yield ask


@asynccontextmanager
async def openai_client(socket: str, concurrency: int) -> AsyncIterator[Ask]:
    """The official client, which most people would take."""
    import httpx2
    from openai import AsyncOpenAI

    limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    http = httpx2.AsyncClient(
        transport=httpx2.AsyncHTTPTransport(uds=socket, limits=limits), timeout=None
    )
    async with AsyncOpenAI(base_url=URL, api_key="none", max_retries=0, http_client=http) as client:

        async def ask(body: dict[str, Any]) -> str:
            reply = await client.chat.completions.create(**body)
            return reply.choices[0].message.content

        yield ask


CLIENTS = {"aiohttp": aiohttp_client, "openai": openai_client}


async def ask_all(bodies: Sequence[dict[str, Any]], ask: Ask, concurrency: int) -> None:
    """Sends every body, `concurrency` at once, and checks that each was answered."""
    waiting = iter(bodies)
    answered = 0

    async def work() -> None:
        nonlocal answered
        for body in waiting:
            answer = await ask(body)
            answered += isinstance(answer, str)

    await asyncio.gather(*(work() for _ in range(concurrency)))
    assert answered == len(bodies), answered


async def measured(arguments: argparse.Namespace) -> dict[str, float]:
    """The seconds from the first question to the last answer, and those of the processor."""
    with arguments.data.open(encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    bodies = [
        {
            "model": arguments.model,
            "messages": [{"role": "user", "content": text}],
            "temperature": 0.0,
            "max_tokens": arguments.tokens,
        }
        for text in texts
    ]
    client = CLIENTS[arguments.client]
    async with client(arguments.socket, arguments.concurrency) as ask:
        began, computed = time.monotonic(), time.process_time()
        await ask_all(bodies, ask, arguments.concurrency)
        return {"seconds": time.monotonic() - began, "cpu": time.process_time() - computed}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", choices=CLIENTS, required=True)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--result", type=Path, required=True)
    arguments = parser.parse_args()
    found = asyncio.run(measured(arguments))
    arguments.result.write_text(json.dumps(found), encoding="utf-8")
