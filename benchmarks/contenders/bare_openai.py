"""The official client in a plain loop: what a person would write in ten minutes; keeps nothing."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from pathlib import Path

from openai import AsyncOpenAI


async def ask_all(url: str, data: Path, concurrency: int) -> float:
    """Sends every message, `concurrency` at once; the seconds that took."""
    with data.open(encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    waiting = iter(texts)
    answered = 0

    async def work(client: AsyncOpenAI) -> None:
        nonlocal answered
        for text in waiting:
            reply = await client.chat.completions.create(
                model="bench",
                messages=[{"role": "user", "content": text}],
                temperature=0.0,
                max_tokens=16,
            )
            answered += reply.choices[0].message.content == "ok"

    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        started = time.perf_counter()
        await asyncio.gather(*(work(client) for _ in range(concurrency)))
        seconds = time.perf_counter() - started
    assert answered == len(texts), answered
    return seconds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    seconds = asyncio.run(ask_all(arguments.url, arguments.data, arguments.concurrency))
    (arguments.folder / "asked.json").write_text(json.dumps(seconds), encoding="utf-8")
