"""The harness and plain loops in turns over one vLLM server, which the harness has started."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from speed_of_harness import clock
from speed_of_harness.engine import KeptEngine, keep

import harness
from harness.contracts.model import ModelSettings

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from engine import BARE, HARNESS, Turn  # noqa: E402 - a folder up
from measure import run_measured  # noqa: E402

HARMLESS = {"empty"}
"""What a model that knows nothing may answer with; the answer came all the same."""

SERIES = re.compile(r"^vllm:(\w+)\{[^}]*\} (\S+)$", re.M)


@dataclass(frozen=True, kw_only=True)
class Course:
    """What is asked in every turn of so many in flight."""

    in_flight: int
    data: Path
    count: int
    tokens: int


async def counters(socket: str) -> dict[str, float]:
    """What the server has counted so far, over all of its engines."""
    async with (
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(path=socket)) as session,
        session.get("http://localhost/metrics") as response,
    ):
        response.raise_for_status()
        text = await response.text()
    found: dict[str, float] = {}
    for name, value in SERIES.findall(text):
        found[name] = found.get(name, 0.0) + float(value)
    return found


async def by_harness(course: Course, folder: Path) -> dict[str, float]:
    """One run as users make it, with a new store and journal; each message is asked once."""
    clock.restart()
    result = await harness.aevaluate(
        ["speed"],
        model="kept",
        data=str(course.data),
        gen_kwargs={"max_tokens": course.tokens},
        concurrency=course.in_flight,
        max_failures=1.0,
        output_path=folder / "runs",
        store=folder / "store.sqlite",
    )
    [summary] = result.summaries
    metric = summary.metrics["right"]
    assert metric.n + sum(metric.missing.values()) == course.count, metric
    assert set(metric.missing) <= HARMLESS, metric.missing
    return {"seconds": note(folder, "asked.json"), "cpu": note(folder, "computed.json")}


def by_loop(client: str, course: Course, folder: Path, *, socket: str, model: str) -> Any:
    """The same messages through a plain loop, in a process of its own."""
    result = folder / "result.json"
    command = [
        sys.executable, str(HERE / "bare_engine.py"), "--client", client, "--socket", socket,
        "--model", model, "--data", str(course.data), "--tokens", str(course.tokens),
        "--concurrency", str(course.in_flight), "--result", str(result),
    ]  # fmt: skip
    run_measured(command, log=folder / "output")
    return json.loads(result.read_text("utf-8"))


def note(folder: Path, name: str) -> float:
    """What the plugin has left in the run folder."""
    [path] = folder.rglob(name)
    return json.loads(path.read_text("utf-8"))


def new_folder(scratch: Path, name: str) -> Path:
    """An empty folder for one turn."""
    folder = scratch / name
    folder.mkdir(parents=True)
    return folder


async def take_turn(
    contender: str, course: Course, *, model: KeptEngine, scratch: Path, number: int
) -> Turn:
    """One turn, beside what the server counted meanwhile."""
    folder = new_folder(scratch, f"{number}-{course.in_flight}-{contender}")
    before = await counters(model.socket)
    if contender == HARNESS:
        spent = await by_harness(course, folder)
    else:
        spent = by_loop(
            BARE[contender], course, folder, socket=model.socket, model=model.engine.model
        )
    after = await counters(model.socket)
    counted = {name: after[name] - before.get(name, 0.0) for name in after}
    answered = counted["request_inference_time_seconds_count"]
    assert answered == course.count, f"{contender}: the server answered {answered:.0f} requests"
    return Turn(
        contender=contender,
        round=number,
        in_flight=course.in_flight,
        count=course.count,
        seconds=spent["seconds"],
        cpu=spent["cpu"],
        prompt_tokens=int(counted["prompt_tokens_total"]),
        tokens=int(counted["generation_tokens_total"]),
        running=counted["request_inference_time_seconds_sum"] / spent["seconds"],
    )


async def take_turns(
    courses: Sequence[Course], model: KeptEngine, folder: Path, *, rounds: int
) -> dict[str, Any]:
    """Every turn of every round; who is first changes from round to round."""
    await model.open()
    try:
        contenders = [HARNESS, *BARE]
        for one in contenders:
            await take_turn(one, courses[-1], model=model, scratch=folder, number=0)
        turns = []
        for number in range(1, rounds + 1):
            for course in courses:
                for one in contenders:
                    turn = await take_turn(one, course, model=model, scratch=folder, number=number)
                    turns.append(dataclasses.asdict(turn))
            contenders.append(contenders.pop(0))
    finally:
        await model.end()
    return {"flags": list(model.flags), "turns": turns}


def main() -> None:
    """Takes the turns and writes what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--model-args", required=True, help="JSON, as those of --model vllm")
    add("--courses", required=True, help="JSON, a list of in_flight, data, count and tokens")
    add("--rounds", type=int, required=True)
    add("--folder", type=Path, required=True)
    add("--result", type=Path, required=True)
    arguments = parser.parse_args()
    given = json.loads(arguments.courses)
    courses = [Course(**{**one, "data": Path(one["data"])}) for one in given]
    model = keep(
        ModelSettings(
            args=json.loads(arguments.model_args),
            concurrency=max(course.in_flight for course in courses),
        )
    )
    model.attach_log(arguments.folder, lambda line: print(line, file=sys.stderr))
    found = asyncio.run(take_turns(courses, model, arguments.folder, rounds=arguments.rounds))
    arguments.result.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
