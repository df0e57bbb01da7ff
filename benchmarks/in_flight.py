"""How full the batch of an engine stays during a stage, for so many requests in flight.

    .venv/bin/python benchmarks/in_flight.py --held 256 --margin 32 --people 4000

The engine is made up and takes no processor time: `held` places, a queue before them, and answers
that take 50 to 200 steps of 20 ms, as a large model's do. It notes each change of who is in a place
and who waits, so that what is told is exact. The harness asks it as it asks any server.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import itertools
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random

from aiohttp import web

STEP = 0.02
STEPS = (50, 200)
ANSWER = '[{"interest": "the sea", "items": [1, 2, 3]}]'
HISTORY = 12


class Engine:
    """A server of chat completions whose places are all that it has."""

    def __init__(self, held: int) -> None:
        self.held = held
        self.log: list[tuple[float, int, int]] = []
        self._running = 0
        self._waiting = 0
        self._places = asyncio.Semaphore(held)
        self._draw = Random(1)

    def _note(self, *, running: int = 0, waiting: int = 0) -> None:
        self._running += running
        self._waiting += waiting
        self.log.append((time.monotonic(), self._running, self._waiting))

    async def answer(self, request: web.Request) -> web.Response:
        await request.read()
        self._note(waiting=1)
        async with self._places:
            self._note(running=1, waiting=-1)
            await asyncio.sleep(STEP * self._draw.randint(*STEPS))
            self._note(running=-1)
        choice = {"message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}
        return web.json_response({"id": "made-up", "choices": [choice]})


def figures(engine: Engine) -> str:
    """How full it was from when it first was full until nobody waited any more."""
    first = next(n for n, (_, running, _) in enumerate(engine.log) if running == engine.held)
    last = max(n for n, (_, _, waiting) in enumerate(engine.log) if waiting)
    span = engine.log[first : last + 1]
    times = [(after[0] - before[0], before[1]) for before, after in itertools.pairwise(span)]
    whole = sum(seconds for seconds, _ in times)
    filled = sum(seconds * running for seconds, running in times) / whole / engine.held
    short = sum(seconds for seconds, running in times if running < engine.held) / whole
    return (
        f"{filled:.2%} of {engine.held} places taken over {whole:.0f} s; not all of them in "
        f"{short:.1%} of the time, at the least {min(running for _, running in times)}"
    )


def serve(engine: Engine, ready: threading.Event, address: list[str]) -> None:
    """Answer until the process ends."""

    async def run() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", engine.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        address.append(f"http://{host}:{port}/v1")
        ready.set()
        await asyncio.Event().wait()

    asyncio.run(run())


def ask(address: str, *, in_flight: int, people: int) -> None:
    """A run of the worked example over so many people."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "people.csv"
        with rows.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["user", "title", "action"])
            writer.writerows(
                [f"p{person}", f"Item {item} of {person}", "liked" if item % 2 else "skipped"]
                for person in range(people)
                for item in range(HISTORY)
            )
        subprocess.run(
            [
                sys.executable, "-m", "harness", "--tasks", "interests", "--data", str(rows),
                "--model", "openai", "--model_args",
                f"base_url={address},model=made-up,concurrency={in_flight}",
                "--judge", "lexical", "--reuse", "run", "--quiet",
            ],
            cwd=folder, env={**os.environ, "OPENAI_API_KEY": "none"}, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--held", type=int, default=256)
    parser.add_argument("--margin", type=int, default=32)
    parser.add_argument("--people", type=int, default=4000)
    args = parser.parse_args()
    engine, ready, address = Engine(args.held), threading.Event(), list[str]()
    threading.Thread(target=serve, args=(engine, ready, address), daemon=True).start()
    ready.wait()
    ask(address[0], in_flight=args.held + args.margin, people=args.people)
    print(f"{args.held + args.margin} in flight: {figures(engine)}")


if __name__ == "__main__":
    main()
