"""Groups written by hand, and the desk at which a stage's work asks a scripted model."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from builders.runs import make_task
from builders.stages import make_benchmark, make_contexts
from harness_perrecbench.records import Behaviour, Group, Member, Options, Single, Thing

from harness.calls.client import Client
from harness.contracts.identity import Identity
from harness.contracts.model import Model, Reply, Request
from harness.contracts.records import CallRecord
from harness.pipeline.desk import ItemDesk
from harness.pipeline.roles import Binding

PROMPTS = Path(__file__).parents[3] / "prompts"


@dataclass(eq=False)
class ScriptedModel(Model):
    """Answers by a function of the request, with a text, a reply or a CallError; notes requests."""

    answer: Callable[[Request], Any]
    asked: list[Request] = field(default_factory=list)
    concurrency: int = 1

    @property
    def identity(self) -> Identity:
        return Identity(kind="scripted", name="scripted")

    async def ask(self, request: Request) -> Reply:
        self.asked.append(request)
        answer = self.answer(request)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(text=answer)


@dataclass(frozen=True)
class Worked:
    """What a stage's work came to, and what it asked for that."""

    outcome: Any
    calls: tuple[CallRecord, ...]
    asked: tuple[Request, ...]

    @property
    def repeats(self) -> list[int]:
        return [call.repeat for call in self.calls]

    @property
    def users(self) -> list[str]:
        """The tastes that each question shows, in their order: "12" shows user 1 before user 2."""
        return [
            "".join(part[0] for part in request.messages[-1].content.split("taste of ")[1:])
            for request in self.asked
        ]


@pytest.fixture
def at_desk():
    """Does a stage's work on an item with real prompts and a desk; answers are told in turn.

    `answers` may be a function of the request instead.
    """

    async def work(stage: Any, item: Any, answers: Any, *, seed: int = 0, **options: Any) -> Worked:
        left = None if callable(answers) else list(answers)
        model = ScriptedModel(answers if left is None else lambda request: left.pop(0))
        [context] = make_contexts(
            PROMPTS,
            make_task(benchmark="perrecbench"),
            make_benchmark(stage, name="perrecbench", options=Options),
            {role: Binding(role=role, label=role, model=model) for role in stage.roles},
            options=Options(**options),
            seed=seed,
        )
        desk = ItemDesk(
            item=item,
            context=context,
            client=Client(store=None, run_id="run"),
            memo=lambda name: None,
        )
        outcome = await stage.work(item, desk)
        assert not left, f"answers that nobody asked for: {left}"
        return Worked(outcome, tuple(desk.calls), tuple(model.asked))

    return work


def _member(number: int, **more: Any) -> Member:
    shown = (Behaviour(title=f"taste of {number}", rating=4.0),)
    values = {"id": f"u{number}", "average": 3.5, "common": 4.0, "profile": "Reads.", **more}
    return Member(shown=shown, **values)


@pytest.fixture
def member():
    """A user by number, whose one behaviour is named `taste of <number>`."""
    return _member


@pytest.fixture
def group():
    """A group of so many users."""

    def make(members: int) -> Group:
        users = tuple(_member(number) for number in range(1, members + 1))
        return Group(id="kettle", user="kettle", query=Thing(title="A kettle"), members=users)

    return make


@pytest.fixture
def single():
    """The first of two users, and the thing in question."""
    return Single(
        id="kettle/1",
        user="kettle",
        query=Thing(title="A kettle"),
        member=_member(1),
        place=1,
        of=2,
    )
