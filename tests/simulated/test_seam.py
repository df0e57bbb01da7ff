"""Rooms that a simulation runs take time and threads from where it can replace them."""

from __future__ import annotations

import ast
from pathlib import Path

import harness

ROOMS = ("calls", "runs", "pipeline")
FORBIDDEN = {
    ("time", "monotonic"), ("time", "time"), ("time", "sleep"), ("time", "perf_counter"),
    ("datetime", "now"), ("datetime", "utcnow"), ("threading", "Thread"), ("threading", "Timer"),
}  # fmt: skip


def of_the_machine(code: str) -> list[str]:
    """What the code takes from the machine, as `time.sleep`."""
    named = [
        (node.value.id, node.attr)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    ]
    return [".".join(one) for one in named if one in FORBIDDEN]


def test_the_clock_and_the_loop_have_all_time_and_threads():
    assert of_the_machine("import time\ntime.sleep(1)") == ["time.sleep"]
    folder = Path(harness.__file__).parent
    files = [file for room in ROOMS for file in (folder / room).rglob("*.py")]
    assert {"client.py", "journal.py", "run.py"} <= {file.name for file in files}
    found = {file.name: of_the_machine(file.read_text()) for file in files}
    assert {name: used for name, used in found.items() if used} == {}
