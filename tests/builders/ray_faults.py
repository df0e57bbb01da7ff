"""Runs on a cluster of which parts die, and what must be true of them afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders.clusters import (
    NODE,
    PATIENCE,
    processes_of,
    ray_cluster,
    title_of,
    with_signal,
    workers_in,
)
from builders.processes import lives
from builders.toys import Runs, current_lines

from harness.testing import FaultyServer
from harness.testing.faults import Asked

KINDS = 20
WORDS = [f"w{number % KINDS} {number}" for number in range(100)]
QUESTIONS = len(WORDS) + KINDS
"""What a whole run of the toys asks: one question for each word, and one for each first word."""

LATENCY, CONCURRENCY = 0.3, 8
MODELS = ("candidate", "referee")


@dataclass
class Nodes:
    """A cluster of two nodes on this machine; `folder` has the files of its Ray."""

    cluster: Any
    folder: Path

    @property
    def address(self) -> str:
        """What a run joins."""
        return str(self.cluster.address)

    @property
    def other(self) -> Any:
        """A node to which no driver belongs."""
        return next(iter(self.cluster.worker_nodes))

    def add(self, **options: Any) -> Any:
        """Add a node."""
        return self.cluster.add_node(**{**NODE, **options})

    def remove(self, node: Any) -> None:
        """Kill a node with all its processes."""
        self.cluster.remove_node(node, allow_graceful=False)

    def kill_raylet(self) -> None:
        """Kill the process that starts and ends the workers of the other node."""
        raylet = _raylet(self.other)
        raylet.kill()
        # Its workers end with it, but not before somebody has waited for it: a zombie lives to Ray.
        raylet.wait()

    def kill_head(self) -> None:
        """Kill the process that knows of all nodes and actors."""
        (head,) = self.cluster.head_node.all_processes["gcs_server"]
        with_signal(head.process.pid, signal.SIGKILL)

    def mend(self) -> None:
        """Have two living nodes again."""
        for node in list(self.cluster.worker_nodes):
            if not lives(raylet_of(node)):
                self.remove(node)
        if not self.cluster.worker_nodes:
            self.add()
        self.cluster.wait_for_nodes()  # until one that was removed is no longer counted

    def workers(self) -> list[int]:
        """The processes that ask models."""
        return workers_in(self.folder)

    def workers_of(self, node: Any) -> list[int]:
        """Those of one node, as its raylet is their parent."""
        parent = str(raylet_of(node))
        return [
            one
            for one in self.workers()
            if Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[1] == parent
        ]

    def kill(self) -> None:
        """Kill the head, the nodes and all their processes at once."""
        for process in processes_of(self.folder):
            with_signal(process, signal.SIGKILL)

    def check_empty(self, seconds: float = 60.0) -> None:
        """Fail if processes of runs are left after so many seconds."""
        end = time.monotonic() + seconds
        while left := self.workers():
            for node in self.cluster.list_all_nodes():
                _raylet(node).poll()
            assert time.monotonic() < end, [title_of(one) for one in left]
            time.sleep(0.1)


@contextmanager
def two_nodes() -> Iterator[Nodes]:
    """A cluster of two nodes that notices quickly when one dies."""
    with ray_cluster(NODE, NODE) as cluster:
        yield Nodes(cluster, Path(os.environ["RAY_TMPDIR"]))


@contextmanager
def stopped(process: int) -> Iterator[None]:
    """Stop a process until the end."""
    with_signal(process, signal.SIGSTOP)
    try:
        yield
    finally:
        with_signal(process, signal.SIGCONT)


def raylet_of(node: Any) -> int:
    """The process that starts and ends the workers of a node."""
    return _raylet(node).pid


def _raylet(node: Any) -> subprocess.Popen[bytes]:
    process: subprocess.Popen[bytes] = node.all_processes["raylet"][0].process
    return process


def answer(body: dict[str, Any]) -> str:
    """What was asked without the first word, which says by whom."""
    return str(body["messages"][-1]["content"]).partition(" ")[2]


def scores_of(folder: Path) -> bytes:
    """The file of the scores of a run."""
    return (folder / "toys" / "scores.jsonl").read_bytes()


@dataclass
class Watched:
    """One run of the toys, which is started again and again in the same folder.

    `kills` has the moment of each kill, and the questions whose items were all on disk by then.
    """

    runs: Runs
    server: FaultyServer
    kills: list[tuple[float, set[str]]] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None
    going: threading.Event = field(default_factory=threading.Event)

    def start(self, *more: str, executor: str = "ray") -> None:
        """Start the command, or start it again."""
        self.process = self.runs.start(executor, "--concurrency", str(CONCURRENCY), *more)

    def hold(self, questions: int) -> None:
        """Have the server stand still once it was asked so many questions, until another `hold` or
        `go_on`: on however busy a machine, the run is still there for what the test does next."""
        before, self.going = self.going, threading.Event()
        going = self.going

        def stand(asked: Asked) -> None:
            if asked.number + 1 >= questions:
                going.wait()

        self.server.faults = stand
        before.set()

    def go_on(self) -> None:
        """Have the server answer again."""
        self.server.faults = ()
        self.going.set()

    def wait_for(self, questions: int) -> None:
        """Wait until the server was asked so many questions in all."""
        self.wait_until(lambda: self.server.count >= questions)

    def wait_until(self, true: Callable[[], object], seconds: float = PATIENCE) -> None:
        """Wait until this is true; fails if the command ends before that."""
        assert self.process is not None
        end = time.monotonic() + seconds
        while not true():
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.01)

    def note_kill(self) -> None:
        """Something was killed just now."""
        recorded = self.on_disk()
        self.kills.append((time.monotonic(), recorded))

    def kill(self) -> None:
        """Kill the command itself."""
        assert self.process is not None
        self.process.kill()
        self.process.communicate(timeout=30)

    def ended(self, code: int = 0, seconds: float = PATIENCE) -> str:
        """What the command wrote to its users, once it has ended by itself."""
        assert self.process is not None
        _, shown = self.process.communicate(timeout=seconds)
        assert self.process.returncode == code, shown
        return shown

    @property
    def folder(self) -> Path:
        """The run folder: the command has gone on in it each time."""
        return self.runs.only

    def on_disk(self) -> set[str]:
        """The questions of which all items are recorded."""
        if not any(self.runs.place.glob("*/toys/1-say*")):
            return set()
        spoken = {line["id"] for line in current_lines(self.folder, "say")}
        done = {f"say {word}" for at, word in enumerate(WORDS) if f"{at:03}" in spoken}
        if any(self.folder.glob("toys/2-judge*")):
            judged = {line["id"] for line in current_lines(self.folder, "judge")}
            for kind in {word.partition(" ")[0] for word in WORDS}:
                items = {f"{n:03}" for n, word in enumerate(WORDS) if word.startswith(f"{kind} ")}
                done |= {f"judge {kind}"} if items <= judged else set()
        return done

    def check(self, whole: bytes) -> None:
        """Fail unless the scores are those of a whole run, and nothing was lost or asked again.

        Of the questions that were in flight at a kill, and those just answered, there are as many
        again as may be asked at a time; and each worker asks once what items share.
        """
        assert scores_of(self.folder) == whole
        for moment, recorded in self.kills:
            later = [one.body for one in self.server.asked if one.at > moment]
            assert not recorded & {body["messages"][-1]["content"] for body in later}
        assert self.server.count <= QUESTIONS + KINDS + 2 * CONCURRENCY * len(self.kills)


def whole_scores(folder: Path, package: Path) -> bytes:
    """The scores of a run by one process that nothing disturbs."""
    folder.mkdir()
    with FaultyServer(answer, models=MODELS) as server:
        runs = Runs(folder, package, "", server.url)
        runs.words(*WORDS)
        done = runs.run("local")
        assert done.status == "done"
        return scores_of(done.folder)


@contextmanager
def watched(folder: Path, package: Path, address: str) -> Iterator[Watched]:
    """A run to be started in a folder; its command is killed if it is still there at the end."""
    with FaultyServer(answer, models=MODELS, latency=LATENCY) as server:
        runs = Runs(folder, package, address, server.url)
        runs.words(*WORDS)
        run = Watched(runs, server)
        try:
            yield run
        finally:
            run.go_on()
            if run.process is not None and run.process.poll() is None:
                run.process.kill()
                run.process.communicate()
