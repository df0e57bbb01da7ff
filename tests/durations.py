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
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

NOTES = "HARNESS_TEST_DURATIONS"
"""The variable that names the folder of the notes, one file a worker."""

KINDS = {"subprocess.Popen": "process", "socket.bind": "server"}
"""What an event of Python makes of a test; the dearest kinds are named first below."""

happened: Counter[str] = Counter()
"""How often this process has done what makes a test more than a unit test."""


def processor_seconds() -> float:
    """Of this process and of the children that it waited for."""
    return sum(os.times()[:4])


def note(*sums: tuple[str, str], seconds: float) -> None:
    """Append to the notes of this process that so many seconds go to a name in each table."""
    with Path(os.environ[NOTES], f"{os.getpid()}.jsonl").open("a") as file:
        file.writelines(f"{json.dumps([*one, seconds])}\n" for one in sums)


def pytest_configure() -> None:
    import ray

    from harness.pipeline import run

    def counted(call: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def calling(*given: Any, **named: Any) -> Any:
            happened[kind] += 1
            return call(*given, **named)

        return calling

    sys.addaudithook(lambda event, _: happened.update([KINDS[event]] if event in KINDS else ()))
    run.arun = counted(run.arun, "whole run")
    ray.init = counted(ray.init, "cluster")


def pytest_collection_finish() -> None:
    places = (("kind", "collection"), ("test", f"collection by {os.getpid()}"))
    note(*places, seconds=processor_seconds())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before, began = happened.copy(), processor_seconds()
    result = yield
    kinds = happened - before
    if "cluster" in getattr(item, "fixturenames", ()):
        kinds["cluster"] += 1
    kind = next(
        (one for one in ("cluster", "process", "server", "whole run") if kinds[one]), "unit"
    )
    test = item.nodeid.removeprefix("tests/")
    file = test.split("::")[0]
    places = (("kind", kind), ("folder", str(Path(file).parent)), ("file", file), ("test", test))
    note(*places, seconds=processor_seconds() - began)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    began = processor_seconds()
    result = yield
    if (seconds := processor_seconds() - began) >= 0.05:
        place = f"{request.node.nodeid.split('::')[0]}: {fixturedef.argname}"
        note(("fixture", place), seconds=seconds)
    return result


def main(arguments: list[str]) -> int:
    """Run pytest with these arguments and print the hundred largest sums of each table."""
    sums = {table: Counter[str]() for table in ("kind", "folder", "file", "test", "fixture")}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, NOTES: folder, "PYTHONPATH": str(Path(__file__).parent)}
        command = [sys.executable, "-m", "pytest", "-p", "durations", *arguments]
        began = processor_seconds()
        code = subprocess.run(command, env=environment, check=False).returncode
        every = processor_seconds() - began
        for notes in Path(folder).iterdir():
            for table, name, seconds in map(json.loads, notes.read_text().splitlines()):
                sums[table][name] += seconds
    for table, spent in sums.items():
        print(f"\nprocessor seconds by {table}: {spent.total():,.0f} s")
        for name, seconds in spent.most_common(100):
            print(f"{seconds:9.2f}  {name[:140]}")
    print(f"\nthe whole command: {every:,.0f} s of processor time")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
