"""Worlds: settings, faults, crashes and interruptions drawn from a seed, and what holds in each.

A world is a run of the scripted benchmark by the real pipeline: its settings, its server's faults
and what disturbs it are drawn. The same command is repeated until it ends; then everything is as in
the run of the same script that nothing disturbed.
"""

from __future__ import annotations

import asyncio
import functools
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from simulated import benchmark
from simulated.disk import Crash, Disk
from simulated.kept import STAGES, TRANSIENT, end_of, lacks_answer, plain, records_in, replies_in
from simulated.loop import Clock, SimulatedLoop
from simulated.plans import Plan, Script, plan_of
from simulated.server import PRICES, Server, Session
from simulated.setting import simulated
from simulated.sqlite_files import PagedDisk
from simulated.wire import Wire

from harness.base import clock
from harness.base.errors import BudgetSpent, HarnessError
from harness.calls import client
from harness.calls.budget import Budget
from harness.calls.pricing import PriceTable
from harness.calls.retry import Patience
from harness.contracts.outcomes import NO_ANSWER
from harness.pipeline import resume
from harness.pipeline.run import RunResult, arun
from harness.pipeline.settings import RunSettings, make_settings
from harness.runs import atomic_files

MOST = 60
"""More sessions than any world needs."""

WRITTEN = 0.2
"""Seconds after which an answer is on disk."""

ROUNDS = 0.05
"""Seconds of the loop's rounds until a reply is kept."""


class Broken(AssertionError):
    """Something does not hold in a world."""


