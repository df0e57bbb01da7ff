"""Where the tests' processor time goes: `make durations`, or this script with pytest's arguments.

As a plugin (`-p durations`) it notes for each test and fixture the processor seconds of its own
process and of the children that it waited for. A fixture counts for the test that first uses it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

NOTES = "HARNESS_TEST_DURATIONS"
"""The variable that names the folder of the notes, one file a worker."""

KINDS = ("cluster", "process", "server", "whole run", "unit")
SHOWN = 100
LONGEST_NAME = 140

happened: Counter[str] = Counter()
"""How often this process has done what makes a test more than a unit test."""


def processor_seconds() -> float:
    """Of this process and of the children that it waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def note(**fields: Any) -> None:
    """Append a line to the notes of this process."""
    with Path(os.environ[NOTES], f"{os.getpid()}.jsonl").open("a") as file:
        file.write(json.dumps(fields) + "\n")


def watch(event: str, _: tuple[Any, ...]) -> None:
    """Count the processes and servers that are started."""
    if event == "subprocess.Popen":
        happened["process"] += 1
    elif event == "socket.bind":
        happened["server"] += 1


def pytest_configure() -> None:
    import ray

    from harness.pipeline import run

    def counted(call: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def calling(*given: Any, **named: Any) -> Any:
            happened[kind] += 1
            return call(*given, **named)

        return calling

    sys.addaudithook(watch)
    run.arun = counted(run.arun, "whole run")
    ray.init = counted(ray.init, "cluster")


def pytest_collection_finish(session: pytest.Session) -> None:
    note(test="collection", seconds=processor_seconds(), kind="collection", worker=os.getpid())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before, began = happened.copy(), processor_seconds()
    result = yield
    seconds = processor_seconds() - began
    kinds = happened - before
    kind = next((kind for kind in KINDS if kinds[kind]), "unit")
    if "cluster" in getattr(item, "fixturenames", ()):
        kind = "cluster"
    note(test=item.nodeid, seconds=seconds, kind=kind)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    began = processor_seconds()
    result = yield
    if (seconds := processor_seconds() - began) >= 0.05:
        place = f"{request.node.nodeid.split('::')[0]}: {fixturedef.argname}"
        note(fixture=place, seconds=seconds)
    return result


def table(heading: str, seconds: dict[str, float], shown: int = SHOWN) -> None:
    """Print the largest of some sums."""
    print(f"\n{heading}: {sum(seconds.values()):,.0f} s")
    for name, spent in sorted(seconds.items(), key=lambda pair: -pair[1])[:shown]:
        print(f"{spent:9.2f}  {name[:LONGEST_NAME]}")


def main(arguments: list[str]) -> int:
    """Run pytest with these arguments and print the sums."""
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    with tempfile.TemporaryDirectory() as folder:
        here = str(Path(__file__).parent)
        environment = {**os.environ, NOTES: folder, "PYTHONPATH": here}
        command = [sys.executable, "-m", "pytest", "-p", "durations", *arguments]
        began = processor_seconds()
        code = subprocess.run(command, env=environment, check=False).returncode
        every = processor_seconds() - began
        for notes in Path(folder).iterdir():
            for line in map(json.loads, notes.read_text().splitlines()):
                if "fixture" in line:
                    sums["fixture"][line["fixture"]] += line["seconds"]
                    continue
                file = line["test"].split("::")[0].removeprefix("tests/")
                sums["kind"][line["kind"]] += line["seconds"]
                sums["folder"][str(Path(file).parent)] += line["seconds"]
                sums["file"][file] += line["seconds"]
                sums["test"][line["test"].removeprefix("tests/")] += line["seconds"]
    for what in ("kind", "folder", "file", "test", "fixture"):
        table(f"processor seconds by {what}", sums[what])
    print(f"\nthe whole command: {every:,.0f} s of processor time")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
