"""What the processes of a run on a cluster cost, each kind by itself, between two moments."""

from __future__ import annotations

import bisect
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from measure import ContenderFailed

EVERY = 0.2
"""Seconds between two looks."""

TICKS = os.sysconf("SC_CLK_TCK")
KINDS = {b"ray::ShardWorker": "workers"}
COMMAND, SERVER, OTHERS = "command", "server", "Ray itself"


@dataclass
class Looks:
    """The processor seconds of the processes of a command, look by look, by kind.

    `held` is the memory of the command itself, in MiB, and `cpu` what all of them computed up to
    the last look.
    """

    times: list[float] = field(default_factory=list)
    seconds: list[dict[str, float]] = field(default_factory=list)
    held: list[float] = field(default_factory=list)

    @property
    def cpu(self) -> float:
        """What all processes but the server computed from start to end."""
        return sum(seconds for kind, seconds in self.seconds[-1].items() if kind != SERVER)

    def between(self, first: float, last: float) -> dict[str, float]:
        """What each kind computed between two moments."""
        before, after = self._at(first), self._at(last)
        return {kind: after[kind] - before.get(kind, 0.0) for kind in after}

    def peak(self, first: float, last: float) -> float:
        """The most memory that a look found between two moments."""
        looks = zip(self.times, self.held, strict=True)
        return max(held for moment, held in looks if first <= moment <= last + EVERY)

    def _at(self, moment: float) -> dict[str, float]:
        """The seconds of each kind at a moment, between the two looks around it."""
        place = min(max(bisect.bisect(self.times, moment), 1), len(self.times) - 1)
        (start, end), (one, two) = self.times[place - 1 :][:2], self.seconds[place - 1 :][:2]
        share = min(max((moment - start) / (end - start), 0.0), 1.0)
        return {
            kind: one.get(kind, 0.0) + share * (seconds - one.get(kind, 0.0))
            for kind, seconds in two.items()
        }


def watched(
    command: Sequence[str], *, log: Path, environment: Mapping[str, str], beside: int | None = None
) -> Looks:
    """Run a command and look at its processes, and at the server `beside` it.

    Raises ContenderFailed unless the command ends well.
    """
    found = Looks()
    of_process: dict[int, tuple[str, float]] = {}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
        )
        status = None
        while not status:
            for number, (kind, seconds) in processes(process.pid).items():
                before = of_process.get(number, (OTHERS, 0.0))[0]
                of_process[number] = (kind if before == OTHERS else before), seconds
            if beside is not None:
                of_process[beside] = SERVER, stat_of(beside)[1]
            total: dict[str, float] = defaultdict(float)
            for kind, seconds in of_process.values():
                total[kind] += seconds
            found.held.append(memory_of(process.pid))
            found.times.append(time.monotonic())
            found.seconds.append(dict(total))
            time.sleep(EVERY)
            status, code = os.waitpid(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode != 0:
        tail = log.read_text("utf-8", "replace")[-2000:]
        raise ContenderFailed(f"{' '.join(command)} ended with {process.returncode}\n{tail}")
    return found


def processes(root: int) -> dict[int, tuple[str, float]]:
    """The kind and the processor seconds of a process and of all that it started."""
    started: dict[int, list[int]] = defaultdict(list)
    seconds: dict[int, float] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        one = int(entry.name)
        try:
            parent, seconds[one] = stat_of(one)
        except OSError:
            continue  # it has ended
        started[parent].append(one)
    found: dict[int, tuple[str, float]] = {}
    waiting = [root]
    while waiting:
        one = waiting.pop()
        waiting += started[one]
        if one in seconds:
            found[one] = (COMMAND if one == root else kind_of(one), seconds[one])
    return found


def stat_of(process: int) -> tuple[int, float]:
    """The parent of a process, and its processor seconds."""
    fields = Path("/proc", str(process), "stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[1]), (int(fields[11]) + int(fields[12])) / TICKS


def memory_of(process: int) -> float:
    """The MiB that a process holds; 0 if it has ended."""
    for line in Path("/proc", str(process), "status").read_text("utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def kind_of(process: int) -> str:
    """Which part of a run on a cluster a process is."""
    try:
        title = Path("/proc", str(process), "cmdline").read_bytes()
    except OSError:
        return OTHERS
    return next((kind for start, kind in KINDS.items() if title.startswith(start)), OTHERS)


if sys.platform != "linux":
    raise SystemExit("this reads /proc, which only Linux has")