class Lines:
    """A display that keeps the lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def show_line(self, text: str, *, problem: bool = False) -> None:
        self.lines.append(text)

    def start(self, progress: Any) -> None: ...
    def stage_started(self, stage: Any) -> None: ...
    def stage_ended(self, stage: Any) -> None: ...
    def stop(self) -> None: ...


@dataclass
class Ended:
    """How a session ended: by a crash, an error before the run began, or with a result."""

    result: RunResult | None = None
    error: HarnessError | None = None
    crashed: bool = False

    @property
    def errors(self) -> tuple[HarnessError, ...]:
        if self.result is not None:
            return self.result.errors
        return () if self.error is None else (self.error,)


class World:
    """A world in a folder: `live` repeats the same command until it has ended."""

    def __init__(self, plan: Plan, seed: Any, folder: Path, machine: Clock) -> None:
        self.plan, self.folder, self.machine = plan, folder / "world", machine
        self.folder.mkdir()
        self.draw = Random(f"life {seed}")
        disk = PagedDisk if plan.paged else Disk
        self.disk = disk(self.folder, folder / "crashed", self.draw)
        self.disk.on_crash = self._note_crash
        self.server = Server(
            plan.script.number, self.draw, faults=plan.faults, latency=plan.latency
        )
        self.server.wired = plan.wired
        self.budget = plan.budget
        self.crashed_at, self.retried = 0.0, False
        self.judge, self.more = "judge", dict[str, Any]()
        self.ends: list[Ended] = []
        machine.now = 0.0

    @property
    def run(self) -> Path | None:
        """The newest run folder with a manifest."""
        found = sorted(self.folder.glob("runs/*/manifest.json"))
        return found[-1].parent if found else None

    def settings(self, *, retry: bool = False) -> RunSettings:
        plan, script = self.plan, self.plan.script
        return make_settings({
            "tasks": "simulated", "data": "sample", "limit": script.people,
            "model": self._spec("candidate", script.scope),
            "roles": {
                "referee": self._spec("referee", "everywhere", f"concurrency={plan.others}"),
                "judge": f"llm:{self._spec(self.judge, script.judge_scope)}",
            },
            "changes": {"parts": script.parts},
            "output_path": self.folder / "runs",
            "store": self.folder / "store.sqlite",
            "use_store": plan.store,
            "concurrency": plan.concurrency,
            "patience": plan.patience,
            "budget": self.budget,
            "prices": PriceTable(
                models={f"*:{name}": price for name, price in PRICES.items()}
            ),
            "max_failures": {
                "calls": 0.1 if plan.few_failures and not retry else 1.0,
                "parsing": 1.0, "judging": 1.0, "errors": 0.0,
            },
            "retry_failures": retry, **self.more,
        })  # fmt: skip

    def _spec(self, name: str, scope: str, *more: str) -> str:
        """The SPEC of a model whose answers may be reused so far."""
        if not self.plan.wired:
            return ",".join([f"simulated:model={name}", f"scope={scope}", *more])
        known = ["revision=1"] if scope == "everywhere" else []
        address = "base_url=http://world/v1"
        return ",".join([f"wired:model={name}", address, "thinking=false", *known, *more])

    def live(self) -> None:
        """Disturb the run as planned, and repeat its command until it is done and nothing lacks."""
        crashes, interrupts = list(self.plan.crashes), list(self.plan.interrupts)
        retry, writes = False, reference(self.plan.script, self.plan.wired)["writes"]
        while not self.delivered or self.unanswered():
            self._check(len(self.ends) < MOST, f"the command has not ended after {MOST} sessions")
            crash = 1 + int(crashes.pop(0) * writes) if crashes else None
            times = interrupts.pop(0) if interrupts and crash is None else ()
            # A run that was delivered, or whose command has nothing left to ask, needs the option.
            ended = self.session(crash_at=crash, interrupts=times, retry=retry or self.delivered)
            retry = (
                ended.result is not None
                and ended.result.status == "too_many_failures"
                and not self.server.session.calls
            )
            self._check(
                not retry or not self.unanswered(NO_ANSWER, STAGES[:1]),
                "the same command did not ask again what got no answer",
            )
        self.check_end()

    @property
    def delivered(self) -> bool:
        """Whether the result of the run was delivered."""
        return self.run is not None and json.loads((self.run / "manifest.json").read_bytes()).get(
            "delivered", False
        )

    def session(
        self, *, crash_at: int | None = None, interrupts: tuple[float, ...] = (),
        retry: bool = False, may_fail: bool = False,
    ) -> Ended:  # fmt: skip
        """One command, from its start to its end or the crash; its disk `may_fail`."""
        if retry:
            self.server.forbidden, self.retried = {}, True
        self.server.stored = self.plan.store and not retry
        account = self.server.begin(self.budget)
        self.disk.begin(crash_at)
        ended = self._carried_out(interrupts, retry)
        self.ends.append(ended)
        if ended.crashed:
            shutil.rmtree(self.folder)
            self.disk.copy.rename(self.folder)
        self.machine.now += self.draw.uniform(1.0, 1800.0)
        self._check_session(account, ended, may_fail)
        if any(isinstance(error, BudgetSpent) for error in ended.errors):
            bounds = {name: getattr(self.budget, name) for name in ("calls", "tokens", "cost")}
            more = {name: bound * 2 for name, bound in bounds.items() if bound is not None}
            self.budget = Budget(**more)
        return ended

    def _carried_out(self, interrupts: tuple[float, ...], retry: bool) -> Ended:
        ended = Ended()
        loop = SimulatedLoop(self.draw, began=self.machine.now)
        loop.connect = lambda protocol: Wire(loop, protocol, self.server)
        left: set[asyncio.Task[Any]] = set()

        async def whole() -> RunResult:
            for seconds in interrupts:
                loop.call_later(seconds, self._interrupt, loop)
            result = await arun(self.settings(retry=retry), display=Lines(), handle_signals=True)
            for _ in range(8):
                await asyncio.sleep(0)
            left.update(asyncio.all_tasks() - {asyncio.current_task()})
            return result

        chance = functools.partial(Random, self.draw.random())
        with pytest.MonkeyPatch.context() as patch, self.disk.mounted():
            patch.setattr(benchmark, "server", self.server)
            patch.setattr(client, "Random", chance)
            patch.setattr(resume.secrets, "token_hex", lambda size: chance().randbytes(size).hex())
            patch.setattr(atomic_files.secrets, "token_hex", resume.secrets.token_hex)
            self.machine.loop = loop
            try:
                with asyncio.Runner(loop_factory=lambda: loop) as runner:
                    ended.result = runner.run(whole())
            except Crash:
                ended.crashed = True
            except HarnessError as error:
                ended.error = error
            finally:
                self.machine.loop, self.machine.now = None, loop.now
        self._check(not left, f"tasks are left: {left}")
        if not ended.crashed:
            self._check(not loop.troubles, f"the loop has troubles: {loop.troubles[:1]}")
        return ended

    def _interrupt(self, loop: SimulatedLoop) -> None:
        if handler := loop.handlers.get(signal.SIGINT):
            handler()

    def _note_crash(self) -> None:
        self.crashed_at = self.machine.seconds()

    def _check_session(self, account: Session, ended: Ended, may_fail: bool) -> None:
        """What holds after each session, and what the next ones must not ask."""
        self._check(not account.broken, "; ".join(account.broken[:3]))
        saved = self.saved()
        if ended.crashed:
            late = self.crashed_at - WRITTEN - ROUNDS
            for question, at in account.answered.values():
                self._check(
                    at > late or question in saved or self.delivered,
                    f"{question!r} was answered at {at:.3f} and is not on disk at the crash at"
                    f" {self.crashed_at:.3f}",
                )
        elif ended.result is None or self.delivered or may_fail:
            pass
        elif not (self.plan.wired and ended.errors):  # an error drops what is still on the wire
            for question, _ in account.answered.values():
                self._check(question in saved, f"{question!r} was answered and is not on disk")
        self.server.forbidden = saved
        if ended.error is not None and not may_fail:
            raise Broken(f"the command failed before the run began: {ended.error}")
        self._check_values()

    def saved(self) -> dict[str, str]:
        """The questions whose answers are on disk, each with where."""
        found: dict[str, str] = {}
        answered = {
            id: question for one in self.server.sessions
            for id, (question, _) in one.answered.items()
        }  # fmt: skip
        files = [self.folder / "store.sqlite"] if self.plan.store else []
        if self.run is not None:
            files.append(self.run / "answers.sqlite")
        for file in files:
            for value in replies_in(file):
                reply = value["answer"]["reply"] if "answer" in value else value
                given = answered.get(reply.get("id"))
                self._check(given is not None, f"no server gave the reply {reply}")
                found[str(given)] = f"its answer is in {file.name}"
        for stage in STAGES[:1]:
            for record in self.records(stage).values():
                if lacks_answer(record):
                    continue
                for call in record.get("calls", ()):
                    turns = " | ".join(one["content"].strip() for one in call["messages"])
                    question = f"{call['role']} #{call.get('repeat', 0)}: {turns}"
                    if call.get("text") is not None:
                        found[question] = f"its answer is in the journal {stage}"
        return found

    def records(self, stage: str) -> dict[str, dict[str, Any]]:
        """The current record of each item of a stage, of lines that are whole."""
        return {} if self.run is None else records_in(self.run / "simulated" / f"{stage}.jsonl")

    def unanswered(
        self, causes: Collection[str] = NO_ANSWER | TRANSIENT, stages: tuple[str, ...] = STAGES
    ) -> bool:
        """Whether an item of these stages ended without an answer, by these causes."""
        found = (one for stage in stages for one in self.records(stage).values())
        return any(lacks_answer(one, causes) for one in found)

    def _check_values(self) -> None:
        """No value that the undisturbed run does not have."""
        for stage in STAGES[:2]:  # the items of the last stage follow from values that may lack
            right = reference(self.plan.script, self.plan.wired)[stage]
            for id, record in self.records(stage).items():
                self._check(id in right, f"{stage} has an item of its own: {id}")
                if not lacks_answer(record):
                    shown, wanted = plain(record)["outcome"], right[id]["outcome"]
                    self._check(shown == wanted, f"{stage}, {id}: {shown}, not {wanted}")

    def check_end(self) -> None:
        """All that is kept equals what the undisturbed run keeps."""
        assert self.run is not None
        right = reference(self.plan.script, self.plan.wired)
        # The shared store may have an answer that the run lost, and faults have a price.
        plain_way = not (self.plan.store or self.plan.faults or self.retried)
        for what, found in end_of(self.run).items():
            if what == "paid" and not plain_way:
                continue
            self._check(found == right[what], f"{what}: {different(found, right[what])}")
        left = [path.name for path in self.run.iterdir() if path.name.startswith("answers")]
        # The session may end between the note that the result was delivered and their removal.
        whole = not self.ends[-1].crashed and self.ends[-1].error is None
        self._check(not left or not whole, f"left in the run folder: {left}")

    def _check(self, holds: bool, problem: str) -> None:
        if not holds:
            raise Broken(f"session {len(self.ends)}: {problem}\n{self.plan}")


def different(found: Any, right: Any) -> str:
    """What differs from the undisturbed run, item by item where both are by item."""
    if not (isinstance(found, dict) and isinstance(right, dict)):
        return f"{found}\nundisturbed: {right}"
    ids = [id for id in found.keys() | right.keys() if found.get(id) != right.get(id)]
    return "\n".join(f"{id}: {found.get(id)}\nundisturbed: {right.get(id)}" for id in sorted(ids))


@functools.cache
def reference(script: Script, wired: bool = False) -> dict[str, Any]:
    """What the run of a script keeps that nothing disturbs."""
    plan = Plan(
        script=script, concurrency=4, others=4, faults=0.0, latency=0.3, patience=Patience(),
        budget=Budget(), few_failures=False, store=True, crashes=(), interrupts=(), wired=wired,
    )  # fmt: skip
    before = clock.seconds.__self__  # type: ignore[attr-defined]
    kept = before.now, before.loop
    with tempfile.TemporaryDirectory() as folder:
        world = World(plan, f"script {script.number}", Path(folder), before)
        world._check_values = lambda: None  # type: ignore[method-assign]
        ended = world.session()
        assert world.run is not None and ended.result is not None
        assert ended.result.status == "done", [str(one) for one in ended.errors]
        found = {**end_of(world.run), "writes": world.disk.writes}
    before.now, before.loop = kept
    return found


def live(seed: int, machine: Clock) -> World:
    """The world of a seed at its end; Broken if something does not hold."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(plan_of(seed), seed, Path(folder), machine)
        try:
            world.live()
        except Exception as error:
            error.add_note(f"repeat: PYTHONPATH=tests .venv/bin/python -m simulated.world {seed}")
            raise
    return world


if __name__ == "__main__":
    with simulated() as one:
        for number in map(int, sys.argv[1:]):
            print(number, len(live(number, one).ends), "sessions")
