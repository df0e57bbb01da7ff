"""Faults of the product, each planted in the running code.

A canary changes a few words in the source of one function.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from simulated.plans import Plan

from harness.calls import budget, client, engines, store
from harness.calls.budget import Budget
from harness.pipeline import item_queue, plan, run
from harness.runs import atomic_files, journal, run_folder
from harness.scoring import score_run


@dataclass(frozen=True)
class Canary:
    """In the source of `owner.name`, which is also `used_in` other modules, `find` is replaced.

    Only in worlds of whose plan `needs` is true may it fall: the others are spared.
    """

    owner: Any
    name: str
    find: str
    replace: str
    used_in: tuple[Any, ...] = ()
    needs: Callable[[Plan], Any] = lambda plan: True

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Within, the fault is in the code."""
        function = getattr(self.owner, self.name)
        code = textwrap.dedent(inspect.getsource(function))
        assert code.count(self.find) == 1, f"{self.name} has {self.find!r} {code.count(self.find)}×"
        module = sys.modules[inspect.unwrap(function).__module__]
        names = dict(vars(module))
        header = "from __future__ import annotations\n"
        exec(compile(header + code.replace(self.find, self.replace), self.name, "exec"), names)
        with pytest.MonkeyPatch.context() as patch:
            for owner in (self.owner, *self.used_in):
                patch.setattr(owner, self.name, names[self.name])
            yield


CANARIES = {
    "a retry that forgets the claim": Canary(
        client.Client, "_attempts",
        "claim = await self._admit(state, call.request)",
        "if tries.sent:\n"
        "                    await state.limiter.acquire()\n"
        "                else:\n"
        "                    claim = await self._admit(state, call.request)",
        needs=lambda plan: plan.faults and plan.budget != Budget(),
    ),
    "a journal line long before its answer": Canary(
        store.Store, "_schedule", "loop.call_later(BATCH_SECONDS", "loop.call_later(60.0",
        needs=lambda plan: plan.crashes,
    ),
    "a limiter that admits one too many": Canary(
        engines.Limiter, "_free", "self.busy < int(self.limit)", "self.busy <= int(self.limit)",
    ),
    "a store that is read before its commit": Canary(
        store.Store, "get", "value = self._pending.get(key)", "value = None",
        needs=lambda plan: plan.store,
    ),
    "a budget that does not reserve": Canary(
        budget.Meter, "claim",
        "self._set_aside + claim.most", "claim.most",
        needs=lambda plan: plan.budget.cost,
    ),
    "a budget that forgets what a failure cost": Canary(
        budget.Meter, "settle",
        "if usage is not None:\n        self.tokens",
        "if isinstance(outcome, Reply):\n        self.tokens",
        needs=lambda plan: plan.faults and plan.budget.tokens,
    ),
    "a resume that asks again what failed by its answer": Canary(
        run, "open_executor",
        "retry_failures=settings.retry_failures", "retry_failures=True",
        needs=lambda plan: plan.crashes,
    ),
    "a torn last line that is taken whole": Canary(
        journal, "cut_torn_tail", "if end < size:", "if False:",
        needs=lambda plan: plan.crashes,
    ),
    "cut answers that are not kept": Canary(
        client.Client, "_keep",
        "if reply is None or", 'if reply is None or reply.finish != "stop" or',
        needs=lambda plan: plan.crashes or plan.budget != Budget(),
    ),
    "an error that is an empty answer": Canary(
        client.Client, "_attempts",
        "    if isinstance(outcome, CallError):",
        "    if isinstance(outcome, CallError) and not outcome.fatal:\n"
        "        outcome = Reply(text='{\"words\": []}')\n"
        "    if isinstance(outcome, CallError):",
        needs=lambda plan: plan.faults,
    ),
    "a file that is replaced before it is whole": Canary(
        atomic_files, "atomic_writer", "temporary.open(\"xb\")", "path.open(\"wb\")",
        (score_run,),
    ),
    "equal questions that are asked side by side": Canary(
        client.Client, "_answer", "while call.key in self._flights:", "while False:",
    ),
    "a stage that does not wait at the barrier": Canary(
        plan.Plan, "_ready",
        "and not any((run.task, name) in not_done for name in run.context.stage.after)", "",
    ),
    "a slot that is given back and wakes nobody": Canary(
        engines.Limiter, "release", "self._admit()", "pass",
    ),
    "a delivered run that was not": Canary(
        run_folder.RunFolder, "find",
        'run.status != "done" or not run.delivered', 'run.status != "done"',
        needs=lambda plan: plan.script.scope == "run" and max(plan.crashes, default=0) > 0.8,
    ),
    "answers of this run that are not looked up": Canary(
        client.OwnAnswers, "earlier",
        "own.session != self._session", "own.session < self._session - 1",
        needs=lambda plan: plan.crashes,
    ),
    "a journal that is closed without its last lines": Canary(
        journal.JournalWriter, "close", "self._write()", "pass",
    ),
    "an item that is taken over though it lacks an answer": Canary(
        item_queue.StageQueue, "_asks_again", "self.ask_unanswered and lacking.unanswered", "False",
        needs=lambda plan: plan.faults,
    ),
    "an answer that is given back without what it cost": Canary(
        client.Client, "_from_own", "own.asker != call.asker", "True",
        needs=lambda plan: plan.crashes and not plan.store and not plan.faults,
    ),
}  # fmt: skip
