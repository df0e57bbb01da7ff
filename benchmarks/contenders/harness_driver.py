"""The command of a run on a cluster over made-up items, with workers that only count them."""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from speed_of_harness.benchmark import SPEED, Options, Text, items

import harness.pipeline.executors.ray as executors
from harness.calls.usage import UsageBook
from harness.pipeline.executors.planned import PlannedRun
from harness.pipeline.executors.shards import Counts, News, ShardDone, unpacked
from harness.pipeline.plan import Plan, StageRun
from harness.pipeline.progress import ClusterProgress, StageProgress

WORKERS = 2
TURN = 0.001
"""Seconds that a shard takes, so that shards wait for each other as they do with a model."""


class Method:
    """A method of an actor."""

    def __init__(self, call: Any) -> None:
        self.remote = call


class MadeUpWorker:
    """Counts the items of a shard as done."""

    def __init__(self) -> None:
        self.work, self.news = Method(self._work), Method(self._news)
        self.finish, self.close = Method(self._nothing), Method(self._close)
        self.hand_back = Method(self._nothing_left)
        self.stop = Method(lambda error, at_once: None)

    async def _work(self, *packed: bytes) -> ShardDone:
        await asyncio.sleep(TURN)
        count = len(unpacked(packed).items)
        return ShardDone(Counts(done=count, calls=count))

    async def _news(self) -> News:
        return News({}, {}, (), 0)

    async def _close(self, keep: bool) -> tuple[News, None]:
        return News({}, {}, (), 0), None

    async def _nothing(self, task: str, stage: str) -> None:
        return None

    async def _nothing_left(self, task: str, stage: str) -> tuple[()]:
        return ()


class MadeUpWorkers:
    """Opens workers at once, in the first session of a run."""

    keeps = False
    order = SimpleNamespace(session=1)

    def __init__(self) -> None:
        self.checked = asyncio.Event()
        self.checked.set()

    async def open(self, name: str) -> MadeUpWorker:
        return MadeUpWorker()

    def lost(self, name: str) -> None: ...

    def ended(self, name: str, *, well: bool) -> None:
        assert well, name


def run_stage(count: int, folder: Path) -> dict[str, Any]:
    """Have so many items handed out; what that took."""
    [stage] = SPEED.stages
    task = SimpleNamespace(name="speed", max_failures={})
    model = SimpleNamespace(concurrency=64, occupies=None)
    context = SimpleNamespace(
        key="0" * 64, label="speed/answer", stage=stage, task=task, models=[model], number=1,
        benchmark="speed",
    )  # fmt: skip
    made = [0.0]

    def all_items() -> Iterator[Text]:
        yield from items({}, None, Options(made_up=count))
        made.append(time.perf_counter())

    run: Any = StageRun(
        context=context,  # type: ignore[arg-type]
        journal=folder / "1-answer.jsonl",
        items=all_items,
        progress=StageProgress(task="speed", stage="answer"),
    )
    executors.nodes = lambda: ()
    executor = executors.RayExecutor(
        PlannedRun(
            plan=Plan(runs=[run], resource=lambda model: None),
            limits={},
            on_stage_start=lambda run: None,
            on_stage_end=lambda run: None,
        ),
        workers=MadeUpWorkers(),  # type: ignore[arg-type]
        count=WORKERS,
        announce=print,
        usage=UsageBook(),
        seen=ClusterProgress(),
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, computed = time.perf_counter(), time.process_time()
    asyncio.run(executor.run())
    seconds, processor = time.perf_counter() - started, time.process_time() - computed
    assert run.progress.done == count, run.progress
    return {
        "items": count,
        "making_s": made[-1] - started,
        "seconds": seconds,
        "cpu_ms_an_item": 1000 * processor / count,
        "before_mib": before / 1024,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    found = run_stage(arguments.count, arguments.folder)
    (arguments.folder / "driver.json").write_text(json.dumps(found), encoding="utf-8")
    print(json.dumps(found))
