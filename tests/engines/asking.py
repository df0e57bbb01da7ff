"""Questions to a server's socket that the harness itself never asks."""

from __future__ import annotations

import re
from typing import Any

import aiohttp

SAMPLE = re.compile(r"^(?P<name>[\w:]+)\{(?P<labels>[^}]*)\} (?P<value>\S+)$", re.M)


async def metric(socket: str, name: str) -> dict[str, float]:
    """What the server's `/metrics` says of one name, summed for each of its engines."""
    async with _session(socket) as session, session.get("http://localhost/metrics") as answer:
        text = await answer.text()
    found: dict[str, float] = {}
    for sample in SAMPLE.finditer(text):
        if sample["name"] == name:
            engine = dict(re.findall(r'(\w+)="([^"]*)"', sample["labels"]))["engine"]
            found[engine] = found.get(engine, 0.0) + float(sample["value"])
    return found


async def said(socket: str, **question: Any) -> str:
    """What a chat completion with exactly these fields says."""
    url = "http://localhost/v1/chat/completions"
    async with _session(socket) as session, session.post(url, json=question) as answer:
        answer.raise_for_status()
        body = await answer.json()
    return str(body["choices"][0]["message"]["content"])


def _session(socket: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.UnixConnector(socket))
