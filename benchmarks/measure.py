"""What a whole process cost: wall time, processor time and the most memory it held."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True)
class Cost:
    """One run of one process, in seconds and MiB; the time of its own children counts too."""

    wall: float
    cpu: float
    memory: float


class ContenderFailed(Exception):
    """A contender that ended with an error, with the end of what it said."""


def run_measured(
    command: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None
) -> Cost:
    """Runs a command to its end; raises ContenderFailed unless it ends well.

    Python may keep the bytecode of a checkout, as an installer keeps that of the peers' packages.
    """
    variables = {**os.environ, **(environment or {})}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    with log.open("wb") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=variables,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        tail = log.read_text("utf-8", "replace")[-2000:]
        raise ContenderFailed(f"{' '.join(command)} ended with {process.returncode}\n{tail}")
    return Cost(wall=wall, cpu=usage.ru_utime + usage.ru_stime, memory=usage.ru_maxrss / 1024)


@contextmanager
def chat_server(latency: float = 0.0, *, by_rule: bool = False) -> Iterator[str]:
    """The base URL of the loopback server, in a process of its own while the block runs.

    `by_rule` has it answer what GISTBench can use, instead of one fixed answer.
    """
    with chat_process(latency, by_rule=by_rule) as (url, _):
        yield url


@contextmanager
def chat_process(latency: float = 0.0, *, by_rule: bool = False) -> Iterator[tuple[str, int]]:
    """The base URL of the loopback server, and the number of its process."""
    command = [sys.executable, str(HERE / "server.py"), "--latency", str(latency)]
    command += ["--by-rule"] if by_rule else []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())
        try:
            yield f"http://127.0.0.1:{port}/v1", process.pid
        finally:
            process.stdin.close()
