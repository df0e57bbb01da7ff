"""The life of a run folder, in drawn steps: at its end it is as one that nothing disturbed.

After each session `World` has checked what is answered and saved, and that nothing of it was asked.
"""

import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders.machines import run_machine
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from simulated import benchmark
from simulated.kept import STAGES, end_of, lacks_answer, records_in
from simulated.plans import SCRIPTS, plan_of, script_of
from simulated.setting import simulated
from simulated.world import World, reference

from harness.base.errors import HarnessError
from harness.calls.budget import Budget
from harness.calls.retry import Patience
from harness.runs.run_folder import RunFolder
from harness.scoring.score_run import score_task

SHARES = st.floats(0, 0.999)


def done(world: World) -> bool:
    """Whether the run was delivered, and no later session of it was killed."""
    return world.delivered and RunFolder(world.run).manifest().status == "done"


def finished(world: World) -> bool:
    """Whether the run is done and lacks no answer."""
    return done(world) and not world.unanswered()


class Life(RuleBasedStateMachine):
    """A run by one command until it is delivered, and what people do with its folder."""

    world: World

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.setting = simulated()
        self.machine = self.setting.__enter__()

    @initialize(
        script=st.sampled_from(SCRIPTS[:4]), store=st.booleans(), seed=st.integers(0, 99),
        faults=st.sampled_from([0.0, 0.0, 0.4]), attempts=st.sampled_from([1, 8]),
    )  # fmt: skip
    def begin(self, script: int, store: bool, seed: int, faults: float, attempts: int) -> None:
        self.plan = replace(
            plan_of(0), script=script_of(script), store=store, faults=faults, crashes=(),
            interrupts=(), wired=False, budget=Budget(), patience=Patience(attempts=attempts),
            few_failures=False,
        )  # fmt: skip
        self.right = reference(self.plan.script)
        self.world = World(self.plan, f"life {seed}", Path(self.place.name), self.machine)

    def teardown(self) -> None:
        try:
            if hasattr(self, "world"):
                if self.world.delivered and not done(self.world):
                    self.run()
                self.world.live()
                self.score()
        finally:
            self.setting.__exit__(None, None, None)
            self.place.cleanup()

    @precondition(lambda self: not done(self.world))
    @rule()
    def run(self) -> None:
        self.world.session()

    @precondition(lambda self: not done(self.world))
    @rule(share=SHARES)
    def run_and_kill(self, share: float) -> None:
        self.world.session(crash_at=1 + int(share * self.right["writes"]))

    @precondition(lambda self: not done(self.world))
    @rule(times=st.sampled_from([(0.1,), (1.0,), (3.0, 3.2)]))
    def run_and_interrupt(self, times: tuple[float, ...]) -> None:
        self.world.session(interrupts=times)

    @precondition(lambda self: done(self.world))
    @rule(share=st.none() | SHARES)
    def retry(self, share: float | None) -> None:
        """Only what lacks an answer or cannot be read is asked; a kill loses none of the rest."""
        crash = None if share is None else 1 + int(share * self.right["writes"])
        whole = not any(
            lacks_answer(record) or record["outcome"]["type"] != "done"
            for stage in STAGES
            for record in self.world.records(stage).values()
        )
        self.world.session(retry=True, crash_at=crash)
        assert not (whole and self.world.server.session.calls)

    @precondition(lambda self: self.world.run is not None)
    @rule(number=st.integers(0, 3))
    def rename(self, number: int) -> None:
        """Of the folder: then its place is given; of the run: it stays the same, but by a second
        name, which may mean other weights."""
        assert self.world.run is not None
        more = self.world.more
        if number == 0 and (self.plan.script.scope == "everywhere" or "name" not in more):
            more["name"] = f"run-{len(self.world.ends)}"
        elif number:
            place = self.world.run.with_name(f"renamed {number}")
            self.world.run.rename(place)
            more["resume"] = place

    @precondition(lambda self: finished(self.world))
    @rule()
    def score(self) -> None:
        """Again the same bytes, of what the undisturbed run keeps."""
        self.world.check_end()
        before = self.files()
        self.rescore()
        assert {name for name, data in self.files().items() if data != before[name]} == set()

    def rescore(self) -> None:
        assert self.world.run is not None
        folder = RunFolder(self.world.run)
        score_task(folder, folder.manifest(), "simulated", benchmark.BENCHMARK)

    def files(self) -> dict[Path, bytes]:
        assert self.world.run is not None
        return {one: one.read_bytes() for one in self.world.run.rglob("*") if one.is_file()}

    @precondition(lambda self: self.world.run is not None)
    @rule(data=st.data(), share=SHARES, bit=st.integers(0, 7))
    def a_byte_is_flipped(self, data: st.DataObject, share: float, bit: int) -> None:
        """Whoever reads it says so, or reads what was written; nothing is asked because of it."""
        assert self.world.run is not None
        files = self.files()
        kinds = ("manifest.json", *(f"{stage}.jsonl" for stage in STAGES))
        names = sorted(one for one, content in files.items() if content and one.name in kinds)
        file = data.draw(st.sampled_from(names))
        changed = bytearray(files[file])
        changed[int(share * len(changed))] ^= 1 << bit
        file.write_bytes(changed)
        whole = finished(self.world) if file.suffix == ".jsonl" else False
        try:
            self.rescore()
            assert not whole, "a damaged record was scored"
        except HarnessError:
            pass
        finally:
            for one, content in files.items():
                one.write_bytes(content)

    @precondition(lambda self: finished(self.world) and self.plan.store and not self.world.more)
    @rule()
    def another_judge(self) -> None:
        """A run of its own, which asks the judge alone where answers may leave a run."""
        world, script = self.world, self.plan.script
        assert world.run is not None
        before, first = self.files(), world.run
        world.judge, retried = "second", world.retried
        world.server.stored = True
        account = world.server.begin(world.budget)
        world.disk.begin()
        ended = world._carried_out((), retry=False)
        asked = Counter(one.question.partition(" ")[0] for one in account.attempts)
        assert ended.result is not None and ended.result.folder != first
        if script.scope == "everywhere" and not self.plan.faults:
            cut = {"candidate", "referee"} & asked.keys()
            assert not cut or self.cut_answers(first), asked
        found: Any = end_of(ended.result.folder)
        if not self.plan.faults:
            assert {one: found[one] for one in STAGES[:2]} == {
                one: self.right[one] for one in STAGES[:2]
            }
        shutil.rmtree(ended.result.folder)
        assert self.files() == before
        world.judge, world.retried = "judge", retried
        world.server.forbidden = world.saved()

    def cut_answers(self, run: Path) -> bool:
        """Whether an answer did not end by itself: those are not stored for other runs."""
        return any(
            call.get("finish", "stop") != "stop" or call.get("text") is None
            for stage in STAGES[:2]
            for record in records_in(run / "simulated" / f"{stage}.jsonl").values()
            for call in record.get("calls", ())
        )


def test_a_run_folder_ends_as_if_nothing_had_happened_to_it() -> None:
    run_machine(Life, examples=12, steps=8)


def test_a_finished_run_keeps_its_summary_where_a_retry_is_killed_at_its_first_write() -> None:
    life = Life()
    life.begin(script=0, store=True, seed=0, faults=0.0, attempts=1)
    life.run()
    life.retry(share=0.0)
    life.score()
    life.teardown()
